package sandbox

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Labels are a caller's own words about a session or a run: lists can be
// filtered by them. caisson gives them no meaning.
type Labels map[string]string

// Bounds of [Labels].
const (
	MaxLabels     = 32
	MaxLabelValue = 256 // bytes
)

var labelKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$`) })

// Check says what is wrong with labels. Errors: Invalid.
func (l Labels) Check() error {
	if len(l) > MaxLabels {
		return Errorf(Invalid, "%d labels", len(l)).WithHint("give at most %d", MaxLabels)
	}
	for k, v := range l {
		if !labelKey().MatchString(k) {
			return Errorf(Invalid, "%q is not a label's key", k).WithHint("use letters, digits, and . _ / - between them, at most 63")
		}
		if len(v) > MaxLabelValue || !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
			return Errorf(Invalid, "the value of label %s cannot be kept", k).WithHint("use one line of text, at most %d bytes", MaxLabelValue)
		}
	}
	return nil
}

// Has reports whether l has all labels of want, with the same values.
func (l Labels) Has(want Labels) bool {
	for k, v := range want {
		if has, ok := l[k]; !ok || has != v {
			return false
		}
	}
	return true
}
