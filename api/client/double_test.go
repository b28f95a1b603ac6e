package client_test

import (
	"context"
	"io"
	"iter"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func (d *double) Approvals(ctx context.Context, filter sandbox.ApprovalFilter) ([]sandbox.Approval, error) {
	v := d.called("Approvals", ctx, filter)
	return as[[]sandbox.Approval](v, 0), as[error](v, 1)
}

func (d *double) Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error) {
	v := d.called("Approval", ctx, id)
	return as[sandbox.Approval](v, 0), as[error](v, 1)
}

func (d *double) AnswerApproval(ctx context.Context, answer sandbox.ApprovalAnswer) (sandbox.Approval, error) {
	v := d.called("AnswerApproval", ctx, answer)
	return as[sandbox.Approval](v, 0), as[error](v, 1)
}

func (d *double) RevokeApproval(ctx context.Context, id sandbox.ID, by string) (sandbox.Approval, error) {
	v := d.called("RevokeApproval", ctx, id, by)
	return as[sandbox.Approval](v, 0), as[error](v, 1)
}

func (d *double) Events(ctx context.Context, filter sandbox.EventFilter) iter.Seq2[sandbox.Event, error] {
	v := d.called("Events", ctx, filter)
	return as[iter.Seq2[sandbox.Event, error]](v, 0)
}

func (d *double) VerifyAudit(ctx context.Context) (sandbox.AuditReport, error) {
	v := d.called("VerifyAudit", ctx)
	return as[sandbox.AuditReport](v, 0), as[error](v, 1)
}

func (d *double) ReanchorAudit(ctx context.Context, reason string) (int64, error) {
	v := d.called("ReanchorAudit", ctx, reason)
	return as[int64](v, 0), as[error](v, 1)
}

func (d *double) PruneAudit(ctx context.Context, keep sandbox.Retention) (sandbox.Pruned, error) {
	v := d.called("PruneAudit", ctx, keep)
	return as[sandbox.Pruned](v, 0), as[error](v, 1)
}

func (d *double) Changes(ctx context.Context, session string, opts api.ChangesOptions) ([]sandbox.ChangeRecord, error) {
	v := d.called("Changes", ctx, session, opts)
	return as[[]sandbox.ChangeRecord](v, 0), as[error](v, 1)
}

func (d *double) Diff(ctx context.Context, session string, opts api.ChangesOptions) ([]sandbox.FileDiff, error) {
	v := d.called("Diff", ctx, session, opts)
	return as[[]sandbox.FileDiff](v, 0), as[error](v, 1)
}

func (d *double) Undo(ctx context.Context, session string, opts api.UndoOptions) (api.Undone, error) {
	v := d.called("Undo", ctx, session, opts)
	return as[api.Undone](v, 0), as[error](v, 1)
}

func (d *double) Feed(ctx context.Context) iter.Seq[sandbox.ChangeNews] {
	v := d.called("Feed", ctx)
	return as[iter.Seq[sandbox.ChangeNews]](v, 0)
}

func (d *double) Doctor(ctx context.Context) ([]api.Check, error) {
	v := d.called("Doctor", ctx)
	return as[[]api.Check](v, 0), as[error](v, 1)
}

func (d *double) AttachExec(ctx context.Context, session string, id sandbox.ID, opts sandbox.AttachOptions, stdout io.Writer, stderr io.Writer) (sandbox.Attached, error) {
	v := d.called("AttachExec", ctx, session, id, opts, stdout, stderr)
	return as[sandbox.Attached](v, 0), as[error](v, 1)
}

func (d *double) InputExec(ctx context.Context, session string, id sandbox.ID, b []byte, end bool) (int, error) {
	v := d.called("InputExec", ctx, session, id, b, end)
	return as[int](v, 0), as[error](v, 1)
}

func (d *double) SignalExec(ctx context.Context, session string, id sandbox.ID, signal int, all bool) error {
	v := d.called("SignalExec", ctx, session, id, signal, all)
	return as[error](v, 0)
}

func (d *double) KillExec(ctx context.Context, session string, id sandbox.ID) error {
	v := d.called("KillExec", ctx, session, id)
	return as[error](v, 0)
}

func (d *double) AttachTerminal(ctx context.Context, session string, id sandbox.ID, streams sandbox.Streams) (sandbox.Attached, error) {
	v := d.called("AttachTerminal", ctx, session, id, streams)
	return as[sandbox.Attached](v, 0), as[error](v, 1)
}

func (d *double) ResizeExec(ctx context.Context, session string, id sandbox.ID, rows uint16, cols uint16) error {
	v := d.called("ResizeExec", ctx, session, id, rows, cols)
	return as[error](v, 0)
}

func (d *double) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	v := d.called("Exec", ctx, session, run, streams)
	return as[sandbox.Result](v, 0), as[error](v, 1)
}

func (d *double) StartExec(ctx context.Context, session string, run sandbox.Run, local sandbox.Local) (sandbox.ExecRecord, error) {
	v := d.called("StartExec", ctx, session, run, local)
	return as[sandbox.ExecRecord](v, 0), as[error](v, 1)
}

func (d *double) ListExecs(ctx context.Context, filter sandbox.ExecFilter) ([]sandbox.ExecRecord, error) {
	v := d.called("ListExecs", ctx, filter)
	return as[[]sandbox.ExecRecord](v, 0), as[error](v, 1)
}

func (d *double) Processes(ctx context.Context, session string) ([]api.Process, error) {
	v := d.called("Processes", ctx, session)
	return as[[]api.Process](v, 0), as[error](v, 1)
}

func (f *doubleFiles) Stat(ctx context.Context, name string) (sandbox.FileInfo, error) {
	v := f.called("Stat", ctx, name)
	return as[sandbox.FileInfo](v, 0), as[error](v, 1)
}

func (f *doubleFiles) Tree(ctx context.Context, name string, depth int) iter.Seq2[sandbox.FileInfo, error] {
	v := f.called("Tree", ctx, name, depth)
	return as[iter.Seq2[sandbox.FileInfo, error]](v, 0)
}

func (f *doubleFiles) Read(ctx context.Context, name string, offset int64, length int64, w io.Writer) (int64, error) {
	_, _ = w.Write([]byte("read"))
	v := f.called("Read", ctx, name, offset, length, w)
	return as[int64](v, 0), as[error](v, 1)
}

func (f *doubleFiles) Write(ctx context.Context, name string, mode uint32, r io.Reader) (int64, error) {
	v := f.called("Write", ctx, name, mode, r)
	return as[int64](v, 0), as[error](v, 1)
}

func (f *doubleFiles) Put(ctx context.Context, files []sandbox.File, local sandbox.Local) error {
	v := f.called("Put", ctx, files, local)
	return as[error](v, 0)
}

func (f *doubleFiles) PutTar(ctx context.Context, dir string, r io.Reader) (sandbox.Moved, error) {
	v := f.called("PutTar", ctx, dir, r)
	return as[sandbox.Moved](v, 0), as[error](v, 1)
}

func (f *doubleFiles) Get(ctx context.Context, dir string, paths []string, w io.Writer) (sandbox.Moved, error) {
	v := f.called("Get", ctx, dir, paths, w)
	return as[sandbox.Moved](v, 0), as[error](v, 1)
}

func (f *doubleFiles) Mkdir(ctx context.Context, name string, mode uint32) error {
	v := f.called("Mkdir", ctx, name, mode)
	return as[error](v, 0)
}

func (f *doubleFiles) SetAttributes(ctx context.Context, name string, all map[string]string) error {
	v := f.called("SetAttributes", ctx, name, all)
	return as[error](v, 0)
}

func (f *doubleFiles) Move(ctx context.Context, from string, to string) error {
	v := f.called("Move", ctx, from, to)
	return as[error](v, 0)
}

func (f *doubleFiles) Remove(ctx context.Context, name string, recursive bool) error {
	v := f.called("Remove", ctx, name, recursive)
	return as[error](v, 0)
}

func (f *doubleFiles) Watch(ctx context.Context, name string, recursive bool) iter.Seq2[sandbox.FileEvent, error] {
	v := f.called("Watch", ctx, name, recursive)
	return as[iter.Seq2[sandbox.FileEvent, error]](v, 0)
}

func (d *double) Sweep(ctx context.Context, opts api.SweepOptions) ([]sandbox.Orphan, error) {
	v := d.called("Sweep", ctx, opts)
	return as[[]sandbox.Orphan](v, 0), as[error](v, 1)
}

func (d *double) StateSizes(ctx context.Context) ([]sandbox.StateSize, error) {
	v := d.called("StateSizes", ctx)
	return as[[]sandbox.StateSize](v, 0), as[error](v, 1)
}

func (d *double) PoolShelves(ctx context.Context) ([]sandbox.PoolShelf, error) {
	v := d.called("PoolShelves", ctx)
	return as[[]sandbox.PoolShelf](v, 0), as[error](v, 1)
}

func (d *double) UnpackImage(ctx context.Context, name string) (sandbox.ImageRoot, error) {
	v := d.called("UnpackImage", ctx, name)
	return as[sandbox.ImageRoot](v, 0), as[error](v, 1)
}

func (d *double) UnpackedImages(ctx context.Context) ([]sandbox.ImageRoot, error) {
	v := d.called("UnpackedImages", ctx)
	return as[[]sandbox.ImageRoot](v, 0), as[error](v, 1)
}

func (d *double) PinImages(ctx context.Context, names []string) ([]sandbox.ImagePin, error) {
	v := d.called("PinImages", ctx, names)
	return as[[]sandbox.ImagePin](v, 0), as[error](v, 1)
}

func (d *double) VerifyImages(ctx context.Context) ([]sandbox.ImageCheck, error) {
	v := d.called("VerifyImages", ctx)
	return as[[]sandbox.ImageCheck](v, 0), as[error](v, 1)
}

func (d *double) EnsureImage(ctx context.Context, name string) (sandbox.Image, error) {
	v := d.called("EnsureImage", ctx, name)
	return as[sandbox.Image](v, 0), as[error](v, 1)
}

func (d *double) MakeImage(ctx context.Context, name string, opts sandbox.MakeImageOptions) (sandbox.Image, error) {
	v := d.called("MakeImage", ctx, name, opts)
	return as[sandbox.Image](v, 0), as[error](v, 1)
}

func (d *double) PullImage(ctx context.Context, name string, opts sandbox.PullImageOptions) (sandbox.Image, error) {
	v := d.called("PullImage", ctx, name, opts)
	return as[sandbox.Image](v, 0), as[error](v, 1)
}

func (d *double) PrewarmImages(ctx context.Context, names []string) ([]api.ImageResult, error) {
	v := d.called("PrewarmImages", ctx, names)
	return as[[]api.ImageResult](v, 0), as[error](v, 1)
}

func (d *double) PruneImages(ctx context.Context, dryRun bool) ([]sandbox.PrunedImage, error) {
	v := d.called("PruneImages", ctx, dryRun)
	return as[[]sandbox.PrunedImage](v, 0), as[error](v, 1)
}

func (d *double) SessionEnv(ctx context.Context, name string) ([]string, error) {
	v := d.called("SessionEnv", ctx, name)
	return as[[]string](v, 0), as[error](v, 1)
}

func (d *double) SessionStats(ctx context.Context, name string) (sandbox.SessionStats, error) {
	v := d.called("SessionStats", ctx, name)
	return as[sandbox.SessionStats](v, 0), as[error](v, 1)
}

func (d *double) Languages(ctx context.Context) ([]api.LanguageInfo, error) {
	v := d.called("Languages", ctx)
	return as[[]api.LanguageInfo](v, 0), as[error](v, 1)
}

func (d *double) LanguageOf(file string) (string, error) {
	v := d.called("LanguageOf", file)
	return as[string](v, 0), as[error](v, 1)
}

func (d *double) Readings(ctx context.Context, filter sandbox.ReadingFilter) ([]sandbox.Reading, error) {
	v := d.called("Readings", ctx, filter)
	return as[[]sandbox.Reading](v, 0), as[error](v, 1)
}

func (d *double) Alerts(ctx context.Context, filter sandbox.AlertFilter) ([]sandbox.Alert, error) {
	v := d.called("Alerts", ctx, filter)
	return as[[]sandbox.Alert](v, 0), as[error](v, 1)
}

func (d *double) Metrics(ctx context.Context, w io.Writer) error {
	v := d.called("Metrics", ctx, w)
	return as[error](v, 0)
}

func (d *double) AlertNews(ctx context.Context) iter.Seq[sandbox.AlertNews] {
	v := d.called("AlertNews", ctx)
	return as[iter.Seq[sandbox.AlertNews]](v, 0)
}

func (d *double) PauseSession(ctx context.Context, name string) error {
	v := d.called("PauseSession", ctx, name)
	return as[error](v, 0)
}

func (d *double) ResumeSession(ctx context.Context, name string) error {
	v := d.called("ResumeSession", ctx, name)
	return as[error](v, 0)
}

func (d *double) StopSession(ctx context.Context, name string) error {
	v := d.called("StopSession", ctx, name)
	return as[error](v, 0)
}

func (d *double) CheckCode(ctx context.Context, language string, code []byte, file string) (sandbox.Decision, error) {
	v := d.called("CheckCode", ctx, language, code, file)
	return as[sandbox.Decision](v, 0), as[error](v, 1)
}

func (d *double) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	v := d.called("Run", ctx, run, streams)
	return as[sandbox.Result](v, 0), as[error](v, 1)
}

func (d *double) CreateSession(ctx context.Context, opts api.SessionOptions, local sandbox.Local) (sandbox.Session, error) {
	v := d.called("CreateSession", ctx, opts, local)
	return as[sandbox.Session](v, 0), as[error](v, 1)
}

func (d *double) Session(ctx context.Context, name string) (sandbox.SessionView, error) {
	v := d.called("Session", ctx, name)
	return as[sandbox.SessionView](v, 0), as[error](v, 1)
}

func (d *double) Sessions(ctx context.Context, filter sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	v := d.called("Sessions", ctx, filter)
	return as[[]sandbox.SessionView](v, 0), as[error](v, 1)
}

func (d *double) RenewSession(ctx context.Context, name string, opts api.RenewOptions) error {
	v := d.called("RenewSession", ctx, name, opts)
	return as[error](v, 0)
}

func (d *double) ChangeNetwork(ctx context.Context, name string, change sandbox.NetworkChange) (sandbox.Network, error) {
	v := d.called("ChangeNetwork", ctx, name, change)
	return as[sandbox.Network](v, 0), as[error](v, 1)
}

func (d *double) RemoveSession(ctx context.Context, name string, force bool) error {
	v := d.called("RemoveSession", ctx, name, force)
	return as[error](v, 0)
}

func (d *double) Snapshot(ctx context.Context, session string, name string) (sandbox.Snapshot, error) {
	v := d.called("Snapshot", ctx, session, name)
	return as[sandbox.Snapshot](v, 0), as[error](v, 1)
}

func (d *double) RestoreSession(ctx context.Context, session string, snapshot string) (sandbox.Snapshot, error) {
	v := d.called("RestoreSession", ctx, session, snapshot)
	return as[sandbox.Snapshot](v, 0), as[error](v, 1)
}

func (d *double) RemoveSnapshot(ctx context.Context, session string, snapshot string) error {
	v := d.called("RemoveSnapshot", ctx, session, snapshot)
	return as[error](v, 0)
}

func (d *double) ForkSession(ctx context.Context, session string, opts api.ForkOptions) (api.Forked, error) {
	v := d.called("ForkSession", ctx, session, opts)
	return as[api.Forked](v, 0), as[error](v, 1)
}

func (d *double) CreateToken(ctx context.Context, opts sandbox.TokenOptions) (sandbox.NewToken, error) {
	v := d.called("CreateToken", ctx, opts)
	return as[sandbox.NewToken](v, 0), as[error](v, 1)
}

func (d *double) Tokens(ctx context.Context) ([]sandbox.Token, error) {
	v := d.called("Tokens", ctx)
	return as[[]sandbox.Token](v, 0), as[error](v, 1)
}

func (d *double) RevokeToken(ctx context.Context, name string) error {
	v := d.called("RevokeToken", ctx, name)
	return as[error](v, 0)
}

func (d *double) Files(context.Context, string) (api.Files, error) { return &doubleFiles{d}, nil }

func (d *double) SubmitExecution(ctx context.Context, opts sandbox.ExecutionOptions, local sandbox.Local) (sandbox.Execution, error) {
	v := d.called("SubmitExecution", ctx, opts, local)
	return as[sandbox.Execution](v, 0), as[error](v, 1)
}

func (d *double) Execution(ctx context.Context, id sandbox.ID, wait sandbox.Duration) (sandbox.Execution, error) {
	v := d.called("Execution", ctx, id, wait)
	return as[sandbox.Execution](v, 0), as[error](v, 1)
}

func (d *double) Executions(ctx context.Context, filter sandbox.ExecutionFilter) ([]sandbox.Execution, error) {
	v := d.called("Executions", ctx, filter)
	return as[[]sandbox.Execution](v, 0), as[error](v, 1)
}

func (d *double) CancelExecution(ctx context.Context, id sandbox.ID) (sandbox.Execution, error) {
	v := d.called("CancelExecution", ctx, id)
	return as[sandbox.Execution](v, 0), as[error](v, 1)
}

func (d *double) ExecutionArtifact(ctx context.Context, id sandbox.ID, path string, w io.Writer) (int64, error) {
	_, _ = w.Write([]byte("read"))
	v := d.called("ExecutionArtifact", ctx, id, path, w)
	return as[int64](v, 0), as[error](v, 1)
}

func (d *double) DeadLetters(ctx context.Context, filter sandbox.DeadLetterFilter) ([]sandbox.DeadLetter, error) {
	v := d.called("DeadLetters", ctx, filter)
	return as[[]sandbox.DeadLetter](v, 0), as[error](v, 1)
}

func (d *double) ResendDeadLetter(ctx context.Context, execution sandbox.ID) (sandbox.DeadLetter, error) {
	v := d.called("ResendDeadLetter", ctx, execution)
	return as[sandbox.DeadLetter](v, 0), as[error](v, 1)
}

func (d *double) OpenShell(ctx context.Context, session, name string, opts sandbox.ShellOptions) (sandbox.Shell, error) {
	v := d.called("OpenShell", ctx, session, name, opts)
	return as[sandbox.Shell](v, 0), as[error](v, 1)
}

func (d *double) RunShell(ctx context.Context, session, name string, run sandbox.ShellRun, streams sandbox.Streams) (sandbox.Result, error) {
	v := d.called("RunShell", ctx, session, name, run, streams)
	return as[sandbox.Result](v, 0), as[error](v, 1)
}

func (d *double) CloseShell(ctx context.Context, session, name string) error {
	v := d.called("CloseShell", ctx, session, name)
	return as[error](v, 0)
}

func (d *double) ListShells(ctx context.Context, session string) ([]sandbox.Shell, error) {
	v := d.called("ListShells", ctx, session)
	return as[[]sandbox.Shell](v, 0), as[error](v, 1)
}

func (d *double) PutFunction(ctx context.Context, opts sandbox.FunctionOptions, local sandbox.Local) (sandbox.Function, error) {
	v := d.called("PutFunction", ctx, opts, local)
	return as[sandbox.Function](v, 0), as[error](v, 1)
}

func (d *double) Function(ctx context.Context, name string) (sandbox.Function, error) {
	v := d.called("Function", ctx, name)
	return as[sandbox.Function](v, 0), as[error](v, 1)
}

func (d *double) Functions(ctx context.Context, filter sandbox.FunctionFilter) ([]sandbox.Function, error) {
	v := d.called("Functions", ctx, filter)
	return as[[]sandbox.Function](v, 0), as[error](v, 1)
}

func (d *double) RemoveFunction(ctx context.Context, name string) error {
	v := d.called("RemoveFunction", ctx, name)
	return as[error](v, 0)
}

func (d *double) InvokeFunction(ctx context.Context, call sandbox.Invocation, local sandbox.Local) (sandbox.Invoked, error) {
	v := d.called("InvokeFunction", ctx, call, local)
	return as[sandbox.Invoked](v, 0), as[error](v, 1)
}

type doubleFiles struct{ *double }

// as is one of the values that a method returns.
func as[T any](values []any, i int) T {
	v, _ := values[i].(T)
	return v
}
