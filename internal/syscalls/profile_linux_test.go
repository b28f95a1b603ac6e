package syscalls

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// The profile is the engine's, less what no sandbox needs. What its filter does is
// tried on an engine, in package manager.
func TestProfile(t *testing.T) {
	t.Parallel()
	text, err := Profile()
	if err != nil {
		t.Fatal(err)
	}
	var ours seccomp.Seccomp
	if err := json.Unmarshal([]byte(text), &ours); err != nil {
		t.Fatal(err)
	}
	if ours.DefaultAction != specs.ActErrno {
		t.Errorf("what is not named is %s", ours.DefaultAction)
	}
	allowed := map[string]bool{}
	for _, c := range ours.Syscalls {
		for _, name := range c.Names {
			allowed[name] = allowed[name] || c.Action == specs.ActAllow
			if strings.HasPrefix(name, "socket") && len(c.Args) == 0 && c.Action == specs.ActAllow {
				t.Errorf("%s is open for every family", name)
			}
		}
	}
	for _, c := range seccomp.DefaultProfile().Syscalls {
		caps := c.Includes != nil && len(c.Includes.Caps) > 0
		for _, name := range c.Names {
			if !caps && c.Action == specs.ActAllow && !allowed[name] && name != "socketcall" && !slices.Contains(closed, name) {
				t.Errorf("%s is open with engines and not here", name)
			}
		}
	}
	for _, name := range append([]string{"socketcall", "mount", "unshare", "setns", "reboot", "syslog", "pidfd_getfd", "open_by_handle_at"}, closed...) {
		if allowed[name] {
			t.Errorf("%s is open", name)
		}
	}
}

// What other systems hand to their engines is what is made here.
func TestMade(t *testing.T) {
	t.Parallel()
	want, err := Profile()
	if err != nil {
		t.Fatal(err)
	}
	const name = "profile.json"
	if os.Getenv("CAISSON_UPDATE") == "1" {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s is not the profile of now (%v): CAISSON_UPDATE=1 go test ./internal/syscalls", name, err)
	}
}
