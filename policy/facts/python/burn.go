package python

import (
	"math"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// What a program may ask for before that is more than any program needs.
const (
	maxSize    = 1 << 50         // of what is counted
	hugeFile   = 100_000_000_000 // bytes of a file
	manyBytes  = 50_000_000_000  // bytes that a loop writes
	manyFiles  = 50_000          // files or folders that a loop makes
	manyStarts = 1000            // processes or threads that a loop starts
	hugeBits   = 1_000_000_000   // of a number
	hugeRounds = 10_000_000_000  // of a loop that is never left
)

// turns is how often a loop over that goes round, 0 where that is not known.
func turns(over *val, items []*val) float64 {
	if over.x != nil && over.x.size > 0 && over.kind == kList {
		return float64(over.x.size)
	}
	return float64(len(items))
}

// repeated multiplies the turns of the place; the result ends that.
func (it *interp) repeated(n float64) func() {
	before := it.shape.turns
	if n > 1 {
		it.shape.turns = max(before, 1) * n
	}
	return func() { it.shape.turns = before }
}

// collected notices a comprehension that keeps more than there is room for.
func (it *interp) collected(out *val, n float64, at *node) {
	if items := out.x.items; len(items) > 0 && (items[0].kind == kList || items[0].kind == kTuple) {
		n *= float64(max(1, lengthOf(items[0])))
	}
	if items := out.x.items; len(items) > 0 && out.kind != kTuple {
		it.keepsOpen(items[0], n, at)
	}
	if n >= hugeItems && out.kind != kTuple {
		it.structure(facts.StructHugeAlloc, "a list of "+strconv.FormatFloat(n, 'g', 4, 64)+" items", at)
	}
}

// grown notices a text that was put together of texts.
func (it *interp) grown(size int, n *node) {
	if size >= hugeBytes {
		it.structure(facts.StructHugeAlloc, "a text of "+strconv.FormatFloat(float64(size), 'g', 4, 64)+" bytes", n)
	}
}

// power notices a number that takes longer to work out than anybody waits.
func (it *interp) power(a, b *val, n *node) {
	base, ok := a.int()
	exp, ok2 := b.int()
	if ok && ok2 && (base > 1 || base < -1) && float64(exp)*math.Log2(math.Abs(float64(base))) >= hugeBits {
		it.structure(facts.StructHugeAlloc, "a number of "+strconv.FormatInt(exp, 10)+" digits or more", n)
	}
}

// makers make a file or a folder at each call.
var makers = set(`open pathlib.Path.touch pathlib.Path.write_text pathlib.Path.write_bytes pathlib.Path.open pathlib.Path.mkdir
	os.mkdir os.makedirs os.mknod os.mkfifo os.symlink os.link shutil.copy shutil.copy2 shutil.copyfile shutil.copytree
	tempfile.mkstemp tempfile.mkdtemp`)

// many notices calls that a loop makes more often than a program should.
func (it *interp) many(name string, a *arguments, self *val, n *node) {
	times := max(it.shape.turns, 1)
	count := func() string { return strconv.FormatFloat(times, 'g', 4, 64) }
	switch {
	case times >= manyFiles && makers[name] && it.newEach(name, a, self):
		it.structure(facts.StructLoopWrite, count()+" files are made", n)
	case times >= manyStarts && starters[name] != "":
		it.structure(facts.StructResourceBurn, count()+" times "+name, n)
	}
}

// newEach: what is made is another at each turn, and it is made to be written.
func (it *interp) newEach(name string, a *arguments, self *val) bool {
	what := a.at(0, "")
	if strings.HasPrefix(name, "pathlib.") && self != nil {
		what = self
	}
	if name == "open" || name == "pathlib.Path.open" {
		mode := a.at(1, "mode")
		if name != "open" {
			mode = a.at(0, "mode")
		}
		if mode == nil || !strings.ContainsAny(mode.text, "wax") {
			return false
		}
	}
	if what == nil {
		return strings.HasPrefix(name, "tempfile.")
	}
	_, same := what.oneText()
	return !same
}

// writes notices data that a loop writes to a file without bound.
func (it *interp) writes(data *val, n *node) {
	total := float64(sizeOf(data)) * max(it.shape.turns, 1)
	if total >= manyBytes {
		it.structure(facts.StructHugeAlloc, "a file of "+strconv.FormatFloat(total, 'g', 4, 64)+" bytes", n)
	}
}

// arrays make arrays of the shape that they are given.
var arrays = map[string]bool{
	"zeros": true, "ones": true, "empty": true, "full": true, "rand": true, "randn": true, "random": true, "arange": true, "eye": true,
	"identity": true, "randint": true, "normal": true, "uniform": true, "zeros_like": false,
}

// allocates notices calls that take room for as much as their arguments say.
func (c *invocation) allocates() {
	n := float64(0)
	what := "items"
	num := func(v *val) float64 {
		if v == nil {
			return 0
		}
		i, _ := v.int()
		return float64(i)
	}
	if m, ok := strings.CutPrefix(c.name, "open."); ok && c.self != nil && m == "truncate" {
		n, what = num(c.nth(0))/hugeFile*hugeItems, "bytes of a file"
	}
	switch c.name {
	case "bytearray", "bytes":
		n, what = num(c.nth(0))/8, "words"
	case "list", "set", "tuple", "sorted", "collections.deque":
		if v := c.nth(0); v.kind == kList && v.x.size > 0 && v.open {
			n = float64(v.x.size)
		}
	case "str.ljust", "str.rjust", "str.center", "str.zfill", "bytes.ljust", "bytes.rjust", "bytes.center", "bytes.zfill":
		n, what = num(c.nth(0))/8, "characters"
	case "pow":
		if len(c.pos) == 2 {
			c.it.power(c.pos[0], c.pos[1], c.n)
		}
	case "math.factorial":
		n, what = num(c.nth(0))*50, "factors"
	case "mmap.mmap":
		n, what = num(c.nth(1))/hugeFile*hugeItems, "pages"
	case "os.truncate", "os.ftruncate":
		n, what = num(c.nth(1))/hugeFile*hugeItems, "bytes of a file"
	case "open.truncate", "open.seek":
		n, what = num(c.nth(0))/hugeFile*hugeItems, "bytes of a file"
	case "os.posix_fallocate":
		n, what = num(c.nth(2))/hugeFile*hugeItems, "bytes of a file"
	case "open.write", "os.write", "zipfile.ZipFile.writestr":
		data := c.nth(0)
		if c.name != "open.write" {
			data = c.nth(1)
		}
		c.it.writes(data, c.n)
	default:
		root, rest, _ := strings.Cut(c.name, ".")
		if root == "numpy" || root == "torch" || root == "tensorflow" {
			n = c.shape(rest)
		}
	}
	if n >= hugeItems {
		c.it.structure(facts.StructHugeAlloc, "more "+what+" than there is room for, by "+c.name, c.n)
	}
}

// shape is how many items an array has.
func (c *invocation) shape(name string) float64 {
	if !arrays[name[strings.LastIndexByte(name, '.')+1:]] {
		return 0
	}
	n := float64(1)
	times := func(v *val) {
		dims := []*val{v}
		if v.isSeq() {
			dims = v.x.items
		}
		for _, d := range dims {
			if i, ok := d.int(); ok && i > 0 {
				n *= float64(i)
			}
		}
	}
	sizes := c.pos
	if strings.HasSuffix(name, "arange") {
		return c.span()
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "randint", "normal", "uniform": // of what range comes first
		sizes = sizes[min(2, len(sizes)):]
	case "full":
		sizes = sizes[:min(1, len(sizes))]
	}
	for _, v := range sizes {
		times(v)
	}
	for _, k := range []string{"size", "shape"} {
		if v := c.kw[k]; v != nil {
			times(v)
		}
	}
	return n
}

// span is how many numbers lie between two, as far as they are known.
func (c *invocation) span() float64 {
	if c.open {
		return 0
	}
	part := func(i int, name string, or float64) float64 {
		v := c.at(i, name)
		if v == nil || v.kind == kNone {
			return or
		}
		text, ok := v.one()
		f, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			return math.NaN()
		}
		return f
	}
	start, stop := 0.0, part(0, "start", 0)
	if c.at(1, "stop") != nil {
		start, stop = part(0, "start", 0), part(1, "stop", 0)
	}
	if math.IsNaN(start) && stop > 0 {
		start = 0 // what it is taken for where nothing is known
	}
	if n := (stop - start) / part(2, "step", 1); n > 0 {
		return n
	}
	return 0
}
