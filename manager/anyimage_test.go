package manager_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// teller is a program that needs nothing of its image, and tells what it is
// given.
const teller = `package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// name is what the image's list of users calls a number.
func name(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return "nobody's"
	}
	return u.Username + u.HomeDir
}

func main() {
	dir, err := os.Getwd()
	var st syscall.Statfs_t
	data := "none"
	if syscall.Statfs("/data", &st) == nil {
		data = fmt.Sprintf("%#x", st.Type)
	}
	_, shell := os.Stat("/bin/sh")
	group, _ := user.LookupGroupId(strconv.Itoa(os.Getgid()))
	changed := os.WriteFile("/etc/passwd", nil, 0o600) == nil
	write := os.WriteFile("/workspace/x", nil, 0o600)
	fmt.Println(os.Getuid() >= 20000, os.Getuid() == os.Getgid(), dir, err, os.Getenv("FOO"), os.Getenv("HOME"), os.Getenv("USER"), shell == nil, name(os.Getuid()), name(0), name(65532), group.Name, changed, write, data)
}
`

// static builds a program without cgo.
func static(t *testing.T, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "program", "main.go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// made builds an image of the test's own from a Dockerfile and files, and
// returns its reference.
func made(t *testing.T, kit *enginetest.Kit, dockerfile string, files map[string][]byte) string {
	t.Helper()
	var folder bytes.Buffer
	w := tar.NewWriter(&folder)
	add := func(name string, data []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	add("Dockerfile", []byte(dockerfile))
	for name, data := range files {
		add(name, data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ref := "caisson-test/any" + sandbox.NewID().Short() + ":1"
	resp, err := kit.API.ImageBuild(t.Context(), &folder, build.ImageBuildOptions{Tags: []string{ref}, Remove: true, ForceRemove: true, NoCache: true, Version: build.BuilderV1})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	t.Cleanup(func() {
		_, _ = kit.API.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true, PruneChildren: true})
	})
	if err != nil || !strings.Contains(string(said), "Successfully built") {
		t.Fatalf("%v: %s", err, said)
	}
	return ref
}

// TestAnyImage runs the same program in images that have nothing, or ways of
// their own. What a sandbox gives does not depend on them.
func TestAnyImage(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	shell := kit.Image(t, "shell").Ref
	m := kit.Manager(t)
	files := map[string][]byte{"tell": static(t, teller), "passwd": []byte("root:x:0:0::/root:/sbin/nologin\nnonroot:x:65532:65532::/home/nonroot:/sbin/nologin\n")}
	const tmpfs = "0x1021994" // its magic number
	const scratch = "FROM scratch\nCOPY tell /tell\n"
	for _, tc := range []struct {
		name, dockerfile   string
		foo, shell, theirs string // the last is whose number 65532 is
		data               string // the kind of file system at /data
	}{
		{"scratch", scratch, "", "false", "nobody's", "none"},
		{"distroless", scratch + "COPY passwd /etc/passwd\nUSER nonroot\nENTRYPOINT [\"/tell\", \"wrong\"]\nWORKDIR /home/nonroot\n", "", "false", "nonroot/home/nonroot", "none"},
		{"ways of its own", "FROM " + shell + "\nCOPY tell /tell\nENTRYPOINT [\"/bin/false\"]\nCMD [\"wrong\"]\nUSER 1234:99\nWORKDIR /opt/app\nENV FOO=bar HOME=/nowhere USER=nobody\n" +
			"VOLUME /data\nHEALTHCHECK CMD false\nSTOPSIGNAL SIGUSR1\n", "bar", "true", "nobody's", tmpfs},
		{"a user that is not there", scratch + "USER ghost\n", "", "false", "nobody's", "none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ref := made(t, kit, tc.dockerfile, files)
			res, err := m.Run(t.Context(), sandbox.Run{Image: ref, Command: []string{"/tell"}}, sandbox.Streams{})
			want := "true true /workspace <nil> " + tc.foo + " /home/sandbox sandbox " + tc.shell + " sandbox/home/sandbox root/root " + tc.theirs + " sandbox false <nil> " + tc.data + "\n"
			if err != nil || res.Code != 0 || string(res.Stdout) != want {
				t.Errorf("%q, want %q; stderr %q, %+v, %v", res.Stdout, want, res.Stderr, res, err)
			}
			res, err = m.Run(t.Context(), sandbox.Run{Image: ref, Command: []string{"no-such-program"}}, sandbox.Streams{})
			if err == nil && res.Code != 127 {
				t.Errorf("a command that is not there: %+v, %v", res, err)
			}
		})
	}
}

// TestImagesOfLanguages has in each what people reach for: who they are, ps, git.
func TestImagesOfLanguages(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	m := kit.Manager(t)
	const look = "whoami; getent passwd $(id -u) | cut -d: -f1,6; ps -o user= -p $$ | tr -d ' '; git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --format=%s"
	for _, language := range []string{"python", "node", "shell"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			res, err := m.Run(t.Context(), sandbox.Run{Image: kit.Image(t, language).Ref, Command: []string{"sh", "-c", look}}, sandbox.Streams{})
			if want := "sandbox\nsandbox:/home/sandbox\nsandbox\nx\n"; err != nil || res.Code != 0 || string(res.Stdout) != want {
				t.Errorf("%q, want %q; stderr %q, %v", res.Stdout, want, res.Stderr, err)
			}
		})
	}
}

// TestVolumeOfAnImage: one that the plan does not know of would be writable,
// without a limit, on the engine's disk.
func TestVolumeOfAnImage(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	img, err := kit.Images.Ensure(t.Context(), made(t, kit, "FROM scratch\nCOPY x /data/x\nVOLUME /data\n", map[string][]byte{"x": nil}))
	if err != nil || !slices.Equal(img.Volumes, []string{"/data"}) {
		t.Fatalf("%+v, %v", img, err)
	}
	img.Volumes = nil
	rt, id := kit.Runtime(t), sandbox.NewID()
	plan, err := rt.Plan(t.Context(), sandbox.Spec{Image: img, Holder: kit.Holder, Identity: sandbox.IdentityFor(id)})
	if err != nil {
		t.Fatal(err)
	}
	if inst, err := rt.Create(t.Context(), id, plan); !errors.Is(err, sandbox.Conflict) || !strings.Contains(err.Error(), "Mounts") {
		t.Errorf("%+v, error %v", inst, err)
	}
}

// TestMuslImage runs a program of Alpine's C library, where there is no other.
func TestMuslImage(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	if _, err := exec.LookPath("musl-gcc"); err != nil {
		t.Skip("needs musl-gcc: apt-get install musl-tools")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "hello.c")
	if err := os.WriteFile(source, []byte(helloMusl), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "musl-gcc", "-o", filepath.Join(dir, "hello"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := elf.Open(filepath.Join(dir, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	loader, err := program.Section(".interp").Data()
	if err != nil {
		t.Fatal(err)
	}
	ld := strings.TrimRight(string(loader), "\x00")
	files := map[string][]byte{}
	for name, path := range map[string]string{"hello": filepath.Join(dir, "hello"), "ld": ld} {
		if files[name], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	ref := made(t, kit, "FROM scratch\nCOPY ld "+ld+"\nCOPY hello /bin/hello\n", files)
	res, err := kit.Manager(t).Run(t.Context(), sandbox.Run{Image: ref, Command: []string{"hello", "a b"}}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "musl runs a b in /home/sandbox\n" {
		t.Errorf("%q %q, %+v, %v", res.Stdout, res.Stderr, res, err)
	}
}

const helloMusl = `#include <stdio.h>
#include <stdlib.h>
int main(int n, char **args) { return printf("musl runs %s in %s\n", args[1], getenv("HOME")) < 0; }
`

// part is one layer of an image: a file of some bytes, and of zeros after them.
type part struct {
	name    string
	content []byte
	zeros   int64
}

func (p part) write(w io.Writer) error {
	out := tar.NewWriter(w)
	err := out.WriteHeader(&tar.Header{Name: p.name, Mode: 0o755, Size: int64(len(p.content)) + p.zeros})
	if err == nil {
		_, err = out.Write(p.content)
	}
	if err == nil {
		_, err = io.CopyN(out, nothing{}, p.zeros)
	}
	return errors.Join(err, out.Close())
}

type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// loaded gives the engine an image of layers for an architecture.
func loaded(t *testing.T, kit *enginetest.Kit, arch string, parts ...part) string {
	t.Helper()
	ref := "caisson-test/any" + sandbox.NewID().Short() + ":1"
	var diffs, names []string
	var sizes []int64
	for _, p := range parts {
		sum, size := sha256.New(), &counter{}
		if err := p.write(io.MultiWriter(sum, size)); err != nil {
			t.Fatal(err)
		}
		diffs, names, sizes = append(diffs, fmt.Sprintf("sha256:%x", sum.Sum(nil))), append(names, p.name+".tar"), append(sizes, size.n)
	}
	config := encoded(t, map[string]any{"architecture": arch, "os": "linux", "config": map[string]any{}, "rootfs": map[string]any{"type": "layers", "diff_ids": diffs}})
	list := encoded(t, []any{map[string]any{"Config": "config.json", "RepoTags": []string{ref}, "Layers": names}})
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		small := func(name string, data []byte) error {
			err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))})
			if err == nil {
				_, err = out.Write(data)
			}
			return err
		}
		err := errors.Join(small("config.json", config), small("manifest.json", list))
		for i, p := range parts {
			err = errors.Join(err, out.WriteHeader(&tar.Header{Name: names[i], Mode: 0o644, Size: sizes[i]}), p.write(out))
		}
		w.CloseWithError(errors.Join(err, out.Close()))
	}()
	resp, err := kit.API.ImageLoad(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, err := io.ReadAll(resp.Body); err != nil || bytes.Contains(said, []byte(`"error"`)) {
		t.Fatalf("%v: %s", err, said)
	}
	t.Cleanup(func() { _, _ = kit.API.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}) })
	return ref
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestLargeImage has a gigabyte in four layers.
func TestLargeImage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes a gigabyte: left out of -short")
	}
	kit := enginetest.New(t)
	const quarter = 256 << 20
	reader := static(t, `package main

import (
	"fmt"
	"os"
)

func main() {
	sum := int64(0)
	for _, name := range []string{"/a", "/b", "/c", "/d"} {
		st, err := os.Stat(name)
		if err != nil {
			panic(err)
		}
		sum += st.Size()
	}
	fmt.Println(sum)
}
`)
	ref := loaded(t, kit, runtime.GOARCH, part{"read", reader, 0}, part{"a", nil, quarter}, part{"b", nil, quarter}, part{"c", nil, quarter}, part{"d", nil, quarter})
	res, err := kit.Manager(t).Run(t.Context(), sandbox.Run{Image: ref, Command: []string{"/read"}}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "1073741824\n" {
		t.Errorf("%q %q, %v", res.Stdout, res.Stderr, err)
	}
}

// TestForeignImage is refused before anything is made of it.
func TestForeignImage(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	ref := loaded(t, kit, "s390x", part{"x", []byte("x"), 0})
	_, err := kit.Manager(t).Run(t.Context(), sandbox.Run{Image: ref, Command: []string{"/x"}}, sandbox.Streams{})
	if !errors.Is(err, sandbox.Unsupported) || !strings.Contains(err.Error(), "linux/s390x") || !strings.Contains(sandbox.HintOf(err), "--platform") {
		t.Errorf("error %v, hint %q", err, sandbox.HintOf(err))
	}
}
