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
	app := newApp(os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	os.Exit(app.run(ctx, os.Args[1:]))
}
