package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// wired starts a server that answers by a wire, and makes a token. What it returns is
// the address, and an end that the server has to come to well.
func wired(t *testing.T, kit *enginetest.Kit, base string, args ...string) (address, token string, end func()) {
	t.Helper()
	srv := start(t, kit, base, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	line, err := srv.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v; %s", err, srv.errs)
	}
	all := said(t, kit, base, "token", "create", "--owner", "ann")
	return strings.TrimSpace(line), all[strings.LastIndex(all, "\n")+1:], func() {
		if err := srv.Process.Signal(syscall.SIGTERM); err != nil || srv.code(t) != 0 {
			t.Errorf("%v, %s", err, srv.errs)
		}
	}
}

// recorded reads what is recorded of a wire, one exchange a line.
func recorded[T any](t *testing.T, name string) []T {
	t.Helper()
	f, err := os.Open("testdata/wires/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []T
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		list = append(list, one)
	}
	return list
}

// sameAs compares values of JSON; a text … stands for anything, and …x for what
// begins with x.
func sameAs() cmp.Option {
	return cmp.FilterValues(func(a, b any) bool { return anything(a) || anything(b) }, cmp.Comparer(func(a, b any) bool {
		if anything(b) {
			a, b = b, a
		}
		begin := strings.TrimPrefix(a.(string), "…")
		text, is := b.(string)
		return begin == "" && b != nil || is && strings.HasPrefix(text, begin)
	}))
}

func anything(v any) bool {
	s, is := v.(string)
	return is && strings.HasPrefix(s, "…")
}

// TestFusion holds a server to recorded exchanges with clients of SandboxFusion.
func TestFusion(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "python")
	kit.Image(t, "node")
	address, token, end := wired(t, kit, base, "--wire", "fusion")
	defer end()
	type exchange struct {
		Name   string
		Ask    any
		Code   int
		Answer any
	}
	for _, e := range recorded[exchange](t, "fusion.jsonl") {
		t.Run(e.Name, func(t *testing.T) {
			var got any
			if code := ask(t, address, "POST", "/run_code", token, e.Ask, &got); code != e.Code {
				t.Errorf("%d, not %d", code, e.Code)
			}
			if diff := cmp.Diff(e.Answer, got, sameAs()); diff != "" {
				t.Error(diff)
			}
		})
	}
	// A token may stand in the address; without one nobody is let in.
	var got any
	if code := ask(t, strings.Replace(address, "://", "://x:"+token+"@", 1), "GET", "/v1/ping", "", nil, &got); code != 200 || got != "pong" {
		t.Errorf("with a token in the address: %d, %v", code, got)
	}
	if code := ask(t, address, "POST", "/run_code", "", map[string]string{"code": "1", "language": "python"}, &got); code != 401 || !anything("…"+got.(map[string]any)["detail"].(string)) {
		t.Errorf("without a token: %d, %v", code, got)
	}
	// What was run and what was refused is in the audit, under its owner.
	text := said(t, kit, base, "audit", "list", "--json", "--kind", "exec.denied")
	if !strings.Contains(text, `"ann"`) || strings.Count(text, "exec.denied") != 1 {
		t.Errorf("the audit says %s", text)
	}
}

// needLanguage skips where a language's image is absent: together they are large.
func needLanguage(t *testing.T, kit *enginetest.Kit, name string) {
	t.Helper()
	lang, err := kit.Images.Language(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := kit.Images.Lookup(t.Context(), lang.Image); err == nil {
		return
	}
	if os.Getenv("CAISSON_REQUIRE_LANGUAGES") == "1" {
		t.Fatalf("needs the image %s", lang.Image)
	}
	t.Skipf("needs the image %s (make it with: make languages)", lang.Image)
}

// TestFusionLanguages runs a program of each language that is there, in the steps
// that it takes.
func TestFusionLanguages(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	config := filepath.Join(base, "caisson.yaml")
	if err := os.WriteFile(config, []byte("version: 1\nunknown_language: allow\ndefaults:\n  serve:\n    wire: [fusion]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, token, end := wired(t, kit, base, "--config", config)
	defer end()
	type program struct {
		Name, Image    string
		Ask            any
		Stdout, Stderr string
		Compiled       bool
	}
	for _, p := range recorded[program](t, "languages.jsonl") {
		t.Run(p.Name, func(t *testing.T) {
			needLanguage(t, kit, p.Image)
			type step struct {
				Status, Stdout, Stderr string
				Code                   *int `json:"return_code"`
			}
			var got struct {
				Status, Message string
				Compile         *step `json:"compile_result"`
				Run             *step `json:"run_result"`
			}
			if code := ask(t, address, "POST", "/run_code", token, p.Ask, &got); code != http.StatusOK {
				t.Fatalf("%d, %+v", code, got)
			}
			if p.Stderr != "" {
				if got.Status != "Failed" || got.Compile == nil || got.Run != nil || !strings.Contains(got.Compile.Stdout+got.Compile.Stderr, p.Stderr) {
					t.Errorf("%+v, %+v, %+v", got, got.Compile, got.Run)
				}
				return
			}
			if got.Status != "Success" || got.Run == nil || !strings.HasPrefix(got.Run.Stdout, p.Stdout) || (got.Compile != nil) != p.Compiled {
				t.Errorf("%+v, %+v, %+v", got, got.Compile, got.Run)
			}
		})
	}
}

// TestFusionSteps: a step has its own time, and what ends one says which.
func TestFusionSteps(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	needLanguage(t, kit, "cpp")
	config := filepath.Join(base, "caisson.yaml")
	if err := os.WriteFile(config, []byte("version: 1\nunknown_language: allow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, token, end := wired(t, kit, base, "--config", config, "--wire", "fusion")
	defer end()
	type step struct{ Status string }
	type answer struct {
		Status  string
		Compile *step `json:"compile_result"`
		Run     *step `json:"run_result"`
	}
	over, well := &step{"TimeLimitExceeded"}, &step{"Finished"}
	for name, c := range map[string]struct {
		compile, run float64
		want         answer
	}{
		"compiling": {0.001, 120, answer{"Failed", over, nil}},
		"running":   {120, 1, answer{"Failed", well, over}},
	} {
		var got answer
		what := map[string]any{"language": "cpp", "code": "int main() { for (volatile int i = 0;; i = 0) {} }", "compile_timeout": c.compile, "run_timeout": c.run}
		if code := ask(t, address, "POST", "/run_code", token, what, &got); code != http.StatusOK {
			t.Errorf("%s: %d", name, code)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
