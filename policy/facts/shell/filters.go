package shell

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"math"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// filters are computed on constants.
var filters = map[string]filter{
	"base64":   {run: base64Filter, values: "w", reads: true, decodes: decoding},
	"gbase64":  {run: base64Filter, values: "w", reads: true, decodes: decoding},
	"base32":   {run: base32Filter, values: "w", reads: true, decodes: decoding},
	"basenc":   {run: basencFilter, values: "w", reads: true, decodes: decoding},
	"xxd":      {run: xxdFilter, values: "lcgos", reads: true, decodes: decoding},
	"openssl":  {run: opensslFilter, reads: true, skip: math.MaxInt, decodes: decoding},
	"gzip":     {run: gunzipFilter, reads: true, decodes: decoding},
	"gunzip":   {run: inflate, reads: true, decodes: always},
	"zcat":     {run: inflate, reads: true, decodes: always},
	"bunzip2":  {run: bunzip, reads: true, decodes: always},
	"bzcat":    {run: bunzip, reads: true, decodes: always},
	"rev":      {run: revFilter, reads: true, decodes: always},
	"tac":      {run: tacFilter, reads: true},
	"rot13":    {run: rot13Filter, reads: true, skip: math.MaxInt, decodes: always},
	"cat":      {run: same, reads: true, marks: true, values: ""},
	"strings":  {run: same, reads: true, values: "n"},
	"tr":       {run: trFilter, reads: true, skip: math.MaxInt},
	"cut":      {run: cutFilter, values: "dfcb", reads: true},
	"head":     {run: headFilter, values: "nc", reads: true},
	"tail":     {run: tailFilter, values: "nc", reads: true},
	"sort":     {run: sortFilter, values: "ktoTS", reads: true},
	"uniq":     {run: uniqFilter, values: "fsw", reads: true},
	"fold":     {run: foldFilter, values: "w", reads: true},
	"paste":    {run: pasteFilter, values: "d", reads: true},
	"wc":       {run: wcFilter, reads: true},
	"grep":     {run: grepFilter, values: "eABCm", reads: true, skip: 1},
	"egrep":    {run: grepFilter, values: "eABCm", reads: true, skip: 1},
	"fgrep":    {run: grepFilter, values: "eABCm", reads: true, skip: 1},
	"awk":      {run: awkFilter, values: "Fvf", reads: true, skip: 1, marks: true},
	"gawk":     {run: awkFilter, values: "Fvf", reads: true, skip: 1, marks: true},
	"mawk":     {run: awkFilter, values: "Fvf", reads: true, skip: 1, marks: true},
	"basename": {run: basenameFilter, values: "s"},
	"dirname":  {run: dirnameFilter, marks: true},
	"realpath": {run: realpathFilter, marks: true},
	"readlink": {run: realpathFilter, marks: true},
	"seq":      {run: seqFilter, values: "sf"},
	"expr":     {run: exprFilter},
	"date":     {run: dateFilter, values: "dr"},
	"uname":    {run: unameFilter},
	"yes":      {run: yesFilter},
	"python3":  {run: printed, values: "c"},
	"python":   {run: printed, values: "c"},
	"perl":     {run: printed, values: "eE"},
	"ruby":     {run: printed, values: "e"},
	"node":     {run: printed, values: "ep"},
	"php":      {run: printed, values: "r"},
}

// decoding tells the option that decodes from its absence, which encodes.
func decoding(o options) bool { return o.has("d") || o.has("D") || o.has("r") }

func always(options) bool { return true }

func same(_ options, in string) (string, bool) { return in, true }

func base64Filter(o options, in string) (string, bool) {
	if o.has("d") || o.has("D") {
		return decode64(in, base64.RawStdEncoding)
	}
	return wrapLines(base64.StdEncoding.EncodeToString([]byte(in)), o), true
}

// decode64 is as tolerant as the tools are: line breaks, no padding, a tail
// that is cut off.
func decode64(in string, enc *base64.Encoding) (string, bool) {
	in = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '=' {
			return -1
		}
		return r
	}, in)
	out, err := enc.DecodeString(in)
	if err != nil && len(out) == 0 {
		return "", false
	}
	return string(out), true
}

func wrapLines(s string, o options) string {
	width := 76
	if v, ok := o.flags["w"]; ok {
		width, _ = strconv.Atoi(v)
	}
	if width <= 0 {
		return s
	}
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + "\n")
		s = s[width:]
	}
	b.WriteString(s + "\n")
	return b.String()
}

func base32Filter(o options, in string) (string, bool) {
	if !o.has("d") {
		return wrapLines(base32.StdEncoding.EncodeToString([]byte(in)), o), true
	}
	in = strings.TrimRight(strings.Join(strings.Fields(in), ""), "=")
	out, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(in)
	return string(out), err == nil
}

func basencFilter(o options, in string) (string, bool) {
	switch {
	case o.has("base64url") && o.has("d"):
		return decode64(in, base64.RawURLEncoding)
	case o.has("base32"):
		return base32Filter(o, in)
	case o.has("base16") && o.has("d"):
		return unhex(in)
	case o.has("base16"):
		return wrapLines(strings.ToUpper(hex.EncodeToString([]byte(in))), o), true
	case o.has("base64"):
		return base64Filter(o, in)
	}
	return "", false
}

// unhex decodes the hexadecimal digits of a text and skips the rest.
func unhex(in string) (string, bool) {
	in = strings.Map(func(r rune) rune {
		if r < 0x80 && digits(string(r), 1, 16) == 1 {
			return r
		}
		return -1
	}, strings.ReplaceAll(in, "0x", ""))
	out, err := hex.DecodeString(in[:len(in)&^1])
	return string(out), err == nil
}

func xxdFilter(o options, in string) (string, bool) {
	if o.has("r") && o.has("p") {
		return unhex(in)
	}
	if o.has("r") { // a dump: offset, columns, two spaces, text
		var b strings.Builder
		for _, line := range lines(in) {
			_, cols, _ := strings.Cut(line, ":")
			cols, _, _ = strings.Cut(strings.TrimLeft(cols, " "), "  ")
			s, _ := unhex(cols)
			b.WriteString(s)
		}
		return b.String(), true
	}
	if o.has("p") {
		return wrapLines(hex.EncodeToString([]byte(in)), options{flags: map[string]string{"w": "60"}}), true
	}
	return "", false
}

// opensslFilter is openssl base64 and openssl enc -base64, whose options have
// one dash.
func opensslFilter(o options, in string) (string, bool) {
	if len(o.operands) == 0 || o.operands[0] != "base64" && o.operands[0] != "enc" {
		return "", false
	}
	if o.operands[0] == "enc" && !o.has("b") && !o.has("a") || o.has("k") || o.has("K") || o.has("c") {
		return "", false
	}
	return base64Filter(o, in)
}

func gunzipFilter(o options, in string) (string, bool) {
	if !o.has("d") {
		return "", false
	}
	return inflate(o, in)
}

func inflate(_ options, in string) (string, bool) {
	if r, err := gzip.NewReader(strings.NewReader(in)); err == nil {
		return readSome(r)
	}
	if r, err := zlib.NewReader(strings.NewReader(in)); err == nil {
		return readSome(r)
	}
	return "", false
}

func bunzip(_ options, in string) (string, bool) {
	return readSome(bzip2.NewReader(strings.NewReader(in)))
}

func readSome(r io.Reader) (string, bool) {
	out, err := io.ReadAll(io.LimitReader(r, facts.MaxFolded+1))
	return string(out), err == nil || len(out) > 0
}

// lines splits text that may or may not end in a newline.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// unlines joins lines, with the newline at the end that in had.
func unlines(list []string, in string) string {
	out := strings.Join(list, "\n")
	if strings.HasSuffix(in, "\n") && len(list) > 0 {
		out += "\n"
	}
	return out
}

func eachLine(in string, f func(string) string) string { return unlines(mapAll(lines(in), f), in) }

func revFilter(_ options, in string) (string, bool) {
	return eachLine(in, func(s string) string {
		r := []rune(s)
		slices.Reverse(r)
		return string(r)
	}), true
}

func tacFilter(_ options, in string) (string, bool) {
	list := lines(in)
	slices.Reverse(list)
	return unlines(list, "\n"), true
}

func rot13Filter(_ options, in string) (string, bool) {
	out := []byte(in)
	for i, c := range out {
		switch {
		case c >= 'a' && c <= 'z':
			out[i] = 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			out[i] = 'A' + (c-'A'+13)%26
		}
	}
	return string(out), true
}

func headFilter(o options, in string) (string, bool) {
	if v, ok := o.flags["c"]; ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return "", false
		}
		return in[:min(n, len(in))], true
	}
	n, list := 10, lines(in)
	if v, ok := o.flags["n"]; ok {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			return "", false
		}
	}
	if n < 0 {
		n = max(0, len(list)+n)
	}
	if n < len(list) {
		return unlines(list[:n], "\n"), true
	}
	return in, true
}

func tailFilter(o options, in string) (string, bool) {
	v, byBytes := o.flags["c"]
	if !byBytes {
		v = o.flags["n"]
		if v == "" {
			v = "10"
		}
	}
	n, err := strconv.Atoi(strings.TrimPrefix(v, "+"))
	if err != nil {
		return "", false
	}
	n = max(n, -n)
	list := lines(in)
	switch from := strings.HasPrefix(v, "+"); {
	case byBytes && from:
		return in[min(max(n-1, 0), len(in)):], true
	case byBytes:
		return in[max(len(in)-n, 0):], true
	case from:
		return unlines(list[min(max(n-1, 0), len(list)):], in), true
	}
	return unlines(list[max(len(list)-n, 0):], in), true
}

func sortFilter(o options, in string) (string, bool) {
	if o.has("k") || o.has("R") {
		return "", false
	}
	list := lines(in)
	if o.has("n") {
		value := func(s string) int { n, _ := strconv.Atoi(strings.TrimSpace(s[:digits(s, len(s), 10)])); return n }
		sort.SliceStable(list, func(i, j int) bool { return value(list[i]) < value(list[j]) })
	} else {
		slices.Sort(list)
	}
	if o.has("r") {
		slices.Reverse(list)
	}
	if o.has("u") {
		list = slices.Compact(list)
	}
	return unlines(list, "\n"), true
}

func uniqFilter(o options, in string) (string, bool) {
	if len(o.flags) > 0 {
		return "", false
	}
	return unlines(slices.Compact(lines(in)), in), true
}

func foldFilter(o options, in string) (string, bool) {
	width, err := strconv.Atoi(o.flags["w"])
	if err != nil || width < 1 {
		return "", false
	}
	return eachLine(in, func(s string) string {
		var out []string
		for len(s) > width {
			out = append(out, s[:width])
			s = s[width:]
		}
		return strings.Join(append(out, s), "\n")
	}), true
}

func pasteFilter(o options, in string) (string, bool) {
	if !o.has("s") {
		return "", false
	}
	sep := "\t"
	if d, ok := o.flags["d"]; ok {
		sep = ansiC(d, false)
		if len(sep) > 1 {
			sep = sep[:1]
		}
	}
	return strings.Join(lines(in), sep) + "\n", true
}

func wcFilter(o options, in string) (string, bool) {
	n := 0
	switch {
	case o.has("l"):
		n = strings.Count(in, "\n")
	case o.has("c") || o.has("m"):
		n = len(in)
	case o.has("w"):
		n = len(strings.Fields(in))
	default:
		return "", false
	}
	return strconv.Itoa(n) + "\n", true
}

func basenameFilter(o options, _ string) (string, bool) {
	if len(o.operands) == 0 {
		return "", false
	}
	s := path.Base(o.operands[0])
	if len(o.operands) > 1 && s != o.operands[1] {
		s = strings.TrimSuffix(s, o.operands[1])
	}
	return strings.TrimSuffix(s, o.flags["s"]) + "\n", true
}

func dirnameFilter(o options, _ string) (string, bool) {
	if len(o.operands) == 0 {
		return "", false
	}
	s := strings.TrimRight(o.operands[0], "/")
	if !known(s[strings.LastIndexByte(s, '/')+1:]) && !strings.Contains(s, "/") || !known(path.Dir(s)) {
		return "", false
	}
	return path.Dir(s) + "\n", true
}

// realpathFilter takes for granted that there are no links.
func realpathFilter(o options, _ string) (string, bool) {
	if len(o.operands) != 1 || o.operands[0] == "" {
		return "", false
	}
	return path.Clean(o.operands[0]) + "\n", true
}

func seqFilter(o options, _ string) (string, bool) {
	from, step, to := 1, 1, 0
	nums := make([]int, len(o.operands))
	for i, s := range o.operands {
		n, err := strconv.Atoi(s)
		if err != nil {
			return "", false
		}
		nums[i] = n
	}
	switch len(nums) {
	case 1:
		to = nums[0]
	case 2:
		from, to = nums[0], nums[1]
	case 3:
		from, step, to = nums[0], nums[1], nums[2]
	default:
		return "", false
	}
	if step == 0 || (to-from)/step > maxWords || o.has("f") {
		return "", false
	}
	sep := "\n"
	if s, ok := o.flags["s"]; ok {
		sep = s
	}
	var out []string
	for i := from; step > 0 && i <= to || step < 0 && i >= to; i += step {
		out = append(out, strconv.Itoa(i))
	}
	return strings.Join(out, sep) + "\n", true
}

func dateFilter(o options, _ string) (string, bool) {
	if len(o.operands) != 1 || o.operands[0][:min(1, len(o.operands[0]))] != "+" || strings.Contains(o.operands[0], "%") {
		return "", false
	}
	return o.operands[0][1:] + "\n", true
}

func unameFilter(o options, _ string) (string, bool) {
	if o.has("m") {
		return "x86_64\n", true
	}
	return "Linux\n", len(o.flags) == 0 || o.has("s")
}

func yesFilter(o options, _ string) (string, bool) {
	line := "y"
	if len(o.operands) > 0 {
		line = strings.Join(o.operands, " ")
	}
	return string(bytes.Repeat([]byte(line+"\n"), min(16, 4096/(len(line)+1)+1))), true
}
