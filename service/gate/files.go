package gate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// addText judges what the text itself writes and then runs.
func (w *walker) addText(ctx context.Context, from *unit, r policy.Ref) error {
	u := &unit{name: strings.TrimPrefix(r.Path, sandbox.WorkspaceDir+"/"), code: r.Text, lang: r.Lang, shown: true}
	u.start = w.handedTo(u.name, r)
	u.roots = w.rootsOf(path.Dir(u.name))
	if u.lang == "" {
		u.lang = languageOf(u.name, u.code)
	}
	key := "text:" + r.Path + ":" + sum(r.Text) + policy.StartKey(u.start)
	if w.units[key] != nil {
		return nil
	}
	w.units[key] = u
	return w.examine(ctx, u)
}

// addFile reads a file of the workspace and judges it, once. How it is started
// is not told.
func (w *walker) addFile(ctx context.Context, name, lang string, staged bool, roots []string) error {
	return w.addFileStarted(ctx, name, lang, staged, roots, w.handedTo("", policy.Ref{}))
}

// addFileStarted is addFile of one that is started so.
func (w *walker) addFileStarted(ctx context.Context, name, lang string, staged bool, roots []string, start policy.Start) error {
	w.loads = true
	name = path.Clean(name)
	if u := w.units[name]; u != nil {
		u.staged, u.inPlace = u.staged || staged, u.inPlace || !staged
		return nil
	}
	if w.full {
		return nil
	}
	if len(w.units) >= mostFiles || w.total > mostBytes {
		w.full = true
		w.cannot(name, fmt.Sprintf("more than %d files or %d MiB belong to this run", mostFiles, mostBytes>>20))
		return nil
	}
	code, err := w.ws.ReadFile(ctx, name, mostFile)
	switch {
	case errors.Is(err, sandbox.Unavailable), ctx.Err() != nil:
		return err
	case err != nil:
		w.cannot(name, "it cannot be read before: "+err.Error())
		return nil
	}
	u := &unit{name: name, lang: lang, code: code, staged: staged, inPlace: !staged, roots: roots, start: start, imported: w.importing}
	w.importing = false
	if u.lang == "" || u.lang == "bash" && !staged {
		if known := languageOf(name, code); known != "" || u.lang == "" {
			u.lang = firstOf(u.lang, known)
		}
	}
	w.units[name] = u
	w.total += len(code)
	switch {
	case bytes.HasPrefix(code, []byte(elf)):
		w.order = append(w.order, u)
		w.cannot(name, "it is machine code")
		return nil
	case bytes.IndexByte(code, 0) >= 0:
		w.order = append(w.order, u)
		w.cannot(name, "it is no text: bytecode, or an archive of code")
		return nil
	}
	if u.lang == "python" && !staged {
		if err := w.compiled(ctx, name); err != nil {
			return err
		}
	}
	return w.examine(ctx, u)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// elf is what machine code begins with.
const elf = "\x7fELF"

// compiled looks for bytecode that Python would run in a source's place.
func (w *walker) compiled(ctx context.Context, name string) error {
	dir, base := path.Split(name)
	entries, err := w.list(ctx, path.Join(dir, "__pycache__"))
	if err != nil {
		return err
	}
	for e := range entries {
		if strings.HasPrefix(e, strings.TrimSuffix(base, ".py")+".") && strings.HasSuffix(e, ".pyc") {
			w.cannot(path.Join(dir, "__pycache__", e), "it is compiled, and may be run in place of its source; remove it")
		}
	}
	return nil
}

func suffixesOf(lang string) []string {
	switch lang {
	case "python":
		return []string{".py"}
	case "javascript", "typescript":
		return []string{".js", ".cjs", ".mjs"}
	}
	return []string{".sh", ".bash"}
}

// addAll judges every file of a language: any of them may be loaded.
func (w *walker) addAll(ctx context.Context, from *unit, suffixes []string, staged bool) error {
	infos, err := w.everything(ctx)
	if err != nil {
		return err
	}
	w.loads = true
	for _, i := range infos {
		if i.Type == "dir" || !slices.Contains(suffixes, path.Ext(i.Path)) || strings.Contains("/"+i.Path, "/node_modules/") {
			continue
		}
		if err := w.addFile(ctx, i.Path, "", staged, from.roots); err != nil {
			return err
		}
	}
	return nil
}

// addPattern judges every file that a shell's pattern may mean.
func (w *walker) addPattern(ctx context.Context, pattern string, r policy.Ref) error {
	infos, err := w.everything(ctx)
	if err != nil {
		return err
	}
	for _, i := range infos {
		if ok, err := path.Match(pattern, i.Path); err == nil && ok && i.Type != "dir" {
			if err := w.addFile(ctx, i.Path, r.Lang, false, w.rootsOf(path.Dir(i.Path))); err != nil {
				return err
			}
		}
	}
	return nil
}

// watched are the files that are read again later, with what they held.
func (w *walker) watched() map[string][sha256.Size]byte {
	var m map[string][sha256.Size]byte
	for name, u := range w.units {
		if u.inPlace && !u.shown {
			if m == nil {
				m = map[string][sha256.Size]byte{}
			}
			m[name] = sha256.Sum256(u.code)
		}
	}
	return m
}
