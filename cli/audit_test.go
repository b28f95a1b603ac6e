package cli

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// growing is an audit log that has two more events at each look, and tells when
// somebody has looked too often.
type growing struct {
	api.Service
	looks   int
	tooMany func()
}

func (g *growing) Events(_ context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error] {
	if g.looks++; g.looks > 5 {
		g.tooMany()
	}
	return func(yield func(sandbox.Event, error) bool) {
		for seq, n := f.After+1, 0; seq <= int64(2*g.looks) && (f.Limit == 0 || n < f.Limit); seq, n = seq+1, n+1 {
			if !yield(sandbox.Event{Seq: seq}, nil) {
				return
			}
		}
	}
}

// A limit holds over all looks of a follower, which ends with it.
func TestAuditListFollowsToItsLimit(t *testing.T) {
	t.Parallel()
	for limit, looks := range map[string]int{"1": 1, "2": 1, "3": 2} {
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		log := &growing{tooMany: cancel}
		cmd := newAuditList(Config{IO: IOStreams{Out: &out}, Service: func(context.Context) (api.Service, error) { return log, nil }})
		cmd.SetArgs([]string{"--limit", limit, "--follow"})
		if err := cmd.ExecuteContext(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if n := strings.Count(out.String(), "\n"); string(rune('0'+n)) != limit || log.looks != looks {
			t.Errorf("limit %s: %d events in %d looks, want %d looks", limit, n, log.looks, looks)
		}
	}
}
