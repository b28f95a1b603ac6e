// Package sink hands changes of workspaces on as JSON lines: to a file, to a
// program's standard input, or to a server. Each line is one
// [sandbox.ChangeNews]: what keeps an agent's context graph reads them as they
// come. The records that caisson keeps are authoritative: a line may be
// provisional, and "lost" counts changes that nobody had room for.
package sink

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Sink takes lines. It is for one goroutine. Its owner closes it.
type Sink interface {
	// Send hands on whole lines, and returns once they are taken.
	Send(ctx context.Context, lines []byte) error
	Close() error
}

// Pump sends news to a sink until they end. It gathers what comes at once into
// one sending, and goes on after a failure, of which it tells failed: those
// lines are lost.
func Pump(ctx context.Context, news iter.Seq[sandbox.ChangeNews], s Sink, failed func(lost int, err error)) {
	next, stop := iter.Pull(batches(news))
	defer stop()
	for {
		batch, ok := next()
		if !ok {
			return
		}
		var b bytes.Buffer
		for _, n := range batch {
			line, err := json.Marshal(n)
			if err != nil {
				failed(1, err)
				continue
			}
			b.Write(append(line, '\n'))
		}
		if err := s.Send(ctx, b.Bytes()); err != nil {
			failed(len(batch), err)
		}
	}
}

// batchMost bounds the lines of one sending.
const batchMost = 512

// batches gathers news until one says that nothing waits behind it.
func batches(news iter.Seq[sandbox.ChangeNews]) iter.Seq[[]sandbox.ChangeNews] {
	return func(yield func([]sandbox.ChangeNews) bool) {
		var batch []sandbox.ChangeNews
		for n := range news {
			batch = append(batch, n)
			if n.More && len(batch) < batchMost {
				continue
			}
			if !yield(batch) {
				return
			}
			batch = nil
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// writer is a sink that is a stream.
type writer struct {
	w     *bufio.Writer
	close func() error
}

func (w *writer) Send(_ context.Context, lines []byte) error {
	_, err := w.w.Write(lines)
	return errors.Join(err, w.w.Flush())
}

func (w *writer) Close() error { return w.close() }

// File appends to a file, which it makes for its owner alone. Lines of several
// processes do not mix. Errors: Invalid.
func File(name string) (Sink, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "a file for changes: %w", err).WithHint("set CAISSON_CHANGES_FILE to a file that can be written")
	}
	return &file{f}, nil
}

// file writes what is sent at once, so that it stays together.
type file struct{ *os.File }

func (f *file) Send(_ context.Context, lines []byte) error {
	_, err := f.Write(lines)
	return err
}

// Command starts a shell's command line, whose standard input gets the lines. It
// ends when that ends; Close waits for it, not longer than five seconds. Errors:
// Invalid.
func Command(line string) (Sink, error) {
	cmd := exec.Command("/bin/sh", "-c", line) //nolint:noctx // it ends with its input, and Close sees to it
	in, err := cmd.StdinPipe()
	if err == nil {
		cmd.Stderr = os.Stderr
		err = cmd.Start()
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "a program for changes: %w", err).WithHint("set CAISSON_CHANGES_COMMAND to a command line")
	}
	return &writer{w: bufio.NewWriter(in), close: func() error {
		_ = in.Close() // it may have gone
		slow := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer slow.Stop()
		return cmd.Wait()
	}}, nil
}

// patience bounds one request, and the end of a program.
const patience = 5 * time.Second

// Webhook posts lines to a server, as application/x-ndjson. With a secret,
// X-Caisson-Signature is "sha256=" and the HMAC in hex of X-Caisson-Timestamp, a
// dot, and the body. Anything but 2xx is a failure. Redirects are not followed
// and no proxy is used; http is refused unless plain. Errors: Invalid.
func Webhook(address string, secret []byte, plain bool) (Sink, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !plain) {
		return nil, sandbox.Errorf(sandbox.Invalid, "%q is not the address of a webhook", address).
			WithHint("set CAISSON_CHANGES_WEBHOOK to an https address; CAISSON_CHANGES_WEBHOOK_PLAIN=1 allows http")
	}
	return &hook{address: u.String(), secret: secret, client: &http.Client{
		Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{MaxResponseHeaderBytes: 64 << 10},
	}}, nil
}

type hook struct {
	address string
	secret  []byte
	client  *http.Client
}

func (h *hook) Send(ctx context.Context, lines []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address, bytes.NewReader(lines))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("X-Caisson-Timestamp", at)
	if len(h.secret) > 0 {
		mac := hmac.New(sha256.New, h.secret)
		mac.Write(append([]byte(at+"."), lines...))
		req.Header.Set("X-Caisson-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection is used again
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return sandbox.Errorf(sandbox.Unavailable, "the webhook for changes answered %s", res.Status)
	}
	return nil
}

func (h *hook) Close() error { h.client.CloseIdleConnections(); return nil }
