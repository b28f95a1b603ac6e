package tools

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/internal/onedoc"
	"github.com/caisson-dev/caisson/sandbox"
)

// Entry is a tool as caisson.yaml, or a file of its own, declares it. Exactly one of
// Command, URL and MCP says what answers.
type Entry struct {
	Name string `yaml:"name"` // of an MCP server: what its tools' names begin with

	Description string            `yaml:"description"`
	Command     []string          `yaml:"command"` // run in the file's folder
	URL         string            `yaml:"url"`
	Headers     map[string]string `yaml:"headers"`    // of requests to URL; ${NAME} is a variable
	MCP         *Server           `yaml:"mcp"`        // has tools of its own
	Parameters  map[string]any    `yaml:"parameters"` // a JSON Schema
	Result      map[string]any    `yaml:"result"`     // another
	Timeout     string            `yaml:"timeout"`    // such as 10s
	Concurrency int               `yaml:"concurrency"`
	Verdict     sandbox.Verdict   `yaml:"verdict"`
	Rate        string            `yaml:"rate"` // such as 60/m
	Budget      int               `yaml:"budget"`
	OwnerBudget string            `yaml:"owner_budget"` // such as 1000/d
}

// Server is a server of the Model Context Protocol: a program that speaks it over its
// standard input and output, or an address.
type Server struct {
	Command []string          `yaml:"command"` // run in the file's folder
	Env     map[string]string `yaml:"env"`     // of it, beside this process's; ${NAME} is a variable
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"` // of requests to URL, the same
}

// Load reads a file that has entries under the key tools. Errors: Invalid, NotFound.
func Load(name string) ([]Entry, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		kind := sandbox.Invalid
		if os.IsNotExist(err) {
			kind = sandbox.NotFound
		}
		return nil, sandbox.Errorf(kind, "tools: %w", err)
	}
	var in struct {
		Version int     `yaml:"version"`
		Tools   []Entry `yaml:"tools"`
	}
	if err := onedoc.Decode(text, &in); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "tools: %s: %w", name, err).WithHint("write tools: [{name: …, command: […]}]")
	}
	if in.Version > 1 {
		return nil, sandbox.Errorf(sandbox.Invalid, "tools: %s: version is %d, want 1", name, in.Version)
	}
	return in.Tools, nil
}

// Open makes tools of entries that a file of that name has, but for those of MCP
// servers, which are mcptools'. getenv answers for variables in headers. Errors:
// Invalid.
func Open(entries []Entry, name string, getenv func(string) string) ([]sandbox.Callable, error) {
	folder, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "tools: %w", err)
	}
	var all []sandbox.Callable
	for _, e := range entries {
		if e.MCP != nil {
			continue
		}
		c, err := e.callable(folder, getenv)
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s: %w", name, err).WithHint("%s", cmp.Or(sandbox.HintOf(err), "docs/tools.md has every key"))
		}
		all = append(all, c)
	}
	return all, nil
}

func (e Entry) callable(folder string, getenv func(string) string) (sandbox.Callable, error) {
	t, err := e.Tool()
	if err != nil {
		return sandbox.Callable{}, err
	}
	switch {
	case (len(e.Command) > 0) == (e.URL != ""):
		return sandbox.Callable{}, sandbox.Errorf(sandbox.Invalid, "tool %s: exactly one of command and url says what answers", e.Name)
	case len(e.Headers) > 0 && e.URL == "":
		return sandbox.Callable{}, sandbox.Errorf(sandbox.Invalid, "tool %s: headers without url", e.Name)
	case len(e.Command) > 0:
		return Command(t, e.Command, folder)
	}
	headers, err := Expand(e.Headers, getenv)
	if err != nil {
		return sandbox.Callable{}, sandbox.Errorf(sandbox.Invalid, "tool %s: header %w", e.Name, err)
	}
	return Endpoint(t, e.URL, headers, nil)
}

// Expand puts variables in the place of ${NAME}. Errors: Invalid where there is no
// such variable.
func Expand(values map[string]string, getenv func(string) string) (map[string]string, error) {
	expanded := map[string]string{}
	for name, value := range values {
		missing := ""
		expanded[name] = os.Expand(value, func(v string) string {
			text := getenv(v)
			if text == "" {
				missing = v
			}
			return text
		})
		if missing != "" {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s needs the variable %s", name, missing)
		}
	}
	return expanded, nil
}

// Tool is the declaration. Errors: Invalid.
func (e Entry) Tool() (t sandbox.Tool, err error) {
	t = sandbox.Tool{Name: e.Name, Description: e.Description, Concurrency: e.Concurrency, Verdict: e.Verdict, Budget: e.Budget}
	if e.Timeout != "" {
		if err := t.Timeout.Set(e.Timeout); err != nil {
			return t, err
		}
	}
	if t.Rate, err = parseRate(e.Rate); err != nil {
		return t, err
	}
	if t.OwnerBudget, err = parseRate(e.OwnerBudget); err != nil {
		return t, err
	}
	for _, s := range []struct {
		from map[string]any
		to   *json.RawMessage
	}{{e.Parameters, &t.Parameters}, {e.Result, &t.Result}} {
		if s.from == nil {
			continue
		}
		if *s.to, err = json.Marshal(s.from); err != nil {
			return t, sandbox.Errorf(sandbox.Invalid, "tool %s: a schema is not JSON: %w", e.Name, err)
		}
	}
	return t, t.Check()
}

// rateTimes are what rates are counted in.
var rateTimes = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// parseRate reads 60/m: so many calls in a second, a minute, an hour or a day.
func parseRate(text string) (sandbox.ToolRate, error) {
	if text == "" {
		return sandbox.ToolRate{}, nil
	}
	number, per, ok := strings.Cut(text, "/")
	calls, err := strconv.Atoi(strings.TrimSpace(number))
	unit, known := rateTimes[strings.TrimSpace(per)]
	if !ok || err != nil || calls <= 0 || !known {
		return sandbox.ToolRate{}, sandbox.Errorf(sandbox.Invalid, "%q is no rate", text).WithHint("write calls in a time: 10/s, 60/m, 100/h or 1000/d")
	}
	return sandbox.ToolRate{Calls: calls, Per: sandbox.Duration(unit)}, nil
}
