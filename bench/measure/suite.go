package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
)

// Options are a program's flags.
type Options struct {
	// JSON prints one object a line in place of tables.
	JSON bool
	// Smoke takes a few samples only, to see that everything works. Bars are
	// reported and not enforced.
	Smoke bool
	// Only is matched against the names of sets. "" is all.
	Only string
	// Results is the folder for raw samples.
	Results string
}

// Suite is one run of a benchmark program. It is used from one goroutine.
type Suite struct {
	Options
	// Out gets the result, Progress what is being done.
	Out, Progress io.Writer

	program string
	only    *regexp.Regexp
	raw     *os.File // nil before the first samples
	failed  []string // names of rows whose bar does not hold
}

// The samples of a smoke run.
const (
	smokeRounds = 3
	smokeWarmup = 1
)

// Main runs a benchmark program with the process's arguments and returns its
// exit code: 1 where a bar does not hold, 2 for wrong usage, 125 where
// something could not be measured.
func Main(program string, measure func(ctx context.Context, s *Suite) error) int {
	s := &Suite{Out: os.Stdout, Progress: os.Stderr, program: program}
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	flags.BoolVar(&s.JSON, "json", false, "print one JSON object a line")
	flags.BoolVar(&s.Smoke, "smoke", false, "take a few samples only; bars are reported and not enforced")
	flags.StringVar(&s.Only, "run", "", "measure the sets whose name matches this `regexp` only")
	flags.StringVar(&s.Results, "results", "bench/results", "`folder` for the raw samples")
	if err := flags.Parse(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.start(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return 2
	}
	if err := errors.Join(measure(ctx, s), s.close()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return 125
	}
	return s.verdict()
}

func (s *Suite) start() (err error) {
	if s.only, err = regexp.Compile(s.Only); err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	s.Note("%s on %d cores, %s/%s, %s", s.program, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return nil
}

// verdict tells the exit code, and the bars that do not hold.
func (s *Suite) verdict() int {
	for _, name := range s.failed {
		s.say("does not hold: %s", name)
	}
	if len(s.failed) > 0 && !s.Smoke {
		return 1
	}
	return 0
}

// Wants reports whether a set is to be measured, so that its preparation can
// be left out.
func (s *Suite) Wants(set string) bool { return s.only.MatchString(set) }

// Note tells something that belongs to the figures, such as a version. With
// JSON it goes to Progress.
func (s *Suite) Note(format string, args ...any) {
	if s.JSON {
		s.say(format, args...)
		return
	}
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...) // a table that nobody reads is no failure
}

func (s *Suite) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Progress, format+"\n", args...) // as above
}

// Measure takes a set's samples and reports its rows. Sets that were not asked
// for are left out.
func (s *Suite) Measure(ctx context.Context, set Set) error {
	if !s.Wants(set.Name) {
		return nil
	}
	rounds, warmup := set.Rounds, set.Warmup
	if s.Smoke {
		rounds, warmup = min(rounds, smokeRounds), min(warmup, smokeWarmup)
	}
	s.say("measuring %s, %d rounds …", set.Name, rounds)
	samples, err := set.run(ctx, rounds, warmup)
	if err != nil {
		return err
	}
	return s.Report(set, samples)
}

// Report takes samples that were taken elsewhere, by subject.
func (s *Suite) Report(set Set, samples map[string][]float64) error {
	if err := s.keep(set, samples); err != nil {
		return err
	}
	lines := make([]Line, 0, len(set.Rows))
	for _, row := range set.Rows {
		l := newLine(&set, row, samples)
		if !l.OK {
			s.failed = append(s.failed, fmt.Sprintf("%s: %s", l.Name, l.Bar))
		}
		lines = append(lines, l)
	}
	if s.JSON {
		return printJSON(s.Out, lines)
	}
	return printTable(s.Out, &set, samples, lines)
}
