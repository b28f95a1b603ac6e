package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestStartTree(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tree := startTree{cfg: Config{IO: IOStreams{Err: &out}}}
	code := func(n int) *int { return &n }
	for _, s := range []sandbox.Start{
		{PID: 11, Parent: 10, Path: "/usr/bin/make", Argv: []string{"make", "-j2"}},
		{PID: 12, Parent: 11, Path: "/bin/sh", Argv: []string{"sh", "-c", "a\x1b[2Jb"}},
		{PID: 12, Parent: 11, Path: "/bin/sh", Ended: 1, Replaced: true},
		{PID: 12, Parent: 11, Path: "/usr/bin/cc", Argv: []string{"cc", "x.c"}, Cut: true},
		{PID: 13, Parent: 12, Path: "/usr/bin/as"},
		{PID: 13, Parent: 12, Path: "/usr/bin/as", Ended: 1, Code: code(0)},
		{PID: 14, Parent: 12, Path: "/usr/bin/rm", Argv: []string{"rm", "/"}, Verdict: sandbox.Deny, Why: "SBX-BL-0001 Named"},
		{PID: 12, Parent: 11, Path: "/usr/bin/cc", Argv: []string{"cc", "x.c"}, Ended: 1, Code: code(137), Signal: 9},
		{PID: 11, Parent: 10, Path: "/usr/bin/make", Argv: []string{"make", "-j2"}, Ended: 1, Code: code(2)},
	} {
		tree.show(s)
	}
	tree.conclude(sandbox.Result{StartsLeftOut: 4, StartsUnjudged: 2})
	want := `caisson: /usr/bin/make -j2
caisson:   /bin/sh -c a\x1b[2Jb
caisson:   /usr/bin/cc x.c …
caisson:     /usr/bin/as
caisson:     /usr/bin/rm /  refused: SBX-BL-0001 Named
caisson:   /usr/bin/cc x.c  ended by signal 9
caisson: /usr/bin/make -j2  ended with 2
caisson: and 4 more
caisson: 2 could not be started: nobody was there to judge
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	none := startTree{cfg: tree.cfg}
	none.conclude(sandbox.Result{})
	if got := out.String(); got != "caisson: it started nothing that was seen\n" {
		t.Errorf("%q", got)
	}
}

func TestProcessesWithStarts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printProcesses(Config{IO: IOStreams{Out: &out}}, []process{{"work", api.Process{
		ID: "e", Command: []string{"make"}, Running: true, Processes: 2, StartsLeftOut: 3, StartsUnjudged: 1,
		Starts: []sandbox.Start{
			{PID: 11, Parent: 10, Path: "/bin/sh", Argv: []string{"sh", "-c", "a\tb"}, Ended: 1, Replaced: true},
			{PID: 11, Parent: 10, Path: "/usr/bin/cc", Argv: []string{"cc"}},
			{PID: 12, Parent: 11, Path: "/usr/bin/as", Verdict: sandbox.Ask},
		},
	}}})
	want := `SESSION  EXEC  AGE  STATE    PROCESSES  OUTPUT  COMMAND
work     e     0s   running  2          0 B     make
                                                  /bin/sh -c a\x09b  became another
                                                  /usr/bin/cc
                                                    /usr/bin/as  waits to be judged
                                                  and 3 more
                                                  1 could not be started: nobody was there to judge
`
	if diff := cmp.Diff(want, out.String()); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
