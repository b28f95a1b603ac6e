package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// pipeline walks the stages, each in a subshell that reads what the one before
// prints.
func (w *walker) pipeline(c *syntax.BinaryCmd) text {
	stages := flatten(c)
	names := make([][]string, len(stages))
	for i, s := range stages {
		names[i] = w.peek(s)
	}
	old := w.in
	var out text
	w.forks++
	w.stages = append(w.stages, false)
	pos := w.pos(c)
	behind := make([][]string, len(stages))
	for i := len(stages) - 1; i > 0; i-- {
		behind[i-1] = w.united(names[i], behind[i], pos)
	}
	var before []string
	for i, s := range stages {
		if i > 0 {
			before = w.united(before, names[i-1], pos)
			w.in = &stream{t: out, kind: "pipe", from: before}
		}
		w.in.to = behind[i]
		last := i == len(stages)-1
		if !last {
			w.capture++
		}
		w.aside(func() { out = w.stmt(s) })
		if !last {
			w.capture--
			w.in = &stream{}
		}
	}
	w.stages = w.stages[:len(w.stages)-1]
	w.forks--
	from := w.in.t.from
	w.in = old
	w.in.to = nil
	w.status = unsure
	w.joined(w.united(names[0], behind[0], pos), from, pos)
	return out
}

// maxJoined bounds how many programs of a pipeline each command of it names: all
// of them at each would be the square of their number.
const maxJoined = 32

// united is what two lists of programs name, each once.
func (w *walker) united(first, then []string, pos facts.Pos) []string {
	out := make([]string, 0, len(first)+len(then))
	for _, list := range [][]string{first, then} {
		for _, name := range list {
			if slices.Contains(out, name) {
				continue
			}
			if len(out) == maxJoined {
				w.overflow("programs of a pipeline", pos)
				return out
			}
			out = append(out, name)
		}
	}
	return out
}

// flatten gives the stages of a pipeline in order.
func flatten(c *syntax.BinaryCmd) []*syntax.Stmt {
	var out []*syntax.Stmt
	for {
		out = append(out, c.Y)
		left, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || left.Op != syntax.Pipe && left.Op != syntax.PipeAll || len(c.X.Redirs) > 0 || c.X.Negated {
			out = append(out, c.X)
			break
		}
		c = left
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
