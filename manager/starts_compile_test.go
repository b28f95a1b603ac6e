package manager_test

import (
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// compiled are the images of a kit, with a language whose compiler is a script that
// starts what its texts say, and makes a program that says more.
type compiled struct{ *images.Store }

func (c compiled) Language(name string) (sandbox.Language, error) {
	lang, err := c.Store.Language("shell")
	if name == "compiled" {
		lang.Name, lang.Warm = name, nil
		lang.Compile = []string{"sh", "-c", `sh "$1" && echo "/usr/bin/basename ran; :" >"$2"`, "compiler", "{file}", "{out}"}
		lang.RunCode, lang.RunFile = []string{"sh", "{out}"}, []string{"sh", "{out}"}
	}
	return lang, err
}

// What a compiler starts is judged and told as what its program starts, apart from that.
func TestCompilerStarts(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, compilerStarts)
}

func compilerStarts(t *testing.T, on string) {
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	j := &judge{deny: []string{"id"}}
	m, err := manager.New(manager.Config{
		Runtimes: startsOn(t, kit, on), Images: compiled{kit.Images}, Gate: j.Judge, Holder: kit.Holder, Patience: enginetest.Patience,
		Starts: sandbox.StartsRule{Mode: sandbox.StartsJudge},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	var watched []string
	run := func(text string) (sandbox.Result, []string) {
		t.Helper()
		res, err := m.Run(t.Context(), inTime(sandbox.Run{Language: "compiled", Code: text}), sandbox.Streams{Started: func(s sandbox.Start) {
			mu.Lock()
			defer mu.Unlock()
			if s.Ended == 0 {
				watched = append(watched, path.Base(s.Path))
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen := watched
		watched = nil
		if res.Compiled == nil {
			t.Fatalf("it was not compiled: %+v", res)
		}
		return res, seen
	}

	res, seen := run("uname >/dev/null\n")
	if res.Reason != sandbox.ReasonExited || res.Code != 0 || string(res.Stdout) != "ran\n" {
		t.Errorf("it should have run: %+v %q %q", res.Exit, res.Stdout, res.Stderr)
	}
	if got := startedPrograms(res.Compiled.Starts); !slices.Equal(got, []string{"sh", "uname"}) {
		t.Errorf("its compiler started %q", got)
	}
	if got := startedPrograms(res.Starts); !slices.Equal(got, []string{"basename"}) {
		t.Errorf("it started %q", got)
	}
	if !slices.Equal(seen, []string{"sh", "uname", "basename"}) {
		t.Errorf("who watches was shown %q", seen)
	}
	if len(j.about("uname")) != 1 {
		t.Error("nobody was asked about what the compiler starts")
	}

	res, _ = run("echo before; id; echo after\n")
	if res.Reason != sandbox.ReasonDenied || res.Code != 126 || res.Compiled.Reason != sandbox.ReasonDenied || !strings.Contains(res.Cause, "id: T-1 Named") {
		t.Errorf("its compiler should have been ended: %+v %+v", res.Exit, res.Compiled)
	}
	if string(res.Stderr) != "before\n" || len(res.Starts) > 0 {
		t.Errorf("it went on: %q %q %+v", res.Stdout, res.Stderr, res.Starts)
	}
	if n := len(res.Compiled.Starts); n == 0 || res.Compiled.Starts[n-1].Verdict != sandbox.Deny {
		t.Errorf("what was refused is not told: %+v", res.Compiled.Starts)
	}
}

func startedPrograms(starts []sandbox.Start) (names []string) {
	for _, s := range starts {
		names = append(names, path.Base(s.Path))
	}
	return names
}
