package python

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/policy/facts"
)

// patience is more than any text takes on any machine, unless what it takes
// grows with its square. bench/policy holds hostile texts to their time.
const patience = 20 * time.Second

func TestHostile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat
	for name, src := range map[string]string{
		"parentheses":       long("(", 5_000_000),
		"brackets":          long("[", 100_000),
		"error recovery":    long("def ( : [ { \" ' ) ] lambda x:\n", 8_000),
		"unary":             "x = " + long("-", 200_000) + "1",
		"not":               "x = " + long("not ", 50_000) + "1",
		"attributes":        "x = a" + long(".b", 100_000),
		"calls":             "x = a" + long("()", 100_000),
		"sum":               "x = 1" + long("+1", 100_000),
		"strings":           "x = ''" + long(" 'a'", 60_000),
		"lambdas":           "x = " + long("lambda: ", 30_000) + "1",
		"ternaries":         "x = " + long("1 if a else ", 20_000) + "1",
		"indentation":       nested(400),
		"elifs":             "if a: pass\n" + long("elif b: pass\n", 18_000),
		"doubling":          "x = 'a' * 1000\n" + long("x = x + x\n", 60),
		"doubling lists":    "x = [1]\n" + long("x = x + x\n", 60),
		"power":             "x = 9 ** 9 ** 9 ** 9",
		"shift":             "x = 1 << 1000000000",
		"huge repeat":       "x = 'a' * 10 ** 15\ny = [0] * 10 ** 15\nz = bytes(10 ** 12)",
		"huge range":        "x = list(range(10 ** 15))\nfor i in range(10 ** 12): print(i)",
		"nested loops":      "for a in range(200):\n for b in range(200):\n  for c in range(200):\n   for d in range(200): x = a + b",
		"nested generator":  "x = [a for a in range(900) for b in range(900) for c in range(900)]",
		"recursion":         "def f(x): return f(x + 1) + f(x + 2)\nf(1)",
		"mutual":            "def f(x): return g(x + 1) + g(x)\ndef g(x): return f(x + 1) + f(x)\nf(1)",
		"chain of calls":    chainOfCalls(200),
		"many alternatives": "x = ''\n" + long("if a: x = x + 'b'\n", 3_000) + "open(x)",
		"bomb":              "import zlib, base64\nexec(zlib.decompress(base64.b64decode('" + long("QUFB", 10_000) + "')))",
		"self list":         "x = []\nx.append(x)\nopen(x)\nprint(str(x), x[0][0], ''.join(x), sorted(x))",
		"self dict":         "d = {}\nd['a'] = d\nopen(d)\nd.update(d)",
		"self class":        "class A(A): pass\nclass B: pass\nB.x = B\nB().x.x.x()",
		"nul":               "import os\x00\nos.system('id')",
		"bad utf-8":         "x = '\xff\xfe'\nopen('\xff')",
		"evals":             evals(20),
		"decorators":        long("@a\n", 20_000) + "def f(): pass",
		"with":              "with " + long("a as b, ", 20_000) + "c: pass",
		"f-string":          "x = f'" + long("{", 190) + long("}", 190) + "'",
		"format":            "x = '" + long("{}", 20_000) + "'.format(*range(1000))",
		"unbound methods":   "import pathlib\nprint(pathlib.Path.as_posix(p), pathlib.Path.__str__(), pathlib.Path.relative_to('a', 'b'))",
		"derived class":     "import pathlib\nclass Path(type(pathlib.Path())):\n    def resolve(self):\n        return super().resolve()\nPath('x').resolve()",
		"star":              long("from os import *\n", 5_000) + "foo()",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			d := scan(t, src)
			if took := time.Since(start); took > patience {
				t.Errorf("took %v", took)
			}
			if slices.ContainsFunc(d.Dynamic, func(x facts.Dynamic) bool { return strings.Contains(x.Detail, "panicked") }) {
				t.Errorf("the extractor failed: %+v", d.Dynamic)
			}
			if text, err := json.Marshal(d); err != nil || len(text) > 8<<20 {
				t.Errorf("%d bytes of facts, %v", len(text), err)
			}
		})
	}
}

// What is refused or cut short says so.
func TestRefused(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"parentheses", strings.Repeat("(", 100_000), []string{"dyn too_deep"}},
		{"too long", strings.Repeat("#\n", 600_000), []string{"dyn limit"}},
		{"not Python", "}}}} $$$ <?php ??? ###", []string{"dyn unparsable"}},
		{"deep syntax", "x = " + strings.Repeat("not ", 5_000) + "1", []string{"dyn too_deep"}},
		{"errors beside facts", "import os\nos.system('id')\nx = = 3\n", []string{"sh id"}},
		{"unfinished", "import os\nos.system('id'", []string{"dyn unparsable"}},
	})
}

// Some texts keep an error-recovering parser busy for minutes.
func TestParseDeadline(t *testing.T) {
	t.Parallel()
	if tree := newLanguage().parse(strings.Repeat("def ( : [ { \" ' ) ] lambda x:\n", 100_000)); tree != nil {
		t.Error("the parser came to an end of it")
	}
}

func nested(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "if a:\n")
	}
	return b.String() + strings.Repeat(" ", n) + "pass\n"
}

func chainOfCalls(n int) string {
	var b strings.Builder
	b.WriteString("def f0(x): return x\n")
	for i := 1; i < n; i++ {
		prev := "f" + num(i-1)
		b.WriteString("def f" + num(i) + "(x): return " + prev + "(x + '1') + " + prev + "(x + '2')\n")
	}
	return b.String() + "f" + num(n-1) + "('a')\n"
}

func num(i int) string {
	return string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10))
}

func evals(n int) string {
	code := "1"
	for range n {
		quoted, _ := json.Marshal(code)
		code = "eval(" + string(quoted) + ")"
		if len(code) > 100_000 {
			break
		}
	}
	return code
}

func TestDeterministic(t *testing.T) {
	t.Parallel()
	src := "import os, sys\n" +
		"d = {'a': os.system, 'b': os.popen, 'c': eval, 'd': print}\n" +
		"if sys.argv:\n    x, y, z = 'a', 'b', 'c'\nelse:\n    x, y, z = 'd', 'e', 'f'\n" +
		"for k, f in d.items():\n    f(x + y + z)\nopen(x, z)\nopen(file=x, mode='w', encoding=z)\n"
	first := scan(t, src)
	for range 20 {
		if diff := cmp.Diff(first, scan(t, src)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// Programs that the extractor finds nothing dynamic in, though they are full
// of calls: benign code.
func TestBenignCorpora(t *testing.T) {
	t.Parallel()
	for file, allowed := range map[string]int{"humaneval.jsonl": 1, "mbpp.jsonl": 0} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "corpora", file))
		if err != nil {
			t.Skipf("no corpora beside the repository: %v", err)
		}
		found := 0
		for line := range strings.Lines(string(text)) {
			var row struct{ Code string }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			d := scan(t, row.Code)
			if len(d.Dynamic)+len(d.Net)+len(d.Commands)+len(d.Structs) > 0 {
				found++
				t.Log(strings.Join(brief(d), ", "))
			}
		}
		if found > allowed {
			t.Errorf("%s: %d programs look dangerous", file, found)
		}
	}
}

func BenchmarkExtract(b *testing.B) {
	src := benchSource()
	tb, err := loadTables()
	if err != nil {
		b.Fatal(err)
	}
	x := facts.Dispatcher{facts.Python: New(), facts.Shell: fakeShell{}}
	b.ReportMetric(float64(strings.Count(src, "\n")), "lines")
	b.ReportAllocs()
	for b.Loop() {
		facts.Scan(b.Context(), tb, x, facts.Limits{}, facts.Python, []byte(src))
	}
}

// benchSource is a program of 200 lines of ordinary work.
func benchSource() string {
	const part = `
class Store%[1]s:
    """Keeps rows in a file."""

    def __init__(self, path, limit=100):
        self.path = os.path.join(BASE, path)
        self.limit = limit
        self.rows = []

    def load(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as handle:
            self.rows = [json.loads(line) for line in handle if line.strip()]
        return self.rows

    def save(self, rows):
        for row in rows[: self.limit]:
            row["id"] = row.get("id", 0) + 1
        with open(self.path, "w", encoding="utf-8") as handle:
            for row in rows:
                handle.write(json.dumps(row, sort_keys=True) + "\n")


def summarise%[1]s(rows, key="value"):
    total = 0
    names = collections.defaultdict(list)
    for index, row in enumerate(rows):
        value = row.get(key)
        if value is None or not re.match(r"^[0-9]+$", str(value)):
            continue
        total += int(value)
        names[row["name"].lower()].append((index, value))
    result = {name: sum(int(v) for _, v in items) for name, items in names.items()}
    print("total %%d of %%s: {}".format(len(result)) %% (total, key))
    return sorted(result.items(), key=lambda pair: -pair[1])


store%[1]s = Store%[1]s("data%[1]s.jsonl")
summarise%[1]s(store%[1]s.load())
`
	head := "import argparse\nimport collections\nimport json\nimport os\nimport re\n\nBASE = os.path.dirname(__file__)\n"
	var out strings.Builder
	out.WriteString(head)
	for _, n := range []string{"A", "B", "C", "D", "E"} {
		out.WriteString(strings.ReplaceAll(strings.ReplaceAll(part, "%[1]s", n), "%%", "%"))
	}
	return out.String()
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{
		"import os\nos.system('id')", "exec(''.join(map(chr, [1, 2])))", "x = [1][::0]", "f'{x!r:>{w}}'", "def f(*a, **k): f(*a, **k)\nf(1)",
		"class A(A):\n  def __init__(s): s.x = s\nA().x", "'%(a)s %d' % {'a': 1}", "'{0[a].b!r:x}'.format({})", benchSource(),
		"x = {}\nx[x] = x", "(lambda f: f(f))(lambda f: f(f))", "import base64 as b\neval(b.b85decode('abc'))", "a, *b, c = 1, 2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		start := time.Now()
		d := scan(t, src)
		if took := time.Since(start); took > patience {
			t.Fatalf("took %v", took)
		}
		if slices.ContainsFunc(d.Dynamic, func(x facts.Dynamic) bool { return strings.Contains(x.Detail, "panicked") }) {
			t.Fatal(d.Dynamic)
		}
		again := scan(t, src)
		slow := func(d *facts.Document) bool {
			return slices.ContainsFunc(d.Dynamic, func(x facts.Dynamic) bool { return strings.Contains(x.Detail, "gave up") })
		}
		if diff := cmp.Diff(d, again); diff != "" && !slow(d) && !slow(again) {
			t.Fatal(diff)
		}
	})
}
