package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forge connects a client to an agent that serves every call as told.
func forge(t *testing.T, serve func(s *yamux.Stream, r *wire.Reader, req wire.Request)) *client.Client {
	t.Helper()
	return forgeWith(t, client.Config{}, serve)
}

func forgeWith(t *testing.T, cfg client.Config, serve func(s *yamux.Stream, r *wire.Reader, req wire.Request)) *client.Client {
	t.Helper()
	host, agent := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer agent.Close()
		if _, err := wire.NewReader(agent).Next(); err != nil {
			return
		}
		if wire.WriteMessage(agent, wire.TypeWelcome, wire.Welcome{Version: wire.Version}) != nil {
			return
		}
		session, err := yamux.Server(agent, wire.MuxConfig())
		if err != nil {
			return
		}
		defer session.Close()
		for {
			s, err := session.AcceptStream()
			if err != nil {
				return
			}
			go func() {
				defer s.Close()
				r := wire.NewReader(s)
				f, err := r.Next()
				var req wire.Request
				if err != nil || f.Message(&req) != nil {
					return
				}
				serve(s, r, req)
			}()
		}
	}()
	cfg.Secret = make([]byte, 32)
	c, err := client.New(t.Context(), host, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c
}

func message(t wire.Type, v any) []byte {
	var b strings.Builder
	if err := wire.WriteMessage(&b, t, v); err != nil {
		panic(err)
	}
	return []byte(b.String())
}

// lies are what an agent says behind a request for an exec, and then ends the
// stream. None of it may pass for an end.
func lies() map[string][]byte {
	join := func(parts ...[]byte) []byte {
		var all []byte
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	started, end := message(wire.TypeStarted, wire.Started{PID: 5}), message(wire.TypeEnd, wire.End{Stdout: 3})
	abc := wire.AppendOutput(nil, wire.TypeStdout, 0, []byte("abc"))
	return map[string][]byte{
		"no end":                 join(started, abc),
		"end, then nothing came": join(started, end),
		"end with fewer":         join(started, abc, message(wire.TypeEnd, wire.End{Stdout: 2})),
		"end with more":          join(started, abc, message(wire.TypeEnd, wire.End{Stdout: 4})),
		"end with other stream":  join(started, abc, message(wire.TypeEnd, wire.End{Stderr: 3})),
		"end with negative":      join(started, message(wire.TypeEnd, wire.End{Stdout: -1})),
		"gap":                    join(started, wire.AppendOutput(nil, wire.TypeStdout, 1, []byte("bc")), end),
		"twice":                  join(started, abc, abc, end),
		"far offset":             join(started, wire.AppendOutput(nil, wire.TypeStdout, 1<<61, []byte("abc"))),
		"negative offset":        join(started, []byte{byte(wire.TypeStdout), 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'a'}),
		"no offset":              join(started, []byte{byte(wire.TypeStdout), 0, 0, 0, 3, 'a', 'b', 'c'}),
		"beyond the cap":         join(started, wire.AppendOutput(nil, wire.TypeStdout, 0, make([]byte, 2000))),
		"started twice":          join(started, started, abc, end),
		"end without start":      join(message(wire.TypeEnd, wire.End{})),
		"output without start":   join(abc, end),
		"giant frame":            join(started, []byte{byte(wire.TypeStdout), 0xff, 0xff, 0xff, 0xff}),
		"giant message":          join(started, []byte{byte(wire.TypeEnd), 0, 0x7f, 0xff, 0xff}),
		"unknown type":           join(started, []byte{99, 0, 0, 0, 0}),
		"wrong type":             join(started, message(wire.TypeReply, wire.Reply{})),
		"the client's own":       join(started, wire.Append(nil, wire.TypeStdin, []byte("x"))),
		"end that is no JSON":    join(started, abc, wire.Append(nil, wire.TypeEnd, []byte("{"))),
		"failure while it runs":  join(started, message(wire.TypeFailure, wire.Failure{Kind: "denied", Message: "no"})),
		"half a frame":           join(started, abc[:7]),
		"calls a judge":          join(started, wire.Append(nil, wire.TypeJudge, nil), abc, end),
		"starts too large":       join(started, abc, message(wire.TypeEnd, wire.End{Stdout: 3, Told: []*wire.Start{{SHA256: make([]byte, 65)}}})),
	}
}

func TestForgedExec(t *testing.T) {
	t.Parallel()
	for name, bytes := range lies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := forge(t, func(s *yamux.Stream, _ *wire.Reader, _ wire.Request) { _, _ = s.Write(bytes) })
			var out strings.Builder
			got, err := c.Run(t.Context(), client.Command{Argv: []string{"x"}, Stdout: &out, MaxOutput: 1000, Timeout: 10 * time.Second})
			if err != nil {
				t.Fatalf("an error, not an outcome: %v", err)
			}
			if got.Reason != sandbox.ReasonInfra || !got.Broken || got.Cause == "" || got.Code == 0 {
				t.Errorf("%+v", got)
			}
			if out.Len() > 1000 {
				t.Errorf("%d bytes passed the cap", out.Len())
			}
		})
	}
}

// An agent that talks without end, in whatever way, is not listened to beyond
// the exec's time.
func TestForgedTalker(t *testing.T) {
	t.Parallel()
	started := message(wire.TypeStarted, wire.Started{PID: 5})
	for name, tt := range map[string]func(s io.Writer, i int) error{
		"empty output": func(s io.Writer, _ int) error {
			_, err := s.Write(wire.AppendOutput(nil, wire.TypeStdout, 0, nil))
			return err
		},
		"a byte at a time": func(s io.Writer, i int) error {
			time.Sleep(time.Millisecond)
			_, err := s.Write(wire.AppendOutput(nil, wire.TypeStdout, int64(i), []byte("x")))
			return err
		},
		"half a header": func(s io.Writer, i int) error {
			time.Sleep(50 * time.Millisecond)
			_, err := s.Write([]byte{byte(wire.TypeEnd), 0, 0, 0, 200}[min(i, 4):min(i+1, 5)])
			return err
		},
		"silence": func(io.Writer, int) error { time.Sleep(20 * time.Millisecond); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// It talks until the connection is closed, which is after the answer.
			c := forge(t, func(s *yamux.Stream, _ *wire.Reader, _ wire.Request) {
				_, err := s.Write(started)
				for i := 0; err == nil && !s.Session().IsClosed(); i++ {
					err = tt(s, i)
				}
			})
			got, err := c.Run(t.Context(), client.Command{Argv: []string{"x"}, Timeout: 300 * time.Millisecond})
			if err != nil || got.Reason != sandbox.ReasonTimeout || !got.Broken {
				t.Errorf("%v, %+v", err, got)
			}
			_ = c.Close()
		})
	}
}

// An agent whose reader is slow is not given up for that: what it has said while
// the reader was at work counts as said in time.
func TestSlowReaderIsForgiven(t *testing.T) {
	t.Parallel()
	c := forge(t, func(s *yamux.Stream, _ *wire.Reader, _ wire.Request) {
		_, _ = s.Write(slices.Concat(message(wire.TypeStarted, wire.Started{PID: 5}),
			wire.AppendOutput(nil, wire.TypeStdout, 0, []byte("x")), message(wire.TypeEnd, wire.End{Ended: "timeout", Code: 137, Stdout: 1})))
	})
	const timeout = 5 * time.Second
	slow := writer(func(p []byte) (int, error) {
		time.Sleep(timeout + client.DefaultPatience + time.Second)
		return len(p), nil
	})
	got, err := c.Run(t.Context(), client.Command{Argv: []string{"x"}, Timeout: timeout, Stdout: slow})
	if err != nil || got.Reason != sandbox.ReasonTimeout || got.Broken {
		t.Errorf("%v, %+v", err, got)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// An agent that never reads what it is sent holds nobody up who gives up: it
// listens again when the test is over.
func TestForgedDeafAgent(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	defer close(hold)
	c := forge(t, func(s *yamux.Stream, _ *wire.Reader, req wire.Request) {
		if req.Op == wire.OpExec {
			_, _ = s.Write(message(wire.TypeStarted, wire.Started{PID: 5}))
		}
		<-hold
	})
	calls := map[string]func(ctx context.Context) error{
		"put": func(ctx context.Context) error {
			return c.Put(ctx, "", []sandbox.File{{Path: "x", Data: make([]byte, 4<<20)}}, sandbox.Local{})
		},
		"list":   func(ctx context.Context) error { _, err := c.List(ctx); return err },
		"sample": func(ctx context.Context) error { _, err := c.Sample(ctx); return err },
		"kill":   func(ctx context.Context) error { return c.Kill(ctx, sandbox.NewID(), "") },
		"input": func(ctx context.Context) error {
			_, err := c.Input(ctx, sandbox.NewID(), []byte("x"), true)
			return err
		},
		"a large request": func(ctx context.Context) error {
			_, err := c.Run(ctx, client.Command{Argv: []string{"x"}, Timeout: time.Second, Stdin: strings.NewReader(strings.Repeat("x", 4<<20))})
			if err == nil {
				err = context.DeadlineExceeded // an outcome at its timeout is right
			}
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := call(ctx); err == nil {
				t.Error("no error")
			}
		})
	}
}

// What an agent says of itself is bounded and checked.
func TestForgedAnswers(t *testing.T) {
	// Not parallel: it counts what the whole process allocates.
	var answer []byte
	c := forge(t, func(s *yamux.Stream, _ *wire.Reader, _ wire.Request) { _, _ = s.Write(answer) })
	many := "[" + strings.Repeat("{},", 340_000) + "{}]"
	for name, b := range map[string][]byte{
		"ids":       message(wire.TypeReply, wire.Reply{Execs: []wire.ExecInfo{{ID: "../../etc"}}}),
		"many":      wire.Append(nil, wire.TypeReply, []byte(`{"execs":`+many+`}`)),
		"failure":   message(wire.TypeFailure, wire.Failure{Kind: "no such kind", Message: strings.Repeat("x", 100_000)}),
		"no answer": nil,
		"deep":      wire.Append(nil, wire.TypeReply, []byte(strings.Repeat("[", 500_000))),
	} {
		answer = b
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.List(t.Context())
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if err != nil && len(err.Error()) > 5000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
			t.Errorf("%s: cost %d MiB", name, used>>20)
		}
	}
	answer = message(wire.TypeReply, wire.Reply{Sample: &wire.Sample{CPUUS: -5, MemoryBytes: -1 << 62, CachedBytes: 1 << 62, Zombies: -1, MilliCPUs: 1<<63 - 1, TmpBytes: 1<<63 - 1}})
	if s, err := c.Sample(t.Context()); err != nil || s.CPU < 0 || s.Memory != 0 || s.MemoryCached != 0 || s.Zombies < 0 || s.CPUs > 1<<60 || s.Tmp > 1<<60 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, taken := range []int64{-1, 2} {
		answer = message(wire.TypeReply, wire.Reply{Bytes: taken})
		if n, err := c.Input(t.Context(), sandbox.NewID(), []byte("x"), false); !errors.Is(err, wire.ErrFrame) || n != 0 {
			t.Errorf("%d bytes of one were taken: %d, %v", taken, n, err)
		}
	}
	answer = message(wire.TypeReply, wire.Reply{})
	if _, err := c.Sample(t.Context()); !errors.Is(err, wire.ErrFrame) {
		t.Errorf("no sample in an answer: %v", err)
	}
	answer = append(message(wire.TypeStarted, wire.Started{}), message(wire.TypeEnd, wire.End{
		Code: 1 << 40, Signal: 1 << 30, Ended: strings.Repeat("timeout", 1000), Events: []string{"oom", "\x1b[2J", "x"},
		Usage: wire.Usage{CPUUS: -1, WallUS: 1 << 62, MemoryBytes: -1, Processes: -4, CPUMethod: strings.Repeat("x", 10_000)},
	})...)
	got, err := c.Run(t.Context(), client.Command{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	u := got.Usage
	if got.Code < 0 || got.Code > 255 || got.Signal != "" || len(got.Events) != 1 || u.CPU < 0 || u.Wall < 0 || u.PeakMemory < 0 || u.PeakProcesses < 0 || len(u.Methods.CPU) > 100 {
		t.Errorf("%+v", got)
	}
}

// The first words are bounded too.
func TestForgedWelcome(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][]byte{
		"nothing":     nil,
		"giant":       {byte(wire.TypeWelcome), 0xff, 0, 0, 0},
		"wrong type":  message(wire.TypeEnd, wire.End{}),
		"no JSON":     wire.Append(nil, wire.TypeWelcome, []byte("[")),
		"other bytes": []byte(strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 20)),
	} {
		host, agent := net.Pipe()
		go func() {
			_, _ = wire.NewReader(agent).Next()
			_, _ = agent.Write(b)
			_ = agent.Close()
		}()
		if _, err := client.New(t.Context(), host, client.Config{}); !errors.Is(err, sandbox.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Silence ends with the caller's patience.
	host, agent := net.Pipe()
	defer agent.Close()
	go func() { _, _ = io.Copy(io.Discard, agent) }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := client.New(ctx, host, client.Config{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silence: %v", err)
	}
}
