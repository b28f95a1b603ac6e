package manager_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// called runs a command whose judge is to be called, and counts how often it is. Nobody
// comes.
func called(t *testing.T, c *client.Client, ask bool, argv ...string) (client.Outcome, int, string) {
	t.Helper()
	var calls atomic.Int32
	var said bytes.Buffer
	out, err := c.Run(t.Context(), client.Command{
		Argv: argv, Starts: &client.Starts{Ask: ask, Call: func() { calls.Add(1) }}, Timeout: 2 * time.Minute, Reap: true, Stdout: &said, Stderr: &said,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, int(calls.Load()), said.String()
}

// The judge of an exec is called once that has started something. One who does not come
// lets nothing pass, and is waited for once.
func TestJudgeIsCalled(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, judgeIsCalled)
}

func judgeIsCalled(t *testing.T, on string) {
	m := startsManager(t, on, &judge{}, sandbox.StartsRule{Mode: sandbox.StartsJudge})
	s, err := m.Open(t.Context(), manager.OpenOptions{Language: "shell"})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Client()
	if out, calls, said := called(t, c, true, "true"); calls != 0 || out.Starts != 0 || out.Code != 0 || len(out.Told) > 0 {
		t.Errorf("nothing started: called %d times, %+v %q", calls, out, said)
	}
	// How long it takes decides which of the two it is.
	if out, calls, said := called(t, c, false, "sh", "-c", "/bin/true; :"); out.Starts != 1 || out.Code != 0 || (calls == 0) != (len(out.Told) > 0) || calls == 0 && out.Told[0].Path != "/bin/true" {
		t.Errorf("told: called %d times, %+v %q", calls, out, said)
	}
	const many = "i=0; while [ $i -lt 40 ]; do /bin/true && echo ran; i=$((i+1)); done 2>/dev/null"
	if out, calls, said := called(t, c, true, "sh", "-c", many); calls != 1 || out.Unjudged != 40 || out.Reason != sandbox.ReasonExited || said != "" {
		t.Errorf("asked: called %d times, %+v %q", calls, out, said)
	}
}

// Who does not read an exec's output holds up nobody who judges what it starts.
func TestJudgedWhileOutputWaits(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, judgedWhileOutputWaits)
}

func judgedWhileOutputWaits(t *testing.T, on string) {
	asked := make(chan struct{})
	gate := func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Start != nil && strings.HasSuffix(q.Start.Start.File, "/true") {
			close(asked)
		}
		return manager.Unjudged(ctx, q)
	}
	m := startsManager(t, on, &judge{gate: gate}, sandbox.StartsRule{Mode: sandbox.StartsJudge})
	late, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	reader := writerFunc(func(p []byte) (int, error) {
		select {
		case <-asked:
		case <-late.Done():
		}
		return len(p), nil
	})
	res, err := m.Run(t.Context(), python(native+`
os.set_blocking(1, False)
full = 0
while full < 20: # nobody takes anything for a second
  try: os.write(1, b'x' * 65536); full = 0
  except BlockingIOError: full += 1; time.sleep(.05)
sys.exit(over(launch('/bin/true')))
`), sandbox.Streams{Stdout: reader})
	if err != nil || res.Code != 0 || len(res.Starts) != 1 {
		t.Errorf("%v %+v, told %+v", err, res.Exit, res.Starts)
	}
}
