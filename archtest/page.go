package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Docs is the page whose table says which package may import which.
const Docs = "docs/architecture.md"

// header begins the table.
const header = "| folder | what it holds | may import of ours |"

// table says which packages of ours each package may import, by folder. The
// entry with the longest matching folder counts. "x" is the package x alone,
// "x/..." also what is below it, and "..." every package. Whatever is below the
// importing entry's own folder is allowed, but for what has an entry of its own. A
// package without an entry is a violation.
type table map[string][]string

// readTable reads the table from [Docs]. A line that can be read in two ways is an
// error.
func readTable(tree fs.FS) (table, error) {
	page, err := fs.ReadFile(tree, Docs)
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(string(page), header+"\n|---|---|---|\n")
	if !ok {
		return nil, fmt.Errorf("%s has no table that begins %q", Docs, header)
	}
	t := table{}
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if len(cells) != 3 {
			return nil, fmt.Errorf("%s: %q has %d cells", Docs, line, len(cells))
		}
		folder, ok := name(cells[0])
		if _, twice := t[folder]; !ok || twice {
			return nil, fmt.Errorf("%s: %q is not one folder, with no other row", Docs, strings.TrimSpace(cells[0]))
		}
		if t[folder], ok = imports(cells[2]); !ok {
			return nil, fmt.Errorf("%s: %q of %s is not a list of packages, all, or –", Docs, strings.TrimSpace(cells[2]), folder)
		}
	}
	return t, nil
}

// name reads what stands between two backquotes.
func name(cell string) (string, bool) {
	cell = strings.TrimSpace(cell)
	name := strings.Trim(cell, "`")
	return name, name != "" && cell == "`"+name+"`" && !strings.ContainsAny(name, "` ,")
}

// imports reads the last cell of a row.
func imports(cell string) ([]string, bool) {
	switch strings.TrimSpace(cell) {
	case "–":
		return nil, true
	case "all":
		return []string{"..."}, true
	}
	var all []string
	for one := range strings.SplitSeq(cell, ",") {
		name, ok := name(one)
		if !ok {
			return nil, false
		}
		all = append(all, name)
	}
	return all, true
}

// entry finds a package's entry in the table.
func (t table) entry(pkg string) (folder string, allowed []string, ok bool) {
	for folder = pkg; ; folder = path.Dir(folder) {
		if allowed, ok := t[folder]; ok && (folder != "." || pkg == ".") {
			return folder, allowed, true
		}
		if folder == "." {
			break
		}
	}
	return "", nil, false
}

// matches reports whether one of the table's patterns covers pkg.
func matches(patterns []string, pkg string) bool {
	for _, p := range patterns {
		folder, deep := strings.CutSuffix(p, "/...")
		if p == "..." || p == pkg || deep && below(pkg, folder) {
			return true
		}
	}
	return false
}
