package functions

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// InvokeFunction calls one of the caller's functions and waits, unless the call is for
// later. Whoever gives up ends the call, with its process.
func (fs *Functions) InvokeFunction(ctx context.Context, call sandbox.Invocation, local sandbox.Local) (sandbox.Invoked, error) {
	return fs.invoke(ctx, call, local, newRequestID(), func() error { return nil })
}

// invoke is InvokeFunction under an id; begins is called before the handler is, and
// its error is one of the call's.
func (fs *Functions) invoke(ctx context.Context, call sandbox.Invocation, local sandbox.Local, id string, begins func() error) (sandbox.Invoked, error) {
	ctx, which := owned(ctx, call.Function)
	f, err := fs.cfg.Store.Function(ctx, which.Owner, which.Name)
	if err != nil {
		return sandbox.Invoked{}, err
	}
	if call, err = check(call, f); err != nil {
		return sandbox.Invoked{}, err
	}
	if call.Later {
		return fs.accept(ctx, f, call)
	}
	p, err := fs.pool(f)
	if err != nil {
		return sandbox.Invoked{}, err
	}
	defer fs.tasks.Done()
	in, err := p.take(ctx, f)
	if err != nil {
		return sandbox.Invoked{}, err
	}
	done := sandbox.Invoked{RequestID: id, Function: f.Name, Version: f.Version}
	err = in.call(ctx, f, call, local, &done, begins)
	p.give(in)
	if err != nil {
		return sandbox.Invoked{}, err
	}
	return done, fs.record(ctx, done)
}

// check reports what is wrong with a call.
func check(call sandbox.Invocation, f sandbox.Function) (sandbox.Invocation, error) {
	if call.Version != 0 && call.Version != f.Version {
		return call, sandbox.Errorf(sandbox.Conflict, "function %s is of version %d, not %d", f.Name, f.Version, call.Version).WithHint("leave the version out to call whichever there is")
	}
	if len(call.Event) == 0 {
		call.Event = json.RawMessage("null")
	}
	if len(call.ClientContext) == 0 {
		call.ClientContext = json.RawMessage("null")
	}
	var client map[string]any
	switch {
	case sandbox.Bytes(len(call.Event)) > sandbox.MaxPayload:
		return call, sandbox.Errorf(sandbox.Exhausted, "an event of more than %s", sandbox.MaxPayload.Human()).WithHint("hand large data over as a file")
	case !json.Valid(call.Event):
		return call, sandbox.Errorf(sandbox.Invalid, "the event is not JSON").WithHint(`give JSON, such as {"name": "Ada"}`)
	case json.Unmarshal(call.ClientContext, &client) != nil:
		return call, sandbox.Errorf(sandbox.Invalid, "the client context is not a JSON object")
	}
	return call, call.Approve.Check()
}

// record writes down that a call has ended, whatever became of its caller.
func (fs *Functions) record(ctx context.Context, done sandbox.Invoked) error {
	about := map[string]any{
		"function": done.Function, "version": done.Version, "request_id": done.RequestID, "cold": done.Cold, "duration_ms": done.Duration,
	}
	if done.Error != nil {
		about["error"], about["class"] = done.Error.Type, done.Error.Class
	}
	e := fs.event(ctx, sandbox.EventFunctionInvoked, about)
	e.Session, e.Exec = sandbox.CallerFrom(ctx).Kept(done.Session), done.ExecID
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), latePatience)
	defer cancel()
	return fs.cfg.Store.Apply(ctx, sandbox.Transaction{Events: []sandbox.Event{e}})
}

// latePatience bounds what is done about a call that has ended.
const latePatience = 30 * time.Second

// newRequestID makes a UUID of version 4, which is what SDKs expect.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it ends the process rather than fail
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// failed is a call whose process could not answer.
func failed(kind, format string, args ...any) *sandbox.FunctionError {
	return &sandbox.FunctionError{Class: sandbox.FunctionUnhandled, Type: kind, Message: fmt.Sprintf(format, args...), StackTrace: []string{}}
}

// timedOut is a call, or a start, that took longer than it may.
func timedOut(id string, limit time.Duration) *sandbox.FunctionError {
	return failed("Sandbox.Timedout", "RequestId: %s Error: Task timed out after %.2f seconds", id, limit.Seconds())
}

// exited says what the end of a process means for the call that it served. An error
// is for what was no doing of the handler's.
func exited(id string, f sandbox.Function, res sandbox.Result, err error) (*sandbox.FunctionError, error) {
	switch {
	case err != nil && (res.ExecID == "" || res.Reason == sandbox.ReasonDenied):
		return nil, err
	case res.Reason == sandbox.ReasonInfra:
		return nil, sandbox.Errorf(sandbox.Unavailable, "the sandbox of function %s was lost: %s", f.Name, res.Cause).WithHint("call it again")
	case res.Reason == sandbox.ReasonOOM:
		return failed("Runtime.OutOfMemory", "RequestId: %s Error: Runtime exited with error: signal: killed: it was out of memory at %s", id, f.Limits.Memory), nil
	case res.Reason == sandbox.ReasonSignal:
		return failed("Runtime.ExitError", "RequestId: %s Error: Runtime exited with error: signal: %s", id, res.Signal), nil
	case res.Reason == sandbox.ReasonExited && res.Code == 0:
		return failed("Runtime.ExitError", "RequestId: %s Error: Runtime exited without providing a reason", id), nil
	case res.Reason == sandbox.ReasonExited:
		return failed("Runtime.ExitError", "RequestId: %s Error: Runtime exited with error: exit status %d", id, res.Code), nil
	case res.Reason == sandbox.ReasonDenied:
		return failed("Runtime.ExitError", "RequestId: %s Error: Runtime was ended by policy: %s", id, res.Cause), nil
	case res.Reason == sandbox.ReasonCanceled && err == nil:
		err = errors.New(res.Cause)
		return nil, sandbox.Errorf(sandbox.Unavailable, "the process of function %s was ended: %w", f.Name, err).WithHint("call it again")
	}
	return failed("Runtime.ExitError", "RequestId: %s Error: Runtime was ended: %s", id, res.Reason), nil
}
