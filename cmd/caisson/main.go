// Command caisson runs code that nobody has read yet in hardened containers.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	// Most of what this process allocates, it does while it reads its rules, and
	// then it ends: collecting that takes a third of the time and gains nothing.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	signals := make(chan os.Signal, 3)
	// Ctrl-\ is no crash: what it would show, SIGABRT does.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	// Who reads our output may stop to. A write then fails, which ends the run in
	// order, instead of the signal ending this process and leaving its sandbox.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	app := newApp(os.LookupEnv, os.Stdin, os.Stdout, os.Stderr)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		// The first ends what runs and cleans up; the second does not wait for
		// programs to end; the third is for whoever knows better, and what it
		// leaves behind the sandboxes' leases end.
		<-signals
		cancel()
		<-signals
		go app.hurry()
		<-signals
		os.Exit(130)
	}()
	os.Exit(app.run(ctx, os.Args[1:]))
}
