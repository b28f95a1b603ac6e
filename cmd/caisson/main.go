// Command caisson runs code that nobody has read yet in hardened containers.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the process at once; what it
	// leaves behind then, its sandboxes' leases end.
	context.AfterFunc(ctx, stop)
	// Who reads our output may stop to. A write then fails, which ends the run in
	// order, instead of the signal ending this process and leaving its sandbox.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	app := newApp(os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	os.Exit(app.run(ctx, os.Args[1:]))
}
