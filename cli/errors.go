package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/internal/shown"
	"github.com/caisson-dev/caisson/sandbox"
)

// exitCode ends a command with a code and without a message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Exit codes of caisson's own. A program's code is passed on as it is.
const (
	exitUnwell   = 1 // of doctor alone
	exitUsage    = 2
	exitConflict = 122
	exitNotFound = 123
	exitFailed   = 125
	exitDenied   = 126
	exitCanceled = 130
	exitPipe     = 141 // nobody reads what is printed: as a signal would have it
)

// kindCodes is the one table from kinds of error to exit codes. A kind that is
// not in it is [exitFailed]: caisson, or what it stands on, could not.
var kindCodes = map[sandbox.Kind]int{
	sandbox.Invalid: exitUsage, sandbox.NotFound: exitNotFound, sandbox.Conflict: exitConflict, sandbox.Denied: exitDenied,
}

func codeOfError(err error) int {
	if errors.Is(err, context.Canceled) {
		return exitCanceled
	}
	if code, ok := kindCodes[sandbox.KindOf(err)]; ok {
		return code
	}
	return exitFailed
}

// brokenPipe reports whether an error says that nobody reads standard output any
// more, which is for its reader to choose.
func brokenPipe(err error) bool {
	failed, ok := errors.AsType[*fs.PathError](err)
	return ok && failed.Path == os.Stdout.Name() && errors.Is(failed.Err, syscall.EPIPE)
}

// notedWriter keeps the error of a write that failed.
type notedWriter struct {
	io.Writer
	failed error
}

// Write implements [io.Writer].
func (n *notedWriter) Write(p []byte) (int, error) {
	written, err := n.Writer.Write(p)
	if err != nil {
		n.failed = err
	}
	return written, err
}

// asJSON reports whether a command line asks for JSON: also where the command
// never came to read its flags, since one of them is wrong.
func asJSON(cmd *cobra.Command, args []string) bool {
	flag := cmd.Flags().Lookup("json")
	if flag == nil || flag.Changed {
		return flag != nil && flag.Value.String() == "true"
	}
	if dash := slices.Index(args, "--"); dash >= 0 {
		args = args[:dash]
	}
	return slices.Contains(args, "--json")
}

// visible makes the words of others fit for a terminal: part of an error may be
// those of what runs in a sandbox.
func visible(text string) string { return shown.Text(text) }

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
