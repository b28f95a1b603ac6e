package sink_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/bridge/sink"
	"github.com/caisson-dev/caisson/sandbox"
)

// news is a thousand changes.
func news() iter.Seq[sandbox.ChangeNews] {
	return func(yield func(sandbox.ChangeNews) bool) {
		for i := range 1000 {
			n := sandbox.ChangeNews{Session: "work", Exec: "e", Record: int64(i), More: i < 999}
			n.FileChange = sandbox.FileChange{Path: "a\nb\xff", Op: sandbox.OpCreated, By: sandbox.ByOwn, After: sandbox.FileState{Kind: sandbox.KindFile, Size: 3}}
			if !yield(n) {
				return
			}
		}
	}
}

// whole checks that all lines came, in their order.
func whole(t *testing.T, b []byte) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(b))
	at := 0
	for ; lines.Scan(); at++ {
		var n sandbox.ChangeNews
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			t.Fatal(err)
		}
		if n.Record != int64(at) || n.Session != "work" || n.Exec != "e" || n.Path != "a\nb\xff" || n.Op != sandbox.OpCreated || n.More {
			t.Fatalf("line %d: %s", at, lines.Bytes())
		}
	}
	if at != 1000 {
		t.Errorf("%d lines", at)
	}
}

func none(t *testing.T) func(int, error) {
	return func(n int, err error) { t.Errorf("%d lost: %v", n, err) }
}

// TestFileAndCommand appends to a file, and feeds a program.
func TestFileAndCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, open := range map[string]func(string) (sink.Sink, error){
		"file":    sink.File,
		"command": func(path string) (sink.Sink, error) { return sink.Command("cat > '" + path + "'") },
	} {
		path := filepath.Join(dir, name)
		s, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		sink.Pump(t.Context(), news(), s, none(t))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, b)
	}
	if _, err := sink.File(filepath.Join(dir, "none", "f")); !errors.Is(err, sandbox.Invalid) {
		t.Error(err)
	}
	// A program that goes away loses what it does not read, and says so.
	s, err := sink.Command("exit 3")
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for range 100 {
		sink.Pump(t.Context(), news(), s, func(n int, _ error) { lost += n })
	}
	if err := s.Close(); err == nil || lost == 0 {
		t.Errorf("lost %d, %v", lost, err)
	}
}

// TestDeaf sends to those who do not read. They are waited for until the caller
// has had enough, what they did not take is counted, and at the end nothing of a
// program is left.
func TestDeaf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, pidFile := filepath.Join(dir, "fifo"), filepath.Join(dir, "pid")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sink.File(fifo); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a FIFO that nobody has opened: %v", err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for name, open := range map[string]func() (sink.Sink, error){
		"a program": func() (sink.Sink, error) {
			return sink.Command("sleep 600 & echo $! > '" + pidFile + ".new'; mv '" + pidFile + ".new' '" + pidFile + "'; wait")
		},
		"a FIFO": func() (sink.Sink, error) { return sink.File(fifo) },
	} {
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		for name == "a program" {
			if _, err := os.Stat(pidFile); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		lost := 0
		sink.Pump(ctx, news(), s, func(n int, err error) {
			if lost += n; !errors.Is(err, sandbox.TimedOut) {
				t.Errorf("%s: %v", name, err)
			}
		})
		cancel()
		if lost == 0 {
			t.Errorf("%s: nothing was lost", name)
		}
		if err := s.Close(); (err == nil) != (name == "a FIFO") {
			t.Errorf("%s: %v", name, err)
		}
	}
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 { // until it is gone, or waits for its parent to hear of it
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s outlived its program", pid)
}
