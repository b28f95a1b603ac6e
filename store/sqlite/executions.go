package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// executions submits, moves and forgets.
func (m *maker) executions(ctx context.Context, c sandbox.Transaction) error {
	if c.SubmitExecution != nil {
		if err := m.submit(ctx, c.SubmitExecution); err != nil {
			return err
		}
	}
	if c.MoveExecution != nil {
		if err := m.moveExecution(ctx, c.MoveExecution); err != nil {
			return err
		}
	}
	if !c.ForgetExecutions.IsZero() {
		if _, err := m.exec(ctx, "DELETE FROM executions WHERE expires > 0 AND expires < ? AND callback <> ?", c.ForgetExecutions.UnixMilli(), string(sandbox.CallbackPending)); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) submit(ctx context.Context, s *sandbox.Submission) error {
	e := s.Execution
	request, err := encode(s.Options)
	if err != nil {
		return err
	}
	run, err := encode(e.Run)
	if err != nil {
		return err
	}
	data, callback, _, err := executionData(e)
	if err != nil {
		return err
	}
	if err := m.roomInQueue(ctx, s, int64(len(request))); err != nil {
		return err
	}
	n, err := m.exec(ctx, `INSERT INTO executions (id, owner, state, session, callback, expires, data, run, result, request, size)
		VALUES (?, ?, ?, ?, ?, 0, ?, ?, '', ?, ?) ON CONFLICT DO NOTHING`,
		string(e.ID), e.Owner, string(e.State), e.Session, callback, data, run, request, len(request))
	if err == nil && n == 0 {
		err = sandbox.Errorf(sandbox.Conflict, "execution %s exists", e.ID.Short())
	}
	return err
}

// roomInQueue refuses one for which there is none.
func (m *maker) roomInQueue(ctx context.Context, s *sandbox.Submission, size int64) error {
	var all, own, bytes int64
	err := m.tx.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE owner = ?), coalesce(sum(size), 0) FROM executions WHERE state = 'queued'",
		s.Execution.Owner).Scan(&all, &own, &bytes)
	switch {
	case err != nil:
		return m.s.class(err, "read the queue")
	case s.MostOf > 0 && own >= int64(s.MostOf):
		return sandbox.Errorf(sandbox.Exhausted, "%d executions of this owner are queued, and no more may be", own).
			WithHint("wait until some have ended, or cancel some: caisson execution list --state queued")
	case s.Most > 0 && all >= int64(s.Most):
		return sandbox.Errorf(sandbox.Exhausted, "the queue is full: %d executions wait", all).
			WithHint("submit it again later; whoever runs the server can raise CAISSON_EXECUTIONS_WORKERS or CAISSON_EXECUTIONS_QUEUE")
	case s.Bytes > 0 && bytes+size > int64(s.Bytes):
		return sandbox.Errorf(sandbox.Exhausted, "the queue is full: what waits has %s of code and files", sandbox.Bytes(bytes).Human()).
			WithHint("submit it again later, or put large files into a session first")
	}
	return nil
}

func (m *maker) moveExecution(ctx context.Context, mv *sandbox.ExecutionMove) error {
	e := mv.To
	data, callback, result, err := executionData(e)
	if err != nil {
		return err
	}
	expires := int64(0)
	if !e.Expires.IsZero() {
		expires = e.Expires.UnixMilli()
	}
	set, args := "state = ?, callback = ?, expires = ?, data = ?", []any{string(e.State), callback, expires, data}
	if e.Result != nil {
		set, args = set+", result = ?", append(args, result)
	}
	if mv.Options != nil {
		request, err := encode(*mv.Options)
		if err != nil {
			return err
		}
		set, args = set+", request = ?, size = ?", append(args, request, len(request))
	}
	args = append(args, string(e.ID))
	where := "id = ? AND state IN (?" + strings.Repeat(", ?", len(mv.From)-1) + ")"
	for _, st := range mv.From {
		args = append(args, string(st))
	}
	if mv.CallbackFrom != "" {
		where, args = where+" AND callback = ?", append(args, string(mv.CallbackFrom))
	}
	n, err := m.exec(ctx, "UPDATE executions SET "+set+" WHERE "+where, args...)
	if err == nil && n == 0 {
		err = sandbox.Errorf(sandbox.Conflict, "execution %s has moved on", e.ID.Short())
	}
	return err
}

// executionData is what is kept of an execution beside its run.
func executionData(e sandbox.Execution) (data, callback, result string, err error) {
	if e.Callback != nil {
		callback = string(e.Callback.State)
	}
	if e.Result != nil {
		if result, err = encode(e.Result); err != nil {
			return "", "", "", err
		}
	}
	e.Run, e.Result = nil, nil
	data, err = encode(e)
	return data, callback, result, err
}

// Execution returns one, whole. Errors: NotFound.
func (s *Store) Execution(ctx context.Context, id sandbox.ID) (sandbox.Execution, error) {
	var e sandbox.Execution
	data, run, result := "", "", ""
	if err := s.readExecution(ctx, "data, run, result", id, &data, &run, &result); err != nil {
		return e, err
	}
	err := json.Unmarshal([]byte(data), &e)
	if err == nil {
		err = json.Unmarshal([]byte(run), &e.Run)
	}
	if err == nil && result != "" {
		err = json.Unmarshal([]byte(result), &e.Result)
	}
	return e, s.class(err, "read an execution")
}

// ExecutionOptions returns what was submitted, with its secrets, as far as that is
// still needed. Errors: NotFound.
func (s *Store) ExecutionOptions(ctx context.Context, id sandbox.ID) (sandbox.ExecutionOptions, error) {
	var o sandbox.ExecutionOptions
	var request []byte
	if err := s.readExecution(ctx, "request", id, &request); err != nil {
		return o, err
	}
	return o, s.class(json.Unmarshal(request, &o), "read an execution")
}

func (s *Store) readExecution(ctx context.Context, columns string, id sandbox.ID, into ...any) error {
	if err := s.usable(); err != nil {
		return err
	}
	err := s.read.QueryRowContext(ctx, "SELECT "+columns+" FROM executions WHERE id = ?", string(id)).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return sandbox.Errorf(sandbox.NotFound, "no execution %s", id.Short()).WithHint("see them with: caisson execution list; what has expired is forgotten")
	}
	return s.class(err, "read an execution")
}

// Executions returns those that a filter selects, the newest first, without their
// runs and results.
func (s *Store) Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, error) {
	var c conditions
	if len(f.States) > 0 {
		states := make([]any, len(f.States))
		for i, st := range f.States {
			states[i] = string(st)
		}
		c.add("state IN (?"+strings.Repeat(", ?", len(states)-1)+")", states...)
	}
	if f.Session != "" {
		c.add("session = ?", f.Session)
	}
	if f.Callback != "" {
		c.add("callback = ?", string(f.Callback))
	}
	c.of(f.Owner, f.Labels)
	if f.After != "" {
		c.add("seq < (SELECT seq FROM executions WHERE id = ?)", string(f.After))
	}
	return listOf[sandbox.Execution](ctx, s, "SELECT data FROM executions"+c.where()+" ORDER BY seq DESC"+limit(f.Limit), c.args)
}

// Queued returns the executions that wait and were submitted after another, the
// oldest first.
func (s *Store) Queued(ctx context.Context, after int64) ([]sandbox.QueuedExecution, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, s.class(err, "read the queue")
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	list, err := query(ctx, tx, "SELECT seq, id, owner FROM executions WHERE state = 'queued' AND seq > ? ORDER BY seq", []any{after},
		func(rows *sql.Rows) (q sandbox.QueuedExecution, err error) {
			return q, rows.Scan(&q.Seq, &q.ID, &q.Owner)
		})
	return list, s.class(err, "read the queue")
}
