package functions

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

var (
	functionName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)
	handlerName  = lazyregexp.New(`^[^\s.][^\s]*\.[^\s.]+$`)
)

// MaxCode bounds the files of a function, all together: they are staged for each
// process, beside the runner.
const MaxCode = 4*sandbox.MiB - 64*sandbox.KiB

// maxOwnLabels leaves room for those of ours in a session's labels.
const maxOwnLabels = sandbox.MaxLabels - 2

// settle makes a function of what was asked for, without an owner and a version.
func (fs *Functions) settle(o sandbox.FunctionOptions, local sandbox.Local) (f sandbox.Function, files []sandbox.File, err error) {
	if !functionName().MatchString(o.Name) {
		return f, nil, sandbox.Errorf(sandbox.Invalid, "%q is not a function's name", o.Name).WithHint("use letters, digits, - and _, at most 64")
	}
	if !handlerName().MatchString(o.Handler) || !clean(o.Handler) {
		return f, nil, sandbox.Errorf(sandbox.Invalid, "%q is not a handler", o.Handler).WithHint("name a module among the files, a dot, and a function in it, such as main.handler")
	}
	if files, err = contents(o.Files, local); err != nil {
		return f, nil, err
	}
	if o.Language, err = fs.language(o, files); err != nil {
		return f, nil, err
	}
	if err := checkSettings(o); err != nil {
		return f, nil, err
	}
	f = sandbox.Function{
		ID: sandbox.NewID(), Name: o.Name, Handler: o.Handler, SHA256: digest(files), Language: o.Language, Image: o.Image, Env: slices.Clone(o.Env),
		Labels: o.Labels, Limits: o.Limits.WithDefaults(), Network: o.Network.WithDefaults(), Timeout: cmp.Or(o.Timeout, sandbox.DefaultFunctionTimeout),
		Concurrency: cmp.Or(o.Concurrency, sandbox.DefaultConcurrency), Runtime: o.Runtime, OCIRuntime: o.OCIRuntime,
		Updated: time.Now().UTC(),
	}
	for _, file := range files {
		f.Files = append(f.Files, sandbox.FunctionFile{Path: file.Path, Size: int64(len(file.Data))})
	}
	return f, files, nil
}

// checkSettings reports what cannot be meant of what is no code.
func checkSettings(o sandbox.FunctionOptions) error {
	if err := o.Labels.Check(); err != nil {
		return err
	}
	if len(o.Labels) > maxOwnLabels {
		return sandbox.Errorf(sandbox.Invalid, "%d labels", len(o.Labels)).WithHint("give at most %d", maxOwnLabels)
	}
	if err := o.Limits.WithDefaults().Check(); err != nil {
		return err
	}
	if err := o.Network.Check(); err != nil {
		return err
	}
	if t := cmp.Or(o.Timeout, sandbox.DefaultFunctionTimeout); t < sandbox.Duration(time.Millisecond) || t > sandbox.MaxFunctionTimeout {
		return sandbox.Errorf(sandbox.Invalid, "--timeout %s is out of range", t).WithHint("--timeout takes 1ms to %s", sandbox.MaxFunctionTimeout)
	}
	if o.Concurrency < 0 || o.Concurrency > sandbox.MaxConcurrency {
		return sandbox.Errorf(sandbox.Invalid, "--concurrency %d is out of range", o.Concurrency).WithHint("--concurrency takes 1 to %d", sandbox.MaxConcurrency)
	}
	for _, kv := range o.Env {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" || strings.IndexByte(kv, 0) >= 0 {
			return sandbox.Errorf(sandbox.Invalid, "%q is not a variable", k).WithHint("write KEY=VALUE")
		}
	}
	return nil
}

// clean reports whether a name is a path below a folder, written in one way.
func clean(name string) bool {
	return name != "." && path.Clean(name) == name && !path.IsAbs(name) && name != ".." && !strings.HasPrefix(name, "../") && strings.IndexByte(name, 0) < 0
}

// contents are the files of a function, by path, with what is in them. Folders are
// made by what they hold.
func contents(given []sandbox.File, local sandbox.Local) ([]sandbox.File, error) {
	var files []sandbox.File
	left := int64(MaxCode)
	for _, f := range given {
		if f.Dir {
			continue
		}
		if f.Link != "" { // as package managers make them
			at := slices.IndexFunc(given, func(o sandbox.File) bool {
				return !o.Dir && o.Link == "" && o.Path == path.Join(path.Dir(f.Path), f.Link)
			})
			if at < 0 {
				return nil, sandbox.Errorf(sandbox.Invalid, "%s is a link to %s, which is no file of the function's", f.Path, f.Link).WithHint("leave it out")
			}
			f.Data, f.Ref, f.Size = given[at].Data, given[at].Ref, given[at].Size
		}
		if !clean(f.Path) {
			return nil, sandbox.Errorf(sandbox.Invalid, "%q cannot be a function's file", f.Path).WithHint("give files by relative paths")
		}
		if f.Ref != "" {
			data, err := read(f, local, left)
			if err != nil {
				return nil, err
			}
			f.Data = data
		}
		if left -= int64(len(f.Data)); left < 0 {
			return nil, sandbox.Errorf(sandbox.Exhausted, "a function of more than %s", MaxCode.Human()).
				WithHint("leave out what it does not need, or give it an image that has its libraries: --image")
		}
		files = append(files, sandbox.File{Path: f.Path, Data: f.Data})
	}
	slices.SortFunc(files, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	for i, f := range files {
		if i > 0 && files[i-1].Path == f.Path {
			return nil, sandbox.Errorf(sandbox.Invalid, "two files %s", f.Path).WithHint("give each file once")
		}
	}
	if len(files) == 0 {
		return nil, sandbox.Errorf(sandbox.Invalid, "a function without files").WithHint("give the file with its handler")
	}
	return files, nil
}

// read reads a content that lies beside the request, and one byte more than there is
// room for.
func read(f sandbox.File, local sandbox.Local, room int64) ([]byte, error) {
	r, err := local.Open(f.Ref)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, room+1))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read %s: %w", f.Path, err)
	}
	return data, nil
}

// digest names the files with all that is in them.
func digest(files []sandbox.File) string {
	h := sha256.New()
	for _, f := range files {
		sum := sha256.Sum256(f.Data)
		fmt.Fprintf(h, "%q %x\n", f.Path, sum) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// language is that of a function: the one that was asked for, or the one of the file
// that has its handler.
func (fs *Functions) language(o sandbox.FunctionOptions, files []sandbox.File) (string, error) {
	language := o.Language
	if language == "" && fs.cfg.LanguageOf != nil {
		dir, base := path.Split(o.Handler)
		for _, f := range files {
			stem := strings.TrimSuffix(f.Path, path.Ext(f.Path))
			// A handler's module ends at the first dot in Node, at the last in Python.
			if stem == dir+base[:strings.IndexByte(base, '.')] || stem == strings.ReplaceAll(o.Handler[:strings.LastIndexByte(o.Handler, '.')], ".", "/") {
				if l, err := fs.cfg.LanguageOf(f.Path); err == nil {
					language = l
					break
				}
			}
		}
	}
	name, _, _ := strings.Cut(language, "@")
	switch {
	case language == "":
		return "", sandbox.Errorf(sandbox.Invalid, "no file has the handler %s", o.Handler).WithHint("give the file of its module, or name the language with -l")
	case runners[name] == "":
		return "", sandbox.Errorf(sandbox.Unsupported, "handlers in %s cannot be called", language).WithHint("write them in python or node")
	}
	return language, nil
}
