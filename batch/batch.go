// Package batch carries out many requests that come as JSON lines, some at once,
// and hands on what comes of each: [Batch] does so for requests of any kind,
// [Runs] for runs in sandboxes of their own. A line that is wrong costs no other.
//
// It starts nothing itself: what a line asks for is done by who makes the batch.
package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// Name is the id of a line: a text, or a number as it is written.
type Name string

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Name) UnmarshalJSON(b []byte) error {
	var number json.Number
	if json.Unmarshal(b, &number) == nil && len(b) > 0 && b[0] != '"' {
		*n = Name(number)
		return nil
	}
	return json.Unmarshal(b, (*string)(n))
}

// NameOfLine is the name of a line that has none of its own.
func NameOfLine(number int) Name { return Name(fmt.Sprintf("line %d", number)) }

// Batch carries out requests of one kind, each read from a line.
type Batch[I, O any] struct {
	// Workers bounds how many are carried out at once. It is at least 1.
	Workers int
	// Ordered hands on what comes of lines in the order of the lines. Who is ahead
	// then waits for who is slow, [window] lines for each worker behind at most.
	Ordered bool
	// Read reads a line. The name that it returns is used beside an error too; ""
	// is [NameOfLine].
	Read func(line []byte) (Name, I, error)
	// Do carries one out. It is called by several goroutines.
	Do func(ctx context.Context, in I) (O, error)
	// Skip says which are not carried out. nil is none.
	Skip func(name Name) bool
}

// Done is what came of a line.
type Done[O any] struct {
	Name Name
	Line int // its number, from 1
	Out  O
	Err  error
}

// window is how many lines for each worker may have ended before an earlier one.
const window = 16

// job is a line that is to be carried out, and where what comes of it goes.
type job[I, O any] struct {
	is Done[O]
	in I
	to chan<- Done[O]
}

// Run carries out what lines ask for and hands each on to done as it ends, one at
// a time. Errors: those of lines, but for [ErrLongLine], which is of one line; those of
// done; and the context's cause once it is over, after all that ran was ended. What
// was cut off then is not handed on.
func (b Batch[I, O]) Run(ctx context.Context, lines iter.Seq2[[]byte, error], done func(Done[O]) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo, ended := make(chan job[I, O]), make(chan Done[O])
	var workers sync.WaitGroup
	for range b.Workers {
		workers.Go(func() {
			for j := range todo {
				j.is.Out, j.is.Err = b.Do(ctx, j.in)
				if ctx.Err() != nil {
					return // it was cut off
				}
				select {
				case j.to <- j.is:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	q := queue[I, O]{todo: todo, ended: ended}
	if b.Ordered {
		q.turns = make(chan chan Done[O], window*b.Workers)
		workers.Go(func() { q.inTurn(ctx) })
	}
	workers.Go(func() {
		defer q.close()
		if err := b.feed(ctx, lines, q); err != nil {
			cancel(err)
		}
	})
	go func() { workers.Wait(); close(ended) }()
	for d := range ended {
		if ctx.Err() != nil {
			continue
		}
		if err := done(d); err != nil {
			cancel(err)
		}
	}
	return context.Cause(ctx)
}

// queue is where lines go: to the workers, or past them.
type queue[I, O any] struct {
	todo  chan<- job[I, O]
	ended chan<- Done[O]
	// turns has a channel for each line that is not handed on yet, in order. nil is
	// that the order is that of their ends.
	turns chan chan Done[O]
}

func (q queue[I, O]) close() {
	close(q.todo)
	if q.turns != nil {
		close(q.turns)
	}
}

// inTurn hands on what comes of lines, each after the one before.
func (q queue[I, O]) inTurn(ctx context.Context) {
	for turn := range q.turns {
		select {
		case d := <-turn:
			select {
			case q.ended <- d:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// put hands a line to the workers, or where it has an error, past them. It returns
// false once ctx is over.
func (q queue[I, O]) put(ctx context.Context, is Done[O], in I) bool {
	to := q.ended
	if q.turns != nil {
		turn := make(chan Done[O], 1)
		select {
		case q.turns <- turn:
		case <-ctx.Done():
			return false
		}
		to = turn
	}
	if is.Err != nil {
		select {
		case to <- is:
			return true
		case <-ctx.Done():
			return false
		}
	}
	select {
	case q.todo <- job[I, O]{is, in, to}:
		return true
	case <-ctx.Done():
		return false
	}
}

// feed reads lines and hands them out.
func (b Batch[I, O]) feed(ctx context.Context, lines iter.Seq2[[]byte, error], q queue[I, O]) error {
	seen, number := map[Name]bool{}, 0
	for line, err := range lines {
		number++
		if err != nil && !errors.Is(err, ErrLongLine) {
			return err
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		is := Done[O]{Line: number, Err: err}
		var in I
		if err == nil {
			is.Name, in, is.Err = b.Read(line)
		}
		if is.Name == "" {
			is.Name = NameOfLine(number)
		}
		switch {
		case is.Err != nil:
		case seen[is.Name]:
			is.Err = sandbox.Errorf(sandbox.Invalid, "line %d has the id of a line before", number).WithHint("give each line an id of its own")
		default:
			seen[is.Name] = true
			if b.Skip != nil && b.Skip(is.Name) {
				continue
			}
		}
		if !q.put(ctx, is, in) {
			return nil
		}
	}
	return nil
}

// Decode reads a line of one JSON object that has no fields but those of v.
func Decode(line []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, rest := dec.Token(); !errors.Is(rest, io.EOF) {
		return errors.New("more than one object")
	}
	return nil
}
