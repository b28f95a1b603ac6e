package python

import "testing"

// TestGrow: what grows by itself, without a number in the text that says how
// far, and what waits for the end of what has none.
func TestGrow(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"list", "x = [0]\nfor i in range(60):\n    x *= 2", []string{"struct huge_alloc"}},
		{"number", "x = 1\nfor i in range(60):\n    x *= 2", []string{"!struct huge_alloc"}},
		{"few", "x = [0]\nfor i in range(6):\n    x *= 2", []string{"!struct huge_alloc"}},
		{"iterator", "import itertools\nlist(itertools.count())", []string{"struct huge_alloc"}},
		{"generator", "sum(1 for _ in iter(int, 1))", []string{"struct huge_alloc"}},
		{"part of it", "import itertools\nlist(itertools.islice(itertools.count(), 3))\ndict(zip(itertools.count(), 'ab'))\nlist(itertools.repeat(0, 3))\nsum(x for x in iter(int, 0))", []string{"!struct huge_alloc"}},
		{"padding", "'x'.ljust(10**12)", []string{"struct huge_alloc"}},
		{"shift", "1 << 10**12", []string{"struct huge_alloc"}},
		{"objects", "class N:\n    def __init__(self):\n        self.d = bytearray(10**8)\nxs = []\nwhile 1:\n    xs.append(N())", []string{"struct infinite_loop"}},
		{"comparison", "while 1 == 1:\n    1 + 1", []string{"struct infinite_loop"}},
		{"comparison that fails", "while 1 == 2:\n    1 + 1", []string{"!struct infinite_loop"}},
	})
}

// TestOrder: texts that are put together by an order that is known, by a loop
// over a list that it empties, or in a pickle.
func TestOrder(t *testing.T) {
	t.Parallel()
	rm := []string{"sh rm -rf /etc/x"}
	check(t, []example{
		{"tuples", "import os\nos.system(' '.join(c for _, c in sorted([(2, '-rf'), (1, 'rm'), (3, '/etc/x')])))", rm},
		{"key", "import os\nos.system(' '.join(sorted(['/etc/x', 'rm', '-rf'], key=lambda s: {'rm': 0, '-rf': 1, '/etc/x': 2}[s])))", rm},
		{"emptied", "import os\nq = ['/etc/x', '-rf ', 'rm ']\ns = ''\nwhile q:\n    s += q.pop()\nos.system(s)", rm},
		{"pickle", "import pickle\npickle.loads(b\"cos\\nsystem\\n(S'rm -rf /etc/x'\\ntR.\")", rm},
		{"later pickle", "import pickle\npickle.loads(b'\\x80\\x04\\x8c\\x05posix\\x94\\x8c\\x06system\\x94\\x93\\x8c\\x0drm -rf /etc/x\\x94\\x85R.')", rm},
		{"located", "import pydoc\npydoc.locate('os.system')('rm -rf /etc/x')", rm},
		{"replaced builtin", "import builtins, os\nbuiltins.print = os.system\nprint('rm -rf /etc/x')", rm},
	})
}
