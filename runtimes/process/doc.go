// Package process makes sandboxes that isolate nothing, for code that is trusted
// and for tests: processes of this host, with its files, its network and the rights
// of who runs caisson, or for root of a user of little power. It needs no engine and
// no other program, is used where it is asked for by name alone, and says so.
//
// The agent is the first process of a PID namespace, so that what an exec started
// can always be found and ends with its sandbox. It sees the host's root with the
// workspace, a home and folders for temporary files put into it, so that programs
// run as they do by every runtime.
package process
