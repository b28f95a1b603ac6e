package manager_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestInputBroken has standard input fail behind its beginning: the program is ended,
// and does not take what came for all of it.
func TestInputBroken(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	in := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("the line was lost")))
	res, err := p.Run(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "cat > all; echo all of it"}}, sandbox.Streams{Stdin: in})
	if err != nil || res.Reason != sandbox.ReasonCanceled || !strings.Contains(res.Cause, "the line was lost") || len(res.Stdout) > 0 {
		t.Errorf("%+v, %q, %v", res.Exit, res.Stdout, err)
	}
}
