package sandbox

import (
	"math"
	"strconv"
	"time"
)

// Duration is a [time.Duration] that is a number of milliseconds in JSON, with
// a fraction where it has one. It implements flag.Value and pflag.Value.
type Duration time.Duration

// MarshalJSON writes d in milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	ms, rest := int64(d)/int64(time.Millisecond), int64(d)%int64(time.Millisecond)
	if rest == 0 {
		return strconv.AppendInt(nil, ms, 10), nil
	}
	return strconv.AppendFloat(nil, float64(d)/float64(time.Millisecond), 'f', -1, 64), nil
}

// UnmarshalJSON reads milliseconds. Its error is [Invalid].
func (d *Duration) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if ms, err := strconv.ParseInt(string(b), 10, 64); err == nil && ms <= math.MaxInt64/int64(time.Millisecond) && ms >= math.MinInt64/int64(time.Millisecond) {
		*d = Duration(ms * int64(time.Millisecond))
		return nil
	}
	ms, err := strconv.ParseFloat(string(b), 64)
	ns := math.Round(ms * float64(time.Millisecond))
	if err != nil || math.IsNaN(ns) || math.Abs(ns) >= math.MaxInt64 {
		return Errorf(Invalid, "%s is not a time in milliseconds", b).WithHint("write a number, such as 1500 for one and a half seconds")
	}
	*d = Duration(ns)
	return nil
}

// String prints d as [time.Duration.String] does.
func (d Duration) String() string { return time.Duration(d).String() }

// Set parses s into d, as a flag does: see [ParseDuration].
func (d *Duration) Set(s string) error {
	v, err := ParseDuration(s)
	*d = Duration(v)
	return err
}

// Type names the flag's type in help texts.
func (d *Duration) Type() string { return "duration" }

// ParseDuration reads a time as users write it: 500ms, 10s, 1h30m, or a number
// of seconds. Its error is [Invalid].
func ParseDuration(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > math.MaxInt64/float64(time.Second)/2 {
		return 0, Errorf(Invalid, "%q is not a time", s).WithHint("write seconds, such as 10, or 500ms, 10s, 2m, 1h30m")
	}
	return time.Duration(n * float64(time.Second)), nil
}
