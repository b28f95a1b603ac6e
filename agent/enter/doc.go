// Package enter puts the agent into its place where no other program does: it runs
// as the first process of new PID, mount and IPC namespaces, builds a root out of
// the host's with the sandbox's own places in it, and becomes the agent. What it
// makes keeps nothing in and nothing out.
package enter
