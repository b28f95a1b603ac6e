package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// Every command block of the documents, and every example of the help, runs as
// it is shown, unattended, from the top of the repository, and puts out what is
// shown below it but for ids, times, digests and figures.
//
// A block that CI cannot run has a comment above it, <!-- not run: REASON -->,
// an example of the help one behind it, # needs SOMETHING.
func TestDocuments(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	for _, lang := range []string{"python", "node"} {
		kit.Image(t, lang)
	}
	sh := newReader(t, kit, base)
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, doc := range append([]string{"../../README.md"}, docs...) {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocksOf(t, filepath.Base(doc), string(b)) {
			if block.notRun != "" {
				skipped++
				continue
			}
			sh.run(t, block)
		}
	}
	if skipped > 6 {
		t.Errorf("%d blocks are not run: most have to", skipped)
	}
	for _, block := range examplesOf(t, sh) {
		sh.run(t, block)
	}
	sh.say(t, "caisson session rm --all --force")
}

// block is a block of commands, with what each puts out.
type block struct {
	where    string
	steps    []step
	compared bool   // its outputs are shown
	notRun   string // why it is not run, or ""
}

type step struct {
	command string
	output  []string
}

// blocksOf reads a document.
func blocksOf(t *testing.T, name, text string) []block {
	t.Helper()
	var blocks []block
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		kind, fence := strings.CutPrefix(lines[i], "```")
		if !fence {
			continue
		}
		begin := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		body := lines[begin:i]
		b := block{where: name + ": " + strings.Join(body[:min(1, len(body))], ""), compared: kind == "console"}
		if begin > 1 {
			why, ok := strings.CutPrefix(lines[begin-2], "<!-- not run: ")
			if ok {
				b.notRun = strings.TrimSuffix(why, " -->")
			}
		}
		switch kind {
		case "sh", "console":
			b.steps = stepsOf(body, b.compared)
			blocks = append(blocks, b)
		default:
			if strings.Contains("\n"+strings.Join(body, "\n"), "\n$ ") {
				t.Errorf("%s: a block of commands that is not marked as console", b.where)
			}
		}
	}
	return blocks
}

// stepsOf splits a block into commands. One goes on in the next line while a
// quote is open, or behind a backslash.
func stepsOf(lines []string, prompts bool) []step {
	var steps []step
	for i := 0; i < len(lines); i++ {
		command, prompt := strings.CutPrefix(lines[i], "$ ")
		if prompts && !prompt {
			if n := len(steps); n > 0 {
				steps[n-1].output = append(steps[n-1].output, lines[i])
			}
			continue
		}
		for open(command) && i+1 < len(lines) {
			i++
			command += "\n" + lines[i]
		}
		if strings.TrimSpace(command) != "" {
			steps = append(steps, step{command: command})
		}
	}
	return steps
}

// open reports whether a command is not at its end.
func open(command string) bool {
	var quote rune
	escaped := false
	for _, r := range command {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
	}
	if word := heredoc.FindStringSubmatch(command); word != nil {
		return !strings.HasSuffix(command, "\n"+word[1])
	}
	return quote != 0 || escaped
}

// examplesOf reads the help of every command. Some examples need what others
// have made.
func examplesOf(t *testing.T, sh *reader) []block {
	t.Helper()
	var blocks []block
	var visit func(command string)
	visit = func(command string) {
		help := sh.say(t, command+" --help")
		section := ""
		b := block{where: command + " --help"}
		var lines []string
		for line := range strings.SplitSeq(help, "\n") {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " "):
				section = line
			case section == "Examples:" && !strings.Contains(line, "# needs "):
				lines = append(lines, strings.TrimPrefix(line, "  "))
			case section == "Available Commands:" && rest != "" && word != "completion" && word != "help":
				visit(command + " " + word)
			}
		}
		if b.steps = stepsOf(lines, false); len(b.steps) > 0 {
			blocks = append(blocks, b)
		}
	}
	visit("caisson")
	for i, b := range blocks {
		if strings.HasPrefix(b.where, "caisson exec ") {
			blocks[0], blocks[i] = blocks[i], blocks[0] // it makes the session of the others
		}
	}
	return blocks
}

// newReader is somebody who reads the documents at the top of the repository,
// with a program and some files of their own beside them.
func newReader(t *testing.T, kit *enginetest.Kit, base string) *reader {
	t.Helper()
	top, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(enginetest.Command(t), filepath.Join(bin, "caisson")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"examples", "docs"} {
		if err := os.CopyFS(filepath.Join(top, dir), os.DirFS("../../"+dir)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"report.py": "print(len(open('data.csv').read()))\n", "data.csv": "a,1\n", "project/main.py": "print(1)\n", "project/.gitignore": "*.pyc\n", "data/x": "x\n",
		"solution.py": "def add(a, b):\n    return a + b\n", "test_solution.py": "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
		"src/solution.py": "x = 1\n", "main.py": "def handler(event, context):\n    return event\n", "resize/src/index.js": "exports.handler = async (event) => event\n",
		"tests/test_x.py": "from solution import x\n\ndef test_x():\n    assert x == 1\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "--norc")
	cmd.Dir = top
	cmd.Env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "TOP=" + top, "DOCKER_HOST=" + kit.Engine.Host(),
		"CAISSON_AGENT=" + kit.Agent, "CAISSON_SCAN=" + enginetest.Scanner(t), "CAISSON_RUNTIME_DIR=" + base + "/s", "CAISSON_STATE_DIR=" + base + "/state",
	}
	return startReader(t, cmd)
}
