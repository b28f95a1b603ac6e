package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// CommandConfig names a program that answers questions.
type CommandConfig struct {
	// Line is the program and its arguments, separated by spaces; no shell is
	// between.
	Line string
	// Timeout bounds one answer; 0 is that of the question.
	Timeout time.Duration
}

// mostAnswer bounds what a program or a server may answer.
const mostAnswer = 64 << 10

// reply is what an approver answers, as one JSON object.
type reply struct {
	Approve *bool  `json:"approve"`
	Always  bool   `json:"always"`
	By      string `json:"by"`
	Note    string `json:"note"`
}

// answer reads a reply. What is not clearly an answer is none.
func answer(b []byte, via, by string) (sandbox.ApprovalAnswer, error) {
	var r reply
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil || r.Approve == nil {
		return sandbox.ApprovalAnswer{}, sandbox.Errorf(sandbox.Invalid, "the answer of the %s is not {\"approve\": true or false}", via)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return sandbox.ApprovalAnswer{}, sandbox.Errorf(sandbox.Invalid, "the answer of the %s has more than one object", via)
	}
	if r.By != "" {
		by = r.By
	}
	return sandbox.ApprovalAnswer{Approve: *r.Approve, Always: r.Always && *r.Approve, By: by, Via: via, Note: r.Note}, nil
}

// Command makes an asker of a program: it gets the question as JSON on standard
// input, and answers with {"approve": true} or false, and optionally "always",
// "by" and "note", on standard output. Another exit code than 0, another
// output, or none in time is no approval. Errors: Invalid.
func Command(c CommandConfig) (sandbox.Asker, error) {
	argv := strings.Fields(c.Line)
	if len(argv) == 0 {
		return nil, sandbox.Errorf(sandbox.Invalid, "the approver has no name").WithHint("set CAISSON_APPROVER to a program")
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "the approver: %w", err).WithHint("set CAISSON_APPROVER to the path of a program")
	}
	return func(ctx context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
		if c.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.Timeout)
			defer cancel()
		}
		question, err := json.Marshal(a)
		if err != nil {
			return sandbox.ApprovalAnswer{}, err
		}
		cmd := exec.CommandContext(ctx, path, argv[1:]...)
		cmd.Stdin = bytes.NewReader(question)
		out := &bounded{most: mostAnswer}
		cmd.Stdout = out
		cmd.WaitDelay = time.Second
		if err := cmd.Run(); err != nil {
			return sandbox.ApprovalAnswer{}, sandbox.Errorf(sandbox.Unavailable, "the approver %s: %w", argv[0], err)
		}
		return answer(out.b, "command", argv[0])
	}, nil
}

// bounded keeps what is written to it, up to a bound; more is an error.
type bounded struct {
	b    []byte
	most int
}

func (w *bounded) Write(p []byte) (int, error) {
	if len(w.b)+len(p) > w.most {
		return 0, errors.New("the answer is too long")
	}
	w.b = append(w.b, p...)
	return len(p), nil
}
