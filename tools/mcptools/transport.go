package mcptools

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// mostMessage bounds one message of a server: a result, and what is around it.
const mostMessage = int(sandbox.MaxToolData) + 1<<20

// grace is how long a server has to end once its input has.
const grace = 2 * time.Second

// program is a server that this process starts: the transport over its standard input
// and output.
type program struct {
	argv   []string
	env    map[string]string
	folder string
	most   int // bytes of a message

	said  words
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *os.File
	ended chan struct{}
}

// Connect implements [mcp.Transport].
func (p *program) Connect(context.Context) (mcp.Connection, error) {
	p.cmd = exec.Command(p.argv[0], p.argv[1:]...) //nolint:noctx // Close ends it
	p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay = p.folder, &p.said, grace
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it ends with all that it has started
	p.cmd.Env = os.Environ()
	for name, value := range p.env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.out, p.cmd.Stdout = out, theirs
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	_ = theirs.Close() // the server has its own
	if err != nil {
		_ = out.Close() // nothing was read
		return nil, err
	}
	p.ended = make(chan struct{})
	go p.wait()
	return (&mcp.IOTransport{Reader: p.out, Writer: p, MaxLineLength: p.most}).Connect(context.Background())
}

// wait takes note of the program's end. What it said is read to its end; what it has
// started and left behind is ended.
func (p *program) wait() {
	defer close(p.ended)
	_ = p.cmd.Wait() // lastWords tells
	p.kill()
	_ = p.out.SetReadDeadline(time.Now().Add(grace)) // something may hold it open still
}

func (p *program) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // mostly nothing is left
}

// Write implements [io.Writer].
func (p *program) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the program: its input, and where that is not enough, itself.
func (p *program) Close() error {
	_ = p.in.Close() // it may have ended
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.kill()
		<-p.ended
	}
	return nil
}

// lastWords are how the program ended, where it has, and what it said last.
func (p *program) lastWords() string {
	if p.ended == nil {
		return ""
	}
	select {
	case <-p.ended:
	case <-time.After(grace):
		return p.said.last()
	}
	text := p.cmd.ProcessState.String()
	if said := p.said.last(); said != "" {
		text += ": " + said
	}
	return text
}

// words keep the end of what is written to them.
type words struct {
	mu   sync.Mutex
	tail []byte
}

const mostWords = 1 << 10

// Write implements [io.Writer].
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tail = append(w.tail, p[max(0, len(p)-mostWords):]...)
	w.tail = bytes.Clone(w.tail[max(0, len(w.tail)-mostWords):])
	return len(p), nil
}

// last is the last line that says something.
func (w *words) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(w.tail), "?"))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// overHTTP are transports to an address, with headers that it alone gets. Errors:
// Invalid.
func overHTTP(address string, headers map[string]string) (func() mcp.Transport, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, sandbox.Errorf(sandbox.Invalid, "mcp: %q is no address of a server", address).WithHint("write mcp: {url: https://host/mcp}")
	}
	client := &http.Client{
		Transport:     bounding{headers},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func() mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: client, MaxEventSize: mostMessage}
	}, nil
}

// bounding adds headers to requests, and bounds answers that are one message.
type bounding struct{ headers map[string]string }

// RoundTrip implements [http.RoundTripper].
func (b bounding) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, value := range b.headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err == nil && !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = http.MaxBytesReader(nil, res.Body, int64(mostMessage))
	}
	return res, err
}
