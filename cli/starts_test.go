package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestPrintStarts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printStarts(Config{IO: IOStreams{Err: &out}}, sandbox.Result{StartsLeftOut: 4, Starts: []sandbox.Start{
		{PID: 11, Parent: 10, Path: "/usr/bin/make", Argv: []string{"make", "-j2"}},
		{PID: 12, Parent: 11, Path: "/bin/sh", Argv: []string{"sh", "-c", "a\x1b[2Jb"}},
		{PID: 12, Parent: 11, Path: "/usr/bin/cc", Argv: []string{"cc", "x.c"}, Cut: true},
		{PID: 13, Parent: 12, Path: "/usr/bin/rm", Argv: []string{"rm", "/"}, Verdict: sandbox.Deny, Why: "SBX-BL-0001 Named"},
	}})
	want := "caisson: /usr/bin/make -j2\ncaisson:   /bin/sh -c a\\x1b[2Jb\ncaisson:   /usr/bin/cc x.c …\ncaisson:     /usr/bin/rm /  refused: SBX-BL-0001 Named\ncaisson: and 4 more\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
