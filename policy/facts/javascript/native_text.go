package javascript

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/url"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/policy/facts"
)

// mapText applies f to each text that v may be.
func mapText(v *val, f func(string) (string, bool)) *val {
	if c, ok := coerce(v); ok && !v.simple() {
		v = text(c)
	}
	if !v.simple() {
		return opaque(v.origins())
	}
	out := v.Map(f)
	if out.Alts != nil {
		out.Type = "str"
	}
	return of(out)
}

// decoded marks a text as one that was not readable in the source.
func decoded(v *val) *val { return v.with([]string{"decoded"}) }

func nativeString(_ *walk, s *site) (*val, bool) {
	if len(s.args) == 0 {
		return text(""), true
	}
	return plus(text(""), s.arg(0)), true
}

func nativeNumber(_ *walk, s *site) (*val, bool) {
	if f, ok := toNumber(s.arg(0)); ok {
		return numeric(f), true
	}
	return opaque(s.origins()), true
}

func nativeBoolean(_ *walk, s *site) (*val, bool) {
	if may, certain := truthy(s.arg(0)); certain {
		return boolean(may), true
	}
	return unknown, true
}

func nativeParseInt(_ *walk, s *site) (*val, bool) {
	base, _ := s.arg(1).integer()
	if t, ok := coerce(s.arg(0)); ok {
		return numeric(parseInteger(t, base)), true
	}
	return opaque(s.origins()), true
}

func nativeMath(f func(float64) float64) native {
	return func(_ *walk, s *site) (*val, bool) {
		if x, ok := toNumber(s.arg(0)); ok {
			return numeric(f(x)), true
		}
		return opaque(s.origins()), true
	}
}

func nativeFromCharCode(_ *walk, s *site) (*val, bool) {
	if s.open {
		return opaque(s.origins()), true
	}
	var u []uint16
	for _, a := range s.args {
		f, ok := toNumber(a)
		if !ok || math.IsNaN(f) || math.Abs(f) > utf8.MaxRune {
			return opaque(merge(s.origins(), []string{"decoded"})), true
		}
		if f > 0xffff {
			u = append(u, units(string(rune(f)))...)
			continue
		}
		u = append(u, uint16(int(f)))
	}
	return decoded(text(fromUnits(u)).with(s.origins())), true
}

// latin gives bytes as a text of one character each, as atob does.
func latin(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

// unlatin is the reverse of latin.
func unlatin(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return "", false
		}
		b = append(b, byte(r))
	}
	return string(b), true
}

// base64Bytes decodes as leniently as node does.
func base64Bytes(s string) (string, bool) {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '-':
			return '+'
		case r == '_':
			return '/'
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '+', r == '/':
			return r
		}
		return -1
	}, s)
	b, err := base64.RawStdEncoding.DecodeString(clean)
	if err != nil && len(clean)%4 == 1 {
		b, err = base64.RawStdEncoding.DecodeString(clean[:len(clean)-1])
	}
	return string(b), err == nil
}

func decodeBase64(v *val) *val {
	return decoded(mapText(v, base64Bytes))
}

func nativeAtob(_ *walk, s *site) (*val, bool) {
	return decoded(mapText(s.arg(0), func(t string) (string, bool) {
		b, ok := base64Bytes(t)
		return latin([]byte(b)), ok
	})), true
}

func nativeBtoa(_ *walk, s *site) (*val, bool) {
	return mapText(s.arg(0), func(t string) (string, bool) {
		b, ok := unlatin(t)
		return base64.StdEncoding.EncodeToString([]byte(b)), ok
	}), true
}

func percent(t string) (string, bool) {
	u, err := url.PathUnescape(t)
	return u, err == nil
}

func nativePercent(_ *walk, s *site) (*val, bool) { return mapText(s.arg(0), percent), true }

func nativeEncode(_ *walk, s *site) (*val, bool) {
	return mapText(s.arg(0), func(t string) (string, bool) {
		return strings.ReplaceAll(url.QueryEscape(t), "+", "%20"), true
	}), true
}

func nativeUnescape(_ *walk, s *site) (*val, bool) {
	return mapText(s.arg(0), func(t string) (string, bool) {
		var b strings.Builder
		for i := 0; i < len(t); i++ {
			if t[i] == '%' {
				if i+5 < len(t) && t[i+1] == 'u' {
					if r, ok := hexRune(t, i+2, i+6); ok {
						b.WriteRune(r)
						i += 5
						continue
					}
				}
				if r, ok := hexRune(t, i+1, i+3); ok {
					b.WriteRune(r)
					i += 2
					continue
				}
			}
			b.WriteByte(t[i])
		}
		return b.String(), true
	}), true
}

// fromEncoding gives the bytes that a text in an encoding stands for.
func fromEncoding(v *val, encoding string) *val {
	switch strings.ToLower(encoding) {
	case "base64", "base64url":
		v = decodeBase64(v)
	case "hex":
		v = decoded(mapText(v, func(t string) (string, bool) {
			b, err := hex.DecodeString(t[:len(t)/2*2])
			return string(b), err == nil
		}))
	case "latin1", "binary", "ascii":
		v = mapText(v, unlatin)
	case "utf16le", "ucs2", "utf-16le", "ucs-2":
		return opaque(v.From)
	}
	return asBytes(v)
}

func asBytes(v *val) *val {
	if !v.simple() {
		return opaque(v.origins())
	}
	out := v.Value
	out.Type = "bytes"
	return of(out)
}

// toEncoding writes bytes as a text.
func toEncoding(v *val, encoding string) *val {
	out := v.Map(func(t string) (string, bool) {
		switch strings.ToLower(encoding) {
		case "", "utf8", "utf-8":
			return strings.ToValidUTF8(t, "\ufffd"), true
		case "base64":
			return base64.StdEncoding.EncodeToString([]byte(t)), true
		case "base64url":
			return base64.RawURLEncoding.EncodeToString([]byte(t)), true
		case "hex":
			return hex.EncodeToString([]byte(t)), true
		case "latin1", "binary", "ascii":
			return latin([]byte(t)), true
		}
		return "", false
	})
	if out.Alts != nil {
		out.Type = "str"
	}
	return of(out)
}

func nativeBufferFrom(w *walk, s *site) (*val, bool) {
	a := s.arg(0)
	if a.isNumber() {
		return nativeAlloc(w, s)
	}
	if v, ok := bytesOf(a); ok {
		return v, true
	}
	enc, _ := s.arg(1).one()
	if s.arg(1).isNone() {
		enc = ""
	}
	return fromEncoding(a, enc), true
}

// bytesOf gives an array of numbers as bytes.
func bytesOf(a *val) (*val, bool) {
	if !a.isArray() || a.ref.open {
		return nil, false
	}
	b := make([]byte, len(a.ref.items))
	for i, it := range a.ref.items {
		n, ok := it.integer()
		if !ok {
			return opaque(a.origins()), true
		}
		b[i] = byte(n)
	}
	return decoded(of(facts.Bytes(string(b)).WithFrom(a.origins()...))), true
}

func nativeBytes(_ *walk, s *site) (*val, bool) {
	if v, ok := bytesOf(s.arg(0)); ok {
		return v, true
	}
	return opaque(s.origins()), true
}

func nativeConcat(_ *walk, s *site) (*val, bool) {
	items, open := elements(s.arg(0))
	if open || len(items) == 0 {
		return opaque(s.origins()), true
	}
	parts := make([]facts.Value, len(items))
	for i, it := range items {
		parts[i] = it.out()
	}
	return asBytes(of(facts.Concat(parts...))), true
}

// nativeAlloc gives bytes.
func nativeAlloc(_ *walk, s *site) (*val, bool) {
	return &val{Value: facts.Value{Type: "bytes", From: s.origins()}}, true
}

// nativeRoom is nativeAlloc for what keeps its own type.
func nativeRoom(_ *walk, s *site) (*val, bool) {
	if s.new && strings.HasSuffix(s.name, "ArrayBuffer") {
		return of(facts.Value{Type: s.name}), true
	}
	return nil, false
}

// nativeDecoder stands for new TextDecoder() and its twin; their methods are in builtinMethod.
func nativeDecoder(_ *walk, s *site) (*val, bool) {
	return &val{Value: facts.Value{Type: s.name}}, true
}

func nativeStringify(w *walk, s *site) (*val, bool) {
	a := s.arg(0)
	w.dump(a, s.n)
	if a.isText() {
		return mapText(a, func(t string) (string, bool) {
			b, err := json.Marshal(t)
			return string(b), err == nil
		}), true
	}
	if a.simple() && a.Known() && a.Type != "bytes" {
		return plus(text(""), a), true
	}
	return opaque(s.origins()), true
}

func nativeParse(w *walk, s *site) (*val, bool) {
	t, ok := s.arg(0).one()
	var x any
	if !ok || json.Unmarshal([]byte(t), &x) != nil {
		return opaque(s.origins()), true
	}
	w.carries(x, s.n, 4)
	return jsonValue(x, 16).with(s.arg(0).From), true
}

func jsonValue(x any, depth int) *val {
	switch x := x.(type) {
	case string:
		return text(x)
	case float64:
		return numeric(x)
	case bool:
		return boolean(x)
	case []any:
		o := &object{role: array}
		for _, it := range x {
			if depth > 0 && len(o.items) < maxItems {
				o.items = append(o.items, jsonValue(it, depth-1))
			}
		}
		return &val{ref: o}
	case map[string]any:
		o := &object{role: plain}
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			if depth > 0 {
				o.set(k, jsonValue(x[k], depth-1))
			}
		}
		return &val{ref: o}
	}
	return null
}
