//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// built is what has a small C project made anew, and how many files that has.
const (
	built    = "make -B -s -j2"
	compiled = 20
)

// project is a C program of some files, each of which takes a compiler, an assembler and
// what starts them.
func project() []sandbox.File {
	rule := "all: p\np: " + strings.Repeat("f%d.o ", compiled) + "main.o\n\tcc -o $@ $^\n%%.o: %%.c\n\tcc -O1 -c -o $@ $<\n"
	main, numbers := "int main(void) { return 0", []any{}
	files := []sandbox.File{}
	for i := range compiled {
		numbers = append(numbers, i)
		main = fmt.Sprintf("int f%d(int);\n%s * f%d(%d)", i, main, i, i)
		text := fmt.Sprintf("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f%d(int n) { char b[64]; snprintf(b, sizeof b, \"%%d\", n); return (int)strlen(b) + abs(n); }\n", i)
		files = append(files, sandbox.File{Path: fmt.Sprintf("f%d.c", i), Data: []byte(text)})
	}
	return append(files, sandbox.File{Path: "main.c", Data: []byte(main + "; }\n")}, sandbox.File{Path: "Makefile", Data: fmt.Appendf(nil, rule, numbers...)})
}

// missing says why the project cannot be made here, "" that it can.
func missing() string {
	for _, name := range []string{"bwrap", "make", "cc"} {
		if _, err := exec.LookPath(name); err != nil {
			return "there is no " + name
		}
	}
	if os.Geteuid() != 0 {
		return "an agent that is one user with what it runs sees no starts"
	}
	return ""
}

// makes measures a build in sandboxes that have this host's compiler, and beside them.
func makes(ctx context.Context, s *measure.Suite, r *rig.Rig) error {
	const name, native = "make -j2, 21 files", "native"
	if !s.Wants(name) {
		return nil
	}
	if why := missing(); why != "" {
		s.Note("%s: not measured: %s", name, why)
		return nil
	}
	jail, err := bubblewrap.New(bubblewrap.Config{Agent: r.Program("caisson-agent"), Base: filepath.Join(r.Dir, "run"), State: filepath.Join(r.Dir, "jail")})
	if err != nil {
		return err
	}
	set := measure.Set{Name: name, Unit: "ms", Rounds: 20, Warmup: 2}
	for subject, rule := range map[string]sandbox.StartsRule{unseen: {}, judged: {Mode: sandbox.StartsJudge}} {
		cfg := r.Config()
		cfg.Gate, cfg.Starts, cfg.Runtimes = letPass, rule, runtimes.Only(bubblewrap.Name, jail)
		m, err := r.Manager(cfg)
		if err != nil {
			return err
		}
		box, err := m.Open(ctx, manager.OpenOptions{Language: "shell", Limits: sandbox.Limits{CPUs: float64(runtime.NumCPU())}}) // the manager closes it
		if err != nil {
			return err
		}
		run := sandbox.Run{Command: strings.Fields(built), Files: project()}
		set.Subjects = append(set.Subjects, measure.Subject{Name: subject, Sample: measure.Millis(func(ctx context.Context) error {
			err := rig.Succeeded(box.Exec(ctx, run, sandbox.Streams{}))
			run.Files = nil // they are there
			return err
		})})
	}
	dir := filepath.Join(r.Dir, "native")
	errs := []error{os.Mkdir(dir, 0o755)}
	for _, f := range project() {
		errs = append(errs, os.WriteFile(filepath.Join(dir, f.Path), f.Data, 0o600))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	set.Subjects = append(set.Subjects, measure.Subject{Name: native, Sample: measure.Millis(func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "10"}, strings.Fields(built)...)...) // as sandboxes have it
		cmd.Dir = dir
		return cmd.Run()
	})})
	set.Rows = []measure.Row{
		{Name: "starts/" + name, Own: judged, Peer: native, Bar: measure.AtMost("p50 <= 1.20 x peer", 1.2)},
		{Name: "starts/" + name + "/unseen", Own: judged, Peer: unseen},
	}
	return s.Measure(ctx, set)
}
