package python

import "testing"

// TestTooMuch tells what uses up a machine from what is merely large.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"files", "for i in range(50000):\n    open('f%d' % i, 'w')", []string{"struct loop_write"}},
		{"fewer files", "for i in range(49999):\n    open('f%d' % i, 'w')", []string{"!struct"}},
		{"files of nested loops", "for a in range(300):\n    for b in range(300):\n        open(f'{a}-{b}', 'w')", []string{"struct loop_write"}},
		{"one file again and again", "for i in range(1000000):\n    open('log', 'a')", []string{"!struct"}},
		{"files that are read", "for i in range(1000000):\n    open('f%d' % i)", []string{"!struct"}},
		{"threads", "import threading\nfor i in range(1000):\n    threading.Thread(target=print).start()", []string{"struct resource_burn"}},
		{"fewer threads", "import threading\nfor i in range(999):\n    threading.Thread(target=print).start()", []string{"!struct"}},
		{"bytes in a loop", "f = open('f', 'wb')\nfor i in range(60000):\n    f.write(b'x' * 2**20)", []string{"struct huge_alloc"}},
		{"fewer bytes", "f = open('f', 'wb')\nfor i in range(1000):\n    f.write(b'x' * 2**20)", []string{"!struct"}},
		{"hole", "open('f', 'wb').truncate(10**12)", []string{"struct huge_alloc"}},
		{"array", "import numpy as np\nnp.zeros((10**5, 10**5))", []string{"struct huge_alloc"}},
		{"smaller array", "import numpy as np\nnp.zeros((10**4, 10**4))", []string{"!struct"}},
		{"random numbers", "import numpy as np\nnp.random.randint(0, 9, size=10**11)", []string{"struct huge_alloc"}},
		{"random numbers by place", "import numpy as np\nnp.random.randint(0, 9, (10**6, 10**5))", []string{"struct huge_alloc"}},
		{"a random number of many", "import numpy as np\nnp.random.randint(2**32)\nnp.random.uniform(0, 10**12)\nnp.full(3, 10**12)", []string{"!struct"}},
		{"list", "x = [0 for _ in range(10**10)]", []string{"struct huge_alloc"}},
		{"doubling", "s = 'a'\nfor _ in range(60):\n    s += s", []string{"struct huge_alloc"}},
		{"doubling a little", "s = 'a'\nfor _ in range(20):\n    s += s", []string{"!struct"}},
		{"number", "9 ** 9 ** 9", []string{"struct huge_alloc"}},
		{"smaller number", "2 ** 1000000", []string{"!struct"}},
		{"shift", "x = ' ' * (1 << 40)", []string{"struct huge_alloc"}},
	})
}

// TestStuck tells loops and recursions that never end from those that do.
func TestStuck(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"busy", "while True:\n    pass", []string{"struct infinite_loop"}},
		{"waits", "import time\nwhile True:\n    time.sleep(1)", []string{"!struct"}},
		{"unchanged", "i = 0\nwhile i < 10:\n    print(i)", []string{"struct infinite_loop"}},
		{"moves away", "i = 1\nwhile i > 0:\n    i += 1", []string{"struct infinite_loop"}},
		{"moves there", "i = 10\nwhile i > 0:\n    i -= 1", []string{"!struct"}},
		{"changed by a function", "i = 0\nwhile i < 10:\n    i = step(i)", []string{"!struct"}},
		{"compares a member", "while a.i < 10:\n    print(1)", []string{"!struct"}},
		{"long range", "for i in range(10**12):\n    pass", []string{"struct infinite_loop"}},
		{"recursion", "def f():\n    f()\nf()", []string{"struct infinite_loop"}},
		{"mutual recursion", "def a():\n    b()\ndef b():\n    a()\na()", []string{"struct infinite_loop"}},
		{"recursion that ends", "def f(n):\n    if n < 1:\n        return 1\n    return f(n - 1)\nf(3)", []string{"!struct"}},
		{"recursion of one's choice", "def f(n):\n    return n and f(n - 1)\nf(3)", []string{"!struct"}},
		{"the same name from elsewhere", "def f():\n    from m import f\n    f()\nf()", []string{"!struct"}},
		{"generator", "def f():\n    yield 1\n    f()\nf()", []string{"!struct"}},
		{"never called", "def f():\n    f()", []string{"!struct"}},
	})
}

// TestKeySearch tells the search for a key from checks of files.
func TestKeySearch(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"nested loops", "import hashlib\nfor a in 'ab':\n    for b in 'ab':\n        if hashlib.md5((a + b).encode()).hexdigest() == T:\n            print(a)", []string{"struct key_search"}},
		{"counter", "import hashlib\nn = 0\nwhile True:\n    d = hashlib.sha256(str(n).encode()).hexdigest()\n    if d.startswith('00'):\n        break\n    n += 1", []string{"struct key_search"}},
		{"updated", "import hashlib\nfor w in words:\n    m = hashlib.md5()\n    m.update(w)\n    if m.digest() == t:\n        print(w)", []string{"struct key_search"}},
		{"password of an archive", "import zipfile\nz = zipfile.ZipFile('a')\nfor w in words:\n    z.extractall(pwd=w)", []string{"struct key_search"}},
		{"keyed hash", "import hmac\nfor k in open('words'):\n    if hmac.new(k.encode(), b'x', 'sha256').hexdigest() == t:\n        print(k)", []string{"struct key_search"}},
		{"keys of a cipher", "from Crypto.Cipher import AES\nfor k in keys:\n    if AES.new(k, 1).decrypt(c).startswith(b'PDF'):\n        print(k)", []string{"struct key_search"}},
		{"one password", "import zipfile\nfor n in names:\n    zipfile.ZipFile(n).extractall(pwd=b'x')", []string{"!struct"}},
		{"files", "import hashlib\nfor n in names:\n    if hashlib.md5(open(n, 'rb').read()).hexdigest() == t:\n        print(n)", []string{"!struct"}},
		{"content first", "import hashlib\nfor n in names:\n    d = open(n, 'rb').read()\n    if hashlib.md5(d).hexdigest() == t:\n        print(n)", []string{"!struct"}},
		{"seen before", "import hashlib\nfor l in lines:\n    h = hashlib.md5(l).hexdigest()\n    if h in seen:\n        continue", []string{"!struct"}},
		{"table", "import hashlib\nfor l in lines:\n    w, h = l.split()\n    if hashlib.md5(w.encode()).hexdigest() == h:\n        print(w)", []string{"!struct"}},
	})
}
