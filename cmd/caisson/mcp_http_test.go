package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestMCPLeavers has clients of the unmodified SDK of Node leave in the middle of a
// call: what runs for one that ends its connection ends, what runs for one that vanishes
// at its time limit. The server goes on.
func TestMCPLeavers(t *testing.T) {
	t.Parallel()
	node := enginetest.Tool(t, "node", "nodejs")
	const name = "@modelcontextprotocol/sdk"
	client := filepath.Join(sdk(t, name), name)
	kit, base := place(t)
	srv, address := listening(t, kit, base)
	all := said(t, kit, base, "token", "create", "--owner", "ann")
	token := all[strings.LastIndex(all, "\n")+1:]
	ends := func() []sandbox.Event {
		var list struct{ Items []sandbox.Event }
		if code := ask(t, address, "GET", "/v1/audit?kind="+sandbox.EventExecEnded, token, nil, &list); code != http.StatusOK {
			t.Fatalf("the audit: %d; %s", code, srv.errs)
		}
		return list.Items
	}
	for _, tt := range []struct {
		way string
		end sandbox.ExitReason
	}{{"ends", sandbox.ReasonCanceled}, {"vanishes", sandbox.ReasonTimeout}} {
		before := len(ends())
		out, err := exec.Command(node, "testdata/mcp_leaver.mjs", client, address+"/mcp", token, tt.way).CombinedOutput()
		if err == nil || len(out) > 0 {
			t.Fatalf("%s: %v, %s", tt.way, err, out)
		}
		until(t, "the run of one that "+tt.way+" has ended", func() bool { return len(ends()) > before })
		list := ends()
		i := slices.MaxFunc(list, func(a, b sandbox.Event) int { return a.Time.Compare(b.Time) })
		var exit sandbox.Exit
		if err := json.Unmarshal(i.Data, &exit); err != nil || exit.Reason != tt.end || len(list) != before+1 {
			t.Errorf("%s: %s, %v, %d ends", tt.way, i.Data, err, len(list))
		}
		until(t, "its sandbox is gone", func() bool { return len(sandboxes(base)) == 0 })
	}
	endServer(t, srv)
}

// Scenarios of the protocol's own conformance suite: docs/mcp.md says why some do not apply.
var (
	conformant = []string{
		"server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection",
	}
	doNotApply = []string{
		"completion-complete", "elicitation-sep1034-defaults", "elicitation-sep1330-enums", "json-schema-2020-12", "prompts-get-embedded-resource",
		"prompts-get-simple", "prompts-get-with-args", "prompts-get-with-image", "resources-read-binary", "resources-read-text", "resources-subscribe",
		"resources-templates-read", "resources-unsubscribe", "server-sse-polling", "tools-call-audio", "tools-call-elicitation", "tools-call-embedded-resource",
		"tools-call-error", "tools-call-image", "tools-call-mixed-content", "tools-call-sampling", "tools-call-simple-text", "tools-call-with-logging",
		"tools-call-with-progress",
	}
)

// TestMCPConformance has the protocol's own suite judge /mcp.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	node := enginetest.Tool(t, "node", "nodejs")
	const name = "@modelcontextprotocol/conformance"
	suite := filepath.Join(sdk(t, name), name, "dist", "index.js")
	listed, err := exec.Command(node, suite, "list", "--server").Output()
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for line := range strings.Lines(string(listed)) {
		if one, ok := strings.CutPrefix(line, "  - "); ok {
			there = append(there, strings.TrimSpace(one))
		}
	}
	slices.Sort(there)
	if known := slices.Sorted(slices.Values(slices.Concat(conformant, doNotApply))); !slices.Equal(there, known) {
		t.Errorf("the suite has\n%q\nnot\n%q", there, known)
	}
	kit, base := place(t)
	srv, address := listening(t, kit, base, "--no-auth")
	conforms(t, node, suite, address)
	endServer(t, srv)
	srv, address = listening(t, kit, base)
	all := said(t, kit, base, "token", "create", "--owner", "ann")
	conforms(t, node, suite, withToken(t, address, all[strings.LastIndex(all, "\n")+1:]))
	endServer(t, srv)
}

// conforms has the suite judge a server at an address.
func conforms(t *testing.T, node, suite, address string) {
	t.Helper()
	for _, scenario := range conformant {
		cmd := exec.Command(node, suite, "server", "--url", address+"/mcp", "--scenario", scenario)
		cmd.Dir = t.TempDir() // it writes what it found
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), " 0 failed, 0 warnings") || strings.Contains(string(out), "Passed: 0/") {
			t.Errorf("%s: %v\n%s", scenario, err, out)
		}
	}
}

// withToken is an address at which requests to another one get a token, which the suite
// cannot send, and are else as they were.
func withToken(t *testing.T, address, token string) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// listening is a server on loopback, and its address.
func listening(t *testing.T, kit *enginetest.Kit, base string, args ...string) (*process, string) {
	t.Helper()
	srv := start(t, kit, base, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	line, err := srv.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v; %s", err, srv.errs)
	}
	return srv, strings.TrimSpace(line)
}

// endServer ends a server in its order.
func endServer(t *testing.T, srv *process) {
	t.Helper()
	if err := srv.Process.Signal(syscall.SIGTERM); err != nil || srv.code(t) != 0 {
		t.Errorf("%v, %s", err, srv.errs)
	}
}
