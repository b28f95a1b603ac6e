package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/storage"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestWithUsers(t *testing.T) {
	t.Parallel()
	who := sandbox.Identity{UID: 20000, RunnerUID: 20001}
	const passwd = "sandbox:x:20000:20000:sandbox:/home/sandbox:/bin/sh\nrunner:x:20001:20001:runner:/home/sandbox:/bin/sh\n"
	for theirs, kept := range map[string]string{
		"":                                    "",
		"root:*:0:0::/root:/bin/sh":           "root:*:0:0::/root:/bin/sh\n",
		"a:x:1:1::/:\r\n\n#:\nb:x:2:2::/:\n":  "a:x:1:1::/:\nb:x:2:2::/:\n",
		"sandbox:x:7:7::/:\nrunner:x:8:8::/:": "",
		"me:x:20000:1::/:\nyou:x:20001:1::/:": "",
	} {
		if got := withUsers("passwd", theirs, "sandbox", who); got != kept+passwd {
			t.Errorf("%q: %q", theirs, got)
		}
	}
	if got, want := withUsers("group", "root:x:0:\nus:x:20000:me\nuser:x:7:\n", "user", who), "root:x:0:\nuser:x:20000:\nrunner:x:20001:\n"; got != want {
		t.Errorf("groups %q, want %q", got, want)
	}
}

// An image's list of users is the upper layer's, and nothing but a file of the
// layer itself.
func TestImageFile(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, "secret")
	link := func(to string) func(string) error {
		return func(layer string) error { return os.Symlink(to, filepath.Join(layer, "etc", "passwd")) }
	}
	for name, tt := range map[string]struct {
		upper func(layer string) error
		want  string
	}{
		"the lower":  {func(string) error { return nil }, "lower"},
		"the upper":  {func(l string) error { return os.WriteFile(filepath.Join(l, "etc", "passwd"), []byte("upper"), 0o600) }, "upper"},
		"a link":     {func(l string) error { write(filepath.Join(l, "x"), "linked"); return link("../x")(l) }, "linked"},
		"a link out": {link(secret), ""},
		"a link up":  {link("../../../../../../../.." + secret), ""},
		"a folder":   {func(l string) error { return os.Mkdir(filepath.Join(l, "etc", "passwd"), 0o755) }, ""},
		"too long to read": {func(l string) error {
			write(filepath.Join(l, "etc", "passwd"), strings.Repeat("x", mostNames+1))
			return nil
		}, ""},
	} {
		upper, lower := t.TempDir(), t.TempDir()
		write(filepath.Join(lower, "etc", "passwd"), "lower")
		if err := os.Mkdir(filepath.Join(upper, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := tt.upper(upper); err != nil {
			t.Fatal(err)
		}
		got := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{
			GraphDriver: storage.DriverData{Name: "overlay2", Data: map[string]string{"LowerDir": t.TempDir() + ":" + upper + ":" + lower}},
		}}
		if text := imageFile(got, "etc/passwd"); text != tt.want {
			t.Errorf("%s: %.20q, want %q", name, text, tt.want)
		}
		if got.GraphDriver.Name = "vfs"; imageFile(got, "etc/passwd") != "" {
			t.Errorf("%s: read from a storage that is not known", name)
		}
	}
}
