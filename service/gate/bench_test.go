package gate_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// BenchmarkJudge judges what nobody has seen yet.
func BenchmarkJudge(b *testing.B) {
	fifty, err := os.ReadFile("../../bench/gate/fifty.py.txt")
	if err != nil {
		b.Fatal(err)
	}
	g := newGate(b, newPolicy(b), &desk{})
	n := 0 // also over repetitions, which must not meet what was judged
	for name, run := range map[string]func(n string) sandbox.Run{
		"true": func(n string) sandbox.Run { return command("true", n) },
		"python": func(n string) sandbox.Run {
			return sandbox.Run{Language: "python", Code: strings.ReplaceAll(string(fifty), "@ROUND@", n)}
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n++
				r := run(strconv.Itoa(n))
				r.Session = "s"
				if _, err := g.Judge(b.Context(), manager.Question{Exec: question(r, nil, "")}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
