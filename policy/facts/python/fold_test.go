package python

import "testing"

// Each of these folds to a text that is opened for writing.
func TestFolding(t *testing.T) {
	t.Parallel()
	var examples []example
	for _, e := range []struct{ name, src, want string }{
		{"sum", "p = '/etc/' + 'x'", "/etc/x"},
		{"augmented", "p = '/etc'\np += '/x'", "/etc/x"},
		{"long sum", "p = '/' + 'e' + 't' + 'c' + '/' + 'x'", "/etc/x"},
		{"adjacent", "p = '/etc' '/x'", "/etc/x"},
		{"join", "p = '/'.join(['', 'etc', 'x'])", "/etc/x"},
		{"join of tuple and variable", "q = ('', 'etc', 'x')\np = '/'.join(q)", "/etc/x"},
		{"format", "p = '/{}/{}'.format('etc', 'x')", "/etc/x"},
		{"format names", "p = '/{a}/{0}'.format('x', a='etc')", "/etc/x"},
		{"format indices", "p = '/{1}/{0}'.format('x', 'etc')", "/etc/x"},
		{"percent", "p = '/%s/%s' % ('etc', 'x')", "/etc/x"},
		{"percent dict", "p = '/%(d)s/x' % {'d': 'etc'}", "/etc/x"},
		{"percent c", "p = '/etc/%c' % 120", "/etc/x"},
		{"f-string", "d = 'etc'\np = f'/{d}/x'", "/etc/x"},
		{"f-string expression", "p = f'/{\"cte\"[::-1]}/{chr(120)}'", "/etc/x"},
		{"f-string braces", "p = f'/etc/{{x}}'", "/etc/{x}"},
		{"slice", "p = 'abc/etc/xdef'[3:9]", "/etc/x"},
		{"reversed slice", "p = 'x/cte/'[::-1]", "/etc/x"},
		{"negative step", "p = 'x-/-c-t-e-/'[::-2]", "/etc/x"},
		{"reversed()", "p = ''.join(reversed('x/cte/'))", "/etc/x"},
		{"chr", "p = chr(47) + 'etc' + chr(0x2f) + 'x'", "/etc/x"},
		{"map chr", "p = ''.join(map(chr, [47, 101, 116, 99, 47, 120]))", "/etc/x"},
		{"comprehension", "p = ''.join(chr(c) for c in [47, 101, 116, 99, 47, 120])", "/etc/x"},
		{"comprehension xor", "p = ''.join(chr(c ^ 1) for c in [46, 100, 117, 98, 46, 121])", "/etc/x"},
		{"comprehension of ord", "p = ''.join([chr(ord(c) - 1) for c in '0fud0y'])", "/etc/x"},
		{"bytes", "p = bytes([47, 101, 116, 99, 47, 120]).decode()", "/etc/x"},
		{"bytearray", "p = bytearray([47, 101, 116, 99, 47, 120]).decode('ascii')", "/etc/x"},
		{"escapes", `p = '\x2fetc\57\u0078'`, "/etc/x"},
		{"named escape", `p = '\N{SOLIDUS}etc\N{SOLIDUS}\N{LATIN SMALL LETTER X}'`, "/etc/x"},
		{"raw", `p = r'/etc/x'`, "/etc/x"},
		{"base64", "import base64\np = base64.b64decode('L2V0Yy94').decode()", "/etc/x"},
		{"base64 alias", "from base64 import b64decode as d\np = d(b'L2V0Yy94').decode('utf-8')", "/etc/x"},
		{"base32", "import base64\np = base64.b32decode('F5SXIYZPPA======').decode()", "/etc/x"},
		{"hex", "p = bytes.fromhex('2f6574632f78').decode()", "/etc/x"},
		{"unhexlify", "import binascii\np = binascii.unhexlify('2f6574632f78').decode()", "/etc/x"},
		{"rot13", "import codecs\np = codecs.decode('/rgp/k', 'rot13')", "/etc/x"},
		{"zlib", "import zlib, base64\np = zlib.decompress(base64.b64decode('eJzTTy1J1q8AAAkpAkw=')).decode()", ""},
		{"unquote", "from urllib.parse import unquote\np = unquote('%2Fetc%2Fx')", "/etc/x"},
		{"translate", "p = '/fud/y'.translate(str.maketrans('fudy', 'etcx'))", "/etc/x"},
		{"replace", "p = '/XetcX/x'.replace('X', '')", "/etc/x"},
		{"strip", "p = '  /etc/x  '.strip()", "/etc/x"},
		{"lower", "p = '/ETC/X'.lower()", "/etc/x"},
		{"swapcase", "p = '/ETC/X'.swapcase()", "/etc/x"},
		{"split and join", "p = '/'.join(',etc,x'.split(','))", "/etc/x"},
		{"unbound method", "p = str.join('/', ['', 'etc', 'x'])", "/etc/x"},
		{"removeprefix", "p = 'zz/etc/x'.removeprefix('zz')", "/etc/x"},
		{"loop", "p = ''\nfor c in [47, 101, 116, 99, 47, 120]:\n    p += chr(c)", "/etc/x"},
		{"while", "s = 'x/cte/'\np = ''\ni = len(s) - 1\nwhile i >= 0:\n    p += s[i]\n    i -= 1", "/etc/x"},
		{"append", "l = []\nfor c in '/etc/x':\n    l.append(c)\np = ''.join(l)", "/etc/x"},
		{"dict", "d = {'a': '/etc', 'b': '/x'}\np = d['a'] + d['b']", "/etc/x"},
		{"dict values", "p = ''.join({'a': '/etc', 'b': '/x'}.values())", "/etc/x"},
		{"unpacking", "a, *b = ['/etc', '/', 'x']\np = a + ''.join(b)", "/etc/x"},
		{"ternary", "import sys\np = '/etc/x' if sys.argv else '/etc/y'", "/etc/x"},
		{"if", "import sys\nif sys.argv:\n    p = '/etc/x'\nelse:\n    p = 'y'", "/etc/x"},
		{"or", "import os\np = os.environ.get('P') or '/etc/x'", "/etc/x"},
		{"default of env", "import os\np = os.getenv('P', '/etc/x')", "/etc/x"},
		{"os.path.join", "import os\np = os.path.join('/etc', 'x')", "/etc/x"},
		{"os.path.join resets", "import os\np = os.path.join('a', '/etc', 'x')", "/etc/x"},
		{"traversal", "p = '../etc/x'", "/etc/x"},
		{"pathlib", "from pathlib import Path\np = Path('/') / 'etc' / 'x'", "/etc/x"},
		{"pathlib joinpath", "from pathlib import Path\np = Path('/etc').joinpath('x')", "/etc/x"},
		{"pathlib parent", "from pathlib import Path\np = Path('/etc/y/z').parent.parent / 'x'", "/etc/x"},
		{"pathlib str", "from pathlib import Path\np = str(Path('/etc', 'x'))", "/etc/x"},
		{"function", "def f(a, b='x'):\n    return a + '/' + b\np = f('/etc')", "/etc/x"},
		{"function keyword", "def f(a, b):\n    return a + '/' + b\np = f(b='x', a='/etc')", "/etc/x"},
		{"nested functions", "def g(s):\n    return s[::-1]\ndef f(s):\n    return g(s).strip()\np = f(' x/cte/ ')", "/etc/x"},
		{"decoder function", "def d(s, k):\n    return ''.join(chr(ord(c) ^ k) for c in s)\np = d('.dub.y', 1)", "/etc/x"},
		{"class constant", "class C:\n    BASE = '/etc'\np = C.BASE + '/x'", "/etc/x"},
		{"string module", "import string\np = '/' + string.ascii_lowercase[4] + 'tc/' + string.ascii_letters[23]", "/etc/x"},
		{"sep", "import os\np = os.sep.join(['', 'etc', 'x'])", "/etc/x"},
		{"dict dispatch", "p = {1: '/etc/y', 2: '/etc/x'}.get(2)", "/etc/x"},
		{"bytes literal", "p = b'/etc/x'", "/etc/x"},
		{"zip", "p = ''.join(a + b for a, b in zip('/t/', 'ecx'))", "/etc/x"},
		{"sorted", "p = '/etc/' + sorted('yx')[0]", "/etc/x"},
		{"int base", "p = '/etc/' + chr(int('78', 16))", "/etc/x"},
		{"repeat", "p = '/etc/' + 'x' * 3", "/etc/xxx"},
		{"shlex-free split", "p = 'cat /etc/x'.split()[1]", "/etc/x"},
	} {
		if e.want == "" {
			continue
		}
		examples = append(examples, example{e.name, e.src + "\nopen(p, 'w')", []string{"write " + e.want}})
	}
	check(t, examples)
}

func TestFoldingToCode(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"exec of base64", "import base64\nexec(base64.b64decode('aW1wb3J0IG9zOyBvcy5zeXN0ZW0oJ2lkJyk='))", []string{"sh id", "dyn eval", "dyn encoded_payload"}},
		{"exec of compile", "exec(compile('import os; os.system(\"id\")', 'x', 'exec'))", []string{"sh id"}},
		{"exec of zlib", "import zlib, base64\nexec(zlib.decompress(base64.b64decode('eJzLzC3ILypRyC+2zi/WK64sLknN1VDPTFHXBABlRgfG')))", []string{"dyn eval"}},
		{"exec of unknown", "import zlib\nexec(zlib.decompress(open('x', 'rb').read()))", []string{"dyn opaque_code"}},
		{"exec of marshal", "import marshal\nexec(marshal.loads(b'abc'))", []string{"act deserialise"}},
		{"python -c", "import subprocess\nsubprocess.run(['python3', '-c', 'import os; os.system(\"id\")'])", []string{"sh id"}},
		{"shell list", "import subprocess\nsubprocess.run(['sh', '-c', 'id'])", []string{"sh id"}},
		{"shell=True", "import subprocess\nsubprocess.run('id', shell=True)", []string{"sh id"}},
		{"format into shell", "import os\nn = 'x'\nos.system(f'rm -rf /{n}')", []string{"sh rm -rf /x"}},
		{"eval within eval", "eval(\"eval('__import__(\\\\'os\\\\').system(\\\\'id\\\\')')\")", []string{"sh id"}},
		{"written then run", "import os\nopen('/tmp/x.py', 'w').write('import shutil; shutil.rmtree(\"/etc\")')\nexec(open('/tmp/x.py').read())", []string{"delete /etc"}},
		{"timeit", "import timeit\ntimeit.timeit('import os; os.system(\"id\")')", []string{"sh id"}},
	})
}
