package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/cli/policycmd"
	"github.com/caisson-dev/caisson/sandbox"
)

// benignBar is the largest share, in percent, of benign files that may be asked
// about for any other reason than the network: library source asks for more of
// the machine than the code that sandboxes are for.
const benignBar = 4.0

// Files shorter than this are mostly empty modules, which would flatter the
// shares; longer ones are mostly generated.
const (
	shortest = 200
	longest  = 200_000
)

// walk gives the programs below a folder: each file whose name or first line
// says that it is of a language that the scanner has. Links are not followed, and
// what has been seen under another name is not counted twice.
func walk(root string, seen map[string]bool) ([]*row, error) {
	var rows []*row
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() < shortest || info.Size() > longest {
			return nil
		}
		code, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		language := policycmd.LanguageOf(name, code)
		if language == "" || language == "dockerfile" || !utf8.Valid(code) || seen[string(code)] {
			return nil
		}
		seen[string(code)] = true
		rows = append(rows, &row{file: root, ID: name, Language: language, Code: string(code)})
		return nil
	})
	return rows, err
}

// otherThanNetwork reports whether a program is asked about for another reason
// than where it connects to.
func otherThanNetwork(d sandbox.Decision) bool {
	for _, f := range d.Findings {
		if f.Severity >= sandbox.High && f.Category != "network" {
			return true
		}
	}
	return false
}

// reportBenign prints the share of each folder and language, and which rules it
// is. Files that are asked about are named one by one where wrong is set.
func reportBenign(rows []*row, wrong bool) bool {
	type count struct{ n, asked, network int }
	groups, rules := map[string]*count{}, map[string]int{}
	for _, r := range rows {
		key := r.file + " " + r.Language
		if groups[key] == nil {
			groups[key] = &count{}
		}
		g := groups[key]
		g.n++
		switch {
		case otherThanNetwork(r.decision):
			g.asked++
			seen := map[string]bool{}
			for _, f := range r.decision.Findings {
				if f.Severity >= sandbox.High && f.Category != "network" && !seen[f.ID] {
					seen[f.ID] = true
					rules[f.ID]++
				}
			}
			if wrong {
				fmt.Printf("  %v: %s\n", r.ID, reason(r.decision))
			}
		case r.decision.Level >= sandbox.High:
			g.network++
		}
	}
	ok := true
	for _, k := range keys(groups) {
		g := groups[k]
		share := 100 * float64(g.asked) / float64(g.n)
		ok = ok && share <= benignBar
		fmt.Printf("%-60s %5d files  asked about %4d (%4.1f %%)  for the network alone %4d  %s\n",
			k, g.n, g.asked, share, g.network, map[bool]string{true: "ok", false: "MISSED"}[share <= benignBar])
	}
	fmt.Println()
	for _, id := range keys(rules) {
		fmt.Printf("%-16s %5d files\n", id, rules[id])
	}
	return ok
}

// reason is the first finding that is not about the network.
func reason(d sandbox.Decision) string {
	for _, f := range d.Findings {
		if f.Severity >= sandbox.High && f.Category != "network" {
			return fmt.Sprintf("%s line %d: %s", f.ID, f.Line, strings.ReplaceAll(f.Message, "\n", " "))
		}
	}
	return ""
}
