package gate

import (
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// form is how a run reaches its first text.
type form struct {
	interpreter []string // with its flags
	lang        string
	// Exactly one of these says where the text is.
	code  bool   // the run's own
	file  string // below the workspace
	stdin bool   // what is written to it
	argv  bool   // a command, which is judged as a shell would read it
	args  []string
	odd   bool   // which of its words are arguments is not known
	shown string // how the program was named, where that is not its place
}

// plainFlags are flags of interpreters that change nothing about what is run,
// and that take no value.
var plainFlags = map[string][]string{
	"python": {"-u", "-B", "-s", "-O", "-OO", "-b", "-bb", "-v", "-q"},
	"bash":   {"-e", "-u", "-x", "-eu", "-ex", "-eux", "-n", "-v", "-f"},
}

// formOf reads the form off a run.
func formOf(q *manager.ExecQuestion, at room) form {
	switch {
	case len(q.Run.Command) == 0 && q.Run.Code != "":
		return form{code: true, lang: policyLanguage(q.Language.Name), args: q.Run.Args, file: q.Run.File}
	case q.Run.File != "":
		t := q.Language.RunFile
		f := form{file: path.Clean(q.Run.File), lang: policyLanguage(q.Language.Name), args: q.Run.Args}
		if len(t) > 1 && t[len(t)-1] == "{file}" {
			f.interpreter = slices.Clone(t[:len(t)-1])
		}
		return f
	}
	return commandForm(q, at)
}

// policyLanguage is the policy's name of a language of the catalogue, whichever
// version of it.
func policyLanguage(name string) string {
	name, _, _ = strings.Cut(name, "@")
	switch name {
	case "shell":
		return "bash"
	case "node":
		return "javascript"
	}
	return name
}

func commandForm(q *manager.ExecQuestion, in room) form {
	argv := q.Argv
	lang := policy.InterpreterLanguage(path.Base(argv[0]))
	known := lang == "python" || lang == "javascript" || lang == "bash"
	if known && strings.Contains(argv[0], "/") {
		at := argv[0]
		if !path.IsAbs(at) {
			at = path.Join(dirOf(q), at)
		}
		known = !in.writable(path.Dir(at)) // else it is whatever bears an interpreter's name
	}
	if !known {
		return form{argv: true}
	}
	n := 1
	for n < len(argv) && slices.Contains(plainFlags[lang], argv[n]) {
		n++
	}
	if lang == "bash" && n+1 < len(argv) && argv[n] == "-" {
		return form{argv: true} // the end of the options: what follows is a script
	}
	if n == len(argv) || argv[n] == "-" || lang == "bash" && argv[n] == "-s" {
		rest := argv[min(n+1, len(argv)):]
		if len(rest) > 0 && rest[0] == "--" {
			rest = rest[1:]
		}
		f := form{stdin: true, lang: lang}
		if lang == "bash" {
			f.args = rest
		}
		return f
	}
	if lang == "bash" && readsInput(argv[n:]) {
		return form{stdin: true, lang: lang, args: []string{}, odd: true}
	}
	if strings.HasPrefix(argv[n], "-") || lang == "bash" && strings.HasPrefix(argv[n], "+") {
		return form{argv: true}
	}
	script := argv[n]
	if !path.IsAbs(script) {
		script = path.Join(dirOf(q), script)
	}
	name, ok := inWorkspace(in.followed(script))
	if !ok || name == "." {
		return form{argv: true}
	}
	return form{interpreter: slices.Clone(argv[:n]), lang: lang, file: name, args: argv[n+1:], shown: argv[n]}
}

// dirOf is the working directory of a run, absolute.
func dirOf(q *manager.ExecQuestion) string {
	if path.IsAbs(q.Dir) {
		return path.Clean(q.Dir)
	}
	return path.Join(sandbox.WorkspaceDir, q.Dir)
}

// readsInput reports whether a shell with these options reads its program from
// standard input, as far as that is not certain not to be: -es, -o errexit.
func readsInput(words []string) bool {
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case len(word) < 2 || word[0] != '-' && word[0] != '+':
			return false // a script
		case strings.HasPrefix(word, "--"):
			return false // judged as a command
		case word[0] == '-' && strings.Contains(word, "c"):
			return false
		case word[0] == '-' && strings.Contains(word, "s"):
			return true
		case strings.HasSuffix(word, "o"), strings.HasSuffix(word, "O"):
			i++
		}
	}
	return true
}

// languageOf tells a file's language by its first line, or its name.
func languageOf(name string, code []byte) string {
	if lang, ok := policy.ShebangLanguage(code); ok && lang != "" {
		return lang
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".py", ".pyw":
		return "python"
	case ".js", ".cjs", ".mjs", ".jsx":
		return "javascript"
	case ".ts", ".mts", ".cts":
		return "typescript"
	case ".sh", ".bash":
		return "bash"
	}
	return ""
}
