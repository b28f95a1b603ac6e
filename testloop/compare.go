package testloop

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// Comparison says when an output is right.
type Comparison string

// The comparisons. Of values in JSON, numbers are compared as numbers, and
// trimmed is exact.
const (
	CompareExact     Comparison = "exact"     // byte for byte
	CompareTrimmed   Comparison = "trimmed"   // but for white space at the ends of lines, and empty lines at the end
	CompareFloat     Comparison = "float"     // words that are numbers may differ a little, and white space between words
	CompareUnordered Comparison = "unordered" // lines, or the entries of a list, in any order
)

func (c Comparison) check() error {
	switch c {
	case CompareExact, CompareTrimmed, CompareFloat, CompareUnordered:
		return nil
	}
	return sandbox.Errorf(sandbox.Invalid, "unknown comparison %q", c).WithHint("it is exact, trimmed, float or unordered")
}

// sameText compares what a program put out.
func sameText(how Comparison, tolerance float64, want, got string) bool {
	switch how {
	case CompareExact:
		return want == got
	case CompareFloat:
		return slices.EqualFunc(strings.Fields(want), strings.Fields(got), func(a, b string) bool {
			x, errX := strconv.ParseFloat(a, 64)
			y, errY := strconv.ParseFloat(b, 64)
			return a == b || errX == nil && errY == nil && near(x, y, tolerance)
		})
	case CompareUnordered:
		return slices.Equal(slices.Sorted(slices.Values(lines(want))), slices.Sorted(slices.Values(lines(got))))
	default:
		return slices.Equal(lines(want), lines(got))
	}
}

// lines are those of a text, without white space at their ends and without empty
// ones at its end.
func lines(text string) []string {
	list := strings.Split(text, "\n")
	for i, line := range list {
		list[i] = strings.TrimRight(line, " \t\r")
	}
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// near allows a difference absolutely, and for the size of numbers.
func near(x, y, tolerance float64) bool {
	if math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsNaN(x) || math.IsNaN(y) {
		return x == y || math.IsNaN(x) && math.IsNaN(y)
	}
	return math.Abs(x-y) <= tolerance*max(1, math.Abs(x), math.Abs(y))
}

// sameJSON compares what a function returned.
func sameJSON(how Comparison, tolerance float64, want, got []byte) bool {
	a, errA := decode(want)
	b, errB := decode(got)
	if errA != nil || errB != nil {
		return false
	}
	if how != CompareFloat {
		tolerance = -1
	}
	x, listX := a.([]any)
	y, listY := b.([]any)
	if how == CompareUnordered && listX && listY {
		return sameEntries(x, y)
	}
	return sameValue(a, b, tolerance)
}

func decode(b []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// sameEntries pairs each entry with an equal one. Equality is transitive there.
func sameEntries(x, y []any) bool {
	left := slices.Clone(y)
	for _, a := range x {
		i := slices.IndexFunc(left, func(b any) bool { return sameValue(a, b, -1) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return len(left) == 0
}

// sameValue compares decoded JSON; a negative tolerance is none.
func sameValue(a, b any, tolerance float64) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(x, y any) bool { return sameValue(x, y, tolerance) })
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, x := range a {
			if y, there := b[k]; !there || !sameValue(x, y, tolerance) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b, tolerance)
	}
	return a == b
}

// mostDigits bounds the exponents of numbers that are compared exactly: 1e999999999
// would take memory for all its digits.
const mostDigits = 400

func sameNumber(a, b json.Number, tolerance float64) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	if tolerance >= 0 {
		return errX == nil && errY == nil && near(x, y, tolerance)
	}
	if errX != nil || errY != nil || len(a) > mostDigits || len(b) > mostDigits {
		return false
	}
	p, okP := new(big.Rat).SetString(string(a))
	q, okQ := new(big.Rat).SetString(string(b))
	return okP && okQ && p.Cmp(q) == 0
}
