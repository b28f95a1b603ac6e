package client

import (
	"context"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Starts says what becomes of what an exec starts while it runs.
type Starts struct {
	// Ask has those that the agent cannot decide asked about by its [Judge]; without
	// one they are refused. Otherwise all pass, and are told.
	Ask bool
	// End ends the exec at the first that is refused. Otherwise that fails alone.
	End bool
	// Variables are those that make programs load or run something, by name; a
	// trailing * is a prefix.
	Variables []string
	// Rules names what the answers follow from.
	Rules string
	// Call, where set, is called once it has to have its [Judge], on a goroutine of its
	// own. Where that was not, [Outcome].Told is all that there is to tell.
	Call func()
}

// Start is a program that is about to replace a process of an exec. What it says is
// the agent's word, which may be in the hands of what it runs.
type Start struct {
	N           uint64 // of the exec's starts, from 1; numbers may be missing
	PID, Parent int    // in the sandbox
	At          time.Duration
	Path        string   // as it was asked for, absolute
	File        string   // what that leads to
	Argv        []string // with Env, cut where Cut is set
	Env         []string // of [Starts].Variables, where the exec itself has them otherwise
	Dir         string
	Cut         bool
	// Own says that users of the sandbox can write the file: then SHA256 is its
	// digest, Native whether it is machine code, and Script its bytes where it is not
	// and they are not too many.
	Own    bool
	SHA256 []byte
	Size   int64
	Native bool
	Script []byte
	// Asks says that it waits for a [Verdict]; Refused why the agent refused it.
	Asks    bool
	Refused string
	// LeftOut, where N is 0, counts those that were let pass and not told, since the
	// last one without a number.
	LeftOut int
	// End is how start N ended. A [Judge] is told it by itself, once it has been told of
	// the start: then nothing else is set.
	End *StartEnd
}

// CallsTools reports whether it is the program by which shells call tools, whose every
// call is judged by itself.
func (s Start) CallsTools() bool {
	return !s.Own && s.File == wire.AgentPath && len(s.Argv) > 0 && path.Base(s.Argv[0]) == wire.ToolProgram
}

// StartEnd is how a program ended that an exec started.
type StartEnd struct {
	At       time.Duration // since the exec began
	Code     *int          // as a shell gives it; nil where that is not known
	Signal   int
	Replaced bool // its process became another program, and did not end
}

// Verdict answers a Start: see [wire.Verdict].
type Verdict struct {
	Allow, Same, Any, Hold bool
	Cause                  string
}

// JudgeConfig says how an exec's starts are judged.
type JudgeConfig struct {
	// Rules names what the answers follow from, from now on.
	Rules string
	// Again takes the place of a judge that has gone, or goes, of an exec that runs: the
	// first Start has no number and the exec's Env, a second one says that the place is
	// its. Errors of [Judge.Next] are then NotFound too.
	Again bool
}

// Judge hears what an exec starts. Next is for one goroutine, Answer for any. Its owner
// closes it.
type Judge struct {
	s *yamux.Stream
	r *wire.Reader

	mu   sync.Mutex // held by who writes
	over bool
}

// Judge opens a judge of an exec, which may not have begun. Where that has one, this one
// waits until it has gone. Errors: Unavailable.
func (c *Client) Judge(ctx context.Context, id sandbox.ID, cfg JudgeConfig) (*Judge, error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpJudge, Judge: &wire.Judge{ID: string(id), Rules: cfg.Rules, Again: cfg.Again}})
	if err != nil {
		return nil, err
	}
	return &Judge{s: s, r: wire.NewReader(s)}, nil
}

// Next waits for the next start. Its error is the end: of the exec, the judge, or the
// connection.
func (j *Judge) Next() (Start, error) {
	f, err := j.r.Next()
	switch {
	case err != nil:
		return Start{}, broken("hear what an exec starts", err)
	case f.Type == wire.TypeFailure:
		return Start{}, failure(f)
	case f.Type != wire.TypeStart:
		return Start{}, broken("hear what an exec starts", fmt.Errorf("%w: type %d", wire.ErrFrame, f.Type))
	}
	var w wire.Start
	if err := f.Message(&w); err != nil {
		return Start{}, broken("hear what an exec starts", err)
	}
	s, err := checkedStart(&w)
	if err != nil {
		return s, broken("hear what an exec starts", err)
	}
	return s, nil
}

func checkedStart(w *wire.Start) (Start, error) {
	if len(w.Argv) > wire.MaxStartArgs || len(w.Env) > wire.MaxStartArgs || len(w.Script) > wire.MaxStartScript || len(w.SHA256) > 64 {
		return Start{}, fmt.Errorf("%w: a start too large", wire.ErrFrame)
	}
	if w.End != nil {
		return Start{N: w.N, End: endOf(w.End)}, nil
	}
	return startOf(w), nil
}

func startOf(w *wire.Start) Start {
	return Start{
		N: w.N, PID: w.PID, Parent: w.Parent, At: micros(w.AtUS), Path: string(w.Path), File: string(w.File), Argv: texts(w.Argv),
		Env: texts(w.Env), Dir: string(w.Dir), Cut: w.Cut, Own: w.Own, SHA256: w.SHA256, Size: max(w.Size, 0), Native: w.Native,
		Script: w.Script, LeftOut: max(w.LeftOut, 0), Asks: w.Asks, Refused: w.Refused[:min(len(w.Refused), 256)], End: endOf(w.End),
	}
}

func endOf(e *wire.StartEnd) *StartEnd {
	if e == nil {
		return nil
	}
	return &StartEnd{At: micros(e.AtUS), Code: e.Code, Signal: e.Signal, Replaced: e.Replaced}
}

func texts(names []wire.Name) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return all
}

// Answer tells the agent about start n. One that is gone needs no answer.
func (j *Judge) Answer(n uint64, v Verdict) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return wire.WriteMessage(j.s, wire.TypeVerdict, wire.Verdict{N: n, Allow: v.Allow, Same: v.Same, Any: v.Any, Hold: v.Hold, Cause: v.Cause[:min(len(v.Cause), 256)]})
}

// Mark asks for a Start without a number, behind all that is to tell before it.
func (j *Judge) Mark() error { return j.Answer(0, Verdict{}) }

// Finish asks for what is not told yet: [Judge.Next] gets that, and then the end. An
// exec that goes on has no judge from then on.
func (j *Judge) Finish() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.over {
		j.over = true
		_ = j.s.SetReadDeadline(time.Now().Add(answerPatience)) // never fails on a stream
		_ = wire.WriteFrame(j.s, wire.TypeDataEnd, nil)         // where it fails, the reader ends too
	}
}

// Close ends the judge.
func (j *Judge) Close() error {
	_ = j.s.SetDeadline(time.Unix(1, 0)) // frees who hears and who answers
	return j.s.Close()
}
