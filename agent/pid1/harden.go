//go:build linux

package pid1

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/internal/harden"
)

// cage is what programs of a hardened sandbox are put in, each by itself.
type cage struct {
	ruleset int         // of Landlock
	files   unix.Rlimit // that each may have open: the agent raised its own
}

// pipes are where a shell finds those that it answers by; what else lies there it may
// not write.
var pipes = []string{wire.StageDir}

// harden makes ready to hold programs to rules, as a claim asks for. Whoever is alone
// in a sandbox has each exec's first process see to that; here it is only tried.
func (a *Agent) harden(h *wire.Harden) error {
	if h == nil {
		return nil
	}
	if len(h.Writable) == 0 || h.OpenFiles <= 0 {
		return errors.New("no folders to write in, or no files to open")
	}
	ruleset, err := harden.Ruleset(h.Writable, pipes)
	if err != nil || a.cfg.Alone != nil {
		return errors.Join(err, closeAll(ruleset))
	}
	c := &cage{ruleset: ruleset}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &c.files); err != nil {
		return errors.Join(err, closeAll(ruleset))
	}
	c.files.Cur = min(uint64(h.OpenFiles), c.files.Max)
	program, err := harden.Filter()
	if err != nil {
		return errors.Join(err, closeAll(ruleset))
	}
	// The filter is the thread's own from then on, and costs an exec nothing. Rules of
	// Landlock would add up on it, and each exec is to have its own.
	return a.spawn.on(func() error {
		if err := harden.SetFilter(program); err != nil {
			return errors.Join(err, closeAll(ruleset))
		}
		a.spawn.cage = c
		return nil
	})
}

// closeAll closes a descriptor, where there is one.
func closeAll(fd int) error {
	if fd < 0 {
		return nil
	}
	return unix.Close(fd)
}
