package facts

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// settings judges what a program writes to a file that other programs take
// commands from by its name: the scripts of a package.json, the recipes of a
// Makefile, the settings of git. Whoever starts these programs later runs it.
func (b *Builder) settings(file string, content Value, pos Pos) {
	text, ok := content.One()
	if !ok {
		text = content.Head() + content.Tail()
	}
	switch base := path.Base(file); {
	case text == "" || len(text) > maxSettings:
	case base == "package.json":
		var p struct {
			Scripts map[string]any `json:"scripts"`
		}
		if json.Unmarshal([]byte(text), &p) == nil && len(p.Scripts) <= maxItems {
			for _, name := range slices.Sorted(maps.Keys(p.Scripts)) {
				if line, ok := p.Scripts[name].(string); ok {
					b.setting(base, line, pos)
				}
			}
		}
	case base == "Makefile", base == "makefile", base == "GNUmakefile":
		b.recipes(base, text, pos)
	case base == ".gitconfig", base == ".gitmodules", base == "config" && path.Base(path.Dir(file)) == ".git":
		b.gitFile(file, text, pos)
	}
}

// maxSettings is how long a file of settings may be that is read for commands.
const maxSettings = 64 << 10

// setting scans a command line that stands in a file or an option as a value;
// one that is none is some other text.
func (b *Builder) setting(via, line string, pos Pos) {
	before := len(b.s.doc.Dynamic)
	b.Nested(Shell, Text(line), NestedOpts{Pos: pos, Via: []string{via}})
	b.s.unparsed(before)
}

// lifecycle are the scripts of a package that npm runs without being asked for
// them.
var lifecycle = map[string]bool{
	"preinstall": true, "install": true, "postinstall": true, "prepare": true, "prepublish": true, "preprepare": true, "postprepare": true, "prepack": true, "pretest": true, "posttest": true,
}

// Packages reports that the text speaks of a package.json.
func (b *Builder) Packages() bool {
	if b.packages == 0 {
		b.packages = -1
		if strings.Contains(b.src, "package.json") {
			b.packages = 1
		}
	}
	return b.packages > 0
}

// Script scans a text that is put under a name into an object, where that may
// become a script of a package.json.
func (b *Builder) Script(name string, line Value, pos Pos) {
	if text, ok := line.One(); ok && lifecycle[name] && b.Packages() {
		b.setting("package.json "+name, text, pos)
	}
}

// recipes scans the lines of a Makefile that a shell gets. Its own variables are
// words that are not known.
func (b *Builder) recipes(via, text string, pos Pos) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "\t")
		if !ok {
			continue
		}
		line = strings.TrimLeft(line, "@+- \t")
		if line == "" || line[0] == '#' {
			continue
		}
		b.setting(via, madeVariables(line), pos)
	}
}

// madeVariables puts words in the place of a Makefile's variables.
func madeVariables(line string) string {
	if !strings.Contains(line, "$") {
		return line
	}
	var out strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] != '$' || i+1 == len(line) {
			out.WriteByte(line[i])
			continue
		}
		i++
		end := map[byte]string{'(': ")", '{': "}"}[line[i]]
		switch inner := line[i+1:]; {
		case line[i] == '$':
			out.WriteByte('$')
		case end == "":
			out.WriteString("made")
		case strings.HasPrefix(inner, "shell "):
			out.WriteString("$(" + inner[len("shell "):])
			return out.String()
		default:
			n := strings.Index(inner, end)
			if n < 0 {
				return out.String()
			}
			out.WriteString("made")
			i += n + 1
		}
	}
	return out.String()
}

// gitFile reads a file of git's settings: sections with names and values.
func (b *Builder) gitFile(via, text string, pos Pos) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, rest, _ := strings.Cut(line[1:], "]")
			section = strings.ToLower(strings.ReplaceAll(name, " ", "."))
			line = strings.TrimSpace(rest)
		}
		if name, value, ok := strings.Cut(line, "="); ok {
			key := strings.ReplaceAll(section, `"`, "") + "." + strings.ToLower(strings.TrimSpace(name))
			b.gitSetting(via, key, strings.Trim(strings.TrimSpace(value), `"`), pos, true)
		}
	}
}

// gitCommands are settings of git that hold a command line; between the first
// and the last word of a name there may be another.
var gitCommands = map[string][]string{
	"core": {"fsmonitor", "sshcommand", "pager", "editor", "askpass", "gitproxy", "alternaterefscommand"}, "sequence": {"editor"},
	"diff": {"external", "command", "textconv"}, "difftool": {"cmd"}, "merge": {"driver"}, "mergetool": {"cmd"}, "filter": {"clean", "smudge", "process"},
	"credential": {"helper"}, "gpg": {"program"}, "interactive": {"difffilter"}, "sendemail": {"sendmailcmd", "tocmd", "cccmd"},
	"uploadpack": {"packobjectshook"}, "trailer": {"command", "cmd"}, "man": {"cmd"}, "browser": {"cmd"}, "guitool": {"cmd"}, "submodule": {"update"},
	"remote": {"uploadpack", "receivepack"}, "tar": {"command"},
}

// everyUse are those that git runs without being asked for them.
var everyUse = []string{"core.fsmonitor", "core.sshcommand", "core.askpass", "core.gitproxy"}

// gitSetting scans the command line of a setting. written says that it stands
// in a file, where no command of git tells of it.
func (b *Builder) gitSetting(via, key, value string, pos Pos, written bool) {
	first, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	line, shell := strings.CutPrefix(value, "!")
	switch {
	case first == "alias", key == "submodule.update", first == "submodule" && last == "update":
		if !shell {
			return
		}
	case first == "pager" && last != "true" && last != "false":
	case !slices.Contains(gitCommands[first], last), value == "true", value == "false", value == "":
		return
	case last == "helper" && !shell && !strings.HasPrefix(value, "/"): // a word of git's own
		return
	}
	if written && (slices.Contains(everyUse, key) || foreignProgram(value)) {
		b.Action("git_program", key, via, pos)
	}
	b.setting(via+" "+key, line, pos)
}

// foreignProgram reports a command that a place outside the workspace and the
// system's holds.
func foreignProgram(value string) bool {
	if !strings.HasPrefix(value, "/") {
		return false
	}
	return !slices.ContainsFunc([]string{"/workspace/", "/usr/", "/bin/", "/opt/"}, func(p string) bool { return strings.HasPrefix(value, p) })
}

// gitSettings scans the commands that an argv of git tells it to run.
func (c *command) gitSettings(p *parsed) {
	one := func(key string, v Value) {
		if s, ok := v.One(); ok {
			c.b.gitSetting("git", strings.ToLower(key), s, c.o.Pos, false)
		}
	}
	for _, flag := range []string{"-c", "--config"} {
		for _, it := range asItems(p.values[flag]) {
			if s, ok := it.One(); ok {
				if key, value, ok := strings.Cut(s, "="); ok {
					one(key, Text(value))
				}
			}
		}
	}
	ops := p.operands
	if len(ops) < 3 || !is(ops[0], "config") {
		return
	}
	if is(ops[1], "set") {
		ops = ops[1:]
	}
	for i := 1; i+1 < len(ops) && i < 3; i++ {
		if key, ok := ops[i].One(); ok && strings.Contains(key, ".") {
			one(key, ops[i+1])
			return
		}
	}
}

func is(v Value, text string) bool {
	s, ok := v.One()
	return ok && s == text
}
