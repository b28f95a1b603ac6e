package service_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/executions"
	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// place is a service over a runtime in memory, and what it stands on.
type place struct {
	*service.Service
	manager *manager.Manager
	store   *sqlite.Store
	desk    *approval.Desk
	feed    *bridge.Feed
	dir     string
	book    *executions.Book
}

func open(t *testing.T, change func(*service.Config)) place {
	t.Helper()
	dir := t.TempDir()
	journal, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	desk, err := approval.New(approval.Config{Store: journal})
	if err != nil {
		t.Fatal(err)
	}
	p := place{store: journal, desk: desk, feed: &bridge.Feed{}, dir: dir}
	changes, err := bridge.New(bridge.Config{Dir: filepath.Join(dir, "changes"), Feed: p.feed, Open: func(ctx context.Context, path string) (bridge.Ledger, error) { return sqlite.OpenLedger(ctx, path) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = changes.Close() })
	m, err := manager.New(manager.Config{
		Runtimes: runtimes.Only(runtimetest.MemoryName, &runtimetest.Memory{}), Images: catalogue{}, Gate: manager.Unjudged, Holder: "me", Patience: enginetest.Patience,
		Alive: func(string) bool { return true }, Store: journal, StateID: journal.ID(), LockDir: filepath.Join(dir, "locks"),
	})
	if err != nil {
		t.Fatal(err)
	}
	poster := outbox.NewPoster(outbox.PosterConfig{})
	t.Cleanup(func() { _ = poster.Close() })
	book, err := executions.New(executions.Config{Store: journal, Poster: poster, Dir: filepath.Join(dir, "executions"), Lock: filepath.Join(dir, "serve")})
	if err != nil {
		t.Fatal(err)
	}
	p.book, p.manager = book, m
	cfg := service.Config{
		Manager: m, Images: catalogue{}, Audit: journal, Desk: desk, Findings: journal, Metrics: monitor.NewMetrics(journal, "test"), Bridge: changes, Watch: none{}, Doctor: none{}, Keys: journal, Executions: book,
		Check: func(context.Context, string, []byte, string) (sandbox.Decision, error) {
			return sandbox.Decision{}, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	if p.Service, err = service.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// inSession are all calls about one session.
var inSession = map[string]func(ctx context.Context, s api.Service, name string) error{
	"Session": func(ctx context.Context, s api.Service, n string) error { return second(s.Session(ctx, n)) },
	"RenewSession": func(ctx context.Context, s api.Service, n string) error {
		return s.RenewSession(ctx, n, api.RenewOptions{})
	},
	"ChangeNetwork": func(ctx context.Context, s api.Service, n string) error {
		return second(s.ChangeNetwork(ctx, n, sandbox.NetworkChange{}))
	},
	"DialPort":       func(ctx context.Context, s api.Service, n string) error { return second(s.DialPort(ctx, n, 80)) },
	"PauseSession":   func(ctx context.Context, s api.Service, n string) error { return s.PauseSession(ctx, n) },
	"ResumeSession":  func(ctx context.Context, s api.Service, n string) error { return s.ResumeSession(ctx, n) },
	"StopSession":    func(ctx context.Context, s api.Service, n string) error { return s.StopSession(ctx, n) },
	"SessionEnv":     func(ctx context.Context, s api.Service, n string) error { return second(s.SessionEnv(ctx, n)) },
	"SessionStats":   func(ctx context.Context, s api.Service, n string) error { return second(s.SessionStats(ctx, n)) },
	"Snapshot":       func(ctx context.Context, s api.Service, n string) error { return second(s.Snapshot(ctx, n, "")) },
	"RestoreSession": func(ctx context.Context, s api.Service, n string) error { return second(s.RestoreSession(ctx, n, "x")) },
	"RemoveSnapshot": func(ctx context.Context, s api.Service, n string) error { return s.RemoveSnapshot(ctx, n, "x") },
	"ForkSession": func(ctx context.Context, s api.Service, n string) error {
		return second(s.ForkSession(ctx, n, api.ForkOptions{}))
	},
	"Exec": func(ctx context.Context, s api.Service, n string) error {
		return second(s.Exec(ctx, n, sandbox.Run{Command: []string{"echo"}}, sandbox.Streams{}))
	},
	"StartExec": func(ctx context.Context, s api.Service, n string) error {
		return second(s.StartExec(ctx, n, sandbox.Run{Command: []string{"echo"}}, sandbox.Local{}))
	},
	"Processes": func(ctx context.Context, s api.Service, n string) error { return second(s.Processes(ctx, n)) },
	"AttachExec": func(ctx context.Context, s api.Service, n string) error {
		return second(s.AttachExec(ctx, n, sandbox.NewID(), sandbox.AttachOptions{}, io.Discard, io.Discard))
	},
	"AttachTerminal": func(ctx context.Context, s api.Service, n string) error {
		return second(s.AttachTerminal(ctx, n, sandbox.NewID(), sandbox.Streams{}))
	},
	"InputExec": func(ctx context.Context, s api.Service, n string) error {
		return second(s.InputExec(ctx, n, sandbox.NewID(), nil, true))
	},
	"SignalExec": func(ctx context.Context, s api.Service, n string) error {
		return s.SignalExec(ctx, n, sandbox.NewID(), 15, true)
	},
	"KillExec": func(ctx context.Context, s api.Service, n string) error { return s.KillExec(ctx, n, sandbox.NewID()) },
	"ResizeExec": func(ctx context.Context, s api.Service, n string) error {
		return s.ResizeExec(ctx, n, sandbox.NewID(), 1, 1)
	},
	"OpenShell": func(ctx context.Context, s api.Service, n string) error {
		return second(s.OpenShell(ctx, n, "x", sandbox.ShellOptions{}))
	},
	"RunShell": func(ctx context.Context, s api.Service, n string) error {
		return second(s.RunShell(ctx, n, "y", sandbox.ShellRun{Text: "true"}, sandbox.Streams{}))
	},
	"CloseShell": func(ctx context.Context, s api.Service, n string) error { return s.CloseShell(ctx, n, "y") },
	"ListShells": func(ctx context.Context, s api.Service, n string) error { return second(s.ListShells(ctx, n)) },
	"Files":      func(ctx context.Context, s api.Service, n string) error { return second(s.Files(ctx, n)) },
	"Changes": func(ctx context.Context, s api.Service, n string) error {
		return second(s.Changes(ctx, n, api.ChangesOptions{}))
	},
	"Diff": func(ctx context.Context, s api.Service, n string) error {
		return second(s.Diff(ctx, n, api.ChangesOptions{}))
	},
	"Undo": func(ctx context.Context, s api.Service, n string) error {
		return second(s.Undo(ctx, n, api.UndoOptions{Exec: sandbox.NewID()}))
	},
	"RemoveSession": func(ctx context.Context, s api.Service, n string) error { return s.RemoveSession(ctx, n, true) },
}

// governing are calls that only an admin may make.
var governing = map[string]func(ctx context.Context, s api.Service) error{
	"MakeImage": func(ctx context.Context, s api.Service) error {
		return second(s.MakeImage(ctx, "shell", sandbox.MakeImageOptions{}))
	},
	"PullImage": func(ctx context.Context, s api.Service) error {
		return second(s.PullImage(ctx, "shell", sandbox.PullImageOptions{}))
	},
	"UnpackImage":    func(ctx context.Context, s api.Service) error { return second(s.UnpackImage(ctx, "shell")) },
	"UnpackedImages": func(ctx context.Context, s api.Service) error { return second(s.UnpackedImages(ctx)) },
	"PruneImages":    func(ctx context.Context, s api.Service) error { return second(s.PruneImages(ctx, true)) },
	"PinImages":      func(ctx context.Context, s api.Service) error { return second(s.PinImages(ctx, nil)) },
	"VerifyImages":   func(ctx context.Context, s api.Service) error { return second(s.VerifyImages(ctx)) },
	"VerifyAudit":    func(ctx context.Context, s api.Service) error { return second(s.VerifyAudit(ctx)) },
	"ReanchorAudit":  func(ctx context.Context, s api.Service) error { return second(s.ReanchorAudit(ctx, "lost")) },
	"PruneAudit":     func(ctx context.Context, s api.Service) error { return second(s.PruneAudit(ctx, sandbox.Retention{})) },
	"Sweep": func(ctx context.Context, s api.Service) error {
		return second(s.Sweep(ctx, api.SweepOptions{DryRun: true}))
	},
	"StateSizes": func(ctx context.Context, s api.Service) error { return second(s.StateSizes(ctx)) },
	"PoolShelves": func(ctx context.Context, s api.Service) error {
		if _, err := s.PoolShelves(ctx); !errors.Is(err, sandbox.NotFound) { // there is none
			return err
		}
		return nil
	},
	"Metrics": func(ctx context.Context, s api.Service) error { return s.Metrics(ctx, io.Discard) },
	"CreateToken": func(ctx context.Context, s api.Service) error {
		return second(s.CreateToken(ctx, sandbox.TokenOptions{}))
	},
	"Tokens":      func(ctx context.Context, s api.Service) error { return second(s.Tokens(ctx)) },
	"RevokeToken": func(ctx context.Context, s api.Service) error { return s.RevokeToken(ctx, "none") },
	"Doctor":      func(ctx context.Context, s api.Service) error { return second(s.Doctor(ctx)) },
}

// elsewhere are calls that tests below look at: of lists, of questions, and of
// what has no owner.
var elsewhere = []string{
	"Run", "CreateSession", "Sessions", "ListExecs", "Feed", "CheckCode", "Approvals", "Approval", "AnswerApproval", "RevokeApproval",
	"SubmitExecution", "Execution", "Executions", "CancelExecution", "ExecutionArtifact", "DeadLetters", "ResendDeadLetter",
	"Languages", "LanguageOf", "EnsureImage", "PrewarmImages", "Events", "Readings", "Alerts", "AlertNews",
	"PutFunction", "Function", "Functions", "RemoveFunction", "InvokeFunction",
}

func second(_ any, err error) error { return err }

func as(ctx context.Context, owner string, access sandbox.Access) context.Context {
	return sandbox.WithCaller(ctx, sandbox.Caller{Owner: owner, Name: "token of " + owner, Access: access})
}

// TestOthersSessions has nobody do anything with another owner's session, by
// whatever name and by whatever call of the service.
func TestOthersSessions(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for name := range inSession {
		known[name] = true
	}
	for name := range governing {
		known[name] = true
	}
	for _, name := range elsewhere {
		known[name] = true
	}
	for m := range reflect.TypeFor[api.Service]().Methods() {
		if !known[m.Name] {
			t.Errorf("no test knows whether %s keeps one owner from another", m.Name)
		}
	}
	p := open(t, nil)
	alice, bob := as(t.Context(), "alice", ""), as(t.Context(), "bob", sandbox.AccessUser)
	made, err := p.CreateSession(alice, api.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}, sandbox.Local{})
	if err != nil || made.Name != "work" || made.Owner != "alice" {
		t.Fatalf("%+v, %v", made, err)
	}
	for call, do := range inSession {
		for _, name := range []string{"work", "alice~work", "bob~work", "~work", "bob~alice~work"} {
			if err := do(bob, p, name); !errors.Is(err, sandbox.NotFound) {
				t.Errorf("%s of %s by another: %v", call, name, err)
			}
		}
	}
	for call, do := range inSession {
		if err := do(as(t.Context(), "alice", "nonsense"), p, "work"); !errors.Is(err, sandbox.Denied) {
			t.Errorf("%s with an access that there is not: %v", call, err)
		}
		if call == "RemoveSession" || call == "PauseSession" {
			continue // below
		}
		if err := do(alice, p, "work"); errors.Is(err, sandbox.Denied) || errors.Is(err, sandbox.NotFound) && call != "RestoreSession" && call != "RemoveSnapshot" && !execCall[call] {
			t.Errorf("%s by its owner: %v", call, err)
		}
	}
	for call, do := range governing {
		for _, access := range []sandbox.Access{"", sandbox.AccessUser, sandbox.AccessViewer, sandbox.AccessApprover} {
			if err := do(as(t.Context(), "alice", access), p); !errors.Is(err, sandbox.Denied) {
				t.Errorf("%s by %q: %v", call, access, err)
			}
		}
		if err := do(as(t.Context(), "ops", sandbox.AccessAdmin), p); errors.Is(err, sandbox.Denied) {
			t.Errorf("%s by an admin: %v", call, err)
		}
	}
	// Each has names of their own, and an admin sees all of them.
	if _, err := p.CreateSession(bob, api.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}, sandbox.Local{}); err != nil {
		t.Errorf("another of the same name: %v", err)
	}
	for ctx, want := range map[context.Context][]string{
		alice: {"work"}, bob: {"work"}, t.Context(): {"alice~work", "bob~work"}, as(t.Context(), "ops", sandbox.AccessAdmin): {"alice~work", "bob~work"},
	} {
		views, err := p.Sessions(ctx, sandbox.SessionFilter{})
		var names []string
		for _, v := range views {
			names = append(names, v.Name)
		}
		if err != nil || !reflect.DeepEqual(names, want) {
			t.Errorf("%+v sees %q, %v", sandbox.CallerFrom(ctx), names, err)
		}
	}
	theirs := "alice"
	if _, err := p.Sessions(bob, sandbox.SessionFilter{Owner: &theirs}); !errors.Is(err, sandbox.Denied) {
		t.Errorf("asked for another's: %v", err)
	}
	for _, ctx := range []context.Context{alice, bob} {
		if err := p.RemoveSession(ctx, "work", true); err != nil {
			t.Error(err)
		}
	}
}

var farAway = time.Now().Add(24 * time.Hour)

// execCall are calls about an exec or a shell, of which there is none here.
var execCall = map[string]bool{"AttachExec": true, "AttachTerminal": true, "InputExec": true, "SignalExec": true, "KillExec": true, "ResizeExec": true, "Undo": true, "RunShell": true, "CloseShell": true}

// TestViewers look at everything of their owner's and change nothing of it.
func TestViewers(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	alice := as(t.Context(), "alice", sandbox.AccessUser)
	if _, err := p.CreateSession(alice, api.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	looks := map[string]bool{"Session": true, "SessionStats": true, "Processes": true, "AttachExec": true, "AttachTerminal": true, "Files": true, "Changes": true, "Diff": true, "ListShells": true}
	for _, access := range []sandbox.Access{sandbox.AccessViewer, sandbox.AccessApprover} {
		for call, do := range inSession {
			if err := do(as(t.Context(), "alice", access), p, "work"); errors.Is(err, sandbox.Denied) == looks[call] {
				t.Errorf("%s by a %s: %v", call, access, err)
			}
		}
	}
	viewer := as(t.Context(), "alice", sandbox.AccessViewer)
	files, err := p.Files(viewer, "work")
	if err != nil {
		t.Fatal(err)
	}
	_, wrote := files.Write(viewer, "x", 0o600, nil)
	_, unpacked := files.PutTar(viewer, ".", nil)
	for what, err := range map[string]error{
		"write": wrote, "tar": unpacked, "put": files.Put(viewer, nil, sandbox.Local{}), "mkdir": files.Mkdir(viewer, "x", 0o700), "move": files.Move(viewer, "x", "y"), "attributes": files.SetAttributes(viewer, "x", nil), "remove": files.Remove(viewer, "x", false),
		"type":   second(p.AttachTerminal(viewer, "work", sandbox.NewID(), sandbox.Streams{Stdin: strings.NewReader("")})),
		"run":    second(p.Run(viewer, sandbox.Run{Language: "shell", Command: []string{"echo"}}, sandbox.Streams{})),
		"create": second(p.CreateSession(viewer, api.SessionOptions{}, sandbox.Local{})),
		"image":  second(p.EnsureImage(viewer, "shell")), "images": second(p.PrewarmImages(viewer, nil)),
		"answer": second(p.AnswerApproval(viewer, sandbox.ApprovalAnswer{ID: sandbox.NewID()})), "revoke": second(p.RevokeApproval(viewer, sandbox.NewID(), "")),
	} {
		if !errors.Is(err, sandbox.Denied) {
			t.Errorf("%s by a viewer: %v", what, err)
		}
	}
	if err := p.RemoveSession(alice, "work", true); err != nil {
		t.Error(err)
	}
}

// TestOthersLists has lists tell each owner of what is theirs.
func TestOthersLists(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	alice, bob := as(t.Context(), "alice", ""), as(t.Context(), "bob", "")
	opts := api.SessionOptions{Name: "work", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}
	for _, ctx := range []context.Context{alice, bob} {
		if _, err := p.CreateSession(ctx, opts, sandbox.Local{}); err != nil {
			t.Fatal(err)
		}
		res, err := p.Exec(ctx, "work", sandbox.Run{Command: []string{"echo", "ok"}}, sandbox.Streams{})
		if err != nil || res.Session != "work" {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	for ctx, who := range map[context.Context]string{alice: "alice", bob: "bob"} {
		n := 0
		for e, err := range p.Events(ctx, sandbox.EventFilter{}) {
			if n++; err != nil || e.Owner != who || e.Session != "work" || e.Actor != "token of "+who {
				t.Errorf("%s is told of %+v, %v", who, e, err)
			}
		}
		if n < 4 {
			t.Errorf("%s is told of %d events", who, n)
		}
	}
	now := p.store
	for _, name := range []string{"alice~work", "bob~work", ""} {
		whose := sandbox.SessionOwner(name)
		a := sandbox.Alert{Owner: whose, ID: sandbox.NewID(), Rule: "r", Severity: sandbox.Low, Session: name, Sandbox: sandbox.NewID()}
		r := sandbox.Reading{Owner: whose, Sandbox: sandbox.NewID(), Session: name}
		if err := now.Apply(t.Context(), sandbox.Transaction{FireAlert: &a, PutReadings: []sandbox.Reading{r}}); err != nil {
			t.Fatal(err)
		}
	}
	alerts, err := p.Alerts(alice, sandbox.AlertFilter{Limit: 1})
	if err != nil || len(alerts) != 1 || alerts[0].Session != "work" {
		t.Errorf("%+v, %v", alerts, err)
	}
	readings, err := p.Readings(alice, sandbox.ReadingFilter{Session: "work"})
	if err != nil || len(readings) != 1 || readings[0].Session != "work" {
		t.Errorf("%+v, %v", readings, err)
	}
	if all, err := p.Alerts(t.Context(), sandbox.AlertFilter{}); err != nil || len(all) != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, ctx := range []context.Context{alice, bob} {
		if err := p.RemoveSession(ctx, "work", true); err != nil {
			t.Error(err)
		}
	}
}

// TestOthersQuestions has each owner see and answer their own questions, and
// where it is asked for, nobody those that they ask.
func TestOthersQuestions(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) { c.OthersApprove = true })
	alice := as(t.Context(), "alice", "")
	approver := sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "alice", Name: "chief", Access: sandbox.AccessApprover})
	ask := func() sandbox.ID {
		t.Helper()
		q := sandbox.Approval{ID: sandbox.NewID(), Digest: "d", State: sandbox.ApprovalPending, Owner: "alice", Actor: "token of alice", Session: "alice~work", Expires: farAway}
		if err := p.store.Apply(t.Context(), sandbox.Transaction{AskApproval: &q}); err != nil {
			t.Fatal(err)
		}
		return q.ID
	}
	id := ask()
	if list, err := p.Approvals(as(t.Context(), "bob", ""), sandbox.ApprovalFilter{}); err != nil || len(list) != 0 {
		t.Errorf("another sees %+v, %v", list, err)
	}
	bob := as(t.Context(), "bob", sandbox.AccessApprover)
	if _, err := p.Approval(bob, id); !errors.Is(err, sandbox.NotFound) {
		t.Error(err)
	}
	if _, err := p.AnswerApproval(bob, sandbox.ApprovalAnswer{ID: id, Approve: true}); !errors.Is(err, sandbox.NotFound) {
		t.Error(err)
	}
	if _, err := p.AnswerApproval(alice, sandbox.ApprovalAnswer{ID: id, Approve: true}); !errors.Is(err, sandbox.Denied) {
		t.Errorf("who asks approves: %v", err)
	}
	a, err := p.AnswerApproval(approver, sandbox.ApprovalAnswer{ID: id, Approve: true, Always: true, By: "somebody else"})
	if err != nil || a.State != sandbox.ApprovalApproved || a.By != "chief" || a.Session != "work" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := p.RevokeApproval(bob, id, ""); !errors.Is(err, sandbox.NotFound) {
		t.Error(err)
	}
	if a, err := p.RevokeApproval(approver, id, "x"); err != nil || a.By != "chief" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := p.AnswerApproval(alice, sandbox.ApprovalAnswer{ID: ask()}); err != nil {
		t.Errorf("who asks may still say no: %v", err)
	}
	_, err = p.Run(alice, sandbox.Run{Language: "shell", Command: []string{"echo"}, Approve: sandbox.ApproveAlways}, sandbox.Streams{})
	if !errors.Is(err, sandbox.Denied) {
		t.Errorf("a run that approves itself: %v", err)
	}
}

// TestFunctions: who may what with functions. Package functions keeps one owner's
// from another's.
func TestFunctions(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) {
		journal := c.Keys.(*sqlite.Store)
		c.Functions = func(s *service.Service) (service.Functions, error) {
			return functions.New(functions.Config{Sandboxes: s, Store: journal, LockDir: t.TempDir()})
		}
	})
	alice, bob := as(t.Context(), "alice", ""), as(t.Context(), "bob", "")
	o := sandbox.FunctionOptions{Name: "f", Language: "python", Handler: "main.handler", Files: []sandbox.File{{Path: "main.py"}}}
	if _, err := p.PutFunction(alice, o, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(ctx context.Context) error{
		"show": func(ctx context.Context) error { return second(p.Function(ctx, "f")) },
		"invoke": func(ctx context.Context) error {
			return second(p.InvokeFunction(ctx, sandbox.Invocation{Function: "f", Version: 2}, sandbox.Local{}))
		},
		"remove": func(ctx context.Context) error { return p.RemoveFunction(ctx, "f") },
	}
	for name, call := range calls {
		if err := call(bob); !errors.Is(err, sandbox.NotFound) {
			t.Errorf("%s by another: %v", name, err)
		}
		if err := call(as(t.Context(), "alice", sandbox.AccessViewer)); errors.Is(err, sandbox.Denied) != (name != "show") {
			t.Errorf("%s by a viewer: %v", name, err)
		}
	}
	if _, err := p.PutFunction(as(t.Context(), "alice", sandbox.AccessViewer), o, sandbox.Local{}); !errors.Is(err, sandbox.Denied) {
		t.Errorf("put by a viewer: %v", err)
	}
	for ctx, want := range map[context.Context]int{alice: 1, bob: 0, as(t.Context(), "alice", sandbox.AccessViewer): 1, t.Context(): 1} {
		if list, err := p.Functions(ctx, sandbox.FunctionFilter{}); err != nil || len(list) != want {
			t.Errorf("%+v sees %+v, %v", sandbox.CallerFrom(ctx), list, err)
		}
	}
	theirs := "alice"
	if _, err := p.Functions(bob, sandbox.FunctionFilter{Owner: &theirs}); !errors.Is(err, sandbox.Denied) {
		t.Errorf("asked for another's: %v", err)
	}
	if _, err := open(t, nil).Functions(alice, sandbox.FunctionFilter{}); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("without functions: %v", err)
	}
}
