// Package syscalls says which system calls what runs in a sandbox may make: one
// list for all runtimes, as an engine takes it and as the kernel does. It is made
// on Linux; elsewhere an engine, which has a Linux of its own, gets the same from
// profile.json.
package syscalls
