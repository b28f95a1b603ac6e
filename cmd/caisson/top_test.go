package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// TestTopInATerminal shows a live table in a real terminal, sorts it, and quits it.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	enginetest.Tool(t, "tmux", "tmux")
	kit, base := place(t)
	kit.Image(t, "shell")
	env := append(os.Environ(), "CAISSON_AGENT="+kit.Agent, "CAISSON_SCAN="+enginetest.Scanner(t), "CAISSON_RUNTIME_DIR="+base+"/s", "CAISSON_STATE_DIR="+base+"/state", "TMUX=", "LC_ALL=C.UTF-8")
	run := func(name string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	caisson := enginetest.Command(t)
	run(caisson, "session", "create", "seen", "--language", "shell")
	t.Cleanup(func() { run(caisson, "session", "rm", "--force", "seen") })
	run(caisson, "exec", "seen", "--detach", "--", "sh", "-c", "while :; do :; done")

	socket := base + "/tmux"
	tmux := func(args ...string) string {
		return run("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
	}
	tmux("new-session", "-d", "-x", "140", "-y", "20", caisson+" top --every 500ms; echo over; sleep 1000")
	t.Cleanup(func() { tmux("kill-server") })
	shows := func(what string) {
		t.Helper()
		screen := ""
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if screen = tmux("capture-pane", "-p"); regexp.MustCompile(what).MatchString(screen) {
				return
			}
		}
		t.Fatalf("it never shows %s:\n%s", what, screen)
	}
	shows(`caisson top: 1 sandboxes, by cpu`)
	shows(`seen +[0-9a-f]{12} +[0-9]+% +[▁▂▃▄▅▆▇█]+ +[0-9.]+ MiB`)
	shows(`seen +[0-9a-f]{12} +[0-9]+% +▁*[▂▃▄▅▆▇█]`) // the loop in it
	tmux("send-keys", "m")
	shows(`by memory`)
	tmux("resize-window", "-x", "60", "-y", "10")
	shows(`sort: c cpu`)
	for line := range strings.Lines(tmux("capture-pane", "-p")) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 {
			t.Errorf("a line of %d columns on a screen of 60: %q", n, line)
		}
	}
	tmux("send-keys", "q")
	shows(`over`)
}
