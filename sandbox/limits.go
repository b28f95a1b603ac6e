package sandbox

import (
	"fmt"
	"time"
)

// Limits bound a sandbox. A zero field is the default, never "no limit".
type Limits struct {
	Memory    Bytes   `json:"memory_bytes,omitempty"`    // of all processes and tmpfs together, without swap
	CPUs      float64 `json:"cpus,omitempty"`            // share of cores
	PIDs      int     `json:"pids,omitempty"`            // processes and threads of the user's
	Workspace Bytes   `json:"workspace_bytes,omitempty"` // size of the workspace, but for a host folder
	Tmp       Bytes   `json:"tmp_bytes,omitempty"`       // size of /tmp, and of the home folder
	Shm       Bytes   `json:"shm_bytes,omitempty"`       // size of /dev/shm
	OpenFiles int     `json:"open_files,omitempty"`      // RLIMIT_NOFILE
	FileSize  Bytes   `json:"file_size_bytes,omitempty"` // RLIMIT_FSIZE
	// Hardening is the second layer around programs, beside the sandbox itself.
	Hardening Hardening `json:"hardening,omitempty"`
}

// Hardening says whether the agent holds what it starts to rules of its own: writes
// where the sandbox has room for them and nowhere else, looks at and traces nothing
// but its own exec's processes, and makes no system calls that no program needs. The
// zero value is [HardeningStrict] where that works.
type Hardening string

// The two that can be asked for.
const (
	HardeningStrict Hardening = "strict" // or no sandbox is made
	HardeningOff    Hardening = "off"
)

// DefaultLimits is what a zero field of [Limits] means.
var DefaultLimits = Limits{
	Memory: 512 * MiB, CPUs: 0.5, PIDs: 100, Workspace: 256 * MiB, Tmp: 64 * MiB, Shm: 64 * MiB, OpenFiles: 1024, FileSize: GiB,
}

// MinMemory is the least memory limit that an agent and a program fit in.
const MinMemory = 32 * MiB

// WithDefaults returns l with every zero field filled from [DefaultLimits].
func (l Limits) WithDefaults() Limits { return l.Or(DefaultLimits) }

// Or returns l with every zero field filled from d.
func (l Limits) Or(d Limits) Limits {
	fill(&l.Memory, d.Memory)
	fill(&l.CPUs, d.CPUs)
	fill(&l.PIDs, d.PIDs)
	fill(&l.Workspace, d.Workspace)
	fill(&l.Tmp, d.Tmp)
	fill(&l.Shm, d.Shm)
	fill(&l.OpenFiles, d.OpenFiles)
	fill(&l.FileSize, d.FileSize)
	fill(&l.Hardening, d.Hardening)
	return l
}

// Check reports the first limit that cannot be meant, as an [Invalid] error.
// It wants a value that [Limits.WithDefaults] has filled.
func (l Limits) Check() error {
	switch {
	case l.Memory < MinMemory:
		return outOfRange("--memory", l.Memory, fmt.Sprintf("at least %s", MinMemory))
	case !(l.CPUs >= 0.01 && l.CPUs <= 1024): // written so that NaN is refused
		return outOfRange("--cpus", l.CPUs, "0.01 to 1024")
	case l.PIDs < 1 || l.PIDs > 1<<20:
		return outOfRange("--pids", l.PIDs, "1 to 1048576")
	case l.Workspace < 4*KiB:
		return outOfRange("--workspace-size", l.Workspace, "at least 4k")
	case l.Tmp < 4*KiB:
		return outOfRange("--tmp-size", l.Tmp, "at least 4k")
	case l.Shm < 4*KiB:
		return outOfRange("--shm-size", l.Shm, "at least 4k")
	case l.OpenFiles < 16 || l.OpenFiles > 1<<20:
		return outOfRange("--open-files", l.OpenFiles, "16 to 1048576")
	case l.FileSize < 1:
		return outOfRange("--file-size", l.FileSize, "a positive size")
	case l.Hardening != "" && l.Hardening != HardeningStrict && l.Hardening != HardeningOff:
		return outOfRange("--hardening", l.Hardening, "strict or off")
	}
	return nil
}

// ExecLimits bound one exec. A zero field is the default; for an exec in the
// background, a zero Timeout and MaxOutput are no limit.
type ExecLimits struct {
	Timeout    Duration `json:"timeout_ms,omitempty"`
	KeepOutput Bytes    `json:"output_keep_bytes,omitempty"` // of each stream, kept in the Result: head and tail
	MaxOutput  Bytes    `json:"output_max_bytes,omitempty"`  // of each stream; beyond it the exec is ended
}

// DefaultExecLimits is what a zero field of [ExecLimits] means.
var DefaultExecLimits = ExecLimits{Timeout: Duration(30 * time.Second), KeepOutput: MiB, MaxOutput: 64 * MiB}

// WithDefaults returns l with every zero field filled from [DefaultExecLimits].
func (l ExecLimits) WithDefaults() ExecLimits { return l.Or(DefaultExecLimits) }

// Or returns l with every zero field filled from d.
func (l ExecLimits) Or(d ExecLimits) ExecLimits {
	fill(&l.Timeout, d.Timeout)
	fill(&l.KeepOutput, d.KeepOutput)
	fill(&l.MaxOutput, d.MaxOutput)
	return l
}

// Check reports the first limit that cannot be meant, as an [Invalid] error.
// It wants a value that [ExecLimits.WithDefaults] has filled.
func (l ExecLimits) Check() error {
	switch {
	case l.Timeout < Duration(time.Millisecond):
		return outOfRange("--timeout", l.Timeout, "at least 1ms")
	case l.KeepOutput < 1 || l.KeepOutput > 1*GiB:
		return outOfRange("--keep-output", l.KeepOutput, "1 to 1g")
	case l.MaxOutput < 1:
		return outOfRange("--max-output", l.MaxOutput, "a positive size")
	}
	return nil
}

func fill[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

func outOfRange(flag string, got any, want string) error {
	return Errorf(Invalid, "%s %v is out of range", flag, got).WithHint("%s takes %s", flag, want)
}
