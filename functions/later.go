package functions

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// A call that nobody waits for is a letter in the store until it begins: a server that
// dies before that leaves it to the next one, and none begins twice.

// laterTo is whom such letters are to.
const laterTo = "functions"

const (
	mostLater    = 1000            // calls that wait
	mostAtOnce   = 256             // of them, in memory
	laterRest    = 2 * time.Second // how often calls of other processes are looked for
	laterHold    = time.Hour       // for how long a letter is ours once taken
	roomPause    = 5 * time.Second // until one that found no room, or no engine, is tried again
	laterForever = 6 * time.Hour   // after which it is given up
)

// laterCall is what such a letter holds.
type laterCall struct {
	RequestID string             `json:"request_id"`
	Owner     string             `json:"owner"`
	Name      string             `json:"name"`
	Access    sandbox.Access     `json:"access"`
	Call      sandbox.Invocation `json:"call"`
}

// later are the calls that nobody waits for, in the one process that makes them.
type later struct {
	kick chan struct{}
	ctx  context.Context
	stop context.CancelFunc

	mu       sync.Mutex
	accepted map[string]bool // by request, while they wait or run
	taken    map[int64]bool  // letters
}

// Start makes this the process that makes the calls that nobody waits for, until
// Close: those of the processes before it too. No other process of the store may.
func (fs *Functions) Start() {
	l := &later{kick: make(chan struct{}, 1), accepted: map[string]bool{}, taken: map[int64]bool{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed || fs.later != nil {
		l.stop()
		return
	}
	fs.later = l
	fs.tasks.Go(func() { fs.makeLater(l) })
}

// accept keeps a call until it can be made.
func (fs *Functions) accept(ctx context.Context, f sandbox.Function, call sandbox.Invocation) (sandbox.Invoked, error) {
	if len(call.Event) > int(sandbox.MaxLaterPayload) {
		return sandbox.Invoked{}, sandbox.Errorf(sandbox.Exhausted, "an event of more than %s for a call that nobody waits for", sandbox.MaxLaterPayload.Human()).
			WithHint("hand large data over as a file, or wait for the call")
	}
	who, done := sandbox.CallerFrom(ctx), sandbox.Invoked{RequestID: newRequestID(), Function: f.Name, Version: f.Version}
	call.Later, call.Function = false, f.Name
	body, err := json.Marshal(laterCall{RequestID: done.RequestID, Owner: who.Owner, Name: who.Name, Access: who.Access, Call: call})
	if err != nil {
		return sandbox.Invoked{}, sandbox.Errorf(sandbox.Invalid, "keep the call: %w", err)
	}
	fs.mu.Lock()
	l := fs.later
	fs.mu.Unlock()
	if l != nil && !l.admit(done.RequestID) {
		return sandbox.Invoked{}, sandbox.Errorf(sandbox.Exhausted, "%d calls wait already", mostLater).WithHint("call it later")
	}
	err = fs.cfg.Store.Apply(ctx, sandbox.Transaction{PostLetters: []sandbox.Letter{{To: laterTo, Body: body, Posted: time.Now().UTC()}}})
	if l != nil && err != nil {
		l.forget(done.RequestID)
	}
	if l != nil {
		l.wake()
	}
	return done, err
}

// admit counts a call, where there is room for one more.
func (l *later) admit(request string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.accepted) >= mostLater {
		return false
	}
	l.accepted[request] = true
	return true
}

func (l *later) forget(request string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accepted, request)
}

func (l *later) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// take marks a letter as being dealt with.
func (l *later) take(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[id] {
		return false
	}
	l.taken[id] = true
	return true
}

func (l *later) give(id int64) {
	l.mu.Lock()
	delete(l.taken, id)
	l.mu.Unlock()
	l.wake()
}

func (l *later) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return mostAtOnce - len(l.taken)
}

// makeLater makes the calls that wait, until l is stopped.
func (fs *Functions) makeLater(l *later) {
	tick := time.NewTicker(laterRest)
	defer tick.Stop()
	ahead := laterHold // what a process before this one had taken is due
	for {
		if most := l.room(); most > 0 {
			now := time.Now()
			letters, err := fs.cfg.Store.TakeLetters(l.ctx, laterTo, now.Add(ahead), now.Add(laterHold), most)
			if err != nil && l.ctx.Err() == nil {
				fs.cfg.Log.Warn("calls that wait cannot be read", "error", err)
			}
			if err == nil {
				ahead = 0
			}
			for _, letter := range letters {
				if l.take(letter.ID) {
					fs.tasks.Go(func() { fs.makeOne(l, letter) })
				}
			}
		}
		select {
		case <-l.ctx.Done():
			return
		case <-l.kick:
		case <-tick.C:
		}
	}
}

// makeOne makes one call. What has not begun waits for the next server, for room, or for
// the engine.
func (fs *Functions) makeOne(l *later, letter sandbox.Letter) {
	defer l.give(letter.ID)
	var c laterCall
	err := json.Unmarshal(letter.Body, &c)
	begun := false
	if err == nil {
		ctx := sandbox.WithCaller(l.ctx, sandbox.Caller{Owner: c.Owner, Name: c.Name, Access: c.Access})
		_, err = fs.invoke(ctx, c.Call, sandbox.Local{}, c.RequestID, func() error {
			err := fs.cfg.Store.Apply(ctx, sandbox.Transaction{DeleteLetters: []int64{letter.ID}})
			begun = err == nil
			return err
		})
	}
	if !begun && l.ctx.Err() != nil {
		return // it waits for the next server
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), latePatience)
	defer cancel()
	switch {
	case begun:
		l.forget(c.RequestID)
	case (errors.Is(err, sandbox.Exhausted) || errors.Is(err, sandbox.Unavailable)) && time.Since(letter.Posted) < laterForever:
		again := sandbox.LetterRetry{ID: letter.ID, Next: time.Now().Add(roomPause)}
		if err := fs.cfg.Store.Apply(late, sandbox.Transaction{RetryLetters: []sandbox.LetterRetry{again}}); err != nil {
			fs.cfg.Log.Warn("a call waits for longer than it should", "function", c.Call.Function, "error", err)
		}
		return
	default:
		l.forget(c.RequestID)
		err = errors.Join(err, fs.cfg.Store.Apply(late, sandbox.Transaction{DeleteLetters: []int64{letter.ID}}))
	}
	if err != nil {
		fs.cfg.Log.Warn("a call that nobody waited for", "function", c.Call.Function, "request", c.RequestID, "error", err)
	}
}
