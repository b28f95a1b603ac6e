package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// sdk is the folder in which make setup-tests has packages of npm, unmodified and of
// the versions in testdata/sdk. The test needs one of them.
func sdk(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "caisson-tests", "sdk", "node_modules")
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		if os.Getenv(enginetest.RequireTools) == "1" {
			t.Fatalf("make setup-tests fetches it: %v", err)
		}
		t.Skipf("needs npm's %s: make setup-tests", name)
	}
	return dir
}

// TestVendorSDK has the vendor's own SDK call a function: all that it takes is the
// server's address, and the token in its credentials.
func TestVendorSDK(t *testing.T) {
	t.Parallel()
	node, modules := enginetest.Tool(t, "node", "nodejs"), sdk(t, "@aws-sdk/client-lambda")
	kit, base := place(t)
	kit.Image(t, "python")
	srv := start(t, kit, base, "serve", "--listen", "127.0.0.1:0")
	line, err := srv.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v; %s", err, srv.errs)
	}
	address := strings.TrimSpace(line)
	all := said(t, kit, base, "token", "create", "--owner", "ann")
	token := all[strings.LastIndex(all, "\n")+1:]
	code := "def handler(event, context):\n    print('twice', event['a'])\n    return {'b': 2 * event['a']}\n"
	put := sandbox.FunctionOptions{Name: "f", Language: "python", Handler: "main.handler", Files: []sandbox.File{{Path: "main.py", Data: []byte(code)}}}
	if status := ask(t, address, "POST", "/v1/functions", token, put, nil); status != 201 {
		t.Fatalf("put: %d; %s", status, srv.errs)
	}
	script := exec.CommandContext(t.Context(), node, "testdata/sdk/invoke.cjs")
	script.Env = append(os.Environ(), "NODE_PATH="+modules, "ENDPOINT="+address, "CAISSON_TOKEN="+token)
	out, err := script.Output()
	if err != nil {
		t.Fatalf("%v; %s; %s", err, out, srv.errs)
	}
	type answer struct {
		Status                                       int
		Version, Fault, Payload, Log, Error, Message string
	}
	var got struct{ Value, Fault, Event, Dry, Missing, Stranger answer }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if v := got.Value; v.Status != 200 || v.Version != "1" || v.Payload != `{"b": 40}` || v.Fault != "" || !strings.Contains(v.Log, "twice 20\n") || !strings.Contains(v.Log, "REPORT RequestId: ") {
		t.Errorf("a value: %+v", v)
	}
	if v := got.Fault; v.Status != 200 || v.Fault == "" || !strings.Contains(v.Payload, `"errorType":"KeyError"`) || v.Error != "" {
		t.Errorf("an error of the function's: %+v", v)
	}
	if got.Event.Status != 202 || got.Event.Payload != "" || got.Dry.Status != 204 {
		t.Errorf("nobody waits: %+v, dry: %+v", got.Event, got.Dry)
	}
	if v := got.Missing; v.Error != "ResourceNotFoundException" || v.Status != 404 || !strings.Contains(v.Message, "no function none") {
		t.Errorf("no such function: %+v", v)
	}
	if v := got.Stranger; v.Error != "AccessDeniedException" || v.Status != 401 {
		t.Errorf("a wrong token: %+v", v)
	}
	if status := ask(t, address, "DELETE", "/v1/functions/f", token, nil, nil); status != 204 {
		t.Errorf("remove: %d", status)
	}
}
