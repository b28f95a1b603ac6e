package store

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Check returns a change as it is to be kept. Every event has a kind and a
// time, and its data is a JSON object, compact and with <, > and & escaped:
// so it leaves an encoder as it entered, and what is printed has the hash that
// is kept. It does not write to c's own. Error: Invalid.
func Check(c sandbox.Transaction, now func() time.Time) (sandbox.Transaction, error) {
	for _, s := range [...]*sandbox.Session{c.CreateSession, c.PutSession} {
		if s != nil && s.Name == "" {
			return c, sandbox.Errorf(sandbox.Invalid, "a session without a name")
		}
	}
	c.Events = slices.Clone(c.Events)
	for i := range c.Events {
		e := &c.Events[i]
		if e.Kind == "" {
			return c, sandbox.Errorf(sandbox.Invalid, "an event without a kind")
		}
		if e.Time.IsZero() {
			e.Time = now()
		}
		data, err := canonical(e.Data)
		if err != nil {
			return c, sandbox.Errorf(sandbox.Invalid, "event %s: its data is not a JSON object: %w", e.Kind, err)
		}
		e.Data = data
	}
	return c, nil
}

func canonical(data json.RawMessage) (json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, nil
	}
	var compact, escaped bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return nil, err
	}
	if data[0] != '{' {
		return nil, &json.UnmarshalTypeError{Value: "another value"}
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	return escaped.Bytes(), nil
}
