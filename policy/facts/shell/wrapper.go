package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// wrapped lists the program of argv, and behind a wrapper the one it starts.
func wrapped(t *facts.Tables, argv []string) []string {
	var out []string
	for len(argv) > 0 && argv[0] != "" {
		name := base(argv[0])
		out = append(out, name)
		p, _ := t.Programs.Get(name)
		if p.Like != "" {
			p, _ = t.Programs.Get(p.Like)
		}
		if !p.Wrapper && !p.Applet {
			break
		}
		argv = skipOptions(p, argv[1:])
	}
	return out
}

// skipOptions drops what stands between a wrapper and its command.
func skipOptions(p facts.Program, argv []string) []string {
	skip := p.Skip
	for len(argv) > 0 {
		a := argv[0]
		switch {
		case len(a) > 1 && a[0] == '-':
			for _, f := range p.ValueFlags {
				if f == a && len(argv) > 1 {
					argv = argv[1:]
				}
			}
		case p.Assign && isAssignment(a):
		case skip > 0:
			skip--
		default:
			return argv
		}
		argv = argv[1:]
	}
	return argv
}

func isAssignment(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '=' {
			return i > 0 && syntax.ValidName(s[:i])
		}
	}
	return false
}
