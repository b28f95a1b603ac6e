// Package call is the program tool, by which shells and whatever else can start a
// program call the host's tools. It is the agent's binary under another name: an exec
// that may call tools finds it in its PATH.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Streams are what the program reads and writes.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// The exit codes of the program.
const (
	codeFailed = 1
	codeUsage  = 2
)

const usage = `usage: tool NAME [--KEY VALUE]…   call a tool of the host
       … | tool NAME              with the arguments as JSON on standard input
       tool NAME --help           what it takes
       tool                       list the tools
`

// declared is a tool as the host has written it down.
type declared struct {
	Name        string `json:"name"`
	Inside      string `json:"inside"`
	Description string `json:"description"`
	Parameters  *struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	} `json:"parameters"`
}

// property is one parameter. Its type is a name or a list of names.
type property struct {
	Type        any    `json:"type"`
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
}

// Main runs the program with its arguments, and returns its exit code.
func Main(ctx context.Context, args []string, s Streams) int {
	socket := os.Getenv(wire.EnvTools)
	if socket == "" {
		fmt.Fprintln(s.Stderr, "tool: this program may call no tools")
		return codeFailed
	}
	text, err := os.ReadFile(path.Join(path.Dir(socket), wire.ToolsSpec))
	var tools []declared
	if err == nil {
		err = json.Unmarshal(text, &tools)
	}
	if err != nil {
		fmt.Fprintln(s.Stderr, "tool: read what tools there are:", err)
		return codeFailed
	}
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		list(s.Stdout, tools)
		return 0
	}
	t := find(tools, args[0])
	if len(args) == 2 && args[1] == "--help" {
		describe(s.Stdout, t)
		return 0
	}
	arguments, err := t.arguments(args[1:], s.Stdin)
	if err != nil {
		fmt.Fprintf(s.Stderr, "tool: %s: %v\n%s", t.Name, err, usage)
		return codeUsage
	}
	answer, err := ask(ctx, socket, wire.CallRequest{Tool: t.Name, Arguments: arguments})
	if err != nil {
		fmt.Fprintf(s.Stderr, "tool: %s: %v\n", t.Name, err)
		return codeFailed
	}
	return show(s, answer)
}

// find looks a tool up; one that is not there the host refuses, and says so.
func find(tools []declared, name string) declared {
	for _, t := range tools {
		if t.Name == name || t.Inside == name {
			return t
		}
	}
	return declared{Name: name}
}

func list(w io.Writer, tools []declared) {
	fmt.Fprint(w, usage)
	for _, t := range tools {
		first, _, _ := strings.Cut(t.Description, "\n")
		fmt.Fprintf(w, "  %-20s %s\n", t.Name, first)
	}
}

// ask makes one call.
func ask(ctx context.Context, socket string, request wire.CallRequest) (answer []byte, err error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("the host does not answer: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := wire.CallFrames(1, text, func(f wire.CallFrame) error {
		_, err := conn.Write(wire.AppendCall(nil, f))
		return err
	}); err != nil {
		return nil, fmt.Errorf("the host does not listen: %w", err)
	}
	r := wire.NewCallReader(conn)
	for {
		f, err := r.Next()
		if err != nil {
			return nil, errors.New("the host has closed the way to tools")
		}
		answer = append(answer, f.Payload...)
		if f.Type == wire.CallLast {
			return answer, nil
		}
	}
}

// show prints a result: a text as it is, and all else as JSON.
func show(s Streams, answer []byte) int {
	var a struct {
		Result json.RawMessage `json:"result"`
		Error  *wire.CallError `json:"error"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		fmt.Fprintln(s.Stderr, "tool: the host's answer is not JSON:", err)
		return codeFailed
	}
	if e := a.Error; e != nil {
		fmt.Fprintf(s.Stderr, "tool: %s: %s\n", e.Kind, e.Message)
		if e.Hint != "" {
			fmt.Fprintf(s.Stderr, "  %s\n", e.Hint)
		}
		return codeFailed
	}
	out := string(a.Result)
	var text string
	if json.Unmarshal(a.Result, &text) == nil && out != "null" {
		out = text
	}
	if !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	if _, err := io.WriteString(s.Stdout, out); err != nil {
		return codeFailed
	}
	return 0
}
