// Command tools runs a program as a model would write it, agent.py: it searches, reads
// and plots over three tools, which are functions of this process, and returns what it
// found. It reaches nothing else, and each of its calls is judged and in the audit.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/tools"
)

var (
	//go:embed library
	library embed.FS
	//go:embed agent.py
	agent string
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	c, err := caisson.Open(ctx, caisson.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	callables, err := callables()
	if err != nil {
		return err
	}
	res, err := c.Run(ctx, sandbox.Run{Language: "python", Code: agent, Program: true, Artifacts: []string{"*.svg"}},
		sandbox.Streams{Local: sandbox.Local{Tools: callables}})
	if err != nil {
		return err
	}
	report := res.Report()
	if !report.Success {
		return fmt.Errorf("%s: %s\n%s", report.Error.Kind, report.Error.Message, report.Error.Traceback)
	}
	fmt.Print(report.Output)
	for _, call := range report.Calls {
		fmt.Println("called", call.Tool+":", call.Verdict)
	}
	fmt.Printf("returned %s\n", report.Value)
	for _, a := range res.Artifacts {
		fmt.Printf("%s\n%s", a.Path, a.Data)
	}
	return nil
}

type (
	searchIn struct {
		Words []string `json:"words" jsonschema:"what a note has to have, in any case"`
	}
	readIn struct {
		Name string `json:"name" jsonschema:"as search gives it"`
	}
	plotIn struct {
		Title  string         `json:"title"`
		Values map[string]int `json:"values" jsonschema:"what to draw, by its label"`
	}
)

// callables are the tools. Their schemas are read off the types.
func callables() ([]sandbox.Callable, error) {
	search, err1 := tools.Func(sandbox.Tool{Name: "search", Description: "Names the notes that have all of some words."}, search)
	read, err2 := tools.Func(sandbox.Tool{Name: "read_note", Description: "Reads a note."}, read)
	plot, err3 := tools.Func(sandbox.Tool{Name: "plot", Description: "Draws bars, as SVG."}, plot)
	return []sandbox.Callable{search, read, plot}, errors.Join(err1, err2, err3)
}

func search(_ context.Context, in searchIn) ([]string, error) {
	entries, err := fs.ReadDir(library, "library")
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, e := range entries {
		text, err := fs.ReadFile(library, "library/"+e.Name())
		if err != nil {
			return nil, err
		}
		lower := strings.ToLower(string(text))
		if !slices.ContainsFunc(in.Words, func(word string) bool { return !strings.Contains(lower, strings.ToLower(word)) }) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func read(_ context.Context, in readIn) (string, error) {
	text, err := fs.ReadFile(library, "library/"+in.Name) // which lets nobody out of it
	if err != nil {
		return "", sandbox.Errorf(sandbox.NotFound, "no note %q", in.Name).WithHint("name one that search gave")
	}
	return string(text), nil
}

func plot(_ context.Context, in plotIn) (string, error) {
	most := 1
	for _, v := range in.Values {
		if most = max(most, v); v < 0 {
			return "", sandbox.Errorf(sandbox.Invalid, "a bar of %d", v).WithHint("plot what is not below 0")
		}
	}
	plain := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"400\" height=\"%d\">\n  <text y=\"16\">%s</text>\n", 24+20*len(in.Values), plain.Replace(in.Title))
	for i, label := range slices.Sorted(maps.Keys(in.Values)) {
		v := in.Values[label]
		_, _ = fmt.Fprintf(&b, "  <rect x=\"60\" y=\"%d\" width=\"%d\" height=\"14\"/><text y=\"%d\">%s</text> <!-- %d -->\n", 26+20*i, v*300/most, 38+20*i, plain.Replace(label), v)
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}
