package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// TestMCPFromNode has the unmodified SDK of Node use caisson over both transports.
func TestMCPFromNode(t *testing.T) {
	t.Parallel()
	node := enginetest.Tool(t, "node", "nodejs")
	const name = "@modelcontextprotocol/sdk"
	client := filepath.Join(sdk(t, name), name)
	kit, base := place(t)
	kit.Image(t, "python")
	command := enginetest.Command(t)
	t.Run("stdio", func(t *testing.T) {
		fromNode(t, kit, base, node, client, "stdio", command, "mcp")
	})
	t.Run("http", func(t *testing.T) {
		srv := start(t, kit, base, "serve", "--listen", "127.0.0.1:0")
		line, err := srv.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%v; %s", err, srv.errs)
		}
		secret := said(t, kit, base, "token", "create", "--owner", "ann")
		secret = secret[strings.LastIndex(secret, "\n")+1:]
		fromNode(t, kit, base, node, client, "http", strings.TrimSpace(line)+"/mcp", secret)
		res, err := http.Post(strings.TrimSpace(line)+"/mcp", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a token: %d", res.StatusCode)
		}
		if err := srv.Process.Signal(syscall.SIGTERM); err != nil || srv.code(t) != 0 {
			t.Errorf("%v, %s", err, srv.errs)
		}
	})
}

// fromNode runs the script, and approves what it asks to have approved.
func fromNode(t *testing.T, kit *enginetest.Kit, base, node string, args ...string) {
	t.Helper()
	cmd := exec.Command(node, append([]string{"testdata/mcp_client.mjs"}, args...)...)
	cmd.Env = ownEnv(t, kit, base)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := &lockedText{}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "QUESTION "); ok {
			said(t, kit, base, "approvals", "approve", id)
			if _, err := io.WriteString(in, "approved\n"); err != nil {
				t.Error(err)
			}
		}
		ended = lines.Text() == "DONE"
	}
	if err := cmd.Wait(); err != nil || !ended {
		t.Fatalf("%v: %s", err, errs)
	}
}

func ownEnv(t *testing.T, kit *enginetest.Kit, base string) []string {
	t.Helper()
	return append(os.Environ(), "DOCKER_HOST="+kit.Engine.Host(), "CAISSON_AGENT="+kit.Agent, "CAISSON_SCAN="+enginetest.Scanner(t), "CAISSON_RUNTIME_DIR="+base+"/s", "CAISSON_STATE_DIR="+base+"/state")
}

// TestMCPFromGo uses caisson by the SDK of Go, over stdio. A client that dies while
// something runs leaves nothing behind.
func TestMCPFromGo(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	cmd := exec.Command(enginetest.Command(t), "mcp")
	cmd.Env = ownEnv(t, kit, base)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := &lockedText{}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{}, 100)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "go"}, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		if strings.Contains(r.Params.Message, "begun") {
			begun <- struct{}{}
		}
	}}).Connect(t.Context(), &mcp.IOTransport{Reader: out, Writer: in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func(code string) (*mcp.CallToolResult, error) {
		params := &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "shell", "code": code, "timeout_seconds": 900, "artifacts": []string{"*.txt"}}}
		params.SetProgressToken("p")
		return c.CallTool(t.Context(), params)
	}
	res, err := run("echo hi; echo left > out.txt")
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Status    string
		Stdout    string
		Artifacts []struct{ Path, URI string }
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil || json.Unmarshal(b, &o) != nil || o.Status != "success" || o.Stdout != "hi\n" || len(o.Artifacts) != 1 || filepath.Base(o.Artifacts[0].Path) != "out.txt" {
		t.Fatalf("%s, %v", b, err)
	}
	left, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: o.Artifacts[0].URI})
	if err != nil || left.Contents[0].Text != "left\n" {
		t.Errorf("%+v, %v", left, err)
	}
	gone := make(chan error, 1)
	go func() {
		_, err := run("echo begun; sleep 900")
		gone <- err
	}()
	<-begun
	_ = in.Close()
	if err := <-gone; err == nil {
		t.Error("the run goes well")
	}
	if err := cmd.Wait(); err != nil || errs.String() != "" {
		t.Errorf("caisson mcp ends with %v: %s", err, errs)
	}
	if leftovers := kit.Leftovers(t.Context()); len(leftovers) > 0 {
		t.Errorf("%v", leftovers)
	}
}
