package tools

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/sandbox"
)

// Func makes a tool of a Go function. The schemas of its arguments and of its result
// are read off In, a struct whose json tags name them and whose jsonschema tags
// describe them, and Out; those that t has already stay. Errors: Invalid.
func Func[In, Out any](t sandbox.Tool, call func(ctx context.Context, in In) (Out, error)) (sandbox.Callable, error) {
	for _, s := range []struct {
		of   func(*jsonschema.ForOptions) (*jsonschema.Schema, error)
		into *json.RawMessage
	}{{jsonschema.For[In], &t.Parameters}, {jsonschema.For[Out], &t.Result}} {
		if len(*s.into) > 0 {
			continue
		}
		schema, err := s.of(nil)
		if err == nil {
			*s.into, err = json.Marshal(schema)
		}
		if err != nil {
			return sandbox.Callable{}, sandbox.Errorf(sandbox.Invalid, "tool %s: %w", t.Name, err)
		}
	}
	return sandbox.Callable{Tool: t, Call: func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "tool %s: %w", t.Name, err)
		}
		out, err := call(ctx, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}}, nil
}
