package gate_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/e2b"
	"github.com/caisson-dev/caisson/api/fusion"
	"github.com/caisson-dev/caisson/api/swerex"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// wiresIn has clients of other products ask for programs that are denied.
func wiresIn(t *testing.T, p *place) {
	t.Helper()
	e2bIn(t, p)
	wire, err := fusion.New(fusion.Config{Service: wireService{m: p.Manager}})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"code":   `{"code": "rm -rf /", "language": "shell"}`,
		"a file": `{"code": ". ./x.sh", "language": "shell", "files": {"x.sh": "cm0gLXJmIC8K"}}`,
		"input":  `{"code": "sh", "language": "shell", "stdin": "rm -rf /\n"}`,
		"pytest": `{"code": "import os\nos.system('rm -rf /')", "language": "pytest"}`,
	} {
		rec := httptest.NewRecorder()
		wire.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/run_code", strings.NewReader(body)))
		var got struct{ Status, Message string }
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || got.Status != "SandboxError" || !strings.Contains(got.Message, "refused: verdict ") {
			t.Errorf("%s of a client of SandboxFusion: %v, %s", name, err, rec.Body)
		}
	}
	p.session(t, "swerex", "shell")
	rex, err := swerex.New(swerex.Config{Service: wireService{m: p.Manager}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rex.Close() }) // never fails
	for _, asked := range []struct {
		call, body string
		status     int
	}{
		{"create_session", `{}`, 200},
		{"execute", `{"command": ["rm", "-rf", "/"]}`, 511},
		{"execute", `{"command": "rm -rf /", "shell": true}`, 511},
		{"run_in_session", `{"command": "rm -rf /"}`, 511},
		{"run_in_session", `{"command": "rm -rf /", "is_interactive_command": true}`, 511},
		{"run_in_session", `{"command": "wipe() { rm -rf \"$1\"; }"}`, 200},
		{"run_in_session", `{"command": "wipe /", "check": "ignore"}`, 511},
		{"close_session", `{}`, 200},
	} {
		rec := httptest.NewRecorder()
		rex.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+asked.call, strings.NewReader(asked.body)))
		if rec.Code != asked.status || (rec.Code == 511) != strings.Contains(rec.Body.String(), "refused: verdict ") {
			t.Errorf("%s %s of a client of SWE-ReX: %d %s", asked.call, asked.body, rec.Code, rec.Body)
		}
	}
}

// e2bIn has a client of E2B's ask for programs that are denied.
func e2bIn(t *testing.T, p *place) {
	t.Helper()
	if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: "e2b", Language: "shell", Labels: sandbox.Labels{"e2b/sandbox": "true"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.RemoveSession(context.WithoutCancel(t.Context()), "e2b", true); err != nil {
			t.Error(err)
		}
	})
	f, err := p.Files(t.Context(), "e2b")
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, "x.sh", "rm -rf /\n")
	wire, err := e2b.New(e2b.Config{Service: wireService{m: p.Manager}, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for name, process := range map[string]string{
		"a command":          `"process": {"cmd": "/bin/bash", "args": ["-l", "-c", "rm -rf /"]}`,
		"a script":           `"process": {"cmd": "/bin/bash", "args": ["-l", "-c", "sh x.sh"]}`,
		"without a shell":    `"process": {"cmd": "rm", "args": ["-rf", "/"]}`,
		"in /home/user":      `"process": {"cmd": "sh", "args": ["x.sh"], "cwd": "/home/user"}`,
		"in a terminal":      `"process": {"cmd": "rm", "args": ["-rf", "/"]}, "pty": {"size": {"cols": 80, "rows": 24}}`,
		"with a tag, a pipe": `"process": {"cmd": "/bin/bash", "args": ["-l", "-c", "echo / | xargs rm -rf"]}, "tag": "t"`,
	} {
		body := "{" + process + "}"
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/process.Process/Start", strings.NewReader(string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))))+body))
		r.Header = http.Header{"Content-Type": {"application/connect+json"}, "Connect-Protocol-Version": {"1"}, "E2b-Sandbox-Id": {"e2b"}}
		rec := httptest.NewRecorder()
		wire.ServeHTTP(rec, r)
		if got := rec.Body.String(); strings.Contains(got, `"start"`) || !strings.Contains(got, "permission_denied") || !strings.Contains(got, "refused: verdict deny") {
			t.Errorf("%s of a client of E2B: %d %q", name, rec.Code, got)
		}
	}
}

// wireService is what wires speak with here.
type wireService struct {
	api.Service
	m *manager.Manager
}

func (wireService) Languages(context.Context) ([]api.LanguageInfo, error) {
	return []api.LanguageInfo{{Language: sandbox.Language{Name: "shell", Suffixes: []string{".sh"}}}, {Language: sandbox.Language{Name: "python", Suffixes: []string{".py"}}}}, nil
}

func (s wireService) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return s.m.Run(ctx, run, streams)
}

func (s wireService) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	return s.m.Sessions(ctx, f)
}

func (s wireService) OpenShell(ctx context.Context, session, name string, o sandbox.ShellOptions) (sandbox.Shell, error) {
	return s.m.OpenShell(ctx, session, name, o, sandbox.Local{})
}

func (s wireService) RunShell(ctx context.Context, session, name string, run sandbox.ShellRun, streams sandbox.Streams) (sandbox.Result, error) {
	return s.m.RunShell(ctx, session, name, run, streams)
}

func (s wireService) ListShells(ctx context.Context, session string) ([]sandbox.Shell, error) {
	return s.m.ListShells(ctx, session)
}

func (s wireService) CloseShell(ctx context.Context, session, name string) error {
	return s.m.CloseShell(ctx, session, name)
}

func (s wireService) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return s.m.ExecIn(ctx, session, run, streams)
}

func (s wireService) StartExec(ctx context.Context, session string, run sandbox.Run, local sandbox.Local) (sandbox.ExecRecord, error) {
	return s.m.StartIn(ctx, session, run, local)
}

func (wireService) Approvals(context.Context, sandbox.ApprovalFilter) ([]sandbox.Approval, error) {
	return nil, nil
}
