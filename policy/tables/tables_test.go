package tables_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
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
	if tb.APIs[facts.Python].Len() < 300 || tb.APIs[facts.JavaScript].Len() < 100 || tb.Programs.Len() < 300 {
		t.Fatalf("tables are short: %d %d %d", tb.APIs[facts.Python].Len(), tb.APIs[facts.JavaScript].Len(), tb.Programs.Len())
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

// TestEncoded: encoded tables are the same, row by row, and are refused where
// something is missing.
func TestEncoded(t *testing.T) {
	given, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	b, err := given.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var got facts.Tables
	if err := got.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	sameRows(t, got.Programs, given.Programs)
	if len(got.APIs) != len(given.APIs) {
		t.Errorf("%d languages, not %d", len(got.APIs), len(given.APIs))
	}
	for lang := range given.APIs {
		sameRows(t, got.APIs[lang], given.APIs[lang])
		if !reflect.DeepEqual(got.Runners(lang), given.Runners(lang)) || len(given.Runners(lang)) == 0 {
			t.Errorf("%s: %v run code, not %v", lang, got.Runners(lang), given.Runners(lang))
		}
	}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[facts.Tables]()) {
		a, b := reflect.ValueOf(&got).Elem().Field(i), reflect.ValueOf(given).Elem().Field(i)
		if !f.IsExported() || f.Name == "Programs" || f.Name == "APIs" {
			continue
		}
		if a.IsZero() || !reflect.DeepEqual(a.Interface(), b.Interface()) {
			t.Errorf("%s: %v, not %v", f.Name, a, b)
		}
	}
	for _, n := range []int{0, 1, 100, len(b) / 2, len(b) - 1} {
		if new(facts.Tables).UnmarshalBinary(b[:n]) == nil {
			t.Errorf("%d of %d bytes are taken for all", n, len(b))
		}
	}
	if new(facts.Tables).UnmarshalBinary(append(b, 0)) == nil {
		t.Error("a byte too many is taken")
	}
}

func sameRows[T any](t *testing.T, got, want *facts.Rows[T]) {
	t.Helper()
	if got.Len() != want.Len() || got.Len() == 0 {
		t.Errorf("%d rows, not %d", got.Len(), want.Len())
	}
	for name, row := range want.All() {
		for range 2 { // decoded, then remembered
			r, ok := got.Get(name)
			if a, b := inJSON(t, r), inJSON(t, row); !ok || a != b {
				t.Errorf("%s is %s, not %s", name, a, b)
			}
		}
	}
	if _, ok := got.Get("no such row"); ok {
		t.Error("there is a row of any name")
	}
}

// inJSON tells rows apart but for lists that are empty and those that are not
// there, which are the same in tables.
func inJSON(t *testing.T, row any) string {
	t.Helper()
	b, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestBrokenRow: a row that cannot be read is not taken for none.
func TestBrokenRow(t *testing.T) {
	given := facts.Tables{Programs: facts.RowsOf(map[string]facts.Program{"rm": {Like: "unlink"}})}
	b, err := given.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var got facts.Tables
	if err := got.UnmarshalBinary(bytes.Replace(b, []byte(`"unlink"`), []byte(`"unlink`+"\n"), 1)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("it was read")
		}
	}()
	got.Programs.Get("rm")
}

// FuzzUnmarshal: whatever the bytes are, they are refused or read.
func FuzzUnmarshal(f *testing.F) {
	given := facts.Tables{Programs: facts.RowsOf(map[string]facts.Program{"rm": {}})}
	b, err := given.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, b []byte) { _ = new(facts.Tables).UnmarshalBinary(b) })
}
