//go:build linux

package bubblewrap_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// What was written to take the machine, to stay or to starve others ends when it is told
// to, leaves nobody, and costs neither its own sandbox nor the one beside it.
func TestHostile(t *testing.T) {
	t.Parallel()
	both(t, hostile)
}

const noRoom = "Resource temporarily unavailable" // what shells say at the limit of processes

func hostile(t *testing.T) {
	p := newPlace(t)
	m := p.manager(t, p.runtime(t, "", p.agent))
	small := 8 * sandbox.MiB
	open := func() *manager.Sandbox {
		t.Helper()
		s, err := m.Open(t.Context(), manager.OpenOptions{Language: "shell", Limits: sandbox.Limits{PIDs: 60, Workspace: small, Tmp: small, Shm: small}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	taken, beside := open(), open()
	for what, tt := range map[string]struct {
		script string // SLEEP is a command that takes longer than the test
		words  string // once it has said them it is canceled; without, it ends
		limits sandbox.ExecLimits
		want   sandbox.ExitReason
	}{
		"a fork bomb":      {"bomb() { bomb | bomb & }; bomb; SLEEP", noRoom, sandbox.ExecLimits{}, sandbox.ReasonCanceled},
		"one of sessions":  {`f() { setsid bash -c "$(declare -f f); f & f & f & SLEEP" & }; f; f; f; SLEEP`, noRoom, sandbox.ExecLimits{}, sandbox.ReasonCanceled},
		"a storm":          {"while :; do SLEEP & done", noRoom, sandbox.ExecLimits{}, sandbox.ReasonCanceled},
		"deaf to signals":  {"trap '' TERM INT HUP QUIT; echo ready; while :; do SLEEP; done", "ready", sandbox.ExecLimits{}, sandbox.ReasonCanceled},
		"one that stops":   {"echo ready; kill -STOP $$; SLEEP", "ready", sandbox.ExecLimits{}, sandbox.ReasonCanceled},
		"daemons":          {"for i in 1 2 3 4 5 6 7 8; do (setsid SLEEP &); done; echo ready; SLEEP", "ready", sandbox.ExecLimits{}, sandbox.ReasonCanceled},
		"daemons it left":  {"for i in 1 2 3 4 5 6 7 8; do (setsid SLEEP >/dev/null 2>&1 </dev/null &); done", "", sandbox.ExecLimits{}, sandbox.ReasonExited},
		"nothing but time": {"exec </dev/null >&- 2>&-; SLEEP", "", sandbox.ExecLimits{Timeout: sandbox.Duration(time.Second)}, sandbox.ReasonTimeout},
		"a flood":          {"yes & yes >&2 & SLEEP", "", sandbox.ExecLimits{MaxOutput: sandbox.MiB}, sandbox.ReasonOutput},
		"everybody killed": {"SLEEP & kill -9 -1; exit 3", "", sandbox.ExecLimits{}, sandbox.ReasonExited},
		"a full workspace": {"exec dd if=/dev/zero of=fill bs=64k", "", sandbox.ExecLimits{}, sandbox.ReasonDisk},
		"a full /tmp":      {"exec dd if=/dev/zero of=/tmp/fill bs=64k", "", sandbox.ExecLimits{}, sandbox.ReasonDisk},
		"a full /dev/shm":  {"exec dd if=/dev/zero of=/dev/shm/fill bs=64k", "", sandbox.ExecLimits{}, sandbox.ReasonDisk},
	} {
		t.Run(what, func(t *testing.T) {
			mark := strconv.Itoa(100_000_000 + rand.IntN(800_000_000)) // its processes are known by how long they sleep
			run := sandbox.Run{Command: []string{"bash", "-c", strings.ReplaceAll(tt.script, "SLEEP", "sleep "+mark)}, ExecLimits: tt.limits}
			if run.Timeout == 0 {
				run.Timeout = sandbox.Duration(5 * time.Minute)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &until{words: tt.words, then: cancel}
			res, err := taken.Exec(ctx, run, sandbox.Streams{Stdout: w, Stderr: w})
			if err != nil || res.Reason != tt.want {
				t.Fatalf("%v, %+v, %.300q", err, res.Exit, w.all.String())
			}
			if left := processes(t, mark); len(left) > 0 {
				t.Errorf("survivors: %q", left)
			}
			for name, s := range map[string]*manager.Sandbox{"its own": taken, "the one beside it": beside} {
				res, err := s.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "rm -f fill /tmp/fill /dev/shm/fill; echo ok"}}, sandbox.Streams{})
				if err != nil || string(res.Stdout) != "ok\n" || res.Replaced {
					t.Errorf("afterwards, in %s: %v, %+v, replaced %v, %s%s", name, err, res.Exit, res.Replaced, res.Stdout, res.Stderr)
				}
			}
		})
	}
}

// until calls a function once it was given the words. It is written to from one
// goroutine, as [sandbox.Streams] says.
type until struct {
	words string
	then  func()
	all   strings.Builder
}

func (w *until) Write(b []byte) (int, error) {
	if w.all.Len() < 1<<20 {
		w.all.Write(b)
		if w.words != "" && strings.Contains(w.all.String(), w.words) {
			w.then()
		}
	}
	return len(b), nil
}

// processes lists those of this machine whose command line has the words.
func processes(t *testing.T, words string) []string {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range found {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), words) { // else it has ended
			all = append(all, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return all
}
