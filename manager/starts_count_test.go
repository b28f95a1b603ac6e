package manager_test

import (
	"encoding/json"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// Of many starts the first are told, those of each text in a shell, and the others are
// counted, in the audit too.
func TestManyStartsAreCounted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	m := p.judging(t, (&judge{any: true}).Judge)
	if _, err := m.OpenShell(t.Context(), "work", "main", sandbox.ShellOptions{}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	const text, leftOut = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done", 300 - sandbox.MaxStarts
	for range 2 {
		res, err := m.RunShell(t.Context(), "work", "main", sandbox.ShellRun{Text: text, ExecLimits: shell(text).ExecLimits}, sandbox.Streams{})
		if err != nil || len(res.Starts) != sandbox.MaxStarts || res.StartsLeftOut != leftOut {
			t.Errorf("in a shell: %v %+v %q, told %d, left out %d", err, res.Exit, res.Stderr, len(res.Starts), res.StartsLeftOut)
		}
	}
	res, err := m.ExecIn(t.Context(), "work", shell(text), sandbox.Streams{})
	if err != nil || len(res.Starts) != sandbox.MaxStarts || res.StartsLeftOut != leftOut {
		t.Errorf("%v %+v %q, told %d, left out %d", err, res.Exit, res.Stderr, len(res.Starts), res.StartsLeftOut)
	}
	recorded := 0
	for e, err := range p.store.Events(t.Context(), sandbox.EventFilter{Kinds: []string{sandbox.EventExecStarts}}) {
		var d struct {
			Starts  []struct{} `json:"starts"`
			LeftOut int        `json:"starts_left_out"`
		}
		if err != nil || json.Unmarshal(e.Data, &d) != nil || len(d.Starts) != sandbox.MaxStarts || d.LeftOut != leftOut {
			t.Errorf("%v: the audit has %d, and %d left out", err, len(d.Starts), d.LeftOut)
		}
		recorded++
	}
	if recorded != 3 {
		t.Errorf("%d in the audit, want 3", recorded)
	}
}
