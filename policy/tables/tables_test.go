package tables_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestShippedTablesLoad(t *testing.T) {
	tb, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	if len(tb.APIs[facts.Python]) < 300 || len(tb.APIs[facts.JavaScript]) < 100 || len(tb.Programs) < 300 {
		t.Fatalf("tables are short: %d %d %d", len(tb.APIs[facts.Python]), len(tb.APIs[facts.JavaScript]), len(tb.Programs))
	}
}

func TestUnknownFieldIsRefused(t *testing.T) {
	fsys := fstest.MapFS{
		"data/paths.yaml":    {Data: []byte("home: /h\nworkspaces: /w\n")},
		"data/hosts.yaml":    {Data: []byte("hosts: []\n")},
		"data/programs.yaml": {Data: []byte("programs: {}\n")},
	}
	if _, err := tables.Load(fsys); !errors.Is(err, sandbox.Invalid) {
		t.Fatalf("got %v, want invalid", err)
	}
}
