package policy

import (
	"fmt"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// into is cat > path <<E.
func into(path, text string, line int) facts.Command {
	to, body := facts.Text(path), facts.Text(text)
	return facts.Command{At: facts.At{Pos: facts.Pos{Line: line}}, Name: "cat", Argv: []string{"cat"},
		Redirs: []facts.Redir{{Op: ">", Target: to}, {Op: "<<", Target: body}}}
}

// What a script writes into a file as it stands is known only where no other of
// its files can be meant.
func TestWrittenTextIsKnown(t *testing.T) {
	file := func(op, path string, line int) facts.File {
		return facts.File{At: facts.At{Pos: facts.Pos{Line: line}}, Op: op, Path: path, Folded: true, Class: "workspace", By: "sh"}
	}
	doc := &facts.Document{
		Commands: []facts.Command{into("x.sh", "one", 1), into("y.sh", "two", 2), into("a/z.sh", "three", 3), into("b/z.sh", "four", 4), into("late.sh", "five", 9)},
		Files: []facts.File{file(facts.OpWrite, "/workspace/x.sh", 1), file(facts.OpWrite, "/workspace/y.sh", 2), file(facts.OpAppend, "/workspace/y.sh", 3),
			file(facts.OpWrite, "/workspace/a/z.sh", 3), file(facts.OpWrite, "/workspace/b/z.sh", 4), file(facts.OpWrite, "/workspace/late.sh", 9)},
	}
	s := startsOf(doc)
	for path, want := range map[string]string{"x.sh": "one", "y.sh": "", "a/z.sh": "", "b/z.sh": "", "late.sh": "", "other.sh": ""} {
		f := file(facts.OpExec, "/workspace/"+path, 5)
		if text, known := s.written(&f); known != (want != "") || string(text) != want {
			t.Errorf("%s holds %q, %v; want %q", path, text, known, want)
		}
	}
}

// Words of one command stay its own, and what would take too much to look at is not
// told.
func TestStartsAreApart(t *testing.T) {
	at := func(line int) facts.At { return facts.At{Pos: facts.Pos{Line: line}} }
	doc := &facts.Document{
		Commands: []facts.Command{
			{At: at(2), Name: "sh", Argv: []string{"sh", "x.sh", "p"}},
			{At: at(3), Name: "sh", Argv: []string{"sh", "x.sh", "q"}},
		},
	}
	for range mostAtPlace + 1 {
		doc.Commands = append(doc.Commands, facts.Command{At: at(4), Name: "sh", Argv: []string{"sh", "x.sh"}})
	}
	s := startsOf(doc)
	of := func(line int) string {
		start, ok := s.of(&facts.File{At: at(line), Op: facts.OpExec, Path: "/workspace/x.sh", By: "sh"})
		if !ok {
			return "not told"
		}
		return fmt.Sprint(start.Args[0].Alts)
	}
	for line, want := range map[int]string{2: "[p]", 3: "[q]", 4: "not told"} {
		if got := of(line); got != want {
			t.Errorf("line %d: %s, want %s", line, got, want)
		}
	}
}
