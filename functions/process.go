package functions

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/internal/signed"
	"github.com/caisson-dev/caisson/sandbox"
)

//go:embed runner.py
var runnerPython string

//go:embed runner.cjs
var runnerNode string

// runners are the programs that serve calls, by language.
var runners = map[string]string{"python": runnerPython, "node": runnerNode}

// initPatience is how long a module may take to load, where a call may not take
// longer.
const initPatience = 10 * time.Second

// logPatience bounds the wait for what was printed before an answer.
const logPatience = 10 * time.Second

// mostLine bounds one line of a runner's: a value, which is escaped for no second
// time, and what stands around it.
const mostLine = int(sandbox.MaxPayload + sandbox.MiB)

// said is one line of a runner's.
type said struct {
	Kind  string                 `json:"kind"`
	Exec  string                 `json:"exec"` // of the one that it runs
	N     int                    `json:"n"`    // of the call
	Mark  int                    `json:"mark"`
	Peak  int64                  `json:"peak"`
	Value json.RawMessage        `json:"value"`
	Error *sandbox.FunctionError `json:"error"`
}

// What a runner says.
const (
	saidReady  = "ready" // the handler is there; before that it says that it runs
	saidValue  = "value"
	saidFailed = "failed" // the handler did; "broken" is that what it returned cannot be told
	saidEnding = "ending" // an error that the process does not outlive
)

// process is a runner in a session.
type process struct {
	cancel context.CancelFunc
	input  *io.PipeWriter
	heard  chan said
	log    *logged
	starts startLog
	exec   sandbox.ID

	over chan struct{} // closed once the fields below are set
	res  sandbox.Result
	err  error
}

// start starts a process for f in a session. Whatever becomes of ctx, it goes on
// until it is ended.
func (fs *Functions) start(ctx context.Context, session string, f sandbox.Function, files []sandbox.File, approve sandbox.ApproveMode, local sandbox.Local) (*process, error) {
	language, _, _ := strings.Cut(f.Language, "@")
	run := sandbox.Run{
		Language: f.Language, Code: runners[language], Env: f.Env, Labels: f.Labels, Reap: true, Approve: approve, Artifacts: []string{},
		ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(math.MaxInt64 / 4), KeepOutput: 1, MaxOutput: sandbox.Bytes(math.MaxInt64 / 4)},
	}
	for _, file := range files {
		file.Path = path.Join("function", file.Path)
		run.Stage = append(run.Stage, file)
	}
	key := signed.NewKey()
	settings, err := settings(f, &key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stdin, input := io.Pipe()
	p := &process{cancel: cancel, input: input, heard: make(chan said, 4), log: newLogged(&key), over: make(chan struct{})}
	lines := &signed.Lines{Key: &key, Most: mostLine, Take: func(text []byte) { p.hear(text) }}
	go func() { // whoever has started it waits for over
		defer close(p.over)
		defer cancel()
		p.res, p.err = fs.cfg.Sandboxes.Exec(ctx, session, run, sandbox.Streams{
			Stdin: io.MultiReader(bytes.NewReader(settings), stdin), Stdout: lines, Stderr: p.log, Started: p.starts.add, Local: sandbox.Local{Ask: local.Ask},
		})
		_ = stdin.CloseWithError(io.ErrClosedPipe) // it never fails
	}()
	return p, nil
}

// settings is the first line that a runner reads.
func settings(f sandbox.Function, key *signed.Key) ([]byte, error) {
	memory, version := strconv.FormatInt(int64(f.Limits.Memory/sandbox.MiB), 10), strconv.Itoa(f.Version)
	group, stream := "/aws/lambda/"+f.Name, f.Updated.Format("2006/01/02")+"/["+version+"]"+string(f.ID)
	b, err := json.Marshal(map[string]any{
		"key": key.Hex(), "handler": f.Handler, "most": sandbox.MaxPayload, "function_name": f.Name, "function_version": version,
		"memory_limit_in_mb": memory, "invoked_function_arn": ARN(f.Name), "log_group_name": group, "log_stream_name": stream,
		"env": map[string]string{
			"AWS_LAMBDA_FUNCTION_NAME": f.Name, "AWS_LAMBDA_FUNCTION_VERSION": version, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": memory,
			"AWS_LAMBDA_LOG_GROUP_NAME": group, "AWS_LAMBDA_LOG_STREAM_NAME": stream, "_HANDLER": f.Handler,
		},
	})
	return append(b, '\n'), err
}

// ARN is the name of a function in the vendor's form.
func ARN(name string) string { return "arn:aws:lambda:local:000000000000:function:" + name }

// hear takes a line. One that is no runner's of ours, which a handler can make its
// process say, ends it; so does one that nobody waits for.
func (p *process) hear(text []byte) {
	var s said
	if json.Unmarshal(text, &s) != nil {
		p.cancel()
		return
	}
	select {
	case p.heard <- s:
	default:
		p.cancel()
	}
}

func (p *process) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// endPatience is how long a process may take to end by itself once no call comes.
const endPatience = 5 * time.Second

// end lets the process end, or ends it, and waits.
func (p *process) end() {
	_ = p.input.Close() // it never fails
	timer := time.AfterFunc(endPatience, p.cancel)
	defer timer.Stop()
	<-p.over
}

// kill ends the process at once, and waits.
func (p *process) kill() {
	p.cancel()
	<-p.over
}

// errLate is the end of a wait whose time was over.
var errLate = errors.New("its time is over")

// next waits for what the process says. Errors: those of ctx, [errLate], io.EOF where
// it has ended.
func (p *process) next(ctx context.Context, limit <-chan time.Time) (said, error) {
	select {
	case s := <-p.heard:
		return s, nil
	case <-p.over:
		select {
		case s := <-p.heard: // it said so before its end
			return s, nil
		default:
			return said{}, io.EOF
		}
	case <-limit:
		return said{}, errLate
	case <-ctx.Done():
		return said{}, context.Cause(ctx)
	}
}

// call serves one call. begins is called before the handler is. An error is for what was
// no doing of the handler's.
func (in *instance) call(ctx context.Context, f sandbox.Function, call sandbox.Invocation, local sandbox.Local, done *sandbox.Invoked, begins func() error) error {
	p := in.running()
	if p == nil || in.code != f.ID {
		var err error
		if p, err = in.warmUp(ctx, f, call.Approve, local, done); err != nil || done.Error != nil {
			return err
		}
	}
	done.Session, done.ExecID = in.session, p.exec
	in.calls++
	line, err := json.Marshal(map[string]any{
		"n": in.calls, "id": done.RequestID, "event": call.Event, "client_context": call.ClientContext, "left_ms": f.Timeout,
	})
	if err != nil {
		return fmt.Errorf("write the call: %w", err)
	}
	if err := begins(); err != nil {
		return err
	}
	begun := time.Now()
	timer := time.NewTimer(time.Duration(f.Timeout))
	defer timer.Stop()
	go func() { _, _ = p.input.Write(append(line, '\n')) }() // it fails with the process, which is seen
	for {
		s, err := p.next(ctx, timer.C)
		if err == nil && s.N != in.calls {
			continue // of a call that was over
		}
		done.Duration = sandbox.Duration(time.Since(begun))
		return p.settle(ctx, f, s, err, time.Duration(f.Timeout), done)
	}
}

// warmUp starts a process and waits until it has the handler.
func (in *instance) warmUp(ctx context.Context, f sandbox.Function, approve sandbox.ApproveMode, local sandbox.Local, done *sandbox.Invoked) (*process, error) {
	done.Cold = true
	files, err := in.fs.cfg.Store.FunctionFiles(ctx, f)
	if err != nil {
		return nil, err
	}
	p, err := in.begin(ctx, f, files, approve, local, done)
	if errors.Is(err, sandbox.NotFound) && ctx.Err() == nil { // somebody has removed its session
		in.lost()
		p, err = in.begin(ctx, f, files, approve, local, done)
	}
	return p, err
}

// begin is warmUp with the files of f.
func (in *instance) begin(ctx context.Context, f sandbox.Function, files []sandbox.File, approve sandbox.ApproveMode, local sandbox.Local, done *sandbox.Invoked) (*process, error) {
	if err := in.fit(ctx, f); err != nil {
		return nil, err
	}
	p, err := in.fs.start(ctx, in.session, f, files, approve, local)
	if err != nil {
		return nil, err
	}
	if err := in.runs(p); err != nil {
		p.kill()
		return nil, err
	}
	done.Session = in.session
	limit := max(initPatience, time.Duration(f.Timeout))
	// Nobody knows how long it takes to get ready: a person may be asked.
	s, err := p.next(ctx, nil)
	if err == nil {
		if id := sandbox.ID(s.Exec); id.Valid() {
			p.exec, done.ExecID = id, id
		}
		begun := time.Now()
		timer := time.NewTimer(limit)
		defer timer.Stop()
		s, err = p.next(ctx, timer.C)
		done.Init = sandbox.Duration(time.Since(begun))
	}
	if err == nil && s.Kind == saidReady {
		return p, nil
	}
	return nil, p.settle(ctx, f, s, err, limit, done)
}

// settle makes of what a process has said, or of the end of the wait for it, what
// became of the call.
func (p *process) settle(ctx context.Context, f sandbox.Function, s said, heard error, limit time.Duration, done *sandbox.Invoked) error {
	done.PeakMemory = sandbox.Bytes(s.Peak)
	switch {
	case heard == nil:
		p.log.wait(s.Mark, p.over)
		if s.Kind == saidEnding {
			p.end()
		}
		switch {
		case s.Error != nil:
			done.Error = s.Error
			done.Error.Class = sandbox.FunctionUnhandled
			if s.Kind == saidFailed {
				done.Error.Class = sandbox.FunctionHandled
			}
		case s.Kind == saidValue && s.Value != nil:
			done.Value = s.Value
		case s.Kind == saidValue:
			done.Value = json.RawMessage("null")
		default: // it is no runner's of ours
			p.kill()
			done.Error = failed("Runtime.ExitError", "RequestId: %s Error: Runtime said %q", done.RequestID, s.Kind)
		}
	case errors.Is(heard, errLate):
		p.kill()
		done.Error = timedOut(done.RequestID, limit)
	case errors.Is(heard, io.EOF):
		fault, err := exited(done.RequestID, f, p.res, p.err)
		if err != nil {
			return err
		}
		done.Error, done.ExecID, done.PeakMemory = fault, p.res.ExecID, p.res.Usage.PeakMemory
	default:
		p.kill()
		return heard
	}
	done.Log, done.LogLost = p.log.take(s.Mark)
	done.Starts = p.starts.take()
	return nil
}

// keptLog bounds what is kept of what is printed for one call.
const keptLog = 64 << 10

// logged is what a process prints, by calls. It is safe for concurrent use.
type logged struct {
	mu     sync.Mutex
	marks  *signed.Marks
	now    tail
	passed map[int]tail  // what stood before a mark
	moved  chan struct{} // has something after a mark
}

// tail is the end of a text.
type tail struct {
	text []byte
	lost int64
}

func newLogged(key *signed.Key) *logged {
	l := &logged{passed: map[int]tail{}, moved: make(chan struct{}, 1)}
	l.marks = &signed.Marks{Key: key, Part: func(_ int, p []byte) { l.now.add(p) }, Passed: func(n int) {
		clear(l.passed) // nobody asks for an older one
		l.passed[n], l.now = l.now, tail{}
		select {
		case l.moved <- struct{}{}:
		default:
		}
	}}
	return l
}

// Write implements [io.Writer].
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.marks.Write(p)
}

func (t *tail) add(p []byte) {
	if t.text = append(t.text, p...); len(t.text) > 2*keptLog {
		t.cut()
	}
}

func (t *tail) cut() {
	if over := len(t.text) - keptLog; over > 0 {
		t.lost += int64(over)
		t.text = append(t.text[:0], t.text[over:]...)
	}
}

// wait waits until a mark has come: it was written before the answer, on another
// stream. A handler that has closed that one makes it wait in vain, for a while.
func (l *logged) wait(mark int, over <-chan struct{}) {
	timer := time.NewTimer(logPatience)
	defer timer.Stop()
	for {
		l.mu.Lock()
		there := l.marks.At() >= mark
		l.mu.Unlock()
		if there {
			return
		}
		select {
		case <-l.moved:
		case <-over:
			return
		case <-timer.C:
			return
		}
	}
}

// take returns what was printed before a mark, or where that has not come, so far.
func (l *logged) take(mark int) (text string, lost int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.passed[cmp.Or(mark, -1)]
	if !ok {
		l.marks.Flush()
		t, l.now = l.now, tail{}
	}
	delete(l.passed, mark)
	t.cut()
	return strings.ToValidUTF8(string(t.text), "\uFFFD"), t.lost
}
