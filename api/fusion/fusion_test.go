package fusion_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/fusion"
	"github.com/caisson-dev/caisson/sandbox"
)

// fake answers as a test says, and notes what it was asked.
type fake struct {
	fusion.Service
	asked sandbox.Run
	stdin *string
	files map[string]string // that the run leaves
	res   sandbox.Result
	err   error
}

func (f *fake) Languages(context.Context) ([]api.LanguageInfo, error) {
	return []api.LanguageInfo{
		{Language: sandbox.Language{Name: "python", Aliases: []string{"py"}, Suffixes: []string{".py"}, Warm: []string{"json"}}},
		{Language: sandbox.Language{Name: "python@3.13", Suffixes: []string{".py"}}},
		{Language: sandbox.Language{Name: "node", Aliases: []string{"js", "nodejs"}, Suffixes: []string{".js"}}},
		{Language: sandbox.Language{Name: "go", Suffixes: []string{".go"}, RunTests: []string{"go", "test", "{file}"}}},
		{Language: sandbox.Language{Name: "java", Suffixes: []string{".java"}, CodeFile: "Main.java"}},
		{Language: sandbox.Language{Name: "php", Suffixes: []string{".php"}}},
		{Language: sandbox.Language{Name: "r", Suffixes: []string{".r"}}},
	}, nil
}

func (f *fake) Run(_ context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	f.asked, f.stdin = run, nil
	if streams.Stdin != nil {
		b, err := io.ReadAll(streams.Stdin)
		if err != nil {
			return sandbox.Result{}, err
		}
		text := string(b)
		f.stdin = &text
	}
	res := f.res
	for name, text := range f.files {
		a := sandbox.Artifact{Path: name, Size: int64(len(text))}
		switch w, err := streams.Artifact(a); {
		case err != nil:
			return res, err
		case w == nil:
			a.Left = "it was not asked for"
		default:
			if _, err := io.WriteString(w, text); err != nil {
				a.Left, res.ArtifactsError = err.Error(), err.Error()
			}
		}
		res.Artifacts = append(res.Artifacts, a)
	}
	return res, f.err
}

// exchange asks a wire of f.
func exchange(t *testing.T, f *fake, method, path, body string) (int, string) {
	t.Helper()
	w, err := fusion.New(fusion.Config{Service: f, MaxBody: 4096})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, p := range w.Patterns() {
		mux.Handle(p, w)
	}
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return rec.Code, rec.Body.String()
}

func exited(code int) sandbox.Exit {
	return sandbox.Exit{Reason: sandbox.ReasonExited, Code: code}
}

// TestAnswers holds each end of a run to the answer that clients of SandboxFusion
// read.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const step = `"execution_time":0.25,`
	took := 250 * time.Millisecond
	for name, tt := range map[string]struct {
		res  sandbox.Result
		err  error
		want string
	}{
		"it ran": {sandbox.Result{Exit: exited(0), Stdout: []byte("1\n"), Duration: took, Sandbox: "box"}, nil,
			`{"status":"Success","message":"","compile_result":null,"run_result":{"status":"Finished",` + step + `"return_code":0,"stdout":"1\n","stderr":""},"executor_pod_name":"box","files":{}}`},
		"it failed": {sandbox.Result{Exit: exited(3), Stderr: []byte("a\xff"), Duration: took}, nil,
			`{"status":"Failed","message":"","compile_result":null,"run_result":{"status":"Finished",` + step + `"return_code":3,"stdout":"","stderr":"a�"},"executor_pod_name":null,"files":{}}`},
		"its time was over": {sandbox.Result{Exit: sandbox.Exit{Reason: sandbox.ReasonTimeout, Code: 124, Signal: "SIGKILL"}, Stdout: []byte("so far"), Duration: took}, nil,
			`{"status":"Failed","message":"","compile_result":null,"run_result":{"status":"TimeLimitExceeded",` + step + `"return_code":null,"stdout":"so far","stderr":""},"executor_pod_name":null,"files":{}}`},
		"a signal": {sandbox.Result{Exit: sandbox.Exit{Reason: sandbox.ReasonSignal, Code: 139, Signal: "SIGSEGV"}, Duration: took}, nil,
			`{"status":"Failed","message":"ended by caisson or the kernel: signal","compile_result":null,"run_result":{"status":"Finished",` + step + `"return_code":-11,"stdout":"","stderr":""},"executor_pod_name":null,"files":{}}`},
		"no memory": {sandbox.Result{Exit: sandbox.Exit{Reason: sandbox.ReasonOOM, Code: 137, Signal: "SIGKILL"}, Duration: took}, nil,
			`{"status":"Failed","message":"ended by caisson or the kernel: oom","compile_result":null,"run_result":{"status":"Finished",` + step + `"return_code":-9,"stdout":"","stderr":""},"executor_pod_name":null,"files":{}}`},
		"the sandbox broke": {sandbox.Result{Exit: sandbox.Exit{Reason: sandbox.ReasonInfra, Code: 125, Cause: "gone"}, Duration: took}, nil,
			`{"status":"SandboxError","message":"infra: gone","compile_result":null,"run_result":{"status":"Error",` + step + `"return_code":null,"stdout":"","stderr":"infra: gone"},"executor_pod_name":null,"files":{}}`},
		"it was compiled": {sandbox.Result{Exit: exited(0), Duration: took, Compiled: &sandbox.Compiled{Exit: exited(0), Stderr: "warning", Duration: sandbox.Duration(took)}}, nil,
			`{"status":"Success","message":"","compile_result":{"status":"Finished",` + step + `"return_code":0,"stdout":"","stderr":"warning"},"run_result":{"status":"Finished",` + step + `"return_code":0,"stdout":"","stderr":""},"executor_pod_name":null,"files":{}}`},
		"it was not compiled": {sandbox.Result{Exit: exited(1), Stderr: []byte("x.cpp:1"), Compiled: &sandbox.Compiled{Exit: exited(1), Stderr: "x.cpp:1", Duration: sandbox.Duration(took)}}, nil,
			`{"status":"Failed","message":"","compile_result":{"status":"Finished",` + step + `"return_code":1,"stdout":"","stderr":"x.cpp:1"},"run_result":null,"executor_pod_name":null,"files":{}}`},
		"the compiler took too long": {sandbox.Result{Exit: sandbox.Exit{Reason: sandbox.ReasonTimeout, Code: 124}, Compiled: &sandbox.Compiled{Exit: sandbox.Exit{Reason: sandbox.ReasonTimeout, Code: 124}, Duration: sandbox.Duration(took)}}, nil,
			`{"status":"Failed","message":"","compile_result":{"status":"TimeLimitExceeded",` + step + `"return_code":null,"stdout":"","stderr":""},"run_result":null,"executor_pod_name":null,"files":{}}`},
		"it was refused": {sandbox.Result{}, &sandbox.DeniedError{Decision: sandbox.Decision{Verdict: sandbox.Deny, Findings: []sandbox.Finding{{ID: "SBX-X-0001", Verdict: sandbox.Deny, Message: "it is bad", Remediation: "do not"}}}},
			`{"status":"SandboxError","message":"refused: verdict deny by rule SBX-X-0001: it is bad; do not","compile_result":null,"run_result":null,"executor_pod_name":null,"files":{}}`},
	} {
		code, got := exchange(t, &fake{res: tt.res, err: tt.err}, "POST", "/run_code", `{"code": "x", "language": "python"}`)
		if code != 200 || strings.TrimSpace(got) != tt.want {
			t.Errorf("%s: %d\n got %s\nwant %s", name, code, got, tt.want)
		}
	}
	if code, got := exchange(t, &fake{}, "GET", "/v1/ping", ""); code != 200 || got != "\"pong\"\n" {
		t.Errorf("ping: %d %q", code, got)
	}
}

// TestAsks holds requests to the runs that they ask for.
func TestAsks(t *testing.T) {
	t.Parallel()
	file := func(name, text string) sandbox.File { return sandbox.File{Path: name, Data: []byte(text)} }
	plain := func(change func(*sandbox.Run)) sandbox.Run {
		run := sandbox.Run{
			Language: "python", File: "main.py", Warm: true, Files: []sandbox.File{file("main.py", "x")}, Labels: sandbox.Labels{"wire": "fusion"}, Artifacts: []string{},
			CompileTimeout: sandbox.Duration(10 * time.Second), ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(10 * time.Second)}, Approve: sandbox.ApproveNever,
		}
		change(&run)
		return run
	}
	text := "in\n"
	for name, tt := range map[string]struct {
		body  string
		want  sandbox.Run
		stdin *string
	}{
		"the least": {`{"code": "x", "language": "python"}`, plain(func(*sandbox.Run) {}), nil},
		"all": {`{"code": "x", "language": "nodejs", "compile_timeout": 2, "run_timeout": 0.5, "memory_limit_MB": 256, "stdin": "in\n", "extra": 1,
			"files": {"/workspace/a/b.txt": "aGk=", "none": null}, "fetch_files": ["out[1].txt", "./x/y"]}`, plain(func(r *sandbox.Run) {
			r.Language, r.File, r.Warm, r.Files = "node", "main.js", false, []sandbox.File{file("a/b.txt", "hi"), file("main.js", "x")}
			r.CompileTimeout, r.Timeout, r.Limits.Memory = sandbox.Duration(2*time.Second), sandbox.Duration(time.Second/2), 256*sandbox.MiB
			r.Artifacts = []string{`out\[1].txt`, "x/y"}
		}), &text},
		"no limit of memory": {`{"code": "x", "language": "python", "memory_limit_MB": -1, "stdin": null}`, plain(func(*sandbox.Run) {}), nil},
		"little memory":      {`{"code": "x", "language": "python", "memory_limit_MB": 1}`, plain(func(r *sandbox.Run) { r.Limits.Memory = sandbox.MinMemory }), nil},
		"a name that is taken": {`{"code": "x", "language": "py", "files": {"main.py": "eQ=="}}`, plain(func(r *sandbox.Run) {
			r.File, r.Files = "main-1.py", []sandbox.File{file("main.py", "y"), file("main-1.py", "x")}
		}), nil},
		"a class of Java's": {`{"code": "x", "language": "java", "files": {"Main.java": "eQ=="}}`, plain(func(r *sandbox.Run) {
			r.Warm = false
			r.Language, r.File, r.Files = "java", "Main.java", []sandbox.File{file("Main.java", "x")}
		}), nil},
		"pytest": {`{"code": "x", "language": "pytest", "args": ["-k", "one"]}`, plain(func(r *sandbox.Run) {
			r.File, r.Warm, r.Command = "", false, []string{"pytest", "main.py", "-k", "one"}
		}), nil},
		"tests of Go's": {`{"code": "x", "language": "go_test"}`, plain(func(r *sandbox.Run) {
			r.Warm = false
			r.Language, r.File, r.Command, r.Files = "go", "", []string{"go", "test", "main_test.go"}, []sandbox.File{file("main_test.go", "x")}
		}), nil},
		"PHP without its tag": {`{"code": "echo 1;", "language": "php"}`, plain(func(r *sandbox.Run) {
			r.Warm = false
			r.Language, r.File, r.Files = "php", "main.php", []sandbox.File{file("main.php", "<?php\necho 1;")}
		}), nil},
		"R": {`{"code": "x", "language": "R"}`, plain(func(r *sandbox.Run) {
			r.Warm = false
			r.Language, r.File, r.Files = "r", "main.r", []sandbox.File{file("main.r", "x")}
		}), nil},
	} {
		f := &fake{res: sandbox.Result{Exit: exited(0)}}
		if code, got := exchange(t, f, "POST", "/run_code", tt.body); code != 200 {
			t.Errorf("%s: %d %s", name, code, got)
		}
		if diff := cmp.Diff(tt.want, f.asked); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(tt.stdin, f.stdin); diff != "" {
			t.Errorf("%s: its input %s", name, diff)
		}
	}
}

// TestFetches gives back the files that were asked for, by the names that they were
// asked for with, and no others.
func TestFetches(t *testing.T) {
	t.Parallel()
	f := &fake{res: sandbox.Result{Exit: exited(0)}, files: map[string]string{"out/a.bin": "\x00\xff", "b": ""}}
	_, got := exchange(t, f, "POST", "/run_code", `{"code": "x", "language": "python", "fetch_files": ["out/a.bin", "./out/a.bin", "absent"]}`)
	var answer struct{ Files map[string]string }
	if err := json.Unmarshal([]byte(got), &answer); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"out/a.bin": "AP8=", "./out/a.bin": "AP8="}, answer.Files); diff != "" {
		t.Error(diff)
	}
	f.files = map[string]string{"big": strings.Repeat("x", 65<<20)}
	if _, got = exchange(t, f, "POST", "/run_code", `{"code": "x", "language": "python", "fetch_files": ["big"]}`); !strings.Contains(got, "more than 64 MiB") || !strings.Contains(got, `"files":{}`) {
		t.Errorf("a file that is too large: %.300s", got)
	}
}

// TestRefuses answers what cannot be meant with 422 and a list, and runs nothing.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		code int
		want []string // of each fault, its place and a part of its text
	}{
		"nothing":         {`{}`, 422, []string{"body.code Field required", "body.language Field required"}},
		"no JSON":         {`{"code": `, 422, []string{"body JSON decode error"}},
		"another type":    {`{"code": 1, "language": "python"}`, 422, []string{"body.code Input should be string, and is number"}},
		"no object":       {`[]`, 422, []string{"body Input should be object, and is array"}},
		"no number":       {`{"code": "x", "language": "python", "run_timeout": "5"}`, 422, []string{"body.run_timeout Input should be number, and is string"}},
		"no integer":      {`{"code": "x", "language": "python", "memory_limit_MB": 0.5}`, 422, []string{"body.memory_limit_MB Input should be integer, and is number 0.5"}},
		"no language":     {`{"code": "x", "language": "cobol"}`, 422, []string{"body.language Input should be one of R, go, go_test, java, js, node, nodejs, php, py, pytest, python, r"}},
		"no base64":       {`{"code": "x", "language": "python", "files": {"a": "?"}}`, 422, []string{"body.files.a Input should be base64"}},
		"times":           {`{"code": "x", "language": "python", "run_timeout": 0, "compile_timeout": 1e9}`, 422, []string{"body.compile_timeout Input should be from", "body.run_timeout Input should be from"}},
		"too much memory": {`{"code": "x", "language": "python", "memory_limit_MB": 99999999999}`, 422, []string{"body.memory_limit_MB Input should be at most"}},
		"too large":       {`{"code": "` + strings.Repeat("x", 5000) + `"}`, 413, nil},
	} {
		f := &fake{}
		code, got := exchange(t, f, "POST", "/run_code", tt.body)
		if code != tt.code || f.asked.Language != "" {
			t.Errorf("%s: %d %s, %+v", name, code, got, f.asked)
		}
		if tt.want == nil {
			continue
		}
		var answer struct {
			Detail []struct {
				Type, Msg string
				Loc       []string
			}
		}
		if err := json.Unmarshal([]byte(got), &answer); err != nil {
			t.Fatalf("%s: %v, %s", name, err, got)
		}
		ok := len(answer.Detail) == len(tt.want)
		for i, d := range answer.Detail {
			ok = ok && d.Type != "" && strings.HasPrefix(strings.Join(d.Loc, ".")+" "+d.Msg, tt.want[i])
		}
		if !ok {
			t.Errorf("%s: %s", name, got)
		}
	}
}
