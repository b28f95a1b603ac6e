//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/client"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/sandbox"
)

// served is a server that runs, and who asks it.
type served struct {
	pid    int
	client api.Service
	http   *http.Client // of its Unix socket
}

// environ are the settings of a caisson of the rig with a state of its own.
func environ(r *rig.Rig, name string) []string {
	return []string{
		"CAISSON_STATE_DIR=" + filepath.Join(r.Dir, name), "CAISSON_RUNTIME_DIR=" + filepath.Join(r.Dir, name, "r"),
		"CAISSON_AGENT=" + r.Program("caisson-agent"), "CAISSON_SCAN=" + r.Program("caisson-scan"),
		"CAISSON_EXECUTIONS_WORKERS=" + strconv.Itoa(workers),
	}
}

// open opens caisson in this process, until the rig's end.
func open(ctx context.Context, r *rig.Rig) (api.Service, error) {
	settings := map[string]string{}
	for _, set := range environ(r, "own") {
		name, value, _ := bytes.Cut([]byte(set), []byte("="))
		settings[string(name)] = string(value)
	}
	door, err := caisson.Open(ctx, caisson.Config{Getenv: func(name string) string {
		if v, ok := settings[name]; ok {
			return v
		}
		return os.Getenv(name)
	}})
	if err != nil {
		return nil, err
	}
	r.Defer(door.Close)
	return door, nil
}

// serve starts a server on a Unix socket, which the rig's end ends.
func serve(ctx context.Context, r *rig.Rig) (*served, error) {
	socket := filepath.Join(r.Dir, "s")
	cmd := exec.CommandContext(ctx, r.Program("caisson"), "serve", "--listen", "unix://"+socket, "--log-level", "warn")
	cmd.Env = slices.Concat(os.Environ(), environ(r, "srv"))
	cmd.Stderr = os.Stderr
	out, err := start(r, cmd)
	if err != nil {
		return nil, err
	}
	if line, err := out.ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the server ends after %q: %w", line, err)
	}
	c, err := client.New(client.Config{Host: "unix://" + socket})
	if err != nil {
		return nil, err
	}
	r.Defer(c.Close)
	return &served{pid: cmd.Process.Pid, client: c, http: dialing(r, "unix", socket)}, nil
}

// start starts a program that the rig's end asks to end, and returns what it prints.
func start(r *rig.Rig, cmd *exec.Cmd) (*bufio.Reader, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.Defer(func() error {
		err := cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // how it ends is no figure
		if errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("%s ended before it was asked to", cmd.Path)
		}
		return err
	})
	return bufio.NewReader(out), nil
}

// dialing is a client of HTTP whose every connection goes to one address.
func dialing(r *rig.Rig, network, address string) *http.Client {
	t := &http.Transport{
		MaxIdleConnsPerHost: workers,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		},
	}
	r.Defer(func() error { t.CloseIdleConnections(); return nil })
	return &http.Client{Transport: t}
}

// exec runs true in a session, by a plain request.
func (s *served) exec(ctx context.Context, session string) error {
	var res sandbox.Result
	err := post(ctx, s.http, "http://localhost/v1/sessions/"+session+"/execs", `{"command":["true"]}`, &res)
	return rig.Succeeded(res, err)
}

// post asks in JSON, and reads the answer.
func post(ctx context.Context, c *http.Client, url, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s: %s", url, res.Status, b)
	}
	return json.Unmarshal(b, answer)
}
