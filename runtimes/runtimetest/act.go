package runtimetest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// act is one program that is acted out.
type act struct {
	req   *wire.Exec
	s     *yamux.Stream
	start time.Time
	stop  chan string // why it is to end; buffered: the first reason counts
	ended string      // that reason, once it was taken
	sent  [2]int64
	input chan struct{} // closed once stdin is complete
	stdin []byte

	survivors int
}

func (x *act) end(why string) {
	select {
	case x.stop <- why:
	default:
	}
}

// print writes to an output, up to the cap, and reports whether to go on.
func (x *act) print(stream int, text string) bool {
	if most := x.req.MaxOutput; most > 0 && x.sent[stream]+int64(len(text)) > most {
		text = text[:most-x.sent[stream]]
		x.ended = "output"
	}
	for len(text) > 0 {
		part := text[:min(len(text), wire.MaxChunk)]
		t := []wire.Type{wire.TypeStdout, wire.TypeStderr}[stream]
		if _, err := x.s.Write(wire.AppendOutput(nil, t, x.sent[stream], []byte(part))); err != nil {
			x.ended = "canceled"
			return false
		}
		x.sent[stream] += int64(len(part))
		text = text[len(part):]
	}
	return x.ended == ""
}

// sleep reports whether the time passed without an end.
func (x *act) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case x.ended = <-x.stop:
		return false
	}
}

// read waits for the whole of standard input.
func (x *act) read() (string, bool) {
	if !x.req.Stdin {
		return "", true
	}
	select {
	case <-x.input:
		return string(x.stdin), true
	case x.ended = <-x.stop:
		return "", false
	}
}

// finish says the last word. A code above 1000 is a signal.
func (x *act) finish(code int) {
	end := wire.End{Code: code, Ended: x.ended, Stdout: x.sent[0], Stderr: x.sent[1], Survivors: x.survivors}
	if x.ended != "" {
		code = 1000 + int(unix.SIGKILL)
	}
	if code > 1000 {
		end.Signal, end.Code = code-1000, 128+code-1000
	}
	end.Usage = wire.Usage{WallUS: time.Since(x.start).Microseconds(), CPUMethod: "none", MemoryMethod: "none", ProcessesMethod: "none", Processes: 1}
	_ = wire.WriteMessage(x.s, wire.TypeEnd, end) // a client that is gone knows
}

// programs returns how a command is acted out, and nil for one that is not
// known. Shell scripts are lines of echo, printf, sleep, exit and kill -9 $$.
func programs(argv []string) func(*act) int {
	switch argv[0] {
	case "true":
		return func(*act) int { return 0 }
	case "false":
		return func(*act) int { return 1 }
	case "echo":
		return func(x *act) int { x.print(0, strings.Join(argv[1:], " ")+"\n"); return 0 }
	case "pwd":
		return func(x *act) int { x.print(0, wire.WorkspaceDir+"\n"); return 0 }
	case "cat":
		return func(x *act) int {
			if text, ok := x.read(); ok {
				x.print(0, text)
			}
			return 0
		}
	case "sleep":
		return func(x *act) int { return script(x, strings.Join(argv, " ")) }
	case "head":
		n, _ := strconv.Atoi(argv[2]) // head -c N /dev/zero
		return func(x *act) int { x.print(0, strings.Repeat("\x00", n)); return 0 }
	case "sh", "bash":
		if len(argv) > 2 && argv[1] == "-c" {
			return func(x *act) int { return script(x, argv[2]) }
		}
	}
	return nil
}

func script(x *act, text string) int {
	for line := range strings.SplitSeq(text, ";") {
		words := strings.Fields(line)
		stream := 0
		if n := slices.Index(words, ">&2"); n >= 0 {
			words, stream = words[:n], 1
		}
		rest := strings.Join(words[min(1, len(words)):], " ")
		var ok bool
		switch words[0] {
		case "echo":
			ok = x.print(stream, rest+"\n")
		case "printf":
			ok = x.print(stream, rest)
		case "sleep":
			seconds, _ := strconv.ParseFloat(rest, 64)
			ok = x.sleep(time.Duration(seconds * float64(time.Second)))
		case "exit":
			code, _ := strconv.Atoi(rest)
			return code
		case "kill":
			return 1000 + int(unix.SIGKILL)
		default:
			x.print(1, words[0]+": not found\n")
			return 127
		}
		if !ok {
			return 0
		}
	}
	return 0
}
