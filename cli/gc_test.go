package cli

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// What stays for a reason is named, with how it goes; what was told is not told
// again.
func TestTellKept(t *testing.T) {
	t.Parallel()
	var errs strings.Builder
	told := []sandbox.Orphan{{Kind: "sandbox", Name: "a"}}
	tellKept(Config{IO: IOStreams{Err: &errs}}, append(told, sandbox.Orphan{Kind: "volume", Name: "caisson-agent-1"}), told)
	if want := "caisson: kept: volume caisson-agent-1; remove it with: caisson gc --kept\n"; errs.String() != want {
		t.Errorf("%q, not %q", errs.String(), want)
	}
}
