//go:build linux

package pid1

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Roles, as the wire names them.
const roleRunner = "runner"

// uid is the number of a role's user. Only a claimed agent has one.
func (a *Agent) uid(role string) int {
	if role == roleRunner {
		return a.claim.RunnerUID
	}
	return a.claim.UID
}

// as runs do with a role's rights to files, on a thread that has them for that
// long. do must not start goroutines whose file access should count.
func (a *Agent) as(role string, do func()) error {
	uid := a.uid(role)
	a.acting <- struct{}{}
	defer func() { <-a.acting }()
	if a.cfg.Alone != nil { // there is nobody else
		do()
		return nil
	}
	return actAs(uid, do)
}

// actAs is [Agent.as] for a number, and waits for no place.
func actAs(uid int, do func()) error {
	runtime.LockOSThread()
	if err := setfs(uid); err != nil {
		// The thread may be half-way: it is not unlocked, and ends with the
		// goroutine that holds it.
		return err
	}
	do()
	own := unix.Geteuid()
	if err := setfs(own); err != nil {
		return err
	}
	runtime.UnlockOSThread()
	return nil
}

// setfs makes the calling thread, which is locked, reach files as a user does.
func setfs(id int) error {
	// Both calls report no failure; the second one tells what holds now.
	for _, call := range []uintptr{unix.SYS_SETFSGID, unix.SYS_SETFSUID} {
		_, _, _ = unix.RawSyscall(call, uintptr(id), 0, 0)
		if now, _, _ := unix.RawSyscall(call, ^uintptr(0), 0, 0); int(now) != id {
			return fmt.Errorf("act as uid %d: not permitted", id)
		}
	}
	return nil
}

// checkClaim reports what is wrong with a claim.
func checkClaim(c *wire.Claim, alone bool) error {
	own := unix.Geteuid()
	switch {
	case len(c.Secret) < 32:
		return fmt.Errorf("claim: a secret of %d bytes, at least 32", len(c.Secret))
	case c.UID <= 0 || c.RunnerUID <= 0 || c.UID == c.RunnerUID:
		return fmt.Errorf("claim: uids %d and %d must differ and not be 0", c.UID, c.RunnerUID)
	case !alone && (c.UID == own || c.RunnerUID == own):
		return fmt.Errorf("claim: uid %d is the agent's own", own)
	}
	return nil
}
