package manager_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

func openFiles(t testing.TB, p *place, o sandbox.SessionOptions) *manager.Files {
	t.Helper()
	o.Name = "work"
	p.create(t, o)
	f, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatalf("files: %v", err)
	}
	return f
}

// TestFiles goes through every call on a workspace.
func TestFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	f := openFiles(t, p, sandbox.SessionOptions{})
	ctx := t.Context()
	all := make([]byte, 70_000)
	for i := range all {
		all[i] = byte(i * 7)
	}
	name := "deep/er/\xff\n☃"
	if n, err := f.Write(ctx, name, 0o640, bytes.NewReader(all)); err != nil || n != int64(len(all)) {
		t.Fatalf("write: %d, %v", n, err)
	}
	var got bytes.Buffer
	if _, err := f.Read(ctx, name, 0, 0, &got); err != nil || !bytes.Equal(got.Bytes(), all) {
		t.Errorf("%d bytes came back, %v", got.Len(), err)
	}
	got.Reset()
	if _, err := f.Read(ctx, "/workspace/"+name, 65_000, 100, &got); err != nil || !bytes.Equal(got.Bytes(), all[65_000:65_100]) {
		t.Errorf("a part: %d bytes, %v", got.Len(), err)
	}
	v, err := p.Session(ctx, "work")
	if err != nil {
		t.Fatal(err)
	}
	who := sh(t, p.Manager, "work", "stat -c '%u %a' deep/er/*").Stdout
	if want := fmt.Sprintf("%d 640\n", v.Identity.UID); string(who) != want {
		t.Errorf("the file belongs to %q, not %q", who, want)
	}
	info, err := f.Stat(ctx, name)
	if err != nil || info.Size != int64(len(all)) || info.Mode != 0o640 || info.Type != "file" || time.Since(info.MTime) > time.Hour {
		t.Errorf("stat: %+v, %v", info, err)
	}
	if err := errors.Join(f.Mkdir(ctx, "x/y/z", 0), f.Move(ctx, name, "x/moved")); err != nil {
		t.Fatal(err)
	}
	paths := func(depth int) string {
		var list []string
		for e, err := range f.Tree(ctx, ".", depth) {
			if err != nil {
				t.Errorf("tree: %v", err)
			}
			list = append(list, e.Path)
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	for depth, want := range []string{"deep deep/er x x/moved x/y x/y/z", "deep x", "deep deep/er x x/moved x/y"} {
		if got := paths(depth); got != want {
			t.Errorf("depth %d: %q, not %q", depth, got, want)
		}
	}
	for what, c := range map[string]struct {
		err  error
		kind sandbox.Kind
	}{
		"remove a full folder":  {f.Remove(ctx, "x", false), sandbox.Conflict},
		"remove the workspace":  {f.Remove(ctx, ".", true), sandbox.Invalid},
		"remove what is absent": {f.Remove(ctx, "none", true), sandbox.NotFound},
		"read what is absent":   {second(f.Read(ctx, "none", 0, 0, io.Discard)), sandbox.NotFound},
		"read a folder":         {second(f.Read(ctx, "x", 0, 0, io.Discard)), sandbox.Invalid},
		"write over a folder":   {second(f.Write(ctx, "x", 0, strings.NewReader("a"))), sandbox.Conflict},
		"write below a file":    {second(f.Write(ctx, "x/moved/a", 0, strings.NewReader("a"))), sandbox.Conflict},
	} {
		if !errors.Is(c.err, c.kind) {
			t.Errorf("%s: error %v, not of kind %v", what, c.err, c.kind)
		}
	}
	if err := f.Remove(ctx, "x", true); err != nil {
		t.Error(err)
	}
	attributes(t, p, f)
	// A source that breaks leaves nothing, and what was there stays.
	if _, err := f.Write(ctx, "keep", 0, strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader(strings.Repeat("new", 100_000)), failing{})
	if _, err := f.Write(ctx, "keep", 0, broken); err == nil {
		t.Error("a source that failed was written")
	}
	until(t, "nothing half written stays", func() bool { return paths(0) == "deep deep/er keep" })
	got.Reset()
	if _, err := f.Read(ctx, "keep", 0, 0, &got); err != nil || got.String() != "old" {
		t.Errorf("%q, %v", got.String(), err)
	}
}

// attributes sets and reads the extended attributes of entries, and of nothing that a
// link leads to.
func attributes(t *testing.T, p *place, f *manager.Files) {
	t.Helper()
	ctx := t.Context()
	if _, err := f.Write(ctx, "marked/a", 0, strings.NewReader("a")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"e2b.who": "me", "x": "", "long": strings.Repeat("l", 2000)}
	if err := errors.Join(f.SetAttributes(ctx, "marked/a", map[string]string{"old": "gone", "x": "other"}), f.SetAttributes(ctx, "marked/a", want)); err != nil {
		t.Fatal(err)
	}
	one, err := f.Stat(ctx, "marked/a")
	if err != nil || !maps.Equal(one.Attributes, want) {
		t.Errorf("one entry: %v, %v", one.Attributes, err)
	}
	for e, err := range f.Tree(ctx, "marked", 0) {
		if err != nil || !maps.Equal(e.Attributes, want) {
			t.Errorf("in a folder: %+v, %v", e, err)
		}
	}
	sh(t, p.Manager, "work", "ln -s a marked/link")
	if err := f.SetAttributes(ctx, "marked/link", map[string]string{"x": "by a link"}); err == nil {
		t.Error("a link has attributes")
	}
	if link, err := f.Stat(ctx, "marked/link"); err != nil || link.Attributes != nil {
		t.Errorf("a link: %+v, %v", link, err)
	}
	if err := f.SetAttributes(ctx, "marked/none", nil); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := f.Write(ctx, "marked/a", 0, strings.NewReader("anew")); err != nil {
		t.Fatal(err)
	}
	if one, err := f.Stat(ctx, "marked/a"); err != nil || one.Attributes != nil {
		t.Errorf("written anew: %+v, %v", one, err)
	}
	if err := f.Remove(ctx, "marked", true); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the source broke") }

// TestFilesStayInside tries every call on every way out.
func TestFilesStayInside(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	f := openFiles(t, p, sandbox.SessionOptions{})
	ctx := t.Context()
	sh(t, p.Manager, "work", `ln -s / root; ln -s /etc/passwd passwd; ln -s ../.. up; ln -s /tmp tmp; ln -s /workspace/in abs; echo x > in
		mkfifo fifo; mkdir d; ln -s ../in d/in; ln -s loop loop; echo secret > /tmp/secret; chmod 666 /tmp/secret; ln -s /tmp/secret secret`)
	for _, name := range []string{
		"..", "../x", "a/../../x", "/etc/passwd", "/", "/workspace/../etc/passwd", "root/etc/passwd", "up/etc/passwd", "passwd", "tmp/secret", "secret",
		"root/tmp/new", "tmp/new", "d/../../x", "root/run/caisson", "loop", "loop/x", "a\x00b",
	} {
		var out bytes.Buffer
		tries := map[string]error{
			"read":  second(f.Read(ctx, name, 0, 0, &out)),
			"move":  f.Move(ctx, "in", name+"/in"),
			"mkdir": f.Mkdir(ctx, name+"/sub", 0),
			"write": second(f.Write(ctx, name+"/sub", 0, strings.NewReader("a"))),
		}
		if strings.Contains(name, "/") || name == ".." {
			tries["remove"] = f.Remove(ctx, name, true)
			tries["stat"] = second(f.Stat(ctx, name))
		}
		for e, err := range f.Tree(ctx, name, 0) {
			if err == nil {
				t.Errorf("tree of %q shows %q", name, e.Path)
			}
		}
		for e, err := range f.Watch(ctx, name, true) {
			if err == nil {
				t.Errorf("watch of %q gives %v", name, e)
			}
			break
		}
		for what, err := range tries {
			if err == nil {
				t.Errorf("%s of %q worked", what, name)
			}
		}
		if out.Len() > 0 {
			t.Errorf("read of %q gave %q", name, out.String())
		}
	}
	if _, err := f.Read(ctx, "fifo", 0, 0, io.Discard); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a FIFO: %v", err)
	}
	// Over a link, the link is replaced and not what it leads to.
	if _, err := f.Write(ctx, "secret", 0, strings.NewReader("mine")); err != nil {
		t.Error(err)
	}
	if got := sh(t, p.Manager, "work", "cat /tmp/secret; cat in; ls /tmp").Stdout; !strings.HasPrefix(string(got), "secret\nx\n") || strings.Contains(string(got), "sub") {
		t.Errorf("outside was touched: %q", got)
	}
	if err := f.Remove(ctx, "root", true); err != nil {
		t.Errorf("a link cannot be removed: %v", err)
	}
}

// TestFilesRaced lets user code swap a folder for a link all the time.
func TestFilesRaced(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	f := openFiles(t, p, sandbox.SessionOptions{Language: "python"})
	ctx := t.Context()
	e, err := p.StartIn(ctx, "work", sandbox.Run{Code: `
import os, shutil
os.makedirs("real", exist_ok=True); open("real/passwd", "w").write("mine"); os.makedirs("/tmp/out", exist_ok=True); os.chmod("/tmp/out", 0o777)
n = 0
while True:
    n += 1
    for target in ("/etc", "/run/caisson", "/tmp/out", None):
        try:
            if target is None: os.rename("real", "d"); os.rename("d", "real")
            else: os.symlink(target, "d"); os.rename("d", "e"); os.rename("e", "d"); os.unlink("d")
        except OSError: pass
`}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it runs", func() bool { _, err := f.Stat(ctx, "real"); return err == nil })
	stop := time.Now().Add(3 * time.Second)
	reads, hits := 0, 0
	for time.Now().Before(stop) {
		var out bytes.Buffer
		if _, err := f.Read(ctx, "d/passwd", 0, 0, &out); err == nil {
			hits++
			if out.String() != "mine" {
				t.Fatalf("it read %q", out.String())
			}
		}
		_, _ = f.Write(ctx, "d/written", 0, strings.NewReader("a"))
		for e, err := range f.Tree(ctx, "d", 2) {
			if err == nil && e.Path != "d/passwd" && e.Path != "d/written" && !strings.HasPrefix(e.Path, "d/.caisson-") {
				t.Fatalf("the listing shows %q", e.Path)
			}
		}
		reads++
	}
	if err := p.KillExec(ctx, "work", e.ID); err != nil {
		t.Fatal(err)
	}
	res, err := p.ExecIn(ctx, "work", sandbox.Run{Code: `import os; print(os.listdir("/tmp/out"))`}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "[]\n" {
		t.Errorf("outside was written: %q, %v", res.Stdout, err)
	}
	t.Logf("%d rounds, %d of them read the file", reads, hits)
}

// noise is endless bytes, the same for the same seed.
func noise(n int64, h hash.Hash) io.Reader {
	return io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), n), h)
}

// TestFilesStream copies more both ways than either side may hold.
func TestFilesStream(t *testing.T) {
	t.Parallel()
	size := int64(256 << 20)
	if enginetest.Soaking() {
		size = 1 << 30
	}
	p := newPlace(t)
	limits := sandbox.Limits{Memory: 128 << 20, CPUs: 2}
	f := openFiles(t, p, sandbox.SessionOptions{Limits: limits})
	v, err := p.Session(t.Context(), "work")
	if err != nil || len(v.Sandboxes) != 1 {
		t.Fatal(v.Sandboxes, err)
	}
	sent, came := sha256.New(), sha256.New()
	if n, err := f.Write(t.Context(), "big", 0, noise(size, sent)); err != nil || n != size {
		t.Fatalf("write: %d, %v", n, err)
	}
	if n, err := f.Read(t.Context(), "big", 0, 0, came); err != nil || n != size || !bytes.Equal(sent.Sum(nil), came.Sum(nil)) {
		t.Fatalf("read: %d, same %v, %v", n, bytes.Equal(sent.Sum(nil), came.Sum(nil)), err)
	}
	for who, pid := range map[string]int{"this process": os.Getpid(), "the agent": p.kit.AgentPID(t, v.Sandboxes[0].ID)} {
		peak := peakMemory(t, pid)
		t.Logf("peak of %s: %d KiB", who, peak>>10)
		if who == "the agent" && peak > 48<<20 {
			t.Errorf("%s had %d MiB resident", who, peak>>20)
		}
	}
}

// peakMemory is the most that a process had resident.
func peakMemory(t testing.TB, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// TestWatch follows folders that appear, and is told when it missed something.
func TestWatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	f := openFiles(t, p, sandbox.SessionOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	seen := map[string]bool{}
	wanted := []string{"create a", "create a/b", "create a/b/c", "write a/b/c/late", "remove a/b/c/late"}
	for e, err := range f.Watch(ctx, ".", true) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Op == "ready" {
			sh(t, p.Manager, "work", "mkdir -p a/b/c; touch a/b/c/early")
		}
		if was := e.Op + " " + e.Path; was == "create a/b/c/early" && !seen[was] { // its folder is watched by now
			sh(t, p.Manager, "work", "echo x > a/b/c/late; rm a/b/c/late")
		}
		seen[e.Op+" "+e.Path] = true
		missing := slices.ContainsFunc(wanted, func(w string) bool { return !seen[w] })
		if !missing && seen["create a/b/c/early"] {
			break
		}
	}
	if ctx.Err() != nil {
		t.Errorf("seen %v", seen)
	}
	// A watcher that does not read, and more changes than the kernel queues.
	overflow := false
	for e, err := range f.Watch(ctx, "a", true) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Op == "ready" {
			if res, err := p.ExecIn(ctx, "work", shell("cd a; i=0; while [ $i -lt 60000 ]; do : > f; : >> g; i=$((i+1)); done"), sandbox.Streams{}); err != nil || res.Code != 0 {
				t.Fatalf("%+v %v", res.Exit, err)
			}
		}
		if e.Op == "overflow" {
			overflow = true
			break
		}
	}
	if !overflow {
		t.Error("nothing said that changes were lost")
	}
}

// TestHostFolder uses a folder of the host: files have its owner on both sides.
// Root's is refused.
func TestHostFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a folder away")
	}
	p := newPlace(t)
	dir, err := os.MkdirTemp("/tmp", "cais-host")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	_, err = p.CreateSession(t.Context(), sandbox.SessionOptions{Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: dir}})
	if !errors.Is(err, sandbox.Denied) || sandbox.HintOf(err) == "" {
		t.Errorf("a folder of root's: %v", err)
	}
	const owner = 1234
	if err := os.Chown(dir, owner, owner); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/theirs", []byte("from the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir+"/theirs", owner, owner); err != nil {
		t.Fatal(err)
	}
	f := openFiles(t, p, sandbox.SessionOptions{Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: dir}})
	if got := sh(t, p.Manager, "work", "cat theirs; echo made > made; id -u").Stdout; string(got) != "from the host1234\n" {
		t.Errorf("inside: %q", got)
	}
	if _, err := f.Write(t.Context(), "written", 0, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"made", "written"} {
		st, err := os.Stat(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); !ok || sys.Uid != owner || sys.Gid != owner {
			t.Errorf("%s belongs to %d:%d", name, sys.Uid, sys.Gid)
		}
	}
	if err := p.RemoveSession(t.Context(), "work", true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/made"); err != nil {
		t.Errorf("the host's folder went with the session: %v", err)
	}
}
