// Package bubblewrap makes sandboxes without a container engine: processes of
// this host in namespaces of their own, put together by bwrap. Their root is of
// folders of the host that hold programs, read-only; what a program finds beside
// is private to the sandbox, and the network is none.
//
// bwrap is started as root, and not in a user namespace: the agent is the
// sandbox's first process with SETUID, SETGID, KILL and SYS_PTRACE alone, as in a container,
// and becomes users of little power for all that it runs. So a sandbox of this
// runtime is held by the same walls as a container of the docker runtime; what it
// has not is an image, a network, and copies of workspaces. Limits are those of a
// control group, of version 1 or 2; where this process may make none, the
// capabilities and the plan say which limits do not hold.
//
// Each bind costs bwrap a look at all mounts of the host, so as root a sandbox's root is
// put together first, in a mount namespace that is bwrap's then. That of an unpacked
// image is not: its links could lead out of it.
//
// A sandbox has a folder below [Config].Base, and a volume one below
// [Config].State: each with a record of what it is, which stands for a label.
package bubblewrap
