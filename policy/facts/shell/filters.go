package shell

import (
	"math"
	"path"
	"strconv"
	"strings"
)

// filters are programs that make their output of their arguments and their input. Those
// with a run are computed on constants: they name files, count and compare. What another
// makes of a text is not told; what is started by it is judged at its start.
var filters = map[string]filter{
	"base64":   {values: "w", reads: true, decodes: decoding},
	"gbase64":  {values: "w", reads: true, decodes: decoding},
	"base32":   {values: "w", reads: true, decodes: decoding},
	"basenc":   {values: "w", reads: true, decodes: decoding},
	"xxd":      {values: "lcgos", reads: true, decodes: decoding},
	"openssl":  {reads: true, skip: math.MaxInt, decodes: decoding},
	"gzip":     {reads: true, decodes: decoding},
	"gunzip":   {reads: true, decodes: always},
	"zcat":     {reads: true, decodes: always},
	"bunzip2":  {reads: true, decodes: always},
	"bzcat":    {reads: true, decodes: always},
	"rev":      {reads: true, decodes: always},
	"rot13":    {reads: true, skip: math.MaxInt, decodes: always},
	"tac":      {reads: true},
	"cat":      {run: same, reads: true, marks: true},
	"strings":  {run: same, reads: true, values: "n"},
	"tr":       {reads: true, skip: math.MaxInt},
	"cut":      {values: "dfcb", reads: true},
	"head":     {values: "nc", reads: true},
	"tail":     {values: "nc", reads: true},
	"sort":     {values: "ktoTS", reads: true},
	"uniq":     {values: "fsw", reads: true},
	"fold":     {values: "w", reads: true},
	"paste":    {values: "d", reads: true},
	"wc":       {reads: true},
	"grep":     {values: "eABCm", reads: true, skip: 1},
	"egrep":    {values: "eABCm", reads: true, skip: 1},
	"fgrep":    {values: "eABCm", reads: true, skip: 1},
	"awk":      {values: "Fvf", reads: true, skip: 1},
	"gawk":     {values: "Fvf", reads: true, skip: 1},
	"mawk":     {values: "Fvf", reads: true, skip: 1},
	"sed":      {values: "ef", reads: true, skip: 1},
	"gsed":     {values: "ef", reads: true, skip: 1},
	"basename": {run: basenameFilter, values: "s"},
	"dirname":  {run: dirnameFilter, marks: true},
	"realpath": {run: realpathFilter, marks: true},
	"readlink": {run: realpathFilter, marks: true},
	"seq":      {run: seqFilter, values: "sf"},
	"expr":     {run: exprFilter},
	"date":     {},
	"uname":    {run: unameFilter},
	"yes":      {},
	"python3":  {values: "c"},
	"python":   {values: "c"},
	"perl":     {values: "eE"},
	"ruby":     {values: "e"},
	"node":     {values: "ep"},
	"php":      {values: "r"},
}

// decoding tells the option that decodes from its absence, which encodes.
func decoding(o options) bool { return o.has("d") || o.has("D") || o.has("r") }

func always(options) bool { return true }

func same(_ options, in string) (string, bool) { return in, true }

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

func unameFilter(o options, _ string) (string, bool) {
	if o.has("m") {
		return "x86_64\n", true
	}
	return "Linux\n", len(o.flags) == 0 || o.has("s")
}

func exprFilter(o options, _ string) (string, bool) {
	a := o.operands
	switch {
	case len(a) == 2 && a[0] == "length":
		return strconv.Itoa(len(a[1])) + "\n", true
	case len(a) == 4 && a[0] == "substr":
		from, err := strconv.Atoi(a[2])
		n, err2 := strconv.Atoi(a[3])
		if err != nil || err2 != nil || from < 1 || n < 0 {
			return "", false
		}
		return cutRunes(a[1], from-1, n, true) + "\n", true
	case len(a) == 3:
		x, ok := parseInt(a[0])
		y, ok2 := parseInt(a[2])
		if !ok || !ok2 {
			return "", false
		}
		switch a[1] {
		case "+":
			return strconv.FormatInt(x+y, 10) + "\n", true
		case "-":
			return strconv.FormatInt(x-y, 10) + "\n", true
		case "*":
			return strconv.FormatInt(x*y, 10) + "\n", true
		}
	}
	return "", false
}
