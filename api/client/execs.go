package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// ListExecs implements [api.Execs].
func (c *Client) ListExecs(ctx context.Context, f sandbox.ExecFilter) ([]sandbox.ExecRecord, error) {
	q := selection(f.Owner, f.Labels)
	setString(q, "id", string(f.ID))
	setString(q, "session", f.Session)
	setBool(q, "running", f.Running)
	return listAll[sandbox.ExecRecord](ctx, c, request{method: get, path: "/v1/execs", query: q}, string(f.After), f.Limit)
}

// Processes implements [api.Execs].
func (c *Client) Processes(ctx context.Context, session string) ([]api.Process, error) {
	return list[api.Process](ctx, c, request{method: get, path: path("/v1/sessions/%/processes", session)})
}

func exec(form, session string, id sandbox.ID) string {
	return path("/v1/sessions/%/execs/%"+form, session, string(id))
}

// reconnects bounds how often in a row a connection is opened anew that gives
// nothing.
const reconnects = 5

// AttachExec implements [api.ExecControl]. Where the connection breaks it opens
// another and goes on from what it has.
func (c *Client) AttachExec(ctx context.Context, session string, id sandbox.ID, o sandbox.AttachOptions, stdout, stderr io.Writer) (sandbox.Attached, error) {
	at := position{stdout: o.Stdout, stderr: o.Stderr}
	writers := map[string]io.Writer{wire.EventStdout: stdout, wire.EventStderr: stderr}
	for vain := 0; ; vain++ {
		before := at
		q := url.Values{}
		setInt(q, "stdout_offset", at.stdout)
		setInt(q, "stderr_offset", at.stderr)
		setBool(q, "follow", o.Follow)
		a, err := c.attachOnce(ctx, request{method: get, path: exec("/output", session, id), query: q, accept: eventStream}, &at, writers)
		if err == nil || !isCut(err) || ctx.Err() != nil {
			a.Lost.Stdout += at.lost[0]
			a.Lost.Stderr += at.lost[1]
			return a, err
		}
		if at != before {
			vain = 0
		}
		if vain == reconnects {
			return a, err
		}
	}
}

// position is how far output was read, and what of it was not kept before the
// connection that is open.
type position struct {
	stdout, stderr int64
	lost           [2]int64
}

// attachOnce reads output over one connection.
func (c *Client) attachOnce(ctx context.Context, r request, at *position, writers map[string]io.Writer) (a sandbox.Attached, err error) {
	begun := *at
	var lost [2]int64
	end, err := c.events(ctx, r, func(e event) error {
		w, known := writers[e.name]
		var out wire.Output
		if !known {
			return nil
		}
		if err := json.Unmarshal(e.data, &out); err != nil {
			return err
		}
		to, i := &at.stdout, 0
		if e.name == wire.EventStderr {
			to, i = &at.stderr, 1
		}
		lost[i] += out.Offset - *to
		*to = out.Offset + int64(len(out.Bytes()))
		if w == nil {
			return nil
		}
		_, err := w.Write(out.Bytes())
		return err
	})
	if err != nil {
		at.lost[0], at.lost[1] = begun.lost[0]+lost[0], begun.lost[1]+lost[1]
		return sandbox.Attached{Stdout: at.stdout, Stderr: at.stderr}, err
	}
	if err := json.Unmarshal(end, &a); err != nil {
		return a, fmt.Errorf("read the end of the output: %w", err)
	}
	return a, nil
}

// AttachTerminal implements [api.Terminals].
func (c *Client) AttachTerminal(ctx context.Context, session string, id sandbox.ID, streams sandbox.Streams) (sandbox.Attached, error) {
	return connect[sandbox.Attached](ctx, c, wire.Begin{Session: session, Terminal: id}, sandbox.Streams{Stdin: streams.Stdin, Stdout: streams.Stdout})
}

// InputExec implements [api.ExecControl].
func (c *Client) InputExec(ctx context.Context, session string, id sandbox.ID, b []byte, end bool) (int, error) {
	t, err := call[wire.Taken](ctx, c, request{method: post, path: exec("/input", session, id), body: wire.Input{Base64: b, End: end}})
	return int(t.Bytes), err
}

// SignalExec implements [api.ExecControl].
func (c *Client) SignalExec(ctx context.Context, session string, id sandbox.ID, signal int, all bool) error {
	return c.none(ctx, request{method: post, path: exec("/signal", session, id), body: wire.Signal{Signal: signal, All: all}})
}

// KillExec implements [api.ExecControl].
func (c *Client) KillExec(ctx context.Context, session string, id sandbox.ID) error {
	return c.none(ctx, request{method: post, path: exec("/kill", session, id)})
}

// ResizeExec implements [api.ExecControl].
func (c *Client) ResizeExec(ctx context.Context, session string, id sandbox.ID, rows, cols uint16) error {
	return c.none(ctx, request{method: post, path: exec("/resize", session, id), body: wire.Size{Rows: rows, Cols: cols}})
}
