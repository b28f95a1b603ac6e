package cli

import (
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/sandbox"
)

// durationVar is [pflag.FlagSet.DurationVar] for a time of which a number alone
// is seconds.
func durationVar(f *pflag.FlagSet, d *sandbox.Duration, name string, value sandbox.Duration, usage string) {
	*d = value
	f.Var(d, name, usage)
	if value == 0 {
		f.Lookup(name).DefValue = "0" // which the help leaves out
	}
}
