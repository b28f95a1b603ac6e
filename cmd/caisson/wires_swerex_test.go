package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSWEReX holds a server to recorded exchanges with SWE-ReX's remote runtime.
func TestSWEReX(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "python")
	address, token, end := wired(t, kit, base, "--wire", "swerex", "--wire", "fusion")
	defer end()
	type exchange struct {
		Name, Call  string
		Ask, Answer any
		Code        int
	}
	for _, e := range recorded[exchange](t, "swerex.jsonl") {
		t.Run(e.Name, func(t *testing.T) {
			method := "POST"
			if e.Call == "is_alive" {
				method = "GET"
			}
			var got any
			if code := askWithKey(t, method, address+"/"+e.Call, e.Ask, &got, token); code != e.Code {
				t.Errorf("%d, not %d", code, e.Code)
			}
			if diff := cmp.Diff(e.Answer, got, sameAs()); diff != "" {
				t.Error(diff)
			}
		})
	}
	// What the wire made goes with its close.
	if list := said(t, kit, base, "session", "list"); strings.Contains(list, "swerex") {
		t.Errorf("after the close there is %s", list)
	}
	var got map[string]any
	if code := askWithKey(t, "POST", address+"/execute", map[string]any{"command": "x"}, &got, "wrong"); code != 401 || got["detail"] == nil {
		t.Errorf("a wrong key: %d %v", code, got)
	}
}

// askWithKey asks as SWE-ReX's clients do: with an API key and, to be asked again
// without harm, an id.
func askWithKey(t *testing.T, method, url string, in, out any, key string, id ...string) int {
	t.Helper()
	body, contentType := io.Reader(nil), "application/json"
	switch in := in.(type) {
	case nil:
	case *form:
		body, contentType = &in.Buffer, in.kind
	default:
		body = encoded(t, in)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-API-Key", key)
	for _, id := range id {
		r.Header.Set("X-Request-ID", id)
	}
	return answered(t, &http.Transport{}, r, out)
}

// form is what is sent to /upload.
type form struct {
	bytes.Buffer
	kind string
}

func upload(t *testing.T, content []byte, target, unzip string) *form {
	t.Helper()
	f := &form{}
	w := multipart.NewWriter(f)
	part, err := w.CreateFormFile("file", "x")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(content) // a buffer never fails
	for name, value := range map[string]string{"target_path": target, "unzip": unzip} {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f.kind = w.FormDataContentType()
	return f
}

func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			_, _ = fmt.Fprintf(w, "this is %s", name) // as above
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSWEReXRuntimes has runtimes of their own, files that are sent, what is asked
// twice, what is interrupted, and a server that is started again.
func TestSWEReXRuntimes(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	address, token, end := wired(t, kit, base, "--wire", "swerex")
	if code := ask(t, address, "POST", "/v1/sessions", token, map[string]string{"name": "mine", "language": "shell"}, nil); code != 201 {
		t.Fatalf("make a session: %d", code)
	}
	call := func(runtime, name string, in any, id ...string) (int, map[string]any) {
		t.Helper()
		var got map[string]any
		code := askWithKey(t, "POST", address+"/swerex/"+runtime+"/"+name, in, &got, token, id...)
		return code, got
	}
	run := func(text string) map[string]any { return map[string]any{"command": text} }
	if code, got := call("mine", "create_session", map[string]any{}); code != 200 {
		t.Fatalf("%d %v", code, got)
	}
	// The same id is the same request.
	for range 2 {
		if code, got := call("mine", "run_in_session", run("n=$((n + 1)); echo $n"), "the-one"); code != 200 || got["output"] != "1\n" {
			t.Errorf("asked twice: %d %v", code, got)
		}
	}
	if code, got := call("mine", "run_in_session", run("n=$((n + 1)); echo $n"), "another"); code != 200 || got["output"] != "2\n" {
		t.Errorf("another: %d %v", code, got)
	}
	// Files, and folders as a zip; none leads out of its folder.
	for name, tt := range map[string]struct {
		form *form
		code int
	}{
		"a file":         {upload(t, []byte("\x00sent"), "/workspace/a/b.bin", "false"), 200},
		"a folder":       {upload(t, zipped(t, "d/", "d/x.txt", "y.txt"), "folder", "true"), 200},
		"out of it":      {upload(t, zipped(t, "../../evil"), "folder", "true"), 511},
		"no zip":         {upload(t, []byte("x"), "folder", "true"), 511},
		"no target":      {upload(t, []byte("x"), "", "false"), 422},
		"nowhere to put": {upload(t, []byte("x"), "/root/tools/x", "false"), 511},
	} {
		if code, got := call("mine", "upload", tt.form); code != tt.code {
			t.Errorf("%s: %d %v", name, code, got)
		}
	}
	if code, got := call("mine", "execute", map[string]any{"command": "wc -c <a/b.bin; cat folder/d/x.txt; ls folder | tr '\\n' ' '", "shell": true}); code != 200 || got["stdout"] != "5\nthis is d/x.txtd y.txt " {
		t.Errorf("what was sent: %d %v", code, got)
	}
	// An interrupt ends what another request waits for; the shell lives.
	waits := make(chan map[string]any)
	go func() {
		_, got := call("mine", "run_in_session", run("echo begun >begun; sleep 1000"))
		waits <- got
	}()
	until(t, "the command runs", func() bool {
		code, _ := call("mine", "read_file", map[string]any{"path": "begun"})
		return code == 200
	})
	if code, got := call("mine", "run_in_session", map[string]any{"action_type": "bash_interrupt"}); code != 200 {
		t.Errorf("an interrupt: %d %v", code, got)
	}
	if got := <-waits; got["swerexception"] == nil {
		t.Errorf("what was interrupted: %v", got)
	}
	// So does one of an interactive program that takes no notice.
	if code, got := call("mine", "run_in_session", map[string]any{
		"command": "trap '' INT; while :; do read x; echo got $x; done", "is_interactive_command": true, "expect": []string{"nothing"}, "timeout": 0.3,
	}); code != 511 {
		t.Errorf("a program without a prompt: %d %v", code, got)
	}
	if code, got := call("mine", "run_in_session", map[string]any{"action_type": "bash_interrupt", "timeout": 0.1, "n_retry": 2}); code != 200 {
		t.Errorf("its interrupt: %d %v", code, got)
	}
	// Another runtime is another session, which is made.
	if code, got := call("other", "execute", map[string]any{"command": "ls", "shell": true}); code != 200 || got["stdout"] != "" {
		t.Errorf("another runtime: %d %v", code, got)
	}
	// A server that is started again finds the shells.
	end()
	address, _, end = wired(t, kit, base, "--wire", "swerex")
	defer end()
	if code, got := call("mine", "run_in_session", run("echo $n still")); code != 200 || got["output"] != "2 still\n" {
		t.Errorf("after a start: %d %v", code, got)
	}
	for _, runtime := range []string{"mine", "other"} {
		if code, got := call(runtime, "close", nil); code != 200 {
			t.Errorf("close: %d %v", code, got)
		}
	}
	if list := said(t, kit, base, "session", "list"); !strings.Contains(list, "ann~mine") || strings.Contains(list, "other") {
		t.Errorf("a session of its user's stays, and one that was made goes: %s", list)
	}
	said(t, kit, base, "session", "rm", "--force", "ann~mine")
}
