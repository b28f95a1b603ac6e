package sandbox

import (
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes. It prints and parses with the binary units that
// `docker run --memory` takes, and is a plain number in JSON. It implements
// flag.Value and pflag.Value.
type Bytes int64

// Units of size.
const (
	KiB Bytes = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

var byteUnits = []struct {
	suffix string
	size   Bytes
}{{"t", TiB}, {"g", GiB}, {"m", MiB}, {"k", KiB}, {"", 1}}

// ParseBytes reads "512m", "512MiB", "1.5g", "1024" or "64kb". Units are
// binary, as in docker. Its error is [Invalid] and says what is expected.
func ParseBytes(s string) (Bytes, error) {
	bad := Errorf(Invalid, "%q is not a size", s).WithHint("write a number with an optional unit k, m, g or t, such as 512m or 1.5g")
	num := strings.ToLower(strings.TrimSpace(s))
	unit := Bytes(1)
	num = strings.TrimSuffix(strings.TrimSuffix(num, "b"), "i")
	for _, u := range byteUnits[:4] {
		if rest, ok := strings.CutSuffix(num, u.suffix); ok {
			num, unit = rest, u.size
			break
		}
	}
	if strings.HasSuffix(strings.ToLower(s), "ib") && unit == 1 {
		return 0, bad
	}
	num = strings.TrimSpace(num)
	if num == "" || strings.Trim(num, "0123456789.") != "" {
		return 0, bad
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || f*float64(unit) >= math.MaxInt64 {
		return 0, bad
	}
	return Bytes(f * float64(unit)), nil
}

// String prints the largest unit that gives a whole number, such as "512m".
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.suffix
		}
	}
	return "0"
}

// Human prints b with one decimal and a unit, for people: "9.0 MiB".
func (b Bytes) Human() string {
	for _, u := range byteUnits[:4] {
		if b >= u.size {
			return strconv.FormatFloat(float64(b)/float64(u.size), 'f', 1, 64) + " " + strings.ToUpper(u.suffix) + "iB"
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// Set parses s into b, as a flag does.
func (b *Bytes) Set(s string) error {
	v, err := ParseBytes(s)
	if err != nil {
		return err
	}
	*b = v
	return nil
}

// Type names the flag's type in help texts.
func (b *Bytes) Type() string { return "size" }
