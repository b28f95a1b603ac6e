//go:build linux

// Command caisson-agent is the first process of a sandbox. The runtime mounts
// it into the image and starts it; it is of no use by hand. As "caisson-agent
// connect" it is the relay between the agent and an engine's exec, and under the name
// "tool" the program that calls the host's tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/call"
	"github.com/caisson-dev/caisson/agent/enter"
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
	if path.Base(os.Args[0]) == "tool" {
		os.Exit(call.Main(ctx, os.Args[1:], call.Streams{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
	}
	if len(os.Args) == 2 && os.Args[1] == "connect" {
		runtime.GOMAXPROCS(1)
		if err := pid1.Connect(ctx, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "caisson-agent:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "enter" {
		fmt.Fprintln(os.Stderr, "caisson-agent:", enter.Run(os.Stdin))
		os.Exit(1)
	}
	if len(os.Args) > 2 && os.Args[1] == "inner" {
		if err := pid1.Inner(os.Args); err != nil {
			os.Exit(1) // the agent was told, or is gone
		}
		return
	}
	alone, err := aloneOf(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "caisson-agent:", err)
		os.Exit(1)
	}
	if pid := os.Getpid(); pid != 1 {
		fmt.Fprintf(os.Stderr, "caisson-agent: this is process %d of its namespace and has to be the first: nothing may be started before it\n", pid)
		os.Exit(wire.NotFirst)
	}
	restoreSignals()
	if err := closeOnExec(); err != nil {
		fmt.Fprintln(os.Stderr, "caisson-agent:", err)
		os.Exit(1)
	}
	a, err := pid1.New(pid1.Config{Alone: alone, Build: build(), Procs: func(n int) { runtime.GOMAXPROCS(n) }})
	if err == nil {
		err = a.Run(ctx)
	}
	fmt.Fprintln(os.Stderr, "caisson-agent:", err)
	os.Exit(1)
}

// restoreSignals has what the agent starts mind the signals that the caller of a runtime
// of this host's own processes ignored, by nohup say: what is caught is not ignored after
// an exec. All but these two are caught anyway, or are the C library's own, of which Go
// knows nothing.
func restoreSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	const first, last, set = 32, 34, 8 // signals of the C library; bytes of a set of signals
	var mind [4]uint64                 // the kernel's struct sigaction, with the default action
	for s := uintptr(first); s <= last; s++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&mind)), 0, set, 0, 0) // there is no such signal elsewhere
	}
}

// closeOnExec keeps what a runtime of this host's own processes had open, its caller's
// files say, from the programs of a sandbox.
func closeOnExec() error {
	files, err := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}

// aloneOf reads "alone FILTER MEMORY PIDS", with which a runtime starts the agent of
// a sandbox that has one user.
func aloneOf(args []string) (*pid1.Alone, error) {
	if len(args) == 0 {
		return nil, nil //nolint:nilnil // it is not alone
	}
	if len(args) != 4 || args[0] != "alone" {
		return nil, fmt.Errorf("unknown arguments %q", args)
	}
	memory, err := strconv.ParseInt(args[2], 10, 64)
	pids, err2 := strconv.ParseInt(args[3], 10, 64)
	return &pid1.Alone{Filter: args[1], Memory: memory, PIDs: pids}, errors.Join(err, err2)
}

func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
