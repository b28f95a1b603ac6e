package docker

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// Sample asks the engine what the container's cgroup counts. Errors: those of
// the engine, NotFound for a container that is gone.
func (i *Instance) Sample(ctx context.Context) (sandbox.Sample, error) {
	api, err := i.r.cfg.Engine.API(ctx)
	if err != nil {
		return sandbox.Sample{}, err
	}
	got, err := api.ContainerStatsOneShot(ctx, i.handle.Name)
	if err != nil {
		return sandbox.Sample{}, dockerclient.Wrap(err, "ask for the container's counters")
	}
	defer got.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(got.Body).Decode(&s); err != nil {
		return sandbox.Sample{}, dockerclient.Wrap(err, "read the container's counters")
	}
	memory := s.MemoryStats.Usage
	for _, name := range []string{"total_inactive_file", "inactive_file"} { // of cgroup v1, and of v2
		if cache, ok := s.MemoryStats.Stats[name]; ok {
			memory -= min(cache, memory)
			break
		}
	}
	sample := sandbox.Sample{
		Time: time.Now(), CPU: sandbox.Duration(s.CPUStats.CPUUsage.TotalUsage), Throttled: sandbox.Duration(s.CPUStats.ThrottlingData.ThrottledTime), Cores: int(s.CPUStats.OnlineCPUs),
		Memory: sandbox.Bytes(memory), MemoryCached: sandbox.Bytes(s.MemoryStats.Usage), MemoryLimit: sandbox.Bytes(s.MemoryStats.Limit),
		Processes: int(s.PidsStats.Current), ProcessLimit: int(min(s.PidsStats.Limit, math.MaxInt32)),
	}
	for _, n := range s.Networks {
		sample.NetworkReceived, sample.NetworkSent = sample.NetworkReceived+sandbox.Bytes(n.RxBytes), sample.NetworkSent+sandbox.Bytes(n.TxBytes)
	}
	for _, io := range s.BlkioStats.IoServiceBytesRecursive {
		switch strings.ToLower(io.Op) {
		case "read":
			sample.BlockRead += sandbox.Bytes(io.Value)
		case "write":
			sample.BlockWritten += sandbox.Bytes(io.Value)
		}
	}
	return sample, nil
}
