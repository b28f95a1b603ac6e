package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// A flood that is read slowly costs the host no more memory than what is kept,
// and arrives whole.
func TestOutputFloodIntoSlowReader(t *testing.T) {
	// Nothing runs beside it: it looks at the heap.
	const size = int64(1 << 30)
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{CPUs: 2}})
	// Every line of eight bytes holds its own number, so that any gap shows in the
	// first line behind it, and so at the latest in the next write's.
	w := &slowWriter{pause: 50 * time.Microsecond, bad: func(offset int64, p []byte) string {
		i := (8 - offset%8) % 8
		if i+8 > int64(len(p)) {
			return ""
		}
		if want := fmt.Sprintf("%07d\n", (offset+i)/8%1_000_000); string(p[i:i+8]) != want {
			return fmt.Sprintf("at offset %d: %q, not %q", offset+i, p[i:i+8], want)
		}
		return ""
	}}
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak, stop, watched := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				runtime.ReadMemStats(&during)
				peak = max(peak, during.HeapInuse)
			}
		}
	}()
	script := fmt.Sprintf(`seq -f %%07.0f 0 999999 > /tmp/n; for i in $(seq %d); do cat /tmp/n; done | head -c %d`, size/8_000_000+1, size)
	res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"bash", "-c", script}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(15 * time.Minute), MaxOutput: 4 * sandbox.GiB}}, sandbox.Streams{Stdout: w})
	close(stop)
	<-watched
	if err != nil {
		t.Fatal(err)
	}
	check(t, res, sandbox.ReasonExited, 0)
	if w.n != size || w.fault != "" {
		t.Errorf("%d of %d bytes came; %s", w.n, size, w.fault)
	}
	if grown := int64(peak) - int64(before.HeapInuse); grown > size/4 {
		t.Errorf("the host's heap grew by %d MiB", grown>>20)
	}
	if int64(len(res.Stdout))+res.Truncated.Stdout != size {
		t.Errorf("%d kept and %d missing do not make %d", len(res.Stdout), res.Truncated.Stdout, size)
	}
	b.usable(t)
}

// A reader that takes nothing until after the timeout loses nothing of what was
// written. That its sandbox is not given up for it is the agent's client's test.
func TestSlowReaderAcrossTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 6 * time.Second // long after all has been written
	b := openBox(t, manager.OpenOptions{})
	w := &slowWriter{}
	gate := make(chan struct{})
	time.AfterFunc(timeout+time.Second, func() { close(gate) })
	res, err := b.Exec(t.Context(), sandbox.Run{
		Command: []string{"bash", "-c", "head -c 300000 /dev/zero; echo done >&2; sleep 600"}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(timeout)},
	}, sandbox.Streams{Stdout: io.MultiWriter(blockingWriter{gate, make(chan struct{}, 1)}, w)})
	if err != nil {
		t.Fatal(err)
	}
	if w.n != 300_000 || string(res.Stderr) != "done\n" {
		t.Errorf("%d of 300000 bytes came, stderr %q (%s)", w.n, res.Stderr, res.Cause)
	}
	b.ended(t, res, sandbox.ReasonTimeout)
}

// A slow reader stalls its own exec and no other.
func TestSlowReaderStallsNobodyElse(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	gate, first, done := make(chan struct{}), make(chan struct{}, 1), make(chan error, 1)
	go func() {
		_, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"head", "-c", "20000000", "/dev/zero"}}, sandbox.Streams{Stdout: blockingWriter{gate, first}})
		done <- err
	}()
	<-first
	for range 5 {
		check(t, b.sh(t, "head -c 500000 /dev/zero", time.Minute), sandbox.ReasonExited, 0)
	}
	close(gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.usable(t)
}

type blockingWriter struct{ gate, first chan struct{} }

func (w blockingWriter) Write(p []byte) (int, error) {
	select {
	case w.first <- struct{}{}:
	default:
	}
	<-w.gate
	return len(p), nil
}

func TestOutputIsExact(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python"})
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, tt := range map[string]struct {
		code           string
		stdout, stderr string
	}{
		"no newline":    {`import sys; sys.stdout.write("end")`, "end", ""},
		"nothing":       {`pass`, "", ""},
		"one newline":   {`print()`, "\n", ""},
		"NULs":          {`import os; os.write(1, b"\0a\0\0b\0"); os.write(2, b"\0")`, "\x00a\x00\x00b\x00", "\x00"},
		"invalid UTF-8": {`import os; os.write(1, b"\xff\xfe\xc3("); os.write(2, b"\xed\xa0\x80")`, "\xff\xfe\xc3(", "\xed\xa0\x80"},
		"every byte":    {`import os; os.write(1, bytes(range(256)) * 400)`, strings.Repeat(string(every), 400), ""},
		"carriage":      {`import os; os.write(1, b"a\r\nb\rc\n\n")`, "a\r\nb\rc\n\n", ""},
	} {
		res := b.py(t, tt.code, time.Minute)
		check(t, res, sandbox.ReasonExited, 0)
		if string(res.Stdout) != tt.stdout || string(res.Stderr) != tt.stderr {
			t.Errorf("%s: stdout %.80q, stderr %.80q", name, res.Stdout, res.Stderr)
		}
	}
	b.usable(t)
}

// At the boundary of what is kept and of what is allowed, for both streams.
func TestOutputCaps(t *testing.T) {
	t.Parallel()
	const keep, most = 1000, 5000
	b := openBox(t, manager.OpenOptions{})
	capped := func(script string, timeout time.Duration) sandbox.Result {
		return b.run(t, sandbox.Run{Command: []string{"bash", "-c", script}, ExecLimits: sandbox.ExecLimits{
			Timeout: sandbox.Duration(timeout), KeepOutput: keep, MaxOutput: most,
		}})
	}
	pattern := make([]byte, most+10)
	for i := range pattern {
		pattern[i] = byte(i * 7)
	}
	b.put(t, "pattern", pattern)
	for _, n := range []int{0, 1, keep - 1, keep, keep + 1, most - 1, most, most + 1} {
		for stream := 1; stream <= 2; stream++ {
			res := capped(fmt.Sprintf("head -c %d pattern >&%d; exit 3", n, stream), time.Minute)
			reason, code, sent := sandbox.ReasonExited, 3, n
			if n > most {
				reason, sent = sandbox.ReasonOutput, most
			}
			if res.Reason != reason || reason == sandbox.ReasonExited && res.Code != code {
				t.Errorf("%d bytes: reason %s, code %d", n, res.Reason, res.Code)
			}
			got, missing := res.Stdout, res.Truncated.Stdout
			if stream == 2 {
				got, missing = res.Stderr, res.Truncated.Stderr
			}
			want := pattern[:sent]
			if sent > keep {
				want = append(bytes.Clone(pattern[:keep/2]), pattern[sent-keep/2:sent]...)
			}
			if !bytes.Equal(got, want) || missing != int64(sent-len(want)) {
				t.Errorf("%d bytes to stream %d: %d bytes kept, %d missing; not %d and %d, or other bytes", n, stream, len(got), missing, len(want), sent-len(want))
			}
		}
	}
	// An endless flood ends at the cap.
	if res := capped("yes", time.Minute); res.Reason != sandbox.ReasonOutput {
		t.Errorf("yes ended with %s", res.Reason)
	}
	b.usable(t)
}

// put writes a file into the workspace through an exec's standard input.
func (b *box) put(t testing.TB, name string, data []byte) {
	t.Helper()
	res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "cat > " + name}}, sandbox.Streams{Stdin: bytes.NewReader(data)})
	if err != nil || res.Code != 0 {
		t.Fatalf("write %s: %v, %+v", name, err, res.Exit)
	}
}

// Somebody else in the sandbox who holds the pipe of an exec can neither keep
// it from ending nor add to what it said.
func TestForeignWriterIntoPipe(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python"})
	thief, at := make(chan error, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		// It opens the standard output of every process that it can, and floods it.
		_, err := b.Exec(ctx, sandbox.Run{ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}, Code: `
import os, glob, time
held, mine = {}, {str(os.getpid()), "1"} # it floods for others, not for its own children
def flood(f):
    os.set_blocking(f, False)
    while True:
        try: os.write(f, b"!" * 65536)
        except BlockingIOError: time.sleep(0.0001)
print("at it", flush=True)
while True:
    for p in glob.glob("/proc/[0-9]*/fd/1"):
        if p.split("/")[2] in mine or p in held: continue
        try: held[p] = os.open(p, os.O_WRONLY)
        except OSError: continue
        child = os.fork()
        if child == 0: flood(held[p])
        mine.add(str(child))
`}, sandbox.Streams{Stdout: &wordWriter{words: "at it", then: func() { close(at) }}})
		thief <- err
	}()
	<-at
	for range 4 {
		res := b.sh(t, "sleep 0.3; exit 4", 5*time.Minute)
		if res.Reason != sandbox.ReasonExited && res.Reason != sandbox.ReasonOutput {
			t.Errorf("with a thief on its pipe an exec ended with %s (%s)", res.Reason, res.Cause)
		}
	}
	cancel()
	if err := <-thief; err != nil {
		t.Errorf("thief: %v", err)
	}
	b.usable(t)
}

// Programs that log to /dev/stdout may open it, whoever they run as.
func TestStreamsByName(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	for _, role := range []sandbox.Role{sandbox.RoleUser, sandbox.RoleRunner} {
		run := sandbox.Run{Role: role, Command: []string{"sh", "-c", "cat /dev/stdin > /dev/stdout; echo bad > /dev/stderr"}}
		res, err := b.Exec(t.Context(), run, sandbox.Streams{Stdin: strings.NewReader("good\n")})
		if err != nil {
			t.Fatal(err)
		}
		check(t, res, sandbox.ReasonExited, 0)
		if string(res.Stdout) != "good\n" || string(res.Stderr) != "bad\n" {
			t.Errorf("as %s: %q, %q", role, res.Stdout, res.Stderr)
		}
	}
}
