package seatbelt_test

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/runtimes/seatbelt"
	"github.com/caisson-dev/caisson/sandbox"
)

var folders = seatbelt.Folders{Workspace: "/private/tmp/s/workspace", Home: "/private/tmp/s/home", Tmp: "/private/tmp/s/tmp", Private: "/private/tmp/s/io"}

// What is not allowed is denied, its own folders alone are written, and what is
// denied for good comes last, since the last rule that fits counts.
func TestProfile(t *testing.T) {
	t.Parallel()
	text, err := seatbelt.Profile(folders)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "(version 1)\n(deny default)\n") || !strings.HasSuffix(text, "(deny file-read* file-write*\n\t(subpath \"/private/tmp/s/io\"))\n(deny network*)\n") {
		t.Errorf("begins or ends otherwise:\n%s", text)
	}
	if open, closed := strings.Count(text, "("), strings.Count(text, ")"); open != closed {
		t.Errorf("%d parentheses open and %d close", open, closed)
	}
	want := "(allow file-write*\n\t(subpath \"/private/tmp/s/workspace\")\n\t(subpath \"/private/tmp/s/home\")\n\t(subpath \"/private/tmp/s/tmp\"))\n"
	if !strings.Contains(text, want) || strings.Count(text, "allow file-write*") != 1 {
		t.Errorf("what may be written:\n%s", text)
	}
	for _, never := range []string{"(allow default)", "allow network", "\"/Users\"", "(subpath \"/\")", "(subpath \"/private\")", "allow mach-lookup)", "allow file-write* (literal"} {
		if strings.Contains(text, never) {
			t.Errorf("it has %s:\n%s", never, text)
		}
	}
	if again, err := seatbelt.Profile(folders); err != nil || again != text {
		t.Errorf("another text the second time: %v", err)
	}
}

// A folder's name cannot end its string, and what is no folder is refused.
func TestFolders(t *testing.T) {
	t.Parallel()
	f := folders
	f.Workspace = `/private/tmp/a")(allow default)(subpath "\`
	text, err := seatbelt.Profile(f)
	if err != nil || !strings.Contains(text, `(subpath "/private/tmp/a\")(allow default)(subpath \"\\")`) {
		t.Errorf("%v\n%s", err, text)
	}
	for _, bad := range []string{"", "/", "relative", "/a/../b", "/a/", "/a\x00b"} {
		f := folders
		f.Private = bad
		if _, err := seatbelt.Profile(f); sandbox.KindOf(err) != sandbox.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
