//go:build linux

// Command wires measures E2B's own SDK on caisson, beside the same SDK on a server
// that answers at once, and a call of SandboxFusion beside docker run:
//
//	go run ./bench/wires          tables, and exit code 1 where a bar does not hold
//	go run ./bench/wires -json    one object a line
//	go run ./bench/wires -smoke   a few samples, to see that all of it works
//
// It needs a Docker Engine, node, the packages that make setup-tests fetches, and Go
// to build caisson. samples.cjs takes the samples, since what is measured is what a
// program of theirs sees.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
)

func main() { os.Exit(measure.Main("wires", run)) }

// What samples.cjs knows how to measure.
var measures = map[string]string{create: "create", warm: "run", bare: "bare"}

const (
	create = "Sandbox.create to the first run"
	warm   = "a warm commands.run"
	bare   = "commands.run answered at once"
)

func run(ctx context.Context, s *measure.Suite) (err error) {
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Image(ctx, "python@e2b"); err != nil {
		return err
	}
	image, err := r.Image(ctx, "python")
	if err != nil {
		return err
	}
	p, err := start(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	subject := func(name string, every int) measure.Subject {
		return measure.Subject{Name: name, Every: every, Sample: func(context.Context) (float64, error) { return p.sample(name) }}
	}
	err = s.Measure(ctx, measure.Set{
		Name: "e2b", Unit: "ms", Rounds: 200, Warmup: 5, Settle: time.Second,
		Subjects: []measure.Subject{subject(warm, 0), subject(bare, 0), subject(create, 10)},
		Rows: []measure.Row{
			{Name: "e2b/warm run", Own: warm, Peer: bare, Bar: &measure.Bar{Asked: "p50 <= peer + 2 ms", Holds: func(own, peer measure.Stats) bool { return own.P50 <= peer.P50+2 }}},
			{Name: "e2b/create and run", Own: create, Peer: bare, Bar: &measure.Bar{Asked: "p50 <= 60 ms", Holds: func(own, _ measure.Stats) bool { return own.P50 <= 60 }}},
		},
	})
	if err != nil {
		return err
	}
	return fusion(ctx, s, p, image)
}

// fusion measures how many calls of SandboxFusion a second workers get done.
func fusion(ctx context.Context, s *measure.Suite, p *sampler, image string) error {
	const own, peer, workers, while = "POST /run_code, print(1)", "docker run --rm", 4, 3 * time.Second
	return s.Measure(ctx, measure.Set{
		Name: "fusion", Unit: "runs/s", Rounds: 10, Warmup: 1,
		Subjects: []measure.Subject{
			{Name: own, Sample: measure.Rate(workers, while, func(ctx context.Context, _ int) error { return p.runCode(ctx) })},
			{Name: peer, Sample: measure.Rate(workers, while, func(ctx context.Context, _ int) error {
				out, err := exec.CommandContext(ctx, "docker", "run", "--rm", "--network", "none", image, "python3", "-c", "print(1)").CombinedOutput()
				if err != nil || string(out) != "1\n" {
					return fmt.Errorf("docker run: %w: %s", err, out)
				}
				return nil
			})},
		},
		Rows: []measure.Row{{Name: "fusion/run_code", Own: own, Peer: peer, Bar: measure.AtLeast("p50 >= 3 x peer", 3)}},
	})
}

// runCode is one call, which has to print what it is to.
func (p *sampler) runCode(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address+"/run_code", strings.NewReader(`{"code": "print(1)", "language": "python"}`))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + p.token}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(b), `"stdout":"1\n"`) {
		return fmt.Errorf("/run_code: %d, %w: %s", resp.StatusCode, err, b)
	}
	return nil
}

// sampler is the running samples.cjs, with the server that it asks.
type sampler struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	srv *exec.Cmd

	address, token string // of the server
}

// start starts a server, and who asks it.
func start(ctx context.Context, r *rig.Rig) (_ *sampler, err error) {
	settings := filepath.Join(r.Dir, "caisson.yaml")
	if err := os.WriteFile(settings, []byte("version: 1\npool: {python@e2b: 4, python: 4}\n"), 0o600); err != nil {
		return nil, err
	}
	p := &sampler{srv: exec.CommandContext(ctx, r.Program("caisson"), "--config", settings, "serve", "--listen", "127.0.0.1:0", "--wire", "e2b", "--wire", "fusion")}
	p.srv.Env, p.srv.Stderr = append(r.Environ(), "CAISSON_LOG=error"), os.Stderr
	said, err := p.srv.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.srv.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the server says nothing: %w", err)
	}
	token := exec.CommandContext(ctx, r.Program("caisson"), "token", "create", "--owner", "bench")
	token.Env = r.Environ()
	secret, err := token.Output()
	if err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	answering, err := atOnce(ctx, r)
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	lines := strings.Fields(string(secret)) // the last is the secret
	p.address, p.token = strings.TrimSpace(address), lines[len(lines)-1]
	p.cmd = exec.CommandContext(ctx, "node", "bench/wires/samples.cjs")
	p.cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(cache, "caisson-tests", "sdk", "node_modules"),
		"E2B_API_URL="+p.address, "E2B_SANDBOX_URL="+p.address, "E2B_API_KEY="+p.token, "BARE_URL="+answering)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

func (p *sampler) sample(name string) (ms float64, err error) {
	if _, err := fmt.Fprintln(p.in, measures[name]); err != nil {
		return 0, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("samples.cjs: %w", err)
	}
	if _, err := fmt.Sscanf(line, "%f", &ms); err != nil {
		return 0, fmt.Errorf("samples.cjs: %s", strings.TrimSpace(line))
	}
	return ms, nil
}

func (p *sampler) end() error {
	err := errors.Join(p.in.Close(), p.cmd.Wait(), p.srv.Process.Signal(syscall.SIGTERM))
	return errors.Join(err, p.srv.Wait())
}
