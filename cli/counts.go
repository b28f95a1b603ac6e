package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"
)

// countVar is [pflag.FlagSet.IntVar] for a number that is at least 0.
func countVar[N int | int64](f *pflag.FlagSet, n *N, name string, value N, usage string) {
	*n = value
	f.Var(count[N]{n}, name, usage)
}

// limitFlag is --limit, wherever something is listed.
func limitFlag(f *pflag.FlagSet, limit *int, value int, usage string) {
	countVar(f, limit, "limit", value, usage+"; 0 is all")
}

// count is the flag of a number that is at least 0.
type count[N int | int64] struct{ n *N }

// String implements [pflag.Value].
func (c count[N]) String() string {
	if c.n == nil {
		return "0" // a zero one, that pflag compares with
	}
	return strconv.FormatInt(int64(*c.n), 10)
}

// Type implements [pflag.Value].
func (c count[N]) Type() string { return "int" }

// Set implements [pflag.Value].
func (c count[N]) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || int64(N(n)) != n {
		return errors.New("it takes a whole number, at least 0")
	}
	*c.n = N(n)
	return nil
}
