package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// approvals writes questions and moves them on.
func (m *maker) approvals(ctx context.Context, c sandbox.Transaction) error {
	if c.AskApproval != nil {
		a := new(*c.AskApproval)
		if err := m.ownerOf(ctx, a.Session, &a.Owner); err != nil {
			return err
		}
		text, err := encode(a)
		if err != nil {
			return err
		}
		n, err := m.exec(ctx, "INSERT INTO approvals (id, digest, state, asked, data, over, size, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			string(a.ID), a.Digest, string(a.State), a.Asked.UTC().Format(time.RFC3339Nano), text, overAt(a), len(text)+overhead, a.Owner)
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.Conflict, "question %s exists", a.ID.Short())
		}
		if strings.HasPrefix(string(a.ID), "0") { // one of sixteen, whoever asks
			if _, err := m.dropQuestions(ctx, 0, maxQuestions, maxQuestionBytes); err != nil {
				return err
			}
		}
	}
	if mv := c.MoveApproval; mv != nil {
		text, err := encode(mv.To)
		if err != nil {
			return err
		}
		n, err := m.exec(ctx, "UPDATE approvals SET state = ?, data = ?, over = ?, size = ? WHERE id = ? AND state = ?",
			string(mv.To.State), text, overAt(&mv.To), len(text)+overhead, string(mv.To.ID), string(mv.From))
		if err != nil {
			return err
		}
		if n == 0 {
			return sandbox.Errorf(sandbox.Conflict, "question %s is not %s any more", mv.To.ID.Short(), mv.From)
		}
	}
	return nil
}

// Approval returns one question. Errors: NotFound.
func (s *Store) Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error) {
	var a sandbox.Approval
	if err := s.usable(); err != nil {
		return a, err
	}
	var text string
	err := s.read.QueryRowContext(ctx, "SELECT data FROM approvals WHERE id = ?", string(id)).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return a, sandbox.Errorf(sandbox.NotFound, "no question %s", id.Short()).WithHint("see them with: caisson approvals list")
	}
	if err != nil {
		return a, s.class(err, "read a question")
	}
	return a, decodeApproval(text, &a)
}

func decodeApproval(text string, a *sandbox.Approval) error {
	if err := json.Unmarshal([]byte(text), a); err != nil {
		return sandbox.Errorf(sandbox.Internal, "read a question: %w", err)
	}
	return nil
}

// Approvals returns the questions that a filter selects, the newest first.
func (s *Store) Approvals(ctx context.Context, f sandbox.ApprovalFilter) ([]sandbox.Approval, error) {
	var c conditions
	if f.Digest != "" {
		c.add("digest = ?", f.Digest)
	}
	if len(f.States) > 0 {
		states := make([]any, len(f.States))
		for i, st := range f.States {
			states[i] = string(st)
		}
		c.add("state IN (?"+strings.Repeat(", ?", len(states)-1)+")", states...)
	}
	c.of(f.Owner, f.Labels)
	c.behind("approvals", "id", "asked", f.After)
	return listOf[sandbox.Approval](ctx, s, "SELECT data FROM approvals"+c.where()+" ORDER BY asked DESC, id"+limit(f.Limit), c.args)
}
