package manager_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// What a fork of a warm interpreter starts is judged and told as its own exec's, beside
// another fork, and where the interpreter had run before anything was to be seen.
func TestWarmStarts(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, warmStarts)
}

func warmStarts(t *testing.T, on string) {
	kit := enginetest.New(t)
	p := newPlaceWith(t, kit, startsOn(t, kit, on), "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	unseen := sandbox.Run{Session: "work", Code: "import subprocess; subprocess.run(['/usr/bin/id', '-u'])"}
	said(t, warmly(t, p, unseen))

	m := p.judging(t, (&judge{deny: []string{"id"}}).Judge)
	started := &awaited{text: "one", found: make(chan struct{})}
	in, goOn := io.Pipe()
	over := make(chan sandbox.Result, 1)
	go func() {
		res, err := m.ExecIn(t.Context(), "work", sandbox.Run{Warm: true, Code: "import subprocess, sys\nfor x in 'one', 'two':\n  subprocess.run(['/bin/echo', x])\n  sys.stdin.read()\n"},
			sandbox.Streams{Stdin: in, Stdout: started})
		if err != nil {
			t.Error(err)
		}
		over <- res
	}()
	<-started.found
	second, err := m.ExecIn(t.Context(), "work", sandbox.Run{Warm: true, Code: "import subprocess\ntry: subprocess.run(['/usr/bin/id', '-u'])\nexcept PermissionError: print('refused')\n"}, sandbox.Streams{})
	if err != nil {
		t.Error(err)
	}
	_ = goOn.Close() // as a pipe does, always without an error
	first := <-over
	for name, tt := range map[string]struct {
		res  sandbox.Result
		want []string
	}{
		"the first":  {first, []string{"allow /bin/echo one", "allow /bin/echo two"}},
		"the second": {second, []string{"deny /usr/bin/id -u"}},
	} {
		var told []string
		for _, s := range tt.res.Starts {
			told = append(told, string(s.Verdict)+" "+strings.Join(s.Argv, " "))
		}
		if !tt.res.Warm || tt.res.Code != 0 || !slices.Equal(told, tt.want) {
			t.Errorf("%s: warm %t, %+v %q, told %q", name, tt.res.Warm, tt.res.Exit, tt.res.Stderr, told)
		}
	}
	if string(second.Stdout) != "refused\n" {
		t.Errorf("the second said %q", second.Stdout)
	}
	said(t, warmly(t, p, unseen)) // nobody judges that
}
