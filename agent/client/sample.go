package client

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Sample reads the sandbox's resources now. It does not count as a use of the
// sandbox. Errors: Unsupported of an agent that knows no samples, Unavailable.
func (c *Client) Sample(ctx context.Context) (sandbox.Sample, error) {
	r, err := c.ask(ctx, wire.Request{Op: wire.OpSample})
	if err != nil {
		return sandbox.Sample{}, err
	}
	if r.Sample == nil {
		return sandbox.Sample{}, broken("read a sample", fmt.Errorf("%w: empty", wire.ErrFrame))
	}
	s := r.Sample
	memory := bytesOf(s.MemoryBytes)
	return sandbox.Sample{
		Time: time.Now(), CPU: sandbox.Duration(micros(s.CPUUS)), Throttled: sandbox.Duration(micros(s.ThrottledUS)),
		CPUs: float64(bounded(s.MilliCPUs)) / 1000, Cores: min(max(s.Cores, 0), maxCount),
		Memory: memory - min(memory, bytesOf(s.CachedBytes)), MemoryCached: memory, MemoryLimit: bytesOf(s.MemoryLimit), OOMKills: bounded(s.OOMKills),
		Processes: min(max(s.Processes, 0), maxCount), ProcessLimit: min(max(s.ProcessLimit, 0), maxCount),
		ProcessHits: bounded(s.PIDsMax), Zombies: min(max(s.Zombies, 0), maxCount),
		NetworkReceived: bytesOf(s.ReceivedBytes), NetworkSent: bytesOf(s.SentBytes), BlockRead: bytesOf(s.ReadBytes), BlockWritten: bytesOf(s.WrittenBytes),
		Workspace: bytesOf(s.WorkspaceBytes), WorkspaceSize: bytesOf(s.WorkspaceSize), Tmp: bytesOf(s.TmpBytes), TmpSize: bytesOf(s.TmpSize),
		AgentMemory: bytesOf(s.AgentBytes), AgentProcesses: min(max(s.AgentTasks, 0), maxCount),
	}, nil
}

// What no honest agent counts beyond: tasks and cores, and bytes and events.
const (
	maxCount   = 1 << 30
	maxCounter = 1 << 60
)

// bounded is a counter that an agent named, bounded to what can be one.
func bounded(n int64) int64 { return min(max(n, 0), maxCounter) }

func bytesOf(n int64) sandbox.Bytes { return sandbox.Bytes(bounded(n)) }
