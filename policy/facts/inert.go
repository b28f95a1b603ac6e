package facts

import (
	"regexp"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// plainWords are words that text may hold and still reach nothing of what is
// around it: those of the language, and functions that only compute.
var plainWords = map[Lang][]string{
	Python: strings.Fields(`and as assert break class continue def del elif else except False finally for from if in is lambda None nonlocal not or pass
		raise NotImplemented return True try while with yield abs all any bool dict divmod enumerate filter float frozenset int isinstance len list map max min ord
		pow print range reversed round set slice sorted str sum tuple zip join split append upper lower strip format items keys values
		object property staticmethod classmethod repr hash iter next super
		ValueError TypeError KeyError IndexError Exception ZeroDivisionError AttributeError NotImplementedError StopIteration`),
	JavaScript: strings.Fields(`return var let const function if else for while do of in new true false null undefined typeof switch case break continue
		default throw try catch finally Math Number String Array JSON isNaN parseInt parseFloat length push pop map filter reduce join split slice
		concat toString toFixed max min abs floor ceil round sqrt pow PI log console error warn info table`),
}

// keywords are those of plainWords that no program can give another meaning, in
// either language.
var keywords = strings.Fields(`and as assert break class continue def del elif else except False finally for from if in is lambda None nonlocal not or pass
	raise return True try while with yield var let const function do new true false null typeof switch case default throw catch`)

// plainModules are modules of Python that only compute.
var plainModules = []string{"math", "cmath", "statistics", "random", "string", "decimal", "fractions", "datetime", "calendar", "itertools"}

var (
	wordsOf = lazyregexp.New(`[\pL_$][\pL\pN_$]*`)
	quoted  = lazyregexp.New(`"[^"\\\n]*"|'[^'\\\n]*'`)
	binds   = lazyregexp.New(`(?:def|class|for|lambda|let|const|var|function)\s+([\pL_]\w*)|([\pL_]\w*)\s*=[^=]`)
	params  = lazyregexp.New(`(?:def\s+\w+|function\s*\w*)\s*\(([^()]*)\)|lambda([^:]*):|\(([^()]*)\)\s*=>|([\pL_$][\pL\pN_$]*)\s*=>`)
	defines = lazyregexp.New(`\b(?:def|function)\s+([\pL_]\w*)\s*\(`)
	changes = lazyregexp.New(`\b(?:for|lambda|let|const|var|as|global|nonlocal)\s+([\pL_]\w*)|([\pL_]\w*)\s*(?:,[\w\s,]*)?[-+*/%|&^:]?=[^=]`)
	called  = lazyregexp.New(`(def\s+|class\s+|function\s+)?([\pL_$][\pL\pN_$]*)\s*\(`)
	// handed are calls of what is not a name, and of functions that call what they
	// are given, but where that is a name of the language.
	handed  = lazyregexp.New(`[\])]\s*\(|\b(?:map|filter)\s*\(\s*(\w*)|\bkey\s*=\s*(\w*)`)
	formula = lazyregexp.New(`^[\w\s+\-*/%(),.<>=!&|^~]*$`)
	// ofNumbers are calls of functions that compute, with numbers alone.
	ofNumbers = lazyregexp.New(`\b(?:sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|exp|log|log2|log10|sqrt|pow|abs|min|max|round|int|float|floor|ceil|factorial|gcd|hypot|degrees|radians|sum|len|bool|complex|fabs|comb|perm)?\(\s*[\d.+\-*/%,\s]*\)`)
	circle    = lazyregexp.New(`\b(?:pi|tau)\b`)
	importing = lazyregexp.New(`^\s*import\s+([a-z]\w*)(?:\s+as\s+\w+)?\s*$`)
	numbers   = lazyregexp.New(`\b\d\w*`)
	special   = lazyregexp.New(`\bdef __(?:init|repr|str|len|eq|ne|lt|le|gt|ge|hash|bool|iter|next|add|sub|mul|contains|getitem|setitem|enter|exit|post_init)__`)
	// noBuiltins is how a namespace is given none.
	noBuiltins = lazyregexp.New(`["']__builtins__["']\s*:\s*(?:\{\s*\}|None)`)
	members    = lazyregexp.New(`\.\s*([\pL_]\w*)`)
)

// maxAround bounds the program around an evaluated text: each name in the text
// is looked for in all of it.
const maxAround = 64 << 10

// plain reports that constant text names nothing but its own variables, given
// are those that its caller binds for it, and what any program has; and that
// the program around it did not make these names mean something else. With
// variables, it may read those of the program too.
func (b *Builder) plain(lang Lang, text string, given []string, variables bool) bool {
	if lang == TypeScript {
		lang = JavaScript
	}
	allowed := plainWords[lang]
	if lang == Python {
		text = special().ReplaceAllString(text, "def made")
	}
	if allowed == nil || len(text) > 4096 || len(b.src) > maxAround || strings.ContainsAny(text, "`@\\") || strings.Contains(text, "__") || strings.Contains(text, "f\"") || strings.Contains(text, "f'") {
		return false
	}
	if lang == Python && b.arithmetic(text) {
		return true
	}
	bare := numbers().ReplaceAllString(quoted().ReplaceAllString(text, " "), " ")
	calls := strings.ContainsAny(text, `"'`) // what stands in quotes may be handed to a function
	own := slices.Clone(given)
	for _, m := range binds().FindAllStringSubmatch(bare, -1) {
		own = append(own, m[1], m[2])
	}
	for _, m := range params().FindAllStringSubmatch(bare, -1) {
		for _, list := range m[1:] {
			own = append(own, parameters(list)...)
		}
	}
	for _, m := range called().FindAllStringSubmatch(bare, -1) {
		if m[1] == "" && slices.Contains(own, m[2]) && (slices.Contains(given, m[2]) || !defined(bare, m[2])) {
			return false // what it is given is called
		}
	}
	if lang == Python && b.callsGiven(bare) {
		return false
	}
	for _, w := range wordsOf().FindAllString(bare, -1) {
		switch {
		case slices.Contains(own, w):
		case slices.Contains(allowed, w):
			if !slices.Contains(keywords, w) && b.rebound(w) {
				return false
			}
		case lang == Python && slices.Contains(plainModules, w):
			if b.rebound(w) || !strings.Contains(b.src, "import "+w) {
				return false
			}
		case lang == Python && b.memberOfModule(bare, w):
		case variables && b.variable(bare, w):
		case variables && strings.TrimSpace(text) == w && b.ownDefinition(w):
		case !calls && b.function(bare, w):
		case lang == Python && memberOfOwn(bare, w, own):
		default:
			return false
		}
	}
	return true
}

// callsGiven reports that a text may call what a list or another value that it
// is given holds.
func (b *Builder) callsGiven(bare string) bool {
	return slices.ContainsFunc(handed().FindAllStringSubmatch(bare, -1), func(m []string) bool {
		f := m[1] + m[2]
		return f != "lambda" && f != "None" && (!slices.Contains(plainWords[Python], f) || b.bound(f)) && !defined(bare, f)
	})
}

// parameters gives the names in a list of parameters, without what they are
// otherwise: a list there may hold commas too, so that nothing behind it counts.
func parameters(list string) []string {
	var names []string
	for p := range strings.SplitSeq(list, ",") {
		if w := wordsOf().FindString(p); w != "" {
			names = append(names, w)
		}
		if _, otherwise, ok := strings.Cut(p, "="); ok && strings.ContainsAny(otherwise, "[{") {
			break
		}
	}
	return names
}

// defined reports that a name is that of a function which the text itself
// defines, and nothing else in it.
func defined(bare, name string) bool {
	is := false
	for _, m := range defines().FindAllStringSubmatch(bare, -1) {
		is = is || m[1] == name
	}
	for _, m := range changes().FindAllStringSubmatch(bare, -1) {
		is = is && m[1] != name && m[2] != name
	}
	for _, m := range params().FindAllStringSubmatch(bare, -1) {
		is = is && !slices.ContainsFunc(m[1:], func(list string) bool { return slices.Contains(wordsOf().FindAllString(list, -1), name) })
	}
	return is
}

// memberOfModule: math.sqrt, where nothing but modules that compute have
// members in the text.
func (b *Builder) memberOfModule(bare, w string) bool {
	at := strings.Index(bare, "."+w)
	if at < 0 {
		return false
	}
	for _, m := range members().FindAllStringSubmatchIndex(bare, -1) {
		if bare[m[2]:m[3]] != w {
			continue
		}
		before := wordsOf().FindAllString(bare[:m[0]], -1)
		if len(before) == 0 || !slices.Contains(plainModules, before[len(before)-1]) || !strings.HasSuffix(strings.TrimRight(bare[:m[0]], " "), before[len(before)-1]) {
			return false
		}
	}
	return true
}

// maxLooked bounds how often a scan looks through the text around for a name.
const maxLooked = 64

// importsPlain reports that a text imports a module by its name, and none that
// matters.
func (b *Builder) importsPlain(text string) bool {
	m := importing().FindStringSubmatch(text)
	return m != nil && b.s.tables.Modules[Python][m[1]] == "" && !slices.Contains(busyModules, m[1])
}

// busyModules do something by being imported, or by any use of them.
var busyModules = strings.Fields("code pdb bdb runpy pickle marshal multiprocessing threading asyncio signal antigravity this site pip setuptools")

// Busy reports a module of Python that does something by being imported, or by
// any use of it.
func (b *Builder) Busy(module string) bool { return slices.Contains(busyModules, module) }

// arithmetic reports that a text is one expression of numbers, operators,
// names, and functions of numbers, whatever namespace these are of.
func (b *Builder) arithmetic(text string) bool {
	if !formula().MatchString(text) || !strings.ContainsAny(text, "+-*/%(<>=&|^") {
		return false
	}
	if circle().MatchString(text) && !b.bound("pi") && !b.bound("tau") {
		text = circle().ReplaceAllString(text, "3")
	}
	for range 8 { // from the inside out
		inner := ofNumbers().ReplaceAllString(text, "1")
		if inner == text {
			break
		}
		text = inner
	}
	if strings.ContainsAny(text, "(,") {
		return false
	}
	for _, w := range wordsOf().FindAllString(numbers().ReplaceAllString(text, " "), -1) {
		if b.s.looked++; b.s.looked > maxLooked || slices.Contains(choosing, w) || regexp.MustCompile(`\b(?:import|from|as|def|class)\b[^\n]*\b`+w+`\b`).MatchString(b.src) {
			return false
		}
	}
	return strings.ContainsAny(text, "+-*/%<>=&|^") || !wordsOf().MatchString(text)
}

// choosing are words by which an expression gives what it reads as it is.
var choosing = []string{"or", "and", "if", "else", "lambda", "for", "await", "yield"}

// variable reports that a name is one of the program's variables, which the
// text reads and neither calls nor looks into.
func (b *Builder) variable(bare, w string) bool {
	q := regexp.QuoteMeta(w)
	if b.s.looked++; b.s.looked > maxLooked {
		return false
	}
	if regexp.MustCompile(`\.\s*` + q + `\b|\b` + q + `\s*[.(\[]`).MatchString(bare) {
		return false
	}
	return regexp.MustCompile(`\b`+q+`\s*=[^=]|\bfor\s+`+q+`\b|\b(?:const|let|var)\s+`+q+`\b|["']`+q+`["']\s*:|[{,]\s*`+q+`\s*:\s*["'\d]`).MatchString(b.src) &&
		!regexp.MustCompile(`\b(?:def|class|function|as|import)\s+`+q+`\b|\bimport\s[^\n]*\b`+q+`\b`).MatchString(b.src)
}

// function reports that a name is that of a function of the program, which is
// followed where it stands, and nothing else.
func (b *Builder) function(bare, w string) bool {
	q := regexp.QuoteMeta(w)
	if b.s.looked++; b.s.looked > maxLooked {
		return false
	}
	return regexp.MustCompile(`(?m)^(?:async )?(?:def|function)\s+`+q+`\s*\(`).MatchString(b.src) && !regexp.MustCompile(`\.\s*`+q+`\b`).MatchString(bare) &&
		!regexp.MustCompile(`\b`+q+`\s*=[^=]|\b(?:class|as|import|let|const|var|for)\s+`+q+`\b|\bimport\s[^\n]*\b`+q+`\b`).MatchString(b.src)
}

// ownDefinition reports that a name is that of a function or class of the
// program: what comes of it is followed.
func (b *Builder) ownDefinition(w string) bool {
	q := regexp.QuoteMeta(w)
	if b.s.looked++; b.s.looked > maxLooked {
		return false
	}
	return regexp.MustCompile(`(?m)^(?:def|class|function)\s+`+q+`\b`).MatchString(b.src) && !regexp.MustCompile(`\b`+q+`\s*=[^=]|\bas\s+`+q+`\b`).MatchString(b.src)
}

// memberOfOwn: self.x, which is bound or read, and not called.
func memberOfOwn(bare, w string, own []string) bool {
	found := false
	for _, m := range members().FindAllStringSubmatchIndex(bare, -1) {
		if bare[m[2]:m[3]] != w {
			continue
		}
		before := wordsOf().FindAllString(bare[:m[0]], -1)
		if len(before) == 0 || !slices.Contains(own, before[len(before)-1]) || strings.HasPrefix(strings.TrimLeft(bare[m[3]:], " "), "(") || strings.Contains(w, "_frame") || strings.HasPrefix(w, "f_") {
			return false
		}
		found = true
	}
	return found && strings.Count(bare, w) == strings.Count(bare, "."+w)
}

// rebound reports that the program around may have given a name another
// meaning.
func (b *Builder) rebound(w string) bool {
	if strings.Contains(noBuiltins().ReplaceAllString(b.src, ""), "builtins") || strings.Contains(b.src, "setattr") || strings.Contains(b.src, "globals(") {
		return true
	}
	return b.bound(w)
}

// bound reports that the program around writes a name where it may be bound.
func (b *Builder) bound(w string) bool {
	q := regexp.QuoteMeta(w)
	src := regexp.MustCompile(`(?:\b|["'])`+q+`["']?\s*:\s*`+q+`\s*([,}])`).ReplaceAllString(b.src, "$1") // handed on as what it is
	if b.lang != Python && regexp.MustCompile(`\b`+q+`\s*:`).MatchString(src) {
		return true
	}
	return regexp.MustCompile(`(?:\b` + q + `\s*(?:=[^=]|:=|\+=)|(?:def|as|class|function|for|var|let|const)\s+` + q + `\b|from\s+\S+\s+import\s[^\n]*\b` + q + `\b|import\s+\*|["']` + q + `["'])`).MatchString(src)
}
