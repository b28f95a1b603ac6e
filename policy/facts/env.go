package facts

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

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
		e := Env{At: b.at(pos), Op: op, Name: n, Value: short(text), Class: b.s.tables.EnvClass(n)}
		switch {
		case e.Class == "search":
			e.From = clip(value.From)
		case e.Class == "history" && len(value.Alts) != 1:
			e.Value = keptIn(value)
		}
		each := []Env{e}
		if op == "write" && e.Class == "startup" {
			each = e.each(value)
		}
		for _, e := range each {
			if !b.room() {
				return
			}
			b.s.doc.Env = append(b.s.doc.Env, e)
		}
		if op == "write" {
			b.commandIn(n, value, pos)
			b.setFor(n, value)
		}
	}
}

// each is a fact for each value that a variable can have. One is Open that is
// longer than facts keep, and the last where there may be others, but for what the
// environment had before.
func (e Env) each(value Value) []Env {
	out := make([]Env, 0, len(value.Alts)+1)
	for _, a := range value.Alts {
		e.Value = short(a)
		e.Open = e.Value != a
		out = append(out, e)
	}
	if !value.Known() {
		e.Value, e.Open = short(value.Head()), !surroundings(value.From) && !computed(value)
		out = append(out, e)
	}
	return out
}

// computed reports a text that ends in the value of an option, where that was read
// from nowhere: a size, as often as not.
func computed(v Value) bool {
	return strings.HasSuffix(v.Head(), "=") && v.Tail() == "" && !slices.ContainsFunc(v.From, func(f string) bool {
		return f == "stdin" || f == "decoded" || f == "clipboard" || strings.HasPrefix(f, "net") || strings.HasPrefix(f, "file")
	})
}

// keptIn is what a variable says of where a history is kept: that of several
// values which keeps nothing, or the name of a file in a folder that is not
// known; "" where it may be the name of nothing.
func keptIn(v Value) string {
	if i := slices.IndexFunc(v.Alts, func(s string) bool { return s == "" || s == "/dev/null" || s == "0" }); i >= 0 {
		return v.Alts[i]
	}
	if h := v.Head(); h != "" {
		return h
	}
	tail := v.Tail()
	i := strings.LastIndexByte(tail, '/')
	if i < 0 || strings.Contains(tail, "null") {
		return ""
	}
	return tail[i+1:]
}

// commandVariables hold command lines that programs start.
var commandVariables = map[string]bool{
	"PAGER": true, "GIT_PAGER": true, "MANPAGER": true, "SYSTEMD_PAGER": true, "EDITOR": true, "VISUAL": true, "GIT_EDITOR": true,
	"GIT_SEQUENCE_EDITOR": true, "GIT_SSH_COMMAND": true, "BROWSER": true, "SUDO_ASKPASS": true, "SSH_ASKPASS": true, "GIT_ASKPASS": true,
	"RSYNC_RSH": true, "CVS_RSH": true,
}

// commandIn judges the command line that a variable hands to other programs.
func (b *Builder) commandIn(name string, value Value, pos Pos) {
	if commandVariables[name] && len(value.Alts) > 0 {
		b.Nested(Shell, Text(value.Alts...).WithFrom(value.From...), NestedOpts{Pos: pos, Via: []string{name}, Start: Start{Known: true}})
	}
}

// setFor keeps a variable that a program of another language sets, for the
// shells that it starts.
func (b *Builder) setFor(name string, value Value) {
	if b.lang == Shell || len(value.Alts) == 0 || name == "" || len(b.s.set) >= 64 {
		return
	}
	if b.s.set == nil {
		b.s.set = map[string]Value{}
	}
	if old, ok := b.s.set[name]; ok {
		value = Union(value, old)
	}
	b.s.set[name] = value
}

// secretWords are how names of secrets are told from others.
var secretWords = lazyregexp.New(`(?i)passw|secret|token|credential|api_?key|private|[_"'/|]keys?[_"'/|$]`)

// SeeksSecrets reports that a condition on names picks those of secrets.
func SeeksSecrets(condition string) bool {
	return len(condition) < keptText && secretWords().MatchString(condition)
}
