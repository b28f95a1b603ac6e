package functions_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/internal/signed"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// fake are sandboxes in which serve stands for the handler. It is safe for concurrent
// use.
type fake struct {
	serve func(ctx context.Context, event string) string // "" ends the process

	mu       sync.Mutex
	sessions map[string]sandbox.SessionOptions
	owners   map[string]string
	starts   int
	refuse   error // of the next exec
}

func (k *fake) CreateSession(ctx context.Context, o sandbox.SessionOptions, _ sandbox.Local) (sandbox.Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions[o.Name], k.owners[o.Name] = o, sandbox.CallerFrom(ctx).Owner
	return sandbox.Session{Name: o.Name}, nil
}

func (k *fake) Sessions(_ context.Context, f sandbox.SessionFilter) (list []sandbox.SessionView, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(k.sessions)) {
		if o := k.sessions[name]; o.Labels.Has(f.Labels) && *f.Owner == k.owners[name] {
			list = append(list, sandbox.SessionView{Session: sandbox.Session{Name: name, Labels: o.Labels}})
		}
	}
	return list, nil
}

func (k *fake) RemoveSession(_ context.Context, name string, _ bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.sessions[name]; !ok {
		return sandbox.Errorf(sandbox.NotFound, "no session %s", name)
	}
	delete(k.sessions, name)
	return nil
}

func (k *fake) names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.sessions))
}

func (k *fake) count() (starts int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.starts
}

// Exec is a runner.
func (k *fake) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	id := sandbox.NewID()
	res := sandbox.Result{ExecID: id, Exit: sandbox.Exit{Reason: sandbox.ReasonExited}}
	k.mu.Lock()
	_, there := k.sessions[session]
	k.starts++
	refuse := k.refuse
	k.refuse = nil
	k.mu.Unlock()
	switch {
	case !there:
		return sandbox.Result{}, sandbox.Errorf(sandbox.NotFound, "no session %s", session)
	case refuse != nil:
		return sandbox.Result{}, refuse
	}
	in := bufio.NewReader(streams.Stdin)
	read := func(v any) bool {
		line, err := in.ReadBytes('\n')
		return err == nil && json.Unmarshal(line, v) == nil
	}
	var cfg struct{ Key string }
	if !read(&cfg) {
		return res, nil
	}
	var key signed.Key
	if _, err := hex.Decode(key[:], []byte(cfg.Key)); err != nil {
		return res, err
	}
	say := func(text string) { fmt.Fprintf(streams.Stdout, "%s %s\n", key.Sign([]byte(text)), text) }
	say(`{"kind":"up","exec":"` + string(id) + `"}`)
	say(`{"kind":"ready"}`)
	done := make(chan int, 1)
	go func() {
		code := 0
		for {
			var call struct {
				N     int
				Event json.RawMessage
			}
			if !read(&call) {
				break
			}
			value := k.serve(ctx, string(call.Event))
			if value == "" {
				code = 9
				break
			}
			say(fmt.Sprintf(`{"kind":"value","n":%d,"value":%s}`, call.N, value))
		}
		done <- code
	}()
	select {
	case res.Code = <-done:
		return res, nil
	case <-ctx.Done():
		res.Reason = sandbox.ReasonCanceled
		return res, nil
	}
}

// onFake are functions in such sandboxes.
func onFake(t *testing.T, serve func(ctx context.Context, event string) string, change func(*functions.Config)) (*functions.Functions, *fake, functions.Config) {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	k := &fake{serve: serve, sessions: map[string]sandbox.SessionOptions{}, owners: map[string]string{}}
	cfg := functions.Config{Sandboxes: k, Store: store, LockDir: dir + "/locks", Actor: "me"}
	if change != nil {
		change(&cfg)
	}
	fs := open(t, cfg)
	t.Cleanup(func() {
		if err := errors.Join(fs.Close(), fs.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return fs, k, cfg
}
