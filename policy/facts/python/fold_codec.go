package python

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"hash/adler32"
	"html"
	"io"
	"net/url"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// decoded marks what was hidden in an encoding.
var decoded = []string{"decoded"}

// encoded marks what the program hides in one.
var encoded = []string{"encoded"}

// codecHandlers decode and encode. The calls are reported too.
func codecHandlers() map[string]handler {
	out := codecs()
	for name, h := range out {
		out[name] = func(c *invocation) *val {
			v := h(c)
			c.it.report(c.name, c.arguments, nil, c.n)
			return v
		}
	}
	return out
}

func codecs() map[string]handler {
	from := func(f func(string) (string, bool)) handler {
		return func(c *invocation) *val {
			v := c.get0()
			if !v.isText() {
				return derived(c.all()...).with(decoded)
			}
			return v.mapText(kBytes, f).with(decoded)
		}
	}
	to := func(f func(string) (string, bool)) handler {
		return func(c *invocation) *val {
			v := c.get0()
			if !v.isText() {
				return derived(c.all()...).with(encoded)
			}
			return v.mapText(kBytes, f).with(encoded)
		}
	}
	toText := func(f func(string) (string, bool)) handler {
		return func(c *invocation) *val {
			v := c.get0()
			if !v.isText() {
				return derived(c.all()...)
			}
			return v.mapText(kStr, f)
		}
	}
	b64 := from(base64Decode)
	inflate, deflate := from(inflateAny), to(deflateAny)
	return map[string]handler{
		"base64.b64decode": b64, "base64.standard_b64decode": b64, "base64.urlsafe_b64decode": b64, "base64.decodebytes": b64,
		"base64.decodestring": b64, "binascii.a2b_base64": b64,
		"base64.b32decode": from(base32Decode),
		"base64.b16decode": from(hexDecode), "binascii.unhexlify": from(hexDecode), "binascii.a2b_hex": from(hexDecode),
		"base64.b85decode": from(base85Decode), "base64.a85decode": from(ascii85Decode),
		"base64.b64encode": to(base64Encode), "base64.standard_b64encode": to(base64Encode), "base64.encodebytes": to(base64Encode),
		"base64.urlsafe_b64encode": to(func(s string) (string, bool) { return base64.URLEncoding.EncodeToString([]byte(s)), true }),
		"base64.b16encode":         to(func(s string) (string, bool) { return strings.ToUpper(hex.EncodeToString([]byte(s))), true }),
		"binascii.hexlify":         to(hexEncode), "binascii.b2a_hex": to(hexEncode),
		"bytes.fromhex": from(hexDecode), "bytearray.fromhex": from(hexDecode),
		"zlib.decompress": inflate, "gzip.decompress": inflate, "bz2.decompress": inflate, "lzma.decompress": inflate,
		"zlib.compress": deflate, "gzip.compress": deflate, "bz2.compress": deflate, "lzma.compress": deflate,
		"codecs.decode":             func(c *invocation) *val { return c.codec(c.get(1, "encoding")) },
		"codecs.encode":             func(c *invocation) *val { return c.codec(c.get(1, "encoding")) },
		"codecs.getdecoder":         func(c *invocation) *val { return c.codecGetter() },
		"urllib.parse.unquote":      toText(unquote(false)),
		"urllib.parse.unquote_plus": toText(unquote(true)),
		"urllib.parse.quote":        toText(func(s string) (string, bool) { return s, !strings.ContainsAny(s, " \"<>%{}|\\^`#?&=+:;@,$!'()*") }),
		"html.unescape":             toText(func(s string) (string, bool) { return html.UnescapeString(s), true }),
		"urllib.parse.urljoin":      urljoin,
		"json.dumps":                func(c *invocation) *val { return derived(c.all()...) },
	}
}

func base64Decode(s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', ' ', '\t':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, s)
	s = strings.TrimRight(s, "=")
	out, err := base64.RawStdEncoding.DecodeString(s)
	return string(out), err == nil
}

func base64Encode(s string) (string, bool) { return base64.StdEncoding.EncodeToString([]byte(s)), true }

func base32Decode(s string) (string, bool) {
	out, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(strings.TrimRight(s, "=")))
	return string(out), err == nil
}

func hexDecode(s string) (string, bool) {
	out, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	return string(out), err == nil
}

func hexEncode(s string) (string, bool) { return hex.EncodeToString([]byte(s)), true }

func ascii85Decode(s string) (string, bool) {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "<~"), "~>")
	out := make([]byte, 4*len(s)+8)
	n, _, err := ascii85.Decode(out, []byte(s), true)
	if err != nil {
		return "", false
	}
	return string(out[:n]), true
}

const base85Alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// base85Decode reads the alphabet of git and of Python's b85decode.
func base85Decode(s string) (string, bool) {
	padding := (5 - len(s)%5) % 5
	s += strings.Repeat("~", padding)
	var out []byte
	for i := 0; i < len(s); i += 5 {
		acc := uint64(0)
		for _, c := range []byte(s[i : i+5]) {
			d := strings.IndexByte(base85Alphabet, c)
			if d < 0 {
				return "", false
			}
			acc = acc*85 + uint64(d)
		}
		if acc > 1<<32-1 {
			return "", false
		}
		out = append(out, byte(acc>>24), byte(acc>>16), byte(acc>>8), byte(acc))
	}
	return string(out[:len(out)-padding]), true
}

// inflateAny decompresses what the first bytes say, up to the size of a folded
// value.
func inflateAny(s string) (string, bool) {
	var r io.Reader
	var err error
	switch src := strings.NewReader(s); {
	case strings.HasPrefix(s, "\x1f\x8b"):
		r, err = gzip.NewReader(src)
	case strings.HasPrefix(s, "BZh"):
		r = bzip2.NewReader(src)
	default:
		if r, err = zlib.NewReader(src); err != nil {
			r, err = flate.NewReader(strings.NewReader(s)), nil
		}
	}
	if err != nil {
		return "", false
	}
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(r, facts.MaxFolded+1))
	return out.String(), err == nil && n <= facts.MaxFolded
}

// deflateAny stands for what any compression makes, which matters to nothing but
// what undoes it: the text as it is, in blocks of zlib's format.
func deflateAny(s string) (string, bool) {
	sum := adler32.Checksum([]byte(s))
	out := []byte{0x78, 0x01}
	for last := byte(0); last == 0; {
		n := min(len(s), 1<<16-1)
		if n == len(s) {
			last = 1
		}
		out = append(out, last, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		out, s = append(out, s[:n]...), s[n:]
	}
	out = append(out, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	return string(out), len(out) <= facts.MaxFolded
}

func unquote(plus bool) func(string) (string, bool) {
	return func(s string) (string, bool) {
		f := url.PathUnescape
		if plus {
			f = url.QueryUnescape
		}
		out, err := f(s)
		return out, err == nil
	}
}

func urljoin(c *invocation) *val {
	base, ok := c.nth(0).oneText()
	rel, ok2 := c.nth(1).oneText()
	if !ok || !ok2 {
		if ok && strings.Contains(base, "://") {
			return &val{from: derived(c.all()...).from, x: &extra{pre: base}}
		}
		return derived(c.all()...)
	}
	b, err := url.Parse(base)
	r, err2 := url.Parse(rel)
	if err != nil || err2 != nil {
		return derived(c.all()...)
	}
	return str(b.ResolveReference(r).String())
}

func codecName(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// codec is codecs.decode(v, name).
func (c *invocation) codec(name *val) *val {
	v := c.get0()
	if name == nil {
		return v
	}
	codec, ok := name.oneText()
	if !ok {
		return derived(c.all()...).with(decoded)
	}
	if strings.HasSuffix(c.name, "encode") {
		d := *c
		d.self, d.arguments = v, &arguments{pos: []*val{name}}
		return d.encode()
	}
	return c.it.decodeWith(codec, v)
}

func (c *invocation) codecGetter() *val {
	name, ok := c.get0().oneText()
	if !ok {
		return unknown
	}
	return &val{kind: kWrap, x: &extra{self: ref("codecs.decode", ""), dict: map[string]*val{"encoding": str(name)}, order: []string{"encoding"}}}
}

// decodeWith applies one of Python's codecs.
func (it *interp) decodeWith(codec string, v *val) *val {
	if !v.isText() {
		return derived(v).with(decoded)
	}
	switch codecName(codec) {
	case "rot13":
		return v.mapText(kStr, rot13).with(decoded)
	case "hex", "hexcodec":
		return v.mapText(kBytes, hexDecode).with(decoded)
	case "base64", "base64codec":
		return v.mapText(kBytes, base64Decode).with(decoded)
	case "zlib", "zip", "zlibcodec", "bz2", "bz2codec":
		return v.mapText(kBytes, inflateAny).with(decoded)
	case "unicodeescape", "stringescape", "rawunicodeescape":
		return v.mapText(kStr, func(s string) (string, bool) { return unescape(s, false), true })
	case "utf8", "ascii", "latin1", "iso88591", "utf8sig", "":
		return v.decode()
	}
	return derived(v).with(decoded)
}

// encode is v.encode(codec).
func (c *invocation) encode() *val {
	codec := "utf8"
	if a := c.get(0, "encoding"); a != nil {
		s, ok := a.oneText()
		if !ok {
			return derived(append(c.all(), c.self)...)
		}
		codec = codecName(s)
	}
	v := c.self
	switch codec {
	case "utf8", "ascii", "latin1", "utf8sig":
		return v.mapText(kBytes, func(s string) (string, bool) { return s, true })
	case "rot13":
		return v.mapText(kStr, rot13).with(decoded)
	case "hex", "hexcodec":
		return v.mapText(kBytes, hexEncode).with(encoded)
	case "base64", "base64codec":
		return v.mapText(kBytes, base64Encode).with(encoded)
	}
	return derived(v)
}

func rot13(s string) (string, bool) {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s), true
}
