package testloop

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

//go:embed compile.py
var compilePython string

// notUnderstood is the rule about a text that is no program of its language: what
// cannot be read cannot be judged.
const notUnderstood = "SBX-EV-0002"

// unread reports whether policy refused a run since it could not read a text.
func unread(err error) bool {
	denied, ok := errors.AsType[*sandbox.DeniedError](err)
	return ok && slices.ContainsFunc(denied.Decision.Findings, func(f sandbox.Finding) bool { return f.ID == notUnderstood })
}

// standIns returns files of which those that Python itself refuses to compile,
// and that therefore do nothing, are replaced by a program that raises the same
// error: it is a result of tests and no refusal, and the text that nobody could
// judge is not in the sandbox at all. like says which Python. Errors: those of
// exec.
func standIns(ctx context.Context, exec Exec, like sandbox.Run, files []sandbox.File) (with []sandbox.File, changed bool, err error) {
	texts := map[string]string{}
	for i, f := range files {
		if path.Ext(f.Path) == ".py" && !f.Dir {
			texts[fmt.Sprint(i)] = hex.EncodeToString(f.Data)
		}
	}
	input, err := json.Marshal(texts)
	if err != nil {
		return nil, false, fmt.Errorf("write what is to be compiled: %w", err)
	}
	run := like
	run.Code, run.File, run.Command, run.Args, run.Stage, run.Files, run.Reap = compilePython, "", nil, nil, nil, nil, true
	run.Timeout = sandbox.Duration(DefaultTestTimeout + startPatience)
	res, err := exec(ctx, run, sandbox.Streams{Stdin: bytes.NewReader(input)})
	if err != nil {
		return nil, false, err
	}
	var refused map[string]struct {
		Message, Text string
		Line, Offset  int
	}
	if res.Code != 0 || json.Unmarshal(res.Stdout, &refused) != nil {
		return files, false, nil // it stays as it was: refused
	}
	with = slices.Clone(files)
	for i := range with {
		if e, ok := refused[fmt.Sprint(i)]; ok {
			text := fmt.Sprintf("raise SyntaxError(%s, (__file__, %d, %d, %s))\n", pyString(e.Message), e.Line, e.Offset, pyString(e.Text))
			with[i].Data, with[i].Size, with[i].Ref = []byte(text), int64(len(text)), ""
		}
	}
	return with, len(refused) > 0, nil
}

// pyString is a text as Python reads it.
func pyString(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text never fails
	return strings.TrimSuffix(b.String(), "\n")
}
