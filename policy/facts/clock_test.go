package facts_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
)

func TestWithin(t *testing.T) {
	const d = 50 * time.Millisecond
	var had atomic.Int64
	used := func() time.Duration { return time.Duration(had.Load()) }

	begun := time.Now()
	ctx, cancel := facts.Within(t.Context(), d, used)
	defer cancel()
	<-time.After(3 * d)
	if ended := ctx.Err(); ended != nil && time.Since(begun) < facts.Patience*d {
		t.Errorf("it ended without having had a processor: %v", ended)
	}
	had.Store(int64(d))
	if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) && time.Since(begun) < facts.Patience*d {
		t.Errorf("%v is not the end of its time of a processor", ctx.Err())
	}

	had.Store(0)
	begun = time.Now()
	ctx, cancel = facts.Within(t.Context(), d, used)
	defer cancel()
	if <-ctx.Done(); !errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Since(begun) < facts.Patience*d {
		t.Errorf("%v after %s", ctx.Err(), time.Since(begun))
	}
}
