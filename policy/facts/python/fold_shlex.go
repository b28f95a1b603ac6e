package python

import "strings"

// shlexSplit is shlex.split: the words of a command line, for each that the
// text may be.
func (c *invocation) shlexSplit() *val {
	v := c.get0()
	if !v.isText() || len(v.more) >= maxSplit {
		return nil
	}
	var out *val
	for _, s := range v.all() {
		words, ok := shellWords(s)
		if !ok {
			return nil
		}
		items := make([]*val, len(words))
		for i, w := range words {
			items[i] = str(w).with(v.from)
		}
		out = join(out, list(kList, items))
	}
	if v.open {
		out = join(out, derived(v))
	}
	return out
}

// shellWords splits a line as a shell would, without expanding anything; false
// where a quote is left open.
func shellWords(s string) ([]string, bool) {
	var words []string
	var b strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote != 0 && ch == quote:
			quote = 0
		case quote == '\'':
			b.WriteByte(ch)
		case ch == '\\' && i+1 < len(s):
			i++
			if quote == '"' && s[i] != '"' && s[i] != '\\' {
				b.WriteByte(ch)
			}
			b.WriteByte(s[i])
			in = true
		case quote == 0 && (ch == '\'' || ch == '"'):
			quote, in = ch, true
		case quote == 0 && strings.IndexByte(" \t\r\n", ch) >= 0:
			if in {
				words = append(words, b.String())
				b.Reset()
				in = false
			}
		default:
			b.WriteByte(ch)
			in = true
		}
	}
	if in {
		words = append(words, b.String())
	}
	return words, quote == 0
}
