package scanner_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/internal/hostile"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"

	"context"
)

// TestMain is also the scanners that misbehave: CAISSON_FAKE names how.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "fake-") {
		fake(os.Args[1])
		return
	}
	os.Exit(m.Run())
}

// fake is a scanner that was taken over.
func fake(how string) {
	h, tables, err := scanner.ReadHello(os.Stdin)
	if err != nil {
		os.Exit(3)
	}
	ready := scanner.Ready{Lockdown: scanner.Isolated}
	if how == "fake-weak" {
		ready.Lockdown = scanner.Limited
	}
	if err := scanner.WriteFrame(os.Stdout, ready); err != nil {
		os.Exit(3)
	}
	for {
		var a scanner.Ask
		if err := scanner.ReadFrame(os.Stdin, scanner.MaxAsk, &a); err != nil {
			os.Exit(0)
		}
		doc := facts.Scan(context.Background(), tables, nil, h.Limits, a.Lang, a.Code)
		doc.Dynamic, doc.Meta.Nodes = nil, 1
		if strings.Contains(string(a.Code), "fine") {
			how = "fake-none"
		}
		switch how {
		case "fake-pid":
			doc.Strings = []facts.String{{Kind: "pid", Text: strconv.Itoa(os.Getpid())}}
		case "fake-crash":
			os.Exit(139)
		case "fake-hang":
			time.Sleep(time.Hour)
		case "fake-spin":
			for n := 0; ; n++ {
				runtime.KeepAlive(n)
			}
		case "fake-id":
			a.ID++
		case "fake-digest":
			doc.Meta.SHA256 = strings.Repeat("0", 64)
		case "fake-line":
			doc.Files = []facts.File{{At: facts.At{Pos: facts.Pos{Line: 999999}}}}
		case "fake-flood":
			doc.Calls = make([]facts.Call, 50000)
		case "fake-swell": // some hundred MiB for who believes it
			sendRaw(`{"document":{"calls":[` + strings.Repeat("{},", scanner.MaxAnswer/4) + `{}]}}`)
			continue
		case "fake-long": // takes longer to read than there is time
			sendRaw(`{"document":{"commands":[{"opaque":[` + strings.Repeat("1,", scanner.MaxAnswer/3) + `1]}]}}`)
			continue
		case "fake-empty":
			doc.Meta.Nodes = 0
		case "fake-junk":
			_, _ = io.WriteString(os.Stdout, "\x00\x00\x00\x02{]")
			continue
		case "fake-huge":
			_, _ = io.WriteString(os.Stdout, "\xff\xff\xff\xff")
			continue
		}
		if err := scanner.WriteFrame(os.Stdout, scanner.Answer{ID: a.ID, Document: doc}); err != nil {
			os.Exit(3)
		}
	}
}

// sendRaw sends a frame that no answer would have.
func sendRaw(body string) {
	size := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, err := os.Stdout.WriteString(string(size) + body); err != nil {
		os.Exit(3)
	}
}

func loadTables(t testing.TB) *facts.Tables {
	t.Helper()
	tb, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// fakePool runs this test binary as the scanner.
func fakePool(t *testing.T, how string) *scanner.Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "caisson-scan")
	if err := enginetest.WriteProgram(script, []byte("#!/bin/sh\nexec '"+self+"' "+how+"\n")); err != nil {
		t.Fatal(err)
	}
	p, err := scanner.New(scanner.Config{Path: script, Tables: loadTables(t), Size: 1, Requests: 3, Bytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// A scanner that hangs or spins is ended when its time is over. Nothing else
// would end it.
func TestScansEndInTheirTime(t *testing.T) {
	for _, how := range []string{"fake-hang", "fake-spin"} {
		t.Run(how, func(t *testing.T) {
			p := fakePool(t, how)
			if _, err := p.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			const within = 200 * time.Millisecond
			start := time.Now()
			if _, err := p.Scan(t.Context(), facts.Request{Lang: facts.Python, Code: []byte("evil"), Within: within}); !errors.Is(err, sandbox.TimedOut) {
				t.Errorf("%v is not TimedOut", err)
			}
			// How long it takes by the clock is up to what else runs.
			if took := time.Since(start); took < within {
				t.Errorf("ended after %s", took)
			}
			if _, err := p.Scan(t.Context(), facts.Request{Lang: facts.Python, Code: []byte("fine"), Within: within}); err != nil {
				t.Errorf("next request: %v", err)
			}
		})
	}
}

func TestMisbehavingScannersAreErrors(t *testing.T) {
	for _, how := range []string{"fake-crash", "fake-hang", "fake-id", "fake-digest", "fake-line", "fake-flood", "fake-swell", "fake-long", "fake-empty", "fake-junk", "fake-huge"} {
		t.Run(how, func(t *testing.T) {
			p := fakePool(t, how)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			start := time.Now()
			if d, err := p.Scan(ctx, facts.Request{Lang: facts.Python, Code: []byte("evil")}); err == nil {
				t.Fatalf("accepted %+v", d)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("refused after %s", took)
			}
			// The next request is served by a fresh process.
			if _, err := p.Scan(t.Context(), facts.Request{Lang: facts.Python, Code: []byte("fine")}); err != nil {
				t.Errorf("next request: %v", err)
			}
		})
	}
}

// TestRecycling: a process serves one owner, and no more than so many requests
// or bytes.
func TestRecycling(t *testing.T) {
	p := fakePool(t, "fake-pid")
	pid := func(owner string, size int) string {
		t.Helper()
		d, err := p.Scan(t.Context(), facts.Request{Lang: facts.Python, Code: bytes.Repeat([]byte("x"), size), Owner: owner})
		if err != nil || len(d.Strings) != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
		return d.Strings[0].Text
	}
	first := pid("a", 1)
	if again := pid("a", 1); again != first {
		t.Error("a process is not used again by its owner")
	}
	if other := pid("b", 1); other == first {
		t.Error("another owner was given the same process")
	}
	if third := pid("a", 1); third != first {
		t.Error("the owner's process is gone")
	}
	if fourth := pid("a", 1); fourth == first {
		t.Error("a process serves more requests than it may")
	}
	big := pid("c", 1000)
	if after := pid("c", 1); after == big {
		t.Error("a process reads more than it may")
	}
}

func TestRequiredLockdownIsEnforced(t *testing.T) {
	_, err := fakePool(t, "fake-weak").Scan(t.Context(), facts.Request{Lang: facts.Python, Code: []byte("x")})
	if !errors.Is(err, sandbox.Unavailable) {
		t.Fatalf("a weak scanner was used: %v", err)
	}
}

func TestRealScanner(t *testing.T) {
	p, err := scanner.New(scanner.Config{Path: enginetest.Scanner(t), Tables: loadTables(t), Size: 2, Requests: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ready, err := p.Warm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("lockdown %s: %q", ready.Lockdown, ready.Steps)
	if ready.Lockdown < scanner.Filtered {
		t.Fatalf("lockdown %s: %q", ready.Lockdown, ready.Steps)
	}
	for i := range 8 { // more than one process's worth
		doc, err := p.Scan(t.Context(), facts.Request{Lang: facts.Shell, Code: []byte("rm -rf /"), Owner: string(rune('a' + i%2))})
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.Files) == 0 || doc.Files[0].Class != "root" {
			t.Fatalf("%+v", doc.Files)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Scan(t.Context(), facts.Request{Lang: facts.Shell, Code: []byte("ls")}); !errors.Is(err, sandbox.Unavailable) {
		t.Fatalf("a closed pool scanned: %v", err)
	}
}

// TestHostileSources: each is answered with a doubt or refused, and the next
// request is served.
func TestHostileSources(t *testing.T) {
	p, err := scanner.New(scanner.Config{Path: enginetest.Scanner(t), Tables: loadTables(t), Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	scan := func(t *testing.T, text hostile.Text) (*facts.Document, error) {
		doc, err := p.Scan(t.Context(), facts.Request{Lang: text.Lang, Code: []byte(text.Code), Within: 900 * time.Millisecond})
		if _, err := p.Scan(t.Context(), facts.Request{Lang: facts.Shell, Code: []byte("ls")}); err != nil {
			t.Errorf("next request: %v", err)
		}
		return doc, err
	}
	doubtful, plain := hostile.ForScanners()
	for _, text := range doubtful {
		t.Run(text.Name, func(t *testing.T) {
			if doc, err := scan(t, text); err == nil && len(doc.Dynamic) == 0 {
				t.Errorf("nothing says that this is doubtful: %+v", doc.Meta)
			}
		})
	}
	for _, text := range plain {
		t.Run(text.Name, func(t *testing.T) { _, _ = scan(t, text) }) // either answer is right
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a scanner.Answer
		if err := scanner.ReadFrame(strings.NewReader(string(b)), 1<<16, &a); err == nil && len(b) < 6 {
			t.Fatal("a frame of nothing was read")
		}
	})
}
