package fusion

import (
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/fastapi"
	"github.com/caisson-dev/caisson/sandbox"
)

// body is a request as it comes. What it does not name is left alone.
type body struct {
	Code           *string            `json:"code"`
	Language       *string            `json:"language"`
	CompileTimeout *float64           `json:"compile_timeout"`
	RunTimeout     *float64           `json:"run_timeout"`
	MemoryMB       *int64             `json:"memory_limit_MB"`
	Stdin          *string            `json:"stdin"`
	Files          map[string]*string `json:"files"`
	FetchFiles     []string           `json:"fetch_files"`
	Args           []string           `json:"args"`
}

// request is one that can be meant.
type request struct {
	mode                       mode
	language                   sandbox.Language
	code                       string
	compileTimeout, runTimeout sandbox.Duration
	memory                     sandbox.Bytes
	stdin                      *string
	files                      []sandbox.File
	fetch, args                []string
}

// mode is how a name of a language is meant, beside the language itself.
type mode struct {
	language string
	file     string // what the text is called; "" is as the language says
	tests    bool   // it runs the language's runner of tests
	pytest   bool
	prepare  func(code string) string
}

// modes are the names that are more than a language of the catalogue.
var modes = map[string]mode{
	"pytest":  {language: "python", pytest: true},
	"go_test": {language: "go", tests: true, file: "main_test.go"},
	"R":       {language: "r"},
	"php":     {language: "php", prepare: withTag},
}

// withTag lets PHP begin at the first line, as their runner does.
func withTag(code string) string {
	if strings.Contains(code, "<?php") {
		return code
	}
	return "<?php\n" + code
}

// Bounds of what can be meant.
const (
	defaultTimeout = 10.0   // seconds
	mostTimeout    = 86_400 // a day
	mostMemoryMB   = 1 << 20
)

// parse reads a request, or says all that is wrong with it.
func parse(data []byte, known []api.LanguageInfo) (request, []fastapi.Fault) {
	var b body
	if faults := fastapi.Decode(data, &b); faults != nil {
		return request{}, faults
	}
	var faults []fastapi.Fault
	wrong := func(kind, msg string, loc ...string) { faults = append(faults, fastapi.At(kind, msg, loc...)) }
	req := request{stdin: b.Stdin, args: b.Args}
	if b.Code == nil {
		wrong("missing", "Field required", "code")
	} else {
		req.code = *b.Code
	}
	if b.Language == nil {
		wrong("missing", "Field required", "language")
	} else if !req.choose(*b.Language, known) {
		wrong("literal_error", "Input should be one of "+strings.Join(names(known), ", "), "language")
	}
	for name, t := range map[string]struct {
		given *float64
		to    *sandbox.Duration
	}{"compile_timeout": {b.CompileTimeout, &req.compileTimeout}, "run_timeout": {b.RunTimeout, &req.runTimeout}} {
		seconds := defaultTimeout
		if t.given != nil {
			seconds = *t.given
		}
		if seconds < 0.001 || seconds > mostTimeout {
			wrong("out_of_range", fmt.Sprintf("Input should be from 0.001 to %d", mostTimeout), name)
		}
		*t.to = sandbox.Duration(seconds * float64(time.Second))
	}
	if b.MemoryMB != nil && *b.MemoryMB > 0 {
		if *b.MemoryMB > mostMemoryMB {
			wrong("out_of_range", fmt.Sprintf("Input should be at most %d", mostMemoryMB), "memory_limit_MB")
		}
		req.memory = max(sandbox.Bytes(min(*b.MemoryMB, mostMemoryMB))*sandbox.MiB, sandbox.MinMemory)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		if b.Files[name] == nil {
			continue // their clients send what they do not have as null
		}
		data, err := base64.StdEncoding.DecodeString(*b.Files[name])
		if err != nil {
			wrong("base64", "Input should be base64: "+err.Error(), "files", name)
		}
		req.files = append(req.files, sandbox.File{Path: below(name), Data: data})
	}
	req.fetch = b.FetchFiles
	return req, faults
}

// choose finds the language of a name.
func (r *request) choose(name string, known []api.LanguageInfo) bool {
	m, special := modes[name]
	if !special {
		m.language = name
	}
	for _, l := range known {
		if l.Called(m.language) {
			r.mode, r.language = m, l.Language
			return true
		}
	}
	return false
}

// names are what can be asked for.
func names(known []api.LanguageInfo) []string {
	var list []string
	for _, l := range known {
		if l.IsVersion() {
			continue
		}
		list = append(list, l.Name)
		list = append(list, l.Aliases...)
		for name, m := range modes {
			if m.language == l.Name && name != l.Name {
				list = append(list, name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// below is a name in the workspace, for one that may begin with it.
func below(name string) string {
	return path.Clean(strings.TrimPrefix(name, sandbox.WorkspaceDir+"/"))
}
