package manager_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// A session's workspace lies on the host's disk. An exec that fills it past its
// size is ended, by whichever way it does so; what is in it then can be deleted,
// and work goes on.
func TestWorkspaceHoldsItsSize(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	sh := func(name, script string) sandbox.Result {
		t.Helper()
		res, err := p.ExecIn(t.Context(), name, sandbox.Run{Language: "python", Command: []string{"sh", "-c", script}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(time.Minute)}}, sandbox.Streams{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	python := func(code string) string { return "exec python3 -c '" + code + "'" }
	for name, script := range map[string]string{
		"written":   `while :; do head -c 1M /dev/zero >>a; done`,
		"allocated": python(`import os, time; f = os.open("a%d" % time.time_ns(), os.O_RDWR | os.O_CREAT); os.posix_fallocate(f, 0, 64 << 20); time.sleep(60)`),
		"removed":   python(`import os, time; f = os.open("a", os.O_RDWR | os.O_CREAT); os.unlink("a"); os.posix_fallocate(f, 0, 64 << 20); time.sleep(60)`),
		"hidden":    python(`import ctypes, os, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); f = os.open("a", os.O_RDWR | os.O_CREAT); os.unlink("a"); os.posix_fallocate(f, 0, 64 << 20); time.sleep(60)`),
		"entries":   `mkdir d; cd d; i=0; while :; do mkdir $i.1 $i.2 $i.3 $i.4 $i.5 $i.6 $i.7 $i.8 $i.9; i=$((i+1)); done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := sandbox.Limits{Workspace: 16 * sandbox.MiB}
			if name == "entries" {
				limits.Workspace = 256 * sandbox.KiB
			}
			if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: name, Language: "python", Limits: limits}); err != nil {
				t.Fatal(err)
			}
			if res := sh(name, "echo 1 >mine; sleep 0.3"); res.Code != 0 {
				t.Errorf("within its size: %+v", res.Exit)
			}
			res := sh(name, script)
			if res.Reason != sandbox.ReasonDisk || !strings.Contains(res.Cause, "--workspace-size") {
				t.Errorf("past its size: %+v", res.Exit)
			}
			// Twice: what it holds by now is not this exec's doing.
			for range 2 {
				if res := sh(name, "cat mine; sleep 0.3"); res.Code != 0 || string(res.Stdout) != "1\n" {
					t.Errorf("while it is full: %+v", res.Exit)
				}
			}
			if res := sh(name, script); res.Reason != sandbox.ReasonDisk {
				t.Errorf("still more: %+v", res.Exit)
			}
			// Nor is what was copied in, also where others free as much of the disk
			// before, and take it again while the exec runs.
			freed := filepath.Join(t.TempDir(), "freed")
			if err := fillFile(freed, 64<<20); err != nil {
				t.Fatal(err)
			}
			if res := sh(name, "sleep 0.3"); res.Code != 0 {
				t.Errorf("before a file is copied in: %+v", res.Exit)
			}
			files, err := p.Files(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := files.Write(t.Context(), "a.in", 0, bytes.NewReader(make([]byte, 20<<20))); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(freed); err != nil {
				t.Fatal(err)
			}
			taken := make(chan error)
			go func() {
				time.Sleep(300 * time.Millisecond)
				taken <- fillFile(freed, 128<<20)
			}()
			if res := sh(name, "cat mine; sleep 1"); res.Code != 0 {
				t.Errorf("with a file that was copied in: %+v", res.Exit)
			}
			if err := <-taken; err != nil {
				t.Fatal(err)
			}
			if res := sh(name, "rm -rf a* d; sleep 0.3; head -c 100K /dev/zero >b; sleep 0.3; wc -c <b"); res.Code != 0 || string(res.Stdout) != "102400\n" {
				t.Errorf("deleted, and used again: %+v", res.Exit)
			}
		})
	}
}

// fillFile makes a file of so many bytes, without as much memory.
func fillFile(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, nothing{}, size)
	return errors.Join(err, f.Close())
}
