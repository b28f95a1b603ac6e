package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestHold has clients go that made a temporary session, while it is made and behind
// that: it is removed each time.
func TestHold(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"while it is made", "behind that"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			making, gone, removed := make(chan struct{}), make(chan struct{}), make(chan string, 1)
			c := through(t, &double{called: func(method string, args ...any) []any {
				switch method {
				case "CreateSession":
					close(making)
					if when == "while it is made" {
						<-gone
					}
					return []any{sandbox.Session{Name: "s-1"}, args[0].(context.Context).Err()}
				case "Session":
					return []any{sandbox.SessionView{Session: sandbox.Session{Name: "s-1", Holder: "the server"}}, nil}
				}
				removed <- method + " " + args[1].(string)
				return []any{nil}
			}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-making
				if when == "while it is made" {
					cancel()
				}
			}()
			made, err := c.CreateSession(ctx, api.SessionOptions{Temporary: true}, sandbox.Local{})
			if when == "while it is made" {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("it was made: %v", err)
				}
				close(gone)
			} else if err != nil || made.Name != "s-1" {
				t.Errorf("%+v, %v", made, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if got := <-removed; got != "RemoveSession s-1" {
				t.Error(got)
			}
		})
	}
}
