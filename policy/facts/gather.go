package facts

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// gatherers are programs that run files of the folder without being told their
// names: tests, by the endings of their names.
var gatherers = map[string][]string{
	"pytest": {".py"}, "py.test": {".py"}, "nosetests": {".py"}, "nose2": {".py"}, "tox": {".py"}, "nox": {".py"},
	"jest": {".js", ".ts", ".mjs", ".cjs"}, "mocha": {".js", ".ts", ".mjs", ".cjs"}, "vitest": {".js", ".ts", ".mjs", ".cjs"}, "ava": {".js", ".mjs", ".cjs"},
	"bats": {".bats", ".bash"},
}

// gatheringModules are the same of Python's modules.
var gatheringModules = []string{"pytest", "unittest", "doctest", "nose", "nose2", "compileall"}

// compilers build what texts of languages say that have no extractor; these
// words in such a text act on the system.
var compilers = map[string][]string{
	"gcc": cWords, "cc": cWords, "clang": cWords, "g++": cWords, "c++": cWords, "clang++": cWords, "tcc": cWords,
	"go":    {"os/exec", "os.Remove", "syscall", "\"net\"", "net/http", "os.Chmod", "os.Chown", "os.Rename", "os.Environ", "os.Symlink", "unsafe", "C\""},
	"rustc": {"process::Command", "remove_", "std::net", "libc::", "env::vars", "set_permissions", "rename("},
	"javac": {"Runtime", "ProcessBuilder", "java.net", "Files.delete", ".delete()", "getenv"},
}

var cWords = []string{"system(", "exec", "fork(", "popen(", "unlink(", "remove(", "rmdir(", "rename(", "kill(", "socket(", "ptrace", "setuid", "chmod(", "chown(", "mount(", "syscall", "environ", "/etc/", "/proc/", "dlopen", "asm"}

// gathered scans what the program wrote itself, where another one that it starts
// now runs it.
func (c *command) gathered(base string, prog Program, p *parsed) {
	if words, ok := compilers[base]; ok && p.hasStdin && p.stdin.Known() {
		c.unread(Program{Interpreter: Lang(base), Words: words}, p.stdin, nil)
	}
	if len(c.b.s.files) == 0 {
		return
	}
	if base == "cmake" {
		c.cmakes(p)
		return
	}
	if words, ok := compilers[base]; ok {
		for _, o := range p.operands {
			if text, ok := c.b.Load(o); ok {
				c.unread(Program{Interpreter: Lang(base), Words: words}, text, nil)
			}
		}
		return
	}
	endings := gatherers[base]
	if m, ok := p.values["-m"]; ok && prog.Interpreter == Python {
		name, _ := m.One()
		if slices.Contains(gatheringModules, name) {
			endings = gatherers["pytest"]
		} else if name != "" {
			c.b.imported(name, c.o.Pos)
		}
	}
	if endings == nil {
		return
	}
	for _, file := range slices.Sorted(maps.Keys(c.b.s.files)) {
		if slices.Contains(endings, path.Ext(file)) && !strings.Contains(file, "/proc/") {
			c.b.written(Text(file), c.o.Pos)
		}
	}
}

// cmakes scans the commands of a script of cmake that the program wrote, the
// one that is named or the one that lies in the folder.
func (c *command) cmakes(p *parsed) {
	files := asItems(p.values["-P"])
	for _, file := range slices.Sorted(maps.Keys(c.b.s.files)) {
		if path.Base(file) == "CMakeLists.txt" {
			files = append(files, Text(file))
		}
	}
	for _, file := range files {
		text, _ := c.b.Load(file)
		for _, s := range text.Alts {
			for _, line := range c.b.s.tables.submatches(`(?is)(?:execute_process|exec_program|add_custom_command|add_custom_target)\s*\([^()]*?COMMAND\s+([^()]*)\)`, s) {
				c.b.setting("cmake", strings.ReplaceAll(line, "\n", " "), c.o.Pos)
			}
			for _, name := range c.b.s.tables.submatches(`(?is)file\s*\(\s*(?:REMOVE_RECURSE|REMOVE)\s+"?([^()"]*)"?\)`, s) {
				c.b.File(Use{Pos: c.o.Pos, Op: OpDelete, What: Text(name), By: "cmake", Recursive: true})
			}
			for _, name := range c.b.s.tables.submatches(`(?is)file\s*\(\s*(?:WRITE|APPEND)\s+"?([^()"\s]*)`, s) {
				c.b.File(Use{Pos: c.o.Pos, Op: OpWrite, What: Text(name), By: "cmake"})
			}
			for _, name := range c.b.s.tables.submatches(`(?is)file\s*\(\s*(?:READ|STRINGS)\s+"?([^()"\s]*)`, s) {
				c.b.File(Use{Pos: c.o.Pos, Op: OpRead, What: Text(name), By: "cmake"})
			}
		}
	}
}
