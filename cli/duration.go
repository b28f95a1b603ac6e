package cli

import (
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/sandbox"
)

// durationVar is [pflag.FlagSet.DurationVar] for a time of which a number alone
// is seconds, and that is not negative.
func durationVar(f *pflag.FlagSet, d *sandbox.Duration, name string, value sandbox.Duration, usage string) {
	*d = value
	f.Var(span{d}, name, usage)
	if value == 0 {
		f.Lookup(name).DefValue = "0" // which the help leaves out
	}
}

// span is the flag of a time that is not negative.
type span struct{ *sandbox.Duration }

// Set implements [pflag.Value].
func (s span) Set(text string) error {
	d, err := sandbox.ParseDuration(text)
	if err == nil && d < 0 {
		err = sandbox.Errorf(sandbox.Invalid, "it is negative").WithHint("write seconds, such as 10, or 500ms, 10s, 2m, 1h30m")
	}
	*s.Duration = sandbox.Duration(d)
	return err
}
