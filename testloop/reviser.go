package testloop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// mostRevision bounds what a reviser may answer.
const mostRevision = 8 << 20

// DefaultReviseTimeout bounds one answer of a reviser.
const DefaultReviseTimeout = 5 * time.Minute

// CommandReviser is a program of this host that gets a [Request] as JSON on
// standard input and answers with a [Revision] on standard output.
type CommandReviser struct {
	// Line is the program and its arguments, separated by spaces; no shell is
	// between.
	Line string
	// Timeout bounds one answer. 0 is [DefaultReviseTimeout].
	Timeout time.Duration
}

// Revise implements [Reviser]. Errors: Invalid for an answer that is none,
// Unavailable for a program that fails, TimedOut.
func (c CommandReviser) Revise(ctx context.Context, r Request) (Revision, error) {
	argv := strings.Fields(c.Line)
	if len(argv) == 0 {
		return Revision{}, sandbox.Errorf(sandbox.Invalid, "the reviser has no name").WithHint("name a program")
	}
	question, err := json.Marshal(r)
	if err != nil {
		return Revision{}, fmt.Errorf("write the reviser's input: %w", err)
	}
	limit, cancel := reviseLimit(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limit, argv[0], argv[1:]...)
	out, errs := &bounded{most: mostRevision}, &bounded{most: 4 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(question), out, errs, time.Second
	if err := cmd.Run(); err != nil {
		if limit.Err() != nil {
			return Revision{}, late(ctx, "the reviser "+argv[0])
		}
		return Revision{}, sandbox.Errorf(sandbox.Unavailable, "the reviser %s: %w%s", argv[0], err, tail(errs.kept.String())).WithHint("run it by hand with the JSON of a request")
	}
	if out.over {
		return Revision{}, sandbox.Errorf(sandbox.Invalid, "the reviser answered with more than %s", sandbox.Bytes(mostRevision).Human())
	}
	return readRevision(out.kept.Bytes())
}

func reviseLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		limit = DefaultReviseTimeout
	}
	return context.WithTimeout(ctx, limit)
}

// late is the error of an answer that did not come.
func late(ctx context.Context, who string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return sandbox.Errorf(sandbox.TimedOut, "%s did not answer in time", who).WithHint("give it more time, or less to do")
}

// readRevision reads an answer: one JSON object.
func readRevision(b []byte) (Revision, error) {
	var r Revision
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil || r.Files == nil {
		return r, sandbox.Errorf(sandbox.Invalid, "the reviser's answer is not {\"files\": {name: text}}").WithHint("it has to print one JSON object and nothing else")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, sandbox.Errorf(sandbox.Invalid, "the reviser's answer has more than one object").WithHint("it has to print one JSON object and nothing else")
	}
	return r, nil
}

// bounded keeps what is written, up to a bound.
type bounded struct {
	kept bytes.Buffer // not embedded: it would read by itself, without a bound
	most int
	over bool
}

// Write implements [io.Writer].
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.most-b.kept.Len())
	b.over = b.over || n < len(p)
	_, _ = b.kept.Write(p[:n]) // a buffer never fails
	return len(p), nil
}

// ChatReviser asks a chat model at an endpoint that speaks as OpenAI's does.
type ChatReviser struct {
	// URL is the endpoint's base, such as http://localhost:8080/v1.
	URL, Model string
	Key        string // "" sends none
	// Timeout bounds one answer. 0 is [DefaultReviseTimeout].
	Timeout time.Duration
	// Client makes the requests; nil is one that follows no redirect, which would
	// hand on the key.
	Client *http.Client
}

// attempts is how often an endpoint is asked that is busy or fails.
const attempts = 3

const chatPrompt = `You mend a program so that its tests pass. You get one JSON object: the task, the files of the solution, and the tests that fail.
Answer with one JSON object and nothing else: {"files": {"name": "the whole new text"}, "note": "what you changed"}. Leave out files that stay.`

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Revise implements [Reviser]. Errors: Invalid for an answer that is none, Denied
// for a key that is not taken, Unavailable, TimedOut.
func (c ChatReviser) Revise(ctx context.Context, r Request) (Revision, error) {
	question, err := json.Marshal(r)
	if err != nil {
		return Revision{}, fmt.Errorf("write the request: %w", err)
	}
	body, err := json.Marshal(map[string]any{"model": c.Model, "messages": []chatMessage{{"system", chatPrompt}, {"user", string(question)}}})
	if err != nil {
		return Revision{}, fmt.Errorf("write the request: %w", err)
	}
	limit, cancel := reviseLimit(ctx, c.Timeout)
	defer cancel()
	for n := 1; ; n++ {
		said, again, err := c.ask(limit, body)
		if err == nil {
			return readRevision([]byte(unfenced(said)))
		}
		if limit.Err() != nil {
			return Revision{}, late(ctx, "the endpoint "+c.URL)
		}
		if !again || n == attempts {
			return Revision{}, err
		}
		select {
		case <-time.After(time.Duration(n) * 250 * time.Millisecond):
		case <-limit.Done():
		}
	}
}

// ask makes one request; again says that another may do better.
func (c ChatReviser) ask(ctx context.Context, body []byte) (said string, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.URL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", false, sandbox.Errorf(sandbox.Invalid, "the endpoint: %w", err).WithHint("give its base, such as http://localhost:8080/v1")
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	client := c.Client
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	res, err := client.Do(req)
	if err != nil {
		return "", true, sandbox.Errorf(sandbox.Unavailable, "the endpoint: %w", err).WithHint("see that it runs at %s", c.URL)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, mostRevision+1))
	switch {
	case err != nil:
		return "", true, sandbox.Errorf(sandbox.Unavailable, "read the endpoint's answer: %w", err)
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return "", false, sandbox.Errorf(sandbox.Denied, "the endpoint does not take the key: %s", res.Status).WithHint("set CAISSON_REVISER_KEY")
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		return "", true, sandbox.Errorf(sandbox.Unavailable, "the endpoint: %s", res.Status).WithHint("try again later")
	case res.StatusCode != http.StatusOK:
		return "", false, sandbox.Errorf(sandbox.Invalid, "the endpoint: %s%s", res.Status, tail(string(b)))
	case len(b) > mostRevision:
		return "", false, sandbox.Errorf(sandbox.Invalid, "the endpoint answered with more than %s", sandbox.Bytes(mostRevision).Human())
	}
	var answer struct {
		Choices []struct {
			Message chatMessage `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(b, &answer) != nil || len(answer.Choices) == 0 {
		return "", false, sandbox.Errorf(sandbox.Invalid, "the endpoint's answer is no chat completion").WithHint("see that %s speaks as OpenAI's chat does", c.URL)
	}
	return answer.Choices[0].Message.Content, false, nil
}

// unfenced is what stands in the first fenced block of a text, or all of it.
func unfenced(text string) string {
	_, after, found := strings.Cut(text, "```")
	if !found {
		return text
	}
	_, after, _ = strings.Cut(after, "\n")
	inside, _, _ := strings.Cut(after, "```")
	return inside
}
