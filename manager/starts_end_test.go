package manager_test

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// endOf says how a start ended, as far as that is known.
func endOf(s sandbox.Start) string {
	what := path.Base(s.Path)
	switch {
	case s.Verdict == sandbox.Deny:
		return what + " refused"
	case s.Replaced:
		return what + " replaced"
	case s.Signal > 0:
		return fmt.Sprint(what, " signal ", s.Signal)
	case s.Code != nil:
		return fmt.Sprint(what, " code ", *s.Code)
	}
	return what + " unknown"
}

// What an exec starts is told once it starts and once it has ended, while the exec
// runs, and its Result says both.
func TestEndsOfStarts(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, endsOfStarts)
}

func endsOfStarts(t *testing.T, on string) {
	for _, mode := range []sandbox.StartsMode{sandbox.StartsJudge, sandbox.StartsTell} {
		m := startsManager(t, on, &judge{deny: []string{"id"}}, sandbox.StartsRule{Mode: mode, Goes: true})
		type one struct {
			pid int
			at  sandbox.Duration
		}
		began := map[one]bool{}
		var starts, ended []string
		text := "/bin/true; /bin/false; sh -c 'kill -9 $$; :'; sh -c 'exec /bin/ls /nothing' 2>/dev/null; echo $?\n/bin/sleep 1000 &\nwhile read -r is </proc/$!/comm; [ $is != sleep ]; do :; done; echo up\n"
		if mode == sandbox.StartsJudge {
			text = "/usr/bin/id\n" + text
		}
		res, err := m.Run(t.Context(), shell(text), sandbox.Streams{Started: func(s sandbox.Start) {
			if which := (one{s.PID, s.At}); s.Ended == 0 && !began[which] {
				began[which] = true
				starts = append(starts, path.Base(s.Path))
			} else if ended = append(ended, endOf(s)); !began[which] {
				t.Errorf("%s is told to have ended before it began", s.Path)
			}
		}})
		if err != nil || string(res.Stdout) != "2\nup\n" {
			t.Fatalf("%v %+v %q %q", err, res.Exit, res.Stdout, res.Stderr)
		}
		var ends []string
		for _, s := range res.Starts {
			ends = append(ends, endOf(s))
			if s.Verdict != sandbox.Deny && s.Ended < s.At {
				t.Errorf("%s: ended %s, started %s", s.Path, s.Ended, s.At)
			}
		}
		want, shown := []string{"true code 0", "false code 1", "sh signal 9", "sh replaced", "ls code 2", "sleep signal 9"}, []string{"true", "false", "sh", "sh", "ls", "sleep"}
		slices.Sort(ended) // two may end at once
		told := slices.Sorted(slices.Values(want))
		if mode == sandbox.StartsJudge {
			want, shown = append([]string{"id refused"}, want...), append([]string{"id"}, shown...)
		}
		if !slices.Equal(ends, want) || !slices.Equal(starts, shown) || !slices.Equal(ended, told) {
			t.Errorf("%s: ends %q, want %q\nlive %q, want %q, and %q", mode, ends, want, starts, shown, ended)
		}
	}
}

// What is being judged as its exec ends is told to have been refused for that.
func TestStartAsItsExecEnds(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, startAsItsExecEnds)
}

func startAsItsExecEnds(t *testing.T, on string) {
	in, goOn := io.Pipe()
	m := startsManager(t, on, &judge{gate: func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Start == nil {
			return manager.Unjudged(ctx, q)
		}
		_ = goOn.Close() // the exec ends now
		<-ctx.Done()
		return manager.Answer{}, ctx.Err()
	}}, sandbox.StartsRule{Mode: sandbox.StartsJudge})
	res, err := m.Run(t.Context(), shell("/bin/sleep 1000 &\nread -r _\necho over\n"), sandbox.Streams{Stdin: in})
	if err != nil || res.Reason != sandbox.ReasonExited || string(res.Stdout) != "over\n" {
		t.Fatalf("%v %+v %q %q", err, res.Exit, res.Stdout, res.Stderr)
	}
	if len(res.Starts) != 1 || res.Starts[0].Verdict != sandbox.Deny || res.Starts[0].Why != "its exec has ended" {
		t.Errorf("%+v", res.Starts)
	}
}
