package manager_test

import (
	"context"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// judge is a gate that refuses to start what has a name of its list, and remembers
// what it was asked about.
type judge struct {
	deny []string
	gate manager.Gate // that answers in its place

	mu    sync.Mutex
	asked []manager.Start
	any   bool // a program of the image may be started again with other arguments
	same  bool
}

func (j *judge) Judge(ctx context.Context, q manager.Question) (manager.Answer, error) {
	if j.gate != nil {
		return j.gate(ctx, q)
	}
	if q.Start == nil {
		return manager.Unjudged(ctx, q)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked = append(j.asked, q.Start.Start)
	if slices.Contains(j.deny, path.Base(q.Start.Start.File)) {
		return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Deny, Findings: []sandbox.Finding{{ID: "T-1", Title: "Named", Verdict: sandbox.Deny}}}}, nil
	}
	return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Allow}, Any: j.any, Same: j.same}, nil
}

// about are the starts that were asked about, of files with that name.
func (j *judge) about(name string) (found []manager.Start) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.asked {
		if path.Base(s.File) == name {
			found = append(found, s)
		}
	}
	return found
}

// startsEverywhere runs a test on each runtime on which starts are seen.
func startsEverywhere(t *testing.T, do func(t *testing.T, on string)) {
	t.Helper()
	for _, on := range []string{docker.Name, bubblewrap.Name} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			do(t, on)
		})
	}
}

// startsOn are the runtimes of a kit: one, by its name.
func startsOn(t *testing.T, kit *enginetest.Kit, on string) *runtimes.Registry {
	t.Helper()
	if on == docker.Name {
		return kit.Runtimes(t)
	}
	enginetest.Bubblewrap(t)
	if os.Geteuid() != 0 {
		t.Skip("an agent that is one user with what it runs sees no starts")
	}
	return runtimes.Only(bubblewrap.Name, kit.Jail(t))
}

func startsManager(t *testing.T, on string, j *judge, rule sandbox.StartsRule) *manager.Manager {
	t.Helper()
	kit := enginetest.New(t)
	for _, l := range []string{"python", "shell"} {
		kit.Image(t, l)
	}
	m, err := manager.New(manager.Config{
		Runtimes: startsOn(t, kit, on), Images: kit.Images, Gate: j.Judge, Holder: kit.Holder, Patience: enginetest.Patience,
		Starts: rule, StartVariables: []string{"LD_*", "BASH_ENV"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func shell(text string) sandbox.Run { return inTime(sandbox.Run{Language: "shell", Code: text}) }

// inTime gives a run more time than it needs, however busy the machine is.
func inTime(run sandbox.Run) sandbox.Run {
	run.Timeout = sandbox.Duration(5 * time.Minute)
	return run
}

func mustRun(t *testing.T, m *manager.Manager, run sandbox.Run) sandbox.Result {
	t.Helper()
	res, err := m.Run(t.Context(), run, sandbox.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// What an exec starts is refused alone, or ends the exec, and either way is told.
func TestDeniedStart(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, deniedStart)
}

func deniedStart(t *testing.T, on string) {
	const text = "echo before\n/usr/bin/id; echo code $?\necho after\n"
	for _, goes := range []bool{true, false} {
		j := &judge{deny: []string{"id"}}
		m := startsManager(t, on, j, sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: goes})
		res := mustRun(t, m, shell(text))
		out := string(res.Stdout)
		if goes && (res.Reason != sandbox.ReasonExited || out != "before\ncode 126\nafter\n") {
			t.Errorf("it should have gone on: %+v %q %q", res.Exit, out, res.Stderr)
		}
		if !goes && (res.Reason != sandbox.ReasonDenied || res.Code != 126 || out != "before\n" || !strings.Contains(res.Cause, "/usr/bin/id: T-1 Named")) {
			t.Errorf("it should have ended: %+v %q", res.Exit, out)
		}
		if len(res.Starts) != 1 || res.Starts[0].Path != "/usr/bin/id" || res.Starts[0].Verdict != sandbox.Deny || res.Starts[0].Why != "T-1 Named" {
			t.Errorf("goes %v: told %+v", goes, res.Starts)
		}
	}
}

func TestToldStarts(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, toldStarts)
}

func toldStarts(t *testing.T, on string) {
	j := &judge{deny: []string{"id"}}
	m := startsManager(t, on, j, sandbox.StartsRule{Mode: sandbox.StartsTell})
	res := mustRun(t, m, shell("/usr/bin/id -u >/dev/null; sh -c '/bin/echo hello; true'\n"))
	if res.Reason != sandbox.ReasonExited || len(res.Starts) != 3 || len(j.asked) != 0 {
		t.Fatalf("%+v, told %+v, asked %d", res.Exit, res.Starts, len(j.asked))
	}
	var words []string
	for _, s := range res.Starts {
		words = append(words, strings.Join(s.Argv, " "))
	}
	if !slices.Equal(words, []string{"/usr/bin/id -u", "sh -c /bin/echo hello; true", "/bin/echo hello"}) || res.Starts[2].Parent != res.Starts[1].PID {
		t.Errorf("%q %+v", words, res.Starts)
	}
}
