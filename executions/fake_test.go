package executions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/executions"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

func TestMain(m *testing.M) {
	if isHelper() {
		helper()
		return
	}
	goleak.VerifyTestMain(m)
}

// fake is a caisson whose runs are a function. It writes down starts and ends as the
// manager does.
type fake struct {
	api.Service // nil: what is not here is not asked
	store       *sqlite.Store
	run         func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)

	mu    sync.Mutex
	begun map[string]int // by the code of the run
	execs map[sandbox.ID]*background
}

// background is an exec of a session, whose sandbox outlives the server.
type background struct {
	sandbox.ExecRecord
	out  string
	done chan struct{}
	exit sandbox.Exit
}

func (f *fake) Reserve(ctx context.Context, _ sandbox.Run) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

func (f *fake) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	id := sandbox.NewID()
	if err := f.tell(ctx, sandbox.EventExecStarted, id, run, ""); err != nil {
		return sandbox.Result{}, err
	}
	f.mu.Lock()
	if f.begun == nil {
		f.begun = map[string]int{}
	}
	f.begun[run.Code]++
	f.mu.Unlock()
	res, err := f.run(ctx, run, streams)
	if res.ExecID = id; err != nil {
		res.ExecID = ""
	}
	return res, errors.Join(err, f.tell(context.WithoutCancel(ctx), sandbox.EventExecEnded, id, run, res.Reason))
}

func (f *fake) tell(ctx context.Context, kind string, id sandbox.ID, run sandbox.Run, reason sandbox.ExitReason) error {
	data, err := json.Marshal(map[string]any{"labels": run.Labels, "exit_reason": reason})
	if err != nil {
		return err
	}
	return f.store.Apply(ctx, sandbox.Transaction{Events: []sandbox.Event{{Time: time.Now(), Kind: kind, Exec: id, Data: data}}})
}

func (f *fake) StartExec(ctx context.Context, session string, run sandbox.Run, _ sandbox.Local) (sandbox.ExecRecord, error) {
	b := &background{
		ExecRecord: sandbox.ExecRecord{ID: sandbox.NewID(), Session: session, Labels: run.Labels, Background: true, Started: time.Now(), Decision: &sandbox.Decision{Verdict: sandbox.Allow}},
		done:       make(chan struct{}),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.execs == nil {
		f.execs = map[sandbox.ID]*background{}
	}
	f.execs[b.ID] = b
	return b.ExecRecord, f.tell(ctx, sandbox.EventExecStarted, b.ID, run, "")
}

func (f *fake) ListExecs(_ context.Context, filter sandbox.ExecFilter) ([]sandbox.ExecRecord, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []sandbox.ExecRecord
	for _, b := range f.execs {
		if b.Labels.Has(filter.Labels) {
			list = append(list, b.ExecRecord)
		}
	}
	return list, nil
}

func (f *fake) AttachExec(ctx context.Context, _ string, id sandbox.ID, o sandbox.AttachOptions, stdout, _ io.Writer) (sandbox.Attached, error) {
	f.mu.Lock()
	b := f.execs[id]
	f.mu.Unlock()
	at := o.Stdout
	for {
		over := false
		select {
		case <-b.done:
			over = true
		case <-ctx.Done():
			return sandbox.Attached{}, ctx.Err()
		case <-time.After(time.Millisecond):
		}
		f.mu.Lock()
		part, exit := b.out[at:], b.exit
		f.mu.Unlock()
		at += int64(len(part))
		if _, err := io.WriteString(stdout, part); err != nil {
			return sandbox.Attached{}, err
		}
		if over {
			return sandbox.Attached{Stdout: at, Ended: true, Exit: exit}, nil
		}
	}
}

func (f *fake) KillExec(_ context.Context, _ string, id sandbox.ID) error {
	f.end(id, sandbox.Exit{Reason: sandbox.ReasonCanceled}.Coded())
	return nil
}

func (f *fake) end(id sandbox.ID, exit sandbox.Exit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.execs[id]
	if b.Ended.IsZero() {
		b.Ended, b.exit, b.Exit = time.Now(), exit, exit
		close(b.done)
	}
}

// print has every exec of a session put something out.
func (f *fake) print(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.execs {
		b.out += text
	}
}

func (*fake) Session(context.Context, string) (sandbox.SessionView, error) {
	return sandbox.SessionView{}, nil
}

func (*fake) Changes(context.Context, string, api.ChangesOptions) ([]sandbox.ChangeRecord, error) {
	return nil, nil
}

func (f *fake) Files(context.Context, string) (api.Files, error) { return nil, nil }

func (*fake) Readings(context.Context, sandbox.ReadingFilter) ([]sandbox.Reading, error) {
	return nil, nil
}

// echo answers with the code of its run.
func echo(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
	return sandbox.Result{Exit: sandbox.Exit{Reason: sandbox.ReasonExited}, Stdout: []byte(run.Code)}, nil
}

// held waits until it is let go.
func held(let <-chan struct{}) func(context.Context, sandbox.Run, sandbox.Streams) (sandbox.Result, error) {
	return func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		select {
		case <-let:
			return echo(ctx, run, s)
		case <-ctx.Done():
			return sandbox.Result{}, ctx.Err()
		}
	}
}

// place is a state folder with a book.
type place struct {
	*executions.Book
	dir    string
	store  *sqlite.Store
	runner *fake
	box    *outbox.Outbox
}

// open opens a state folder; change may be nil.
func open(t *testing.T, dir string, runner *fake, change func(*executions.Config)) *place {
	t.Helper()
	return openAt(t, dir, runner, change, time.Now)
}

// openAt does so with a clock for its letters too.
func openAt(t *testing.T, dir string, runner *fake, change func(*executions.Config), now func() time.Time) *place {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{dir: dir, store: store, runner: runner}
	runner.store = store
	poster := outbox.NewPoster(outbox.PosterConfig{Private: true})
	cfg := executions.Config{
		Store: store, Poster: poster, Posted: func() { p.box.Posted() }, Dir: filepath.Join(dir, "executions"), Lock: filepath.Join(dir, "serve"), Workers: 4, Actor: "me",
		Drain: time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	if p.Book, err = executions.New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := p.FollowClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.box, err = outbox.New(outbox.Config{Store: store, Now: now, Couriers: map[string]outbox.Courier{executions.Courier: p.Book}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.close(t)
		_ = poster.Close()
	})
	return p
}

func (p *place) close(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.Close(), p.box.Close(), p.store.Close()); err != nil {
		t.Error(err)
	}
}

// serving is a place that carries out.
func serving(t *testing.T, runner *fake, change func(*executions.Config)) *place {
	t.Helper()
	p := open(t, t.TempDir(), runner, change)
	p.start(t)
	return p
}

func (p *place) start(t *testing.T) {
	t.Helper()
	if err := p.Start(t.Context(), p.runner); err != nil {
		t.Fatal(err)
	}
}

func code(text string) sandbox.ExecutionOptions {
	return sandbox.ExecutionOptions{Run: sandbox.Run{Language: "shell", Code: text}}
}

func (p *place) submit(t *testing.T, owner string, o sandbox.ExecutionOptions) sandbox.ID {
	t.Helper()
	e, err := p.Submit(sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: owner}), o, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

// ended waits for the end of an execution.
func (p *place) ended(t *testing.T, id sandbox.ID) sandbox.Execution {
	t.Helper()
	e, err := p.Execution(t.Context(), id, sandbox.Duration(time.Minute))
	if err != nil || !e.State.Over() {
		t.Fatalf("not over: %+v, %v", e, err)
	}
	return e
}

// until waits for what is true soon.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("not %s within a minute", what)
		}
	}
}

// state is where an execution stands now.
func (p *place) state(t *testing.T, id sandbox.ID) sandbox.ExecutionState {
	t.Helper()
	e, err := p.Execution(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e.State
}

// posted is what a server was told once.
type posted struct {
	header http.Header
	raw    []byte
	body   struct {
		Event     string            `json:"event"`
		Delivery  sandbox.ID        `json:"delivery"`
		Execution sandbox.Execution `json:"execution"`
		Beat      int               `json:"beat"`
	}
}

// ear is a server that callbacks go to.
type ear struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	heard  []posted
}

func listen(t *testing.T) *ear {
	t.Helper()
	e := &ear{status: http.StatusOK}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := posted{header: r.Header}
		var err error
		if p.raw, err = io.ReadAll(r.Body); err == nil {
			err = json.Unmarshal(p.raw, &p.body)
		}
		if err != nil {
			t.Errorf("what was posted: %v", err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, p)
		w.WriteHeader(e.status)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *ear) answer(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

// of returns what was heard of one kind.
func (e *ear) of(kind string) []posted {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []posted
	for _, p := range e.heard {
		if p.body.Event == kind {
			list = append(list, p)
		}
	}
	return list
}

// fileHas reports whether the head of an execution's output is in its folder.
func fileHas(p *place, id sandbox.ID, text string) bool {
	b, err := os.ReadFile(filepath.Join(p.dir, "executions", string(id), "stdout"))
	return err == nil && string(b) == text
}

func texts(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("run %d", i)
	}
	return list
}
