package gate

import (
	"bytes"
	"context"
	"errors"
	"path"

	"github.com/caisson-dev/caisson/sandbox"
)

// listed is what a folder has.
type listed struct {
	infos []sandbox.FileInfo
	err   error
}

// ahead begins to list the folder that a Python program's imports are looked
// for in, while the program is scanned.
func (w *walker) ahead(ctx context.Context, u *unit) {
	if u.lang != "python" || len(u.roots) == 0 || !bytes.Contains(u.code, []byte("import")) {
		return
	}
	dir := path.Clean(u.roots[0])
	if w.lists[dir] != nil || w.coming[dir] != nil {
		return
	}
	c := make(chan listed, 1)
	w.coming[dir] = c
	go func() {
		infos, err := w.ws.List(ctx, dir, 1)
		c <- listed{infos, err}
	}()
}

// wait has all that runs beside the walker end.
func (w *walker) wait() {
	for _, c := range w.coming {
		<-c
	}
}

// list gives the entries of a folder of the workspace by name.
func (w *walker) list(ctx context.Context, dir string) (map[string]string, error) {
	dir = path.Clean(dir)
	if l, ok := w.lists[dir]; ok {
		return l, nil
	}
	var got listed
	if c := w.coming[dir]; c != nil {
		got = <-c
		delete(w.coming, dir)
	} else {
		got.infos, got.err = w.ws.List(ctx, dir, 1)
	}
	l := map[string]string{}
	switch {
	case errors.Is(got.err, sandbox.Unavailable), ctx.Err() != nil:
		return nil, got.err
	case got.err != nil:
		w.cannot(dir, "it cannot be looked through before: "+got.err.Error())
	}
	for _, i := range got.infos {
		l[path.Base(i.Path)] = i.Type
	}
	w.lists[dir] = l
	return l, nil
}

// everything lists the whole workspace, once.
func (w *walker) everything(ctx context.Context) ([]sandbox.FileInfo, error) {
	if w.tree != nil {
		return w.tree, nil
	}
	infos, err := w.ws.List(ctx, ".", 0)
	switch {
	case errors.Is(err, sandbox.Unavailable), ctx.Err() != nil:
		return nil, err
	case err != nil:
		w.cannot("the workspace", "it cannot be looked through before: "+err.Error())
	}
	w.tree = append([]sandbox.FileInfo{}, infos...)
	return w.tree, nil
}
