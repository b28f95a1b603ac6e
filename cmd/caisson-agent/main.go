//go:build linux

// Command caisson-agent is the first process of a sandbox. The runtime mounts
// it into the image and starts it; it is of no use by hand. As "caisson-agent
// connect" it is the relay between the agent and an engine's exec.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/caisson-dev/caisson/agent/pid1"
	"github.com/caisson-dev/caisson/agent/wire"
)

func main() {
	// Few threads and a small heap: the agent lives inside the limits of what
	// it guards.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(50)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 2 && os.Args[1] == "connect" {
		runtime.GOMAXPROCS(1)
		if err := pid1.Connect(ctx, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "caisson-agent:", err)
			os.Exit(1)
		}
		return
	}
	if pid := os.Getpid(); pid != 1 {
		fmt.Fprintf(os.Stderr, "caisson-agent: this is process %d of its namespace and has to be the first: nothing may be started before it\n", pid)
		os.Exit(wire.NotFirst)
	}
	a, err := pid1.New(pid1.Config{Build: build(), Procs: func(n int) { runtime.GOMAXPROCS(n) }})
	if err == nil {
		err = a.Run(ctx)
	}
	fmt.Fprintln(os.Stderr, "caisson-agent:", err)
	os.Exit(1)
}

func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
