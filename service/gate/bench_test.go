package gate_test

import (
	"strconv"
	"testing"

	"github.com/caisson-dev/caisson/manager"
)

// BenchmarkJudge is a command that nobody has seen yet, judged.
func BenchmarkJudge(b *testing.B) {
	g := newGate(b, newPolicy(b), &desk{})
	n := 0
	for b.Loop() {
		n++
		q := question(command("true", strconv.Itoa(n)), nil, "")
		q.Run.Session = "s"
		if _, err := g.Judge(b.Context(), manager.Question{Exec: q}); err != nil {
			b.Fatal(err)
		}
	}
}
