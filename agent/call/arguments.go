package call

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// arguments reads what a tool is given: --key value, --key=value, --flag for a boolean,
// and - for JSON on standard input. A key that comes again makes a list where the
// parameter is one. Without any, JSON is read where standard input is a pipe or a file.
func (t declared) arguments(args []string, stdin io.Reader) (map[string]any, error) {
	given := map[string]any{}
	if len(args) == 0 && holdsData(stdin) {
		args = []string{"-"}
	}
	for i := 0; i < len(args); i++ {
		if args[i] == "-" {
			if err := fromJSON(stdin, given); err != nil {
				return nil, err
			}
			continue
		}
		key, ok := strings.CutPrefix(args[i], "--")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is no --key", args[i])
		}
		key, text, has := strings.Cut(key, "=")
		name, p, known := t.parameter(key)
		if !has {
			switch bare := i+1 == len(args) || strings.HasPrefix(args[i+1], "--"); {
			case bare && (p.is("boolean") || !known):
				given[name] = true
				continue
			case bare:
				return nil, fmt.Errorf("--%s has no value", key)
			}
			i++
			text = args[i]
		}
		if err := p.add(given, name, text); err != nil {
			return nil, fmt.Errorf("--%s: %w", key, err)
		}
	}
	return given, nil
}

// parameter finds a parameter by its name, or by that with - in place of _.
func (t declared) parameter(key string) (name string, p property, known bool) {
	if t.Parameters == nil {
		return key, property{}, false
	}
	for _, name := range []string{key, strings.ReplaceAll(key, "-", "_")} {
		if p, ok := t.Parameters.Properties[name]; ok {
			return name, p, true
		}
	}
	return key, property{}, false
}

func (p property) is(kind string) bool {
	kinds, many := p.Type.([]any)
	return p.Type == kind || many && slices.Contains(kinds, any(kind))
}

// add gives a parameter its value, as its type reads it: a text stays one, and all
// else is JSON.
func (p property) add(given map[string]any, name, text string) error {
	if p.is("array") && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		list, _ := given[name].([]any)
		var item any = text
		if json.Valid([]byte(text)) {
			item = json.RawMessage(text)
		}
		given[name] = append(list, item)
		return nil
	}
	if p.is("string") || p.Type == nil && !json.Valid([]byte(text)) {
		given[name] = text
		return nil
	}
	if !json.Valid([]byte(text)) {
		return fmt.Errorf("%q is no %v", text, p.Type)
	}
	given[name] = json.RawMessage(text)
	return nil
}

// holdsData reports whether a stream is a pipe or a file.
func holdsData(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return r != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// fromJSON adds an object on a stream to the arguments.
func fromJSON(r io.Reader, given map[string]any) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("standard input is no JSON object: %w", err)
	}
	for key, value := range object {
		given[key] = value
	}
	return nil
}

// describe prints what a tool takes.
func describe(w io.Writer, t declared) {
	fmt.Fprintf(w, "tool %s\n%s\n", t.Name, t.Description)
	if t.Parameters == nil {
		return
	}
	names := make([]string, 0, len(t.Parameters.Properties))
	for name := range t.Parameters.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := t.Parameters.Properties[name]
		need := ""
		if slices.Contains(t.Parameters.Required, name) {
			need = ", required"
		}
		fmt.Fprintf(w, "  --%s (%v%s)  %s\n", name, p.Type, need, p.Description)
	}
}
