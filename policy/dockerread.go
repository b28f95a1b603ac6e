package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/moby/buildkit/frontend/dockerfile/parser"

	"github.com/caisson-dev/caisson/policy/facts"
)

// mostDockerfile bounds what is read of a Dockerfile, in bytes: the time that
// the parser needs for a heredoc grows with the square of its lines.
const mostDockerfile = 64 << 10

// dockerfile is one reading of a Dockerfile.
type dockerfile struct {
	instructions []instruction
	syntax       string
	problem      string // what is not understood, which the rules ask about
	stages       int
}

// instruction is one of a Dockerfile, as its builder takes it.
type instruction struct {
	op    string // in upper case
	line  int
	flags []string // --mount=…
	args  []string // words
	text  string   // all behind the op, or behind the flags where a shell gets it
	stage int      // from 1; 0 is before the first FROM

	// script is what it runs, "" for nothing, and language that one's.
	script, language string
	// place takes a line and a column of the script to the Dockerfile.
	place func(line, column int) (int, int)
}

// mark keeps two characters from being taken for a heredoc. It stands for
// nothing, and is taken out again. No text has it.
const mark = "\uFDD0"

// readDockerfile returns the readings of a Dockerfile: BuildKit's, and that of
// the classic builder of Docker 20.10 where it differs. That one knows no
// heredocs, so that their lines are instructions, and it passes over what stands
// behind a list in JSON. A builder carries out nothing of a file that it cannot
// read, so its reading is left out then.
func readDockerfile(source []byte) []*dockerfile {
	problem := ""
	if len(source) > mostDockerfile {
		problem, source = "it is longer than what is read", source[:mostDockerfile]
	}
	text := string(source)
	if strings.Contains(text, mark) {
		problem, text = "it has U+FDD0, which is no character", strings.ReplaceAll(text, mark, "")
	}
	readings := []*dockerfile{parseDockerfile(text, false)}
	if f := parseDockerfile(strings.ReplaceAll(text, "<<", mark+"<<"), true); f.problem == "" && !slices.EqualFunc(f.instructions, readings[0].instructions, alike) {
		readings = append(readings, f)
	}
	if problem != "" {
		readings[0].problem = problem
	}
	return readings
}

func alike(a, b instruction) bool {
	return a.op == b.op && a.text == b.text && a.script == b.script && slices.Equal(a.args, b.args)
}

var knownOps = strings.Fields("ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR")

// parseDockerfile reads a Dockerfile by BuildKit's parser, and lists as the
// classic builder does.
func parseDockerfile(text string, classic bool) (f *dockerfile) {
	f = &dockerfile{}
	defer func() {
		if recover() != nil {
			f.problem = "it breaks the parser"
		}
	}()
	f.syntax, _, _, _ = parser.DetectSyntax([]byte(text))
	read, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		f.problem = err.Error()
		return f
	}
	lines := strings.Split(strings.TrimPrefix(strings.ReplaceAll(text, mark, ""), "\ufeff"), "\n")
	for _, node := range read.AST.Children {
		unmark(node)
		if classic {
			cutList(node)
		}
		f.add(node, spread(node, lines, read.EscapeToken), node)
	}
	return f
}

// unmark takes the marks out of all that was read.
func unmark(node *parser.Node) {
	for ; node != nil; node = node.Next {
		node.Value, node.Original = strings.ReplaceAll(node.Value, mark, ""), strings.ReplaceAll(node.Original, mark, "")
		for n := range node.Flags {
			node.Flags[n] = strings.ReplaceAll(node.Flags[n], mark, "")
		}
		for n := range node.Heredocs {
			node.Heredocs[n].Content = strings.ReplaceAll(node.Heredocs[n].Content, mark, "")
		}
		for _, child := range node.Children {
			unmark(child)
		}
	}
}

// cutList makes a list of what begins with one.
func cutList(node *parser.Node) {
	command := node.Next
	switch strings.ToUpper(node.Value) {
	case "RUN", "CMD", "ENTRYPOINT":
	case "HEALTHCHECK":
		if command != nil {
			command = command.Next
		}
	case "ONBUILD":
		if command != nil && len(command.Children) == 1 {
			cutList(command.Children[0])
		}
		return
	default:
		return
	}
	var list []string
	if command == nil || node.Attributes["json"] || json.NewDecoder(strings.NewReader(command.Value)).Decode(&list) != nil || len(list) == 0 {
		return
	}
	node.Attributes = map[string]bool{"json": true}
	command.Value = list[0]
	for _, word := range list[1:] {
		command.Next = &parser.Node{Value: word}
		command = command.Next
	}
}

// add appends an instruction, and what an ONBUILD holds behind it. outer is
// the instruction that has the lines and the heredocs.
func (f *dockerfile) add(node *parser.Node, stretches []stretch, outer *parser.Node) {
	i := instruction{op: strings.ToUpper(node.Value), line: outer.StartLine, flags: node.Flags}
	if !slices.Contains(knownOps, i.op) {
		f.problem = fmt.Sprintf("line %d: %q is no instruction", i.line, i.op)
		return
	}
	if i.op == "FROM" {
		f.stages++
	}
	i.stage = f.stages
	i.text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(node.Original), node.Value))
	for n := node.Next; n != nil; n = n.Next {
		i.args = append(i.args, n.Value)
	}
	switch i.op {
	case "ENV", "LABEL":
		i.args = pairs(i.args)
	case "RUN", "CMD", "ENTRYPOINT":
		i.run(node, node.Next, stretches, outer)
	case "HEALTHCHECK":
		if node.Next != nil && strings.EqualFold(node.Next.Value, "CMD") {
			i.run(node, node.Next.Next, stretches, outer)
		}
	case "ONBUILD":
		i.args = strings.Fields(i.text)
	}
	f.instructions = append(f.instructions, i)
	if i.op == "ONBUILD" && node.Next != nil && len(node.Next.Children) == 1 && !strings.EqualFold(node.Next.Children[0].Value, i.op) {
		f.add(node.Next.Children[0], stretches, outer)
	}
}

// pairs joins the parser's key, value and separator to one word again.
func pairs(args []string) []string {
	var words []string
	for n := 0; n+2 < len(args); n += 3 {
		words = append(words, args[n]+"="+args[n+1])
	}
	return words
}

// run finds out what an instruction runs; command is where that begins.
func (i *instruction) run(node, command *parser.Node, stretches []stretch, outer *parser.Node) {
	if command == nil {
		return
	}
	i.language = string(facts.Shell)
	if node.Attributes["json"] {
		i.runList(command)
		return
	}
	i.text, i.args = command.Value, strings.Fields(command.Value)
	i.script = i.text
	docs := outer.Heredocs
	docLine := outer.EndLine + 1
	for _, doc := range docs {
		docLine -= strings.Count(doc.Content, "\n") + 1
	}
	if len(docs) == 1 && parser.MustParseHeredoc(i.text) != nil {
		i.runDoc(docs[0], docLine)
		return
	}
	for _, doc := range docs {
		i.script += "\n" + doc.Content + doc.Name
	}
	at := strings.LastIndex(outer.Original, i.text)
	i.place = func(line, column int) (int, int) {
		if line > 1 {
			return docLine + line - 2, column
		}
		return placeIn(stretches, at+column-1, outer.StartLine)
	}
}

// runList is the exec form: the shell runs what is the same to it.
func (i *instruction) runList(command *parser.Node) {
	var words []string
	for n := command; n != nil; n = n.Next {
		words = append(words, "'"+strings.ReplaceAll(n.Value, "'", `'\''`)+"'")
	}
	if i.op != "RUN" && len(words) == 1 {
		return // a program that waits for what it is given
	}
	i.script = strings.Join(words, " ")
	i.place = func(_, column int) (int, int) { return i.line, column }
}

// runDoc is a heredoc alone, which is a script of its own.
func (i *instruction) runDoc(doc parser.Heredoc, docLine int) {
	i.script = doc.Content
	if doc.Chomp {
		i.script = parser.ChompHeredocContent(i.script)
	}
	i.place = func(line, column int) (int, int) { return docLine + line - 1, column }
	if lang, ok := ShebangLanguage([]byte(i.script)); ok {
		i.language = lang
	}
}

// stretch is a part of a continued instruction that stands on one line.
type stretch struct{ offset, line, column int }

// spread finds the stretches that the parser made an instruction's line of.
func spread(node *parser.Node, lines []string, escape rune) []stretch {
	var stretches []stretch
	rest := node.Original
	for n := node.StartLine; n <= node.EndLine && n <= len(lines) && rest != ""; n++ {
		text := strings.TrimRight(lines[n-1], "\r")
		trimmed := strings.TrimLeftFunc(text, unicode.IsSpace)
		if trimmed == "" || n > node.StartLine && trimmed[0] == '#' {
			continue
		}
		column := 1
		if n == node.StartLine {
			column += len(text) - len(trimmed)
			text = trimmed
		}
		if !strings.HasPrefix(rest, text) {
			text = strings.TrimSuffix(strings.TrimRight(text, " \t"), string(escape))
		}
		if !strings.HasPrefix(rest, text) {
			break
		}
		stretches = append(stretches, stretch{len(node.Original) - len(rest), n, column})
		rest = rest[len(text):]
	}
	return stretches
}

// placeIn is the line and column of an offset in an instruction.
func placeIn(stretches []stretch, offset, start int) (line, column int) {
	line = start
	for _, p := range stretches {
		if p.offset > offset {
			break
		}
		line, column = p.line, p.column+offset-p.offset
	}
	return line, column
}
