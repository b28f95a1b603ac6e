package client

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

var ended = map[string]sandbox.ExitReason{
	"timeout": sandbox.ReasonTimeout, "canceled": sandbox.ReasonCanceled, "output": sandbox.ReasonOutput, "disk": sandbox.ReasonDisk,
	"denied": sandbox.ReasonDenied,
}

// failedFor lists the events that explain a failure, the likeliest first.
var failedFor = []struct {
	event  string
	reason sandbox.ExitReason
}{{"oom", sandbox.ReasonOOM}, {"pids", sandbox.ReasonPIDs}, {"disk", sandbox.ReasonDisk}}

// conclude checks the agent's last word and puts it into ours.
func (f *follower) conclude(end *wire.End) Outcome {
	if !f.cmd.Drop && (end.Error == "" && (end.Stdout != f.got[0] || end.Stderr != f.got[1])) {
		return f.infra(fmt.Errorf("%w: the end counts %d and %d bytes of output, %d and %d came", wire.ErrFrame,
			end.Stdout, end.Stderr, f.got[0], f.got[1]))
	}
	out := f.outcome()
	out.Code = end.Code & 0xff
	out.Message = end.Error[:min(len(end.Error), 4096)]
	out.Shared, out.Warm = end.Shared, end.Warm
	out.Broken, out.Touched = end.Survivors > 0 || end.Exhausted, max(end.Touched, 0)
	if end.Signal > 0 && end.Signal <= 64 {
		out.Signal = signalName(end.Signal)
	}
	for _, e := range failedFor {
		if slices.Contains(end.Events, e.event) {
			out.Events = append(out.Events, e.event)
		}
	}
	out.Answer = min(max(end.Answer, 0), int64(f.cmd.Answer))
	if out.Answer > 0 && int64(len(end.Answered)) == out.Answer {
		out.Answered = end.Answered
	}
	for _, t := range end.Told {
		s, err := checkedStart(t)
		if err != nil {
			return f.infra(err)
		}
		out.Told = append(out.Told, s)
	}
	out.Starts, out.Refused, out.Unjudged = max(end.Starts, 0), max(end.Refused, 0), max(end.Unjudged, 0)
	if out.Reason = f.reason(end, out); out.Reason == sandbox.ReasonCanceled || out.Reason == sandbox.ReasonDenied {
		out.Cause = end.Cause[:min(len(end.Cause), 256)]
	}
	f.mu.Lock()
	if f.source != nil && out.Reason == sandbox.ReasonCanceled {
		out.Cause = "its standard input could not be read: " + f.source.Error()
	}
	f.mu.Unlock()
	if f.sink != nil {
		out.Reason, out.Cause = sandbox.ReasonCanceled, "its output could not be written: "+f.sink.Error()
	}
	switch {
	case end.Exhausted:
		out.Cause = "files in memory (/tmp and its like) leave no room below the memory limit: the sandbox is given up"
	case out.Broken:
		out.Cause = fmt.Sprintf("%d processes could not be ended: the sandbox is given up", end.Survivors)
	}
	if end.Ended == "disk" || end.HeldEntries > 0 {
		out.Cause = fmt.Sprintf("the workspace grew past its size, to %s in %d entries: delete some of it, or make a session with a larger --workspace-size",
			sandbox.Bytes(max(end.HeldBytes, 0)), max(end.HeldEntries, 0))
	}
	out.Dir, out.ShellEnded = dirOf(end), end.ShellEnded[:min(len(end.ShellEnded), 256)]
	out.Usage = usage(end.Usage)
	f.over = true
	return out
}

// leave ends the stream. An agent whose last word was taken is told so first,
// and nobody waits for that but [Client.Close]: where it fails, the connection
// is broken, and the next call finds out.
func (f *follower) leave() {
	if !f.over || f.cmd.Look {
		_ = f.s.Close() // the agent is told by the connection's end, if not by this
		return
	}
	_ = f.s.SetWriteDeadline(time.Now().Add(cancelPatience)) // never fails on a stream
	f.c.parting.say(func() {
		_ = f.ack()
		_ = f.s.Close()
	})
}

func (f *follower) reason(end *wire.End, out Outcome) sandbox.ExitReason {
	if r, ok := ended[end.Ended]; ok {
		return r
	}
	if end.Code == 0 {
		return sandbox.ReasonExited
	}
	for _, e := range failedFor {
		if slices.Contains(out.Events, e.event) {
			return e.reason
		}
	}
	if out.Signal != "" {
		return sandbox.ReasonSignal
	}
	return sandbox.ReasonExited
}

// signalName is the signal's name, or its number where it has none.
func signalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", n)
}

// micros is a duration that an agent named, bounded to what can be one.
func micros(n int64) time.Duration { return time.Duration(min(max(n, 0), 1<<50)) * time.Microsecond }

func usage(u wire.Usage) sandbox.Usage {
	cut := func(s string) string { return s[:min(len(s), 64)] }
	return sandbox.Usage{
		CPU: micros(u.CPUUS), Wall: micros(u.WallUS), PeakMemory: sandbox.Bytes(max(u.MemoryBytes, 0)), PeakProcesses: max(u.Processes, 0),
		Methods: sandbox.Methods{CPU: cut(u.CPUMethod), Memory: cut(u.MemoryMethod), Processes: cut(u.ProcessesMethod)},
	}
}
