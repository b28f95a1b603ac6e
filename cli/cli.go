// Package cli is the command line: it reads flags, calls [api.Service], and
// prints. It holds no logic of its own and never sees the manager, so that the
// same commands work in process and against a server.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/cli/policycmd"
	"github.com/caisson-dev/caisson/config"
	"github.com/caisson-dev/caisson/sandbox"
)

// IOStreams are the command's own streams.
type IOStreams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Config is what the commands work with.
type Config struct {
	IO IOStreams
	// Service is called at most once, by a command that needs it. Who made it
	// closes it.
	Service func(ctx context.Context) (api.Service, error)
	// Policy is called at most once, by a command that judges without running.
	Policy func(ctx context.Context) (policycmd.Policy, error)
	// Doctor stands in for [api.Service].Doctor where Service fails, and is told
	// how. nil: that failure is the answer.
	Doctor func(ctx context.Context, broken error) ([]api.Check, error)
	// File is called at most once, before anything else, with the name of the
	// file of settings, "" for the usual one. nil: there is none.
	File func(name string) (*config.File, error)
	// Settings are the names of those that are not flags.
	Settings []string
	Version  string
	// Getenv reads the environment; nil is [os.Getenv].
	Getenv func(string) string
}

// Main runs a command line and returns its exit code. It prints every error.
func Main(ctx context.Context, cfg Config, args []string) int {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	root := newRoot(cfg)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit exitCode
	if errors.As(err, &exit) {
		return int(exit)
	}
	var judged policycmd.Exit
	if errors.As(err, &judged) {
		return judged.ExitCode()
	}
	if err == nil {
		return 0
	}
	printError(cfg.IO.Err, err)
	printFindings(cfg.IO.Err, err)
	return codeOfError(err)
}

func newRoot(cfg Config) *cobra.Command {
	root := &cobra.Command{
		Use:           "caisson",
		Short:         "Run code that nobody has read yet, in hardened containers",
		Version:       cfg.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(cfg.IO.In)
	root.SetOut(cfg.IO.Out)
	root.SetErr(cfg.IO.Err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError(err) })
	var name string
	root.PersistentFlags().StringVar(&name, "config", "", "`FILE` with defaults, languages and more, in place of the user's caisson.yaml")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return configure(cmd, cfg, name) }
	root.AddCommand(newRun(cfg), newSession(cfg), newExec(cfg), newPS(cfg), newLogs(cfg), newKill(cfg), newFiles(cfg), newChanges(cfg), newUndo(cfg),
		newApprovals(cfg), newAudit(cfg), policycmd.NewCmd(policycmd.Streams(cfg.IO), cfg.Policy), newImages(cfg), newGC(cfg), newDoctor(cfg), newVersion(cfg))
	wrapArgs(root)
	return root
}

// wrapArgs makes a wrong number of arguments a usage error.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError(err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// usageError is for a command line that cannot be meant. An error that knows
// better what to do keeps its hint.
func usageError(err error) error {
	if hint := sandbox.HintOf(err); hint != "" {
		return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("%s", hint)
	}
	return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("see: caisson help")
}

// fromEnvironment sets each flag that was not given from its variable: --approve
// is CAISSON_APPROVE.
func fromEnvironment(flags *pflag.FlagSet, getenv func(string) string) error {
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "CAISSON_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v := getenv(name)
		if f.Changed || v == "" || slices.Contains(notConfigured, f.Name) {
			return
		}
		if err := flags.Set(f.Name, v); err != nil && first == nil {
			first = usageError(fmt.Errorf("%s: %w", name, err))
		}
	})
	return first
}

// exitCode ends a command with a code and without a message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Exit codes of caisson's own. A program's code is passed on as it is.
const (
	exitUnwell   = 1 // of doctor alone
	exitUsage    = 2
	exitTimeout  = 124
	exitFailed   = 125
	exitDenied   = 126
	exitCanceled = 130
	exitKilled   = 137
)

// kindCodes is the one table from kinds of error to exit codes. A kind that is
// not in it is [exitFailed].
var kindCodes = map[sandbox.Kind]int{sandbox.Invalid: exitUsage}

func codeOfError(err error) int {
	var denied *sandbox.DeniedError
	switch {
	case errors.As(err, &denied):
		return exitDenied
	case errors.Is(err, context.Canceled):
		return exitCanceled
	}
	if code, ok := kindCodes[sandbox.KindOf(err)]; ok {
		return code
	}
	return exitFailed
}

// reasonCodes is the one table from exit reasons to exit codes. A reason that
// is not in it passes on the program's own code.
var reasonCodes = map[sandbox.ExitReason]int{
	sandbox.ReasonTimeout: exitTimeout, sandbox.ReasonCanceled: exitCanceled, sandbox.ReasonOOM: exitKilled,
	sandbox.ReasonOutput: exitKilled, sandbox.ReasonDenied: exitDenied, sandbox.ReasonInfra: exitFailed,
}

func codeOfResult(r sandbox.Result) int {
	if code, ok := reasonCodes[r.Reason]; ok {
		return code
	}
	return r.Code
}

// visible shows characters that would act on a terminal instead of passing them
// on: part of an error may be the words of what runs in a sandbox.
func visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !unicode.IsPrint(r), unicode.Is(blank, r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// blank are characters that count as letters, marks and symbols, and that show
// as nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034F, Hi: 0x034F, Stride: 1}, {Lo: 0x115F, Hi: 0x1160, Stride: 1}, {Lo: 0x17B4, Hi: 0x17B5, Stride: 1},
		{Lo: 0x180B, Hi: 0x180F, Stride: 1}, {Lo: 0x2800, Hi: 0x2800, Stride: 1}, {Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1}, {Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xE0100, Hi: 0xE01EF, Stride: 1}},
}

// printError prints one line: what is wrong, and what to do next.
func printError(w io.Writer, err error) {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	if errors.Is(err, context.Canceled) {
		text = "canceled"
	}
	if hint := sandbox.HintOf(err); hint != "" {
		text += "; " + strings.ReplaceAll(hint, "\n", " ")
	}
	_, _ = fmt.Fprintln(w, "caisson: "+visible(text)) // there is nowhere to report that standard error is closed
}
