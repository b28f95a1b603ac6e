package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

const eventStream = "text/event-stream"

// event is one server-sent event.
type event struct {
	name string
	data []byte
}

// errCut says that a stream ended without its end.
var errCut = errors.New("the connection to the server broke")

func isCut(err error) bool { return errors.Is(err, errCut) }

// events hands events to take until the one that ends them, and returns the data
// of that. Errors: the one that the server sent, and that of take, which ends the
// reading.
func (c *Client) events(ctx context.Context, r request, take func(event) error) ([]byte, error) {
	r.accept = eventStream
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for {
		e, err := readEvent(in)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, sandbox.Errorf(sandbox.Unavailable, "%w: %w", errCut, err).WithHint("try again")
		case e.name == wire.EventEnd:
			return e.data, nil
		case e.name == wire.EventError:
			var p wire.Problem
			if err := json.Unmarshal(e.data, &p); err != nil {
				return nil, err
			}
			return nil, failureOf(p)
		}
		if err := take(e); err != nil {
			return nil, err
		}
	}
}

// readEvent reads one event, and passes over what only shows that the server
// lives.
func readEvent(in *bufio.Reader) (e event, err error) {
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return e, err
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case len(line) == 0 && e.name != "":
			return e, nil
		case string(name) == "event":
			e.name = string(value)
		case string(name) == "data":
			e.data = append(e.data, value...)
		}
	}
}

var errStop = errors.New("the loop was left")

// follow is a sequence of what events carry.
func follow[T any](ctx context.Context, c *Client, r request) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		_, err := c.events(ctx, r, func(e event) error {
			var v T
			if err := json.Unmarshal(e.data, &v); err != nil {
				return err
			}
			if !yield(v, nil) {
				return errStop
			}
			return nil
		})
		if _, err = partly[T](err); err != nil && !errors.Is(err, errStop) {
			var none T
			yield(none, err)
		}
	}
}

// news is [follow] for what is told without errors: where the connection breaks, it
// ends.
func news[T any](ctx context.Context, c *Client, r request) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v, err := range follow[T](ctx, c, r) {
			if err != nil || !yield(v) {
				return
			}
		}
	}
}
