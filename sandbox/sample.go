package sandbox

import "time"

// Sample is one reading of what a whole sandbox uses, its agent included. What
// could not be read, and a limit that there is not, is 0.
type Sample struct {
	Time time.Time `json:"time"` // of the reading, by the host's clock

	CPU       Duration `json:"cpu_ms"`         // used since the sandbox began
	Throttled Duration `json:"throttled_ms"`   // so long its CPU limit held it back since then, added up over cores
	CPUs      float64  `json:"cpus,omitempty"` // its limit, in cores
	Cores     int      `json:"cores"`          // of the machine it runs on

	Memory       Bytes `json:"memory_bytes"`                 // working set: without files that the kernel caches and can drop first
	MemoryCached Bytes `json:"memory_cached_bytes"`          // with all that is cached
	MemoryLimit  Bytes `json:"memory_limit_bytes,omitempty"` // of what is cached too
	OOMKills     int64 `json:"oom_kills"`                    // since it began

	Processes    int   `json:"processes"`               // and threads
	ProcessLimit int   `json:"process_limit,omitempty"` // of these
	ProcessHits  int64 `json:"process_hits"`            // times that the limit was met since it began
	Zombies      int   `json:"zombies"`                 // processes that ended and were not waited for yet

	NetworkReceived Bytes `json:"network_received_bytes"` // since it began, but for the loopback device
	NetworkSent     Bytes `json:"network_sent_bytes"`
	BlockRead       Bytes `json:"block_read_bytes"` // since it began, of devices
	BlockWritten    Bytes `json:"block_written_bytes"`

	// Workspace is what it holds. Where its file system does not know, it is as
	// it was last counted; of a folder of the host it is 0.
	Workspace     Bytes `json:"workspace_bytes"`
	WorkspaceSize Bytes `json:"workspace_size_bytes,omitempty"`
	Tmp           Bytes `json:"tmp_bytes"` // in /tmp and all other file systems in memory but the workspace
	TmpSize       Bytes `json:"tmp_size_bytes,omitempty"`

	// AgentMemory and AgentProcesses are what of it is the agent's own; 0 where
	// the engine was asked.
	AgentMemory    Bytes `json:"agent_memory_bytes,omitempty"`
	AgentProcesses int   `json:"agent_processes,omitempty"`
}
