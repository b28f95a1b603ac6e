package monitor

import (
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// figuresOf makes of a sample and the one before it what rules look at. Without
// one before, rates are 0.
func figuresOf(before *sandbox.Sample, s sandbox.Sample, l sandbox.LiveSandbox, denials int) sandbox.Figures {
	own := s.AgentProcesses
	if before != nil && own == 0 {
		own = before.AgentProcesses // the engine does not know
	}
	f := sandbox.Figures{
		Memory: percent(float64(s.Memory), float64(s.MemoryLimit)), MemoryBytes: float64(s.Memory),
		ProcessCount: float64(max(0, s.Processes-own)),
		Workspace:    percent(float64(s.Workspace), float64(s.WorkspaceSize)), Tmp: percent(float64(s.Tmp), float64(s.TmpSize)),
		Denials: float64(denials), RefusedConnections: float64(l.Refused),
	}
	if s.ProcessLimit > own {
		f.Processes = percent(f.ProcessCount, float64(s.ProcessLimit-own))
	}
	for i, e := range l.Execs {
		ran := s.Time.Sub(e.Started)
		if i == 0 {
			f.ExecSeconds = max(0, ran.Seconds())
		}
		if e.Timeout > 0 {
			f.ExecOverdue = max(f.ExecOverdue, (ran - e.Timeout).Seconds())
		}
	}
	if l.Session == "" {
		f.Denials = 0 // one-shots have nothing in common
	}
	if before == nil {
		if l.Session == "" {
			f.OOMKills = float64(s.OOMKills) // all of a one-shot's life is ours
		}
		return f
	}
	passed := s.Time.Sub(before.Time)
	f.OOMKills = float64(max(0, s.OOMKills-before.OOMKills))
	cores := rate(before.CPU, s.CPU, passed)
	f.CPUMachine = percent(cores, float64(s.Cores))
	if f.CPU = f.CPUMachine; s.CPUs > 0 {
		f.CPU = percent(cores, s.CPUs)
	}
	f.Throttled = min(100, 100*rate(before.Throttled, s.Throttled, passed))
	f.NetworkReceived = rate(before.NetworkReceived, s.NetworkReceived, passed) * float64(time.Second)
	f.NetworkSent = rate(before.NetworkSent, s.NetworkSent, passed) * float64(time.Second)
	f.BlockRead = rate(before.BlockRead, s.BlockRead, passed) * float64(time.Second)
	f.BlockWritten = rate(before.BlockWritten, s.BlockWritten, passed) * float64(time.Second)
	return f
}

// percent is how much of a limit is used; 0 where there is none.
func percent(of, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return 100 * of / limit
}

// rate is how much a counter grew within a nanosecond. One that went back, since
// its sandbox is another or its agent lies, did not grow.
func rate[T ~int64](from, to T, passed time.Duration) float64 {
	if passed <= 0 || to <= from {
		return 0
	}
	return float64(to-from) / float64(passed)
}

// take adds what was seen to a reading.
func take(r *sandbox.Reading, s sandbox.Sample, f sandbox.Figures) {
	if r.Samples == 0 {
		r.First = s.Time
	}
	r.Samples++
	r.Sample, r.Now = s, f
	var now []float64
	f.Each(func(_ int, v *float64) { now = append(now, *v) })
	r.Peak.Each(func(i int, v *float64) { *v = max(*v, now[i]) })
	r.Mean.Each(func(i int, v *float64) { *v += (now[i] - *v) / float64(r.Samples) })
}
