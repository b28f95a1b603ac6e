package facts

import "strings"

// EnvClass is the class of a variable's name, "" where no pattern matches.
func (t *Tables) EnvClass(name string) string {
	for _, class := range []string{"loader", "startup", "secret", "search", "history", "python"} {
		for _, p := range t.EnvNames[class] {
			if envMatch(p, name) {
				return class
			}
		}
	}
	return ""
}

func envMatch(pattern, name string) bool {
	before, okB := strings.CutPrefix(pattern, "*")
	after, okA := strings.CutSuffix(before, "*")
	switch {
	case okA && okB:
		return strings.Contains(name, after)
	case okA:
		return strings.HasPrefix(name, after)
	case okB:
		return strings.HasSuffix(name, after)
	}
	return pattern == name
}

// Env records a use of an environment variable: op is read, write or dump.
func (b *Builder) Env(op string, name, value Value, pos Pos) {
	names := name.Alts
	if len(names) == 0 {
		names = []string{""}
	}
	text, _ := value.One()
	if text == "" {
		text = value.Head()
	}
	for _, n := range names {
		if !b.room() {
			return
		}
		e := Env{At: b.at(pos), Op: op, Name: n, Value: short(text), Class: b.s.tables.EnvClass(n)}
		b.s.doc.Env = append(b.s.doc.Env, e)
	}
}
