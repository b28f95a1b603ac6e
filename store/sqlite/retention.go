package sqlite

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// overhead is what a row takes beside its data: names, times, hashes.
const overhead = 200

// Bounds of the questions that are over: older ones are forgotten, now and then.
// The audit keeps that they were asked, and what was answered.
const (
	maxQuestions     = 10_000
	maxQuestionBytes = 128 << 20
)

// questionRest is how long a question stays after it is over: who asked it may
// still look for its answer.
const questionRest = time.Minute

// overAt is the second from which on a question is of no use, and 0 for one that
// holds until it is taken back.
func overAt(a *sandbox.Approval) int64 {
	switch a.State {
	case sandbox.ApprovalApproved:
		if a.Always {
			return 0
		}
		return a.Expires.Unix()
	case sandbox.ApprovalPending:
		return a.Expires.Unix()
	case sandbox.ApprovalDenied, sandbox.ApprovalExpired, sandbox.ApprovalWithdrawn, sandbox.ApprovalUsed:
	}
	if a.Answered.IsZero() {
		return a.Asked.Unix()
	}
	return a.Answered.Unix()
}

// dropQuestions drops those that are over: all older than an age, and the oldest
// beyond a number and a size. 0 is no bound.
func (m *maker) dropQuestions(ctx context.Context, age time.Duration, most, bytes int64) (int64, error) {
	const none = 1 << 62
	now := time.Now()
	cut := int64(-1)
	if age > 0 {
		cut = now.Add(-max(age, questionRest)).Unix()
	}
	if most <= 0 {
		most = none
	}
	if bytes <= 0 {
		bytes = none
	}
	return m.exec(ctx, `DELETE FROM approvals WHERE id IN (SELECT id FROM
		(SELECT id, over, row_number() OVER newest AS n, sum(size) OVER newest AS bytes FROM approvals
			WHERE over > 0 AND over < ? WINDOW newest AS (ORDER BY over DESC, id))
		WHERE over < ? OR n > ? OR bytes > ?)`, now.Add(-questionRest).Unix(), cut, most, bytes)
}

// Sizes tells how much there is of what grows.
func (s *Store) Sizes(ctx context.Context) ([]sandbox.StateSize, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	var sizes []sandbox.StateSize
	for _, q := range [...]struct{ what, query string }{
		{"events", "SELECT count(*), coalesce(sum(octet_length(data)), 0) FROM events"},
		{"questions", "SELECT count(*), coalesce(sum(size), 0) FROM approvals"},
		{"execs", "SELECT count(*), coalesce(sum(octet_length(data)), 0) FROM execs"},
		{"executions", "SELECT count(*), coalesce(sum(octet_length(data) + octet_length(run) + octet_length(result) + size), 0) FROM executions"},
	} {
		n := sandbox.StateSize{What: q.what}
		if err := s.read.QueryRowContext(ctx, q.query).Scan(&n.Count, &n.Bytes); err != nil {
			return nil, s.class(err, "measure the state")
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}
