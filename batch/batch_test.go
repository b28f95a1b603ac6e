package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/batch"
	"github.com/caisson-dev/caisson/sandbox"
)

func read(line []byte) (batch.Name, string, error) { return batch.Name(line), string(line), nil }

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// TestOrdered hands on in the order of lines what ends in another, and has the
// first that is slow hold up only so many: what waits is bounded.
func TestOrdered(t *testing.T) {
	t.Parallel()
	const all, workers = 200, 3
	var mu sync.Mutex
	begun, goOn := 0, make(chan struct{})
	b := batch.Batch[string, string]{Workers: workers, Ordered: true, Read: read, Do: func(ctx context.Context, in string) (string, error) {
		mu.Lock()
		begun++
		mu.Unlock()
		if in == "0" {
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
		if in == "40" { // behind it so many end that no more may begin
			close(goOn)
		}
		return in, nil
	}}
	var got []string
	most := 0
	err := b.Run(t.Context(), batch.Lines(strings.NewReader(numbers(all))), func(d batch.Done[string]) error {
		if len(got) == 0 {
			mu.Lock()
			most = begun
			mu.Unlock()
		}
		got = append(got, d.Out)
		return nil
	})
	if err != nil || strings.Join(got, "\n")+"\n" != numbers(all) || most > 16*workers+workers+2+16 {
		t.Errorf("%v, %d begun before the first: %v", err, most, got)
	}
}

// TestOrderedBound has the workers wait once too much waits for the first.
func TestOrderedBound(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	taken := 0
	lines := func(yield func([]byte, error) bool) {
		for i := range 10_000 {
			if taken++; !yield(fmt.Append(nil, i), nil) {
				return
			}
		}
	}
	ended := make(chan struct{}, 10_000)
	b := batch.Batch[string, string]{Workers: 2, Ordered: true, Read: read, Do: func(ctx context.Context, in string) (string, error) {
		if in == "0" {
			<-ctx.Done()
		}
		ended <- struct{}{}
		return in, nil
	}}
	go func() {
		for range 30 { // the one worker that is left does these
			<-ended
		}
		cancel()
	}()
	err := b.Run(ctx, lines, func(batch.Done[string]) error { return errors.New("the first has not ended") })
	if !errors.Is(err, context.Canceled) || taken > 40 {
		t.Errorf("%v, %d lines taken", err, taken)
	}
}

// TestLines reads what is between ends of lines, however it is cut, and passes over
// a line that is too long.
func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"nothing":        {"", nil},
		"no end":         {"a\nb", []string{"a", "b"}},
		"an end":         {"a\r\n\nb\n", []string{"a", "", "b"}},
		"as much":        {long + "\nb", []string{long, "b"}},
		"too much":       {"a\n" + long + "x\nb\n", []string{"a", "long", "b"}},
		"too much, last": {"a\n" + long + long, []string{"a", "long"}},
	} {
		var got []string
		for line, err := range batch.LinesOf(strings.NewReader(tt.text), len(long)) {
			switch {
			case errors.Is(err, batch.ErrLongLine):
				got = append(got, "long")
			case err != nil:
				t.Errorf("%s: %v", name, err)
			default:
				got = append(got, string(line))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %d lines, not %d", name, len(got), len(tt.want))
		}
	}
	if sandbox.KindOf(batch.ErrLongLine) != sandbox.Invalid {
		t.Error("a line that is too long is not the caller's fault")
	}
}
