//go:build linux

package local

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/runtimes"
)

// ProcessLimit says whether a limit of processes holds in a user namespace without
// a control group: since Linux 5.14 RLIMIT_NPROC counts a user's processes by
// namespace, and before it all of them on the host.
func ProcessLimit() runtimes.Level {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return runtimes.NotEnforced
	}
	return limitOf(unix.ByteSliceToString(name.Release[:]))
}

func limitOf(release string) runtimes.Level {
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	if err != nil || err2 != nil || major < 5 || major == 5 && minor < 14 {
		return runtimes.NotEnforced
	}
	return runtimes.Enforced
}

// AloneArgs are the agent's arguments for a sandbox that has one user: where its
// filter of system calls is, "" for none, and what each process is held to.
func AloneArgs(filter string, l Limits) []string {
	pids := l.PIDs
	if ProcessLimit() == runtimes.NotEnforced {
		pids = 0
	}
	return []string{"alone", filter, strconv.FormatInt(int64(l.Memory), 10), strconv.Itoa(pids)}
}
