// Package functions keeps handlers in the convention of AWS Lambda and calls them:
// [Functions] is an api.Functions over sessions, execs and a store.
//
// A call is served by an instance: a session of the function's owner with one
// process in it, which has imported the handler's module and serves one call after
// the other. An instance that waits is used again; where all are busy, further ones
// are made, up to the function's number, and calls beyond that wait in their order.
// A call that runs out of time, or ends its process, costs the process; the session
// goes on, and the next call there is cold. Instances that nobody has used for a
// while are removed.
//
// # What is spoken with the process
//
// The process is a runner of ours, a text that is handed in with the exec, which
// finds the function's files staged beside it: policy judges those as for any exec.
// It reads its settings and then one call a line from what was its standard input,
// and says one signed line each time (package signed) on what was its standard
// output. By then the handler's own output is standard error, in which a signed mark
// stands behind each call. A handler shares the interpreter with the runner, and can
// forge its own results; a session, and so a process, serves one version of one
// function of one owner.
//
// Several processes may invoke functions of one state folder: a lock for each
// session says whose it is, and drops when its holder dies.
package functions
