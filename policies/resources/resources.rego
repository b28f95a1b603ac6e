# METADATA
# scope: package
# title: Rules about resources
package caisson.rules.resources

# METADATA
# title: Sends datagrams
# custom:
#   id: SBX-RES-0001
#   severity: high
#   category: network
#   cwe: ["CWE-400"]
#   attack: ["T1498"]
#   remediation: "Use a connection, in small pieces."
#   match:
#     - {"language": "bash", "code": "echo x | nc -u 127.0.0.1 53"}
#     - {"language": "bash", "code": "echo x > /dev/udp/127.0.0.1/53"}
#   not_match:
#     - {"language": "bash", "code": "echo x"}
findings contains {"id": "SBX-RES-0001", "at": n.at, "msg": sprintf("datagrams go to %s:%d by %s", [n.host, n.port, n.by])} if {
	some class
	class != "allowed"
	some n in input.net[class].send_udp
}

# METADATA
# title: Uses up what the machine has
# custom:
#   id: SBX-RES-0002
#   severity: high
#   category: resources
#   cwe: ["CWE-400"]
#   attack: ["T1499"]
#   remediation: "Bound what the program allocates and starts."
#   match:
#     - {"language": "bash", "code": "stress --cpu 8"}
#     - {"language": "bash", "code": "x=a; while :; do x=$x$x; done"}
#     - {"language": "bash", "code": "while true; do mkdir x; cd x; done"}
#     - {"language": "javascript", "code": "const a=[];while(true)a.push(new Array(1000))"}
#     - {"language": "javascript", "code": "let s='x';while(true)s+=s"}
#     - {"language": "javascript", "code": "let a = [1]\nfor (let i = 0; i < 60; i++) a = a.concat(a)"}
#     - {"language": "javascript", "code": "const fs = require('fs')\nconst N = 1000 * 1000\nfor (let i = 0; i < N; i++) fs.writeFileSync('f' + i, 'x')"}
#     - {"language": "javascript", "code": "const fs = require('fs')\nlet n = 1e6\nwhile (n--) fs.mkdirSync('d' + n)"}
#     - {"language": "javascript", "code": "function f(n) {\n  return f(n + 1)\n}\nf(0)"}
#     - {"language": "javascript", "code": "setInterval(() => require('child_process').spawn('sleep', ['1000']), 1)"}
#     - {"language": "javascript", "code": "for (;;) {}"}
#     - {"language": "bash", "code": "for i in $(seq 1 1000000); do touch f$i; done"}
#     - {"language": "bash", "code": "for ((i=0;i<1000000;i++)); do : > f$i; done"}
#     - {"language": "bash", "code": "for i in $(seq 100000); do sleep 1000 & done"}
#     - {"language": "python", "code": "s = 'a'\nwhile True:\n    s += s"}
#     - {"language": "python", "code": "xs = []\nwhile True:\n    xs.append('leak')"}
#     - {"language": "python", "code": "import os\ni = 0\nwhile True:\n    os.mkdir('d%d' % i)\n    i += 1"}
#     - {"language": "python", "code": "import multiprocessing\ndef burn():\n    while True:\n        pass\nfor _ in range(8):\n    multiprocessing.Process(target=burn).start()"}
#     - {"language": "bash", "code": "ping -f 10.0.0.1"}
#     - {"language": "python", "code": "x = 'x' * 10**12"}
#     - {"language": "python", "code": "f = open('x', 'w')\nwhile True:\n    f.write('a' * 1048576)"}
#     - {"language": "python", "code": "while True:\n    print('x')"}
#     - {"language": "python", "code": "i = 0\nwhile i < 10:\n    print(i)"}
#     - {"language": "python", "code": "def f():\n    return f()\nf()"}
#     - {"language": "python", "code": "for i in range(1000000):\n    open('f%d' % i, 'w').close()"}
#     - {"language": "python", "code": "with open('f', 'wb') as f:\n    for i in range(1000000):\n        f.write(b'x' * 1048576)"}
#     - {"language": "python", "code": "import numpy\nnumpy.zeros((1000000, 1000000))"}
#     - {"language": "python", "code": "x = list(range(10**11))"}
#     - {"language": "python", "code": "x = 9 ** 9 ** 9"}
#     - {"language": "python", "code": "x = [0]\nfor i in range(60):\n    x *= 2"}
#     - {"language": "python", "code": "import itertools\nlist(itertools.count())"}
#     - {"language": "python", "code": "open('f', 'wb').truncate(10**13)"}
#   not_match:
#     - {"language": "python", "code": "i = 0\nwhile i < 10:\n    i += 1"}
#     - {"language": "python", "code": "def f(n):\n    return 1 if n < 2 else n * f(n - 1)\nf(3)"}
#     - {"language": "python", "code": "for i in range(100):\n    open('f%d' % i, 'w').close()"}
#     - {"language": "python", "code": "import numpy\nnumpy.zeros((1000, 1000))"}
#     - {"language": "python", "code": "n = 0\nfor i in range(10**7):\n    n += i"}
#     - {"language": "python", "code": "x = '-' * 80"}
#     - {"language": "python", "code": "import itertools\nx = list(zip(itertools.count(), 'ab'))"}
#     - {"language": "javascript", "code": "let n = 1\nfor (let i = 0; i < 60; i++) n += n"}
#     - {"language": "javascript", "code": "const f = n => n < 2 ? 1 : n * f(n - 1)\nf(5)"}
#     - {"language": "javascript", "code": "function walk(t) {\n  if (!t) return\n  walk(t.left)\n}\nwalk(tree)"}
#     - {"language": "javascript", "code": "function t(o) {\n  return t = typeof Symbol ? x => typeof x : x => x, t(o)\n}\nt(1)"}
#     - {"language": "javascript", "code": "async function poll() {\n  await wait()\n  poll()\n}\npoll()"}
#     - {"language": "javascript", "code": "setInterval(() => require('child_process').spawn('date'), 60000)"}
#     - {"language": "javascript", "code": "for (let i = 0; i < 1000; i++) require('fs').writeFileSync('f' + i, 'x')"}
#     - {"language": "python", "code": "x = [0] * 1000000"}
#     - {"language": "bash", "code": "while true; do date >> log; sleep 60; done"}
#     - {"language": "bash", "code": "for i in $(seq 1 20); do echo $i > f$i; wc f$i & done; wait"}
#     - {"language": "bash", "code": "for i in $(seq 1 100000); do echo $i; done > x"}
#     - {"language": "python", "code": "xs = []\nwhile True:\n    s = input()\n    if not s:\n        break\n    xs.append(s)"}
#     - {"language": "python", "code": "import threading, queue\nq = queue.Queue()\ndef work():\n    while True:\n        q.get()\nthreading.Thread(target=work, daemon=True).start()"}
findings contains {"id": "SBX-RES-0002", "at": s.at, "msg": sprintf("%s", [s.detail])} if {
	some kind in ["flood", "resource_burn", "huge_alloc", "loop_write"]
	some s in input.structs[kind]
}

findings contains {"id": "SBX-RES-0002", "at": s.at, "msg": sprintf("%s in a loop without end", [s.detail])} if {
	some s in input.structs.infinite_loop
	regex.match(`^(memory is taken|busy)`, s.detail)
}

findings contains {"id": "SBX-RES-0002", "at": s.at, "msg": "a function calls itself whatever it is given"} if {
	some s in input.structs.infinite_loop
	s.detail == "recursion"
}

# METADATA
# title: Mines or breaks passwords
# custom:
#   id: SBX-RES-0003
#   severity: critical
#   category: resources
#   cwe: ["CWE-400"]
#   attack: ["T1496", "T1110"]
#   remediation: "Not in a sandbox."
#   match:
#     - {"language": "bash", "code": "xmrig -o x"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-RES-0003", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["mining", "brute_force"]
	some a in input.actions[op]
}

# METADATA
# title: Asks for more room than there is
# custom:
#   id: SBX-RES-0004
#   severity: high
#   category: resources
#   cwe: ["CWE-770"]
#   attack: ["T1499"]
#   remediation: "Bound what the program writes."
#   match:
#     - {"language": "bash", "code": "fallocate -l 100T big"}
#     - {"language": "bash", "code": "truncate -s 10000G f"}
#     - {"language": "bash", "code": "head -c 100G /dev/zero > x"}
#     - {"language": "bash", "code": "dd if=/dev/zero of=big bs=1G count=1000"}
#     - {"language": "bash", "code": "dd if=/dev/zero of=big"}
#     - {"language": "bash", "code": "dd if=/dev/urandom of=big bs=1G"}
#     - {"language": "bash", "code": "dd if=/dev/zero of=big bs=1M count=1000000"}
#     - {"language": "bash", "code": "seq 1e12 > x"}
#     - {"language": "bash", "code": "seq 1 10000000 | xargs touch"}
#     - {"language": "bash", "code": "yes | xargs -P 100 -I{} sleep 1000"}
#     - {"language": "bash", "code": "tail /dev/zero"}
#     - {"language": "bash", "code": "cat /dev/urandom > big"}
#     - {"language": "bash", "code": "yes > big"}
#     - {"language": "bash", "code": "base64 /dev/urandom > big"}
#     - {"language": "javascript", "code": "const fs = require('fs')\nfs.createReadStream('/dev/zero').pipe(fs.createWriteStream('big'))"}
#     - {"language": "bash", "code": "cat /dev/urandom | gzip > big"}
#   not_match:
#     - {"language": "bash", "code": "seq 1 100 | xargs touch; seq 100000 | head"}
#     - {"language": "bash", "code": "dd if=/dev/urandom of=key bs=32 count=1"}
#     - {"language": "bash", "code": "truncate -s 10M f"}
#     - {"language": "bash", "code": "dd if=/dev/zero of=disk.img bs=1M count=64"}
#     - {"language": "bash", "code": "head -c 16 /dev/urandom | xxd -p"}
#     - {"language": "bash", "code": "cp /dev/null x"}
findings contains {"id": "SBX-RES-0004", "at": c.at, "msg": sprintf("%s of %s", [c.name, size])} if {
	some name in {"fallocate", "truncate", "head", "mkfile", "split"}
	some c in input.commands[name]
	some flag, size in c.values
	enormous(size)
}

findings contains {"id": "SBX-RES-0004", "at": c.at, "msg": sprintf("dd of %s", [concat(" ", words)])} if {
	some c in input.commands.dd
	words := [w | some w in c.argv]
	some source in {"if=/dev/zero", "if=/dev/urandom", "if=/dev/random", "if=/dev/full"}
	source in words
	unbounded(words)
}

findings contains {"id": "SBX-RES-0004", "at": c.at, "msg": sprintf("seq counts to %s", [last])} if {
	some c in input.commands.seq
	last := c.operands[count(c.operands) - 1]
	regex.match(`^[0-9.]+(e[0-9]+)?$`, last)
	counted(c, to_number(last))
}

counted(_, n) if n >= 1000000000

# Files are made, or programs started, of each number.
counted(c, n) if {
	n >= 50000
	"xargs" in c.pipe_to
	one_for_each
}

one_for_each if {
	some name in {"touch", "mkdir", "cp", "tee", "dd", "truncate", "sh", "bash", "sleep"}
	some m in input.commands[name]
	"xargs" in m.wrappers
}

findings contains {"id": "SBX-RES-0004", "at": c.at, "msg": "what yes prints, which has no end, starts programs"} if {
	some c in input.commands.yes
	"xargs" in c.pipe_to
}

findings contains {"id": "SBX-RES-0004", "at": f.at, "msg": sprintf("%s, which has no end, is read by %s", [f.path, f.by])} if {
	some op in {"read", "copy_src"}
	some f in input.files[op].device_safe
	f.path in {"/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"}
	f.by in {"tail", "sort", "tac", "cp", "grep", "wc", "md5sum", "sha256sum", "gzip", "xz", "bzip2", "rev", "base64", "base32", "fs.copyFile", "fs.copyFileSync", "shutil.copy", "shutil.copyfile", "shutil.copy2", "fs.readFileSync", "fs.readFile", "pathlib.Path.read_bytes", "pathlib.Path.read_text"}
}

findings contains {"id": "SBX-RES-0004", "at": f.at, "msg": sprintf("%s, which has no end, is read by %s and written to a file", [f.path, f.by])} if {
	some f in input.files.read.device_safe
	f.path in {"/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"}
	f.by == "fs.createReadStream"
	writes_stream
}

writes_stream if {
	some class in filled_classes
	some w in input.files.write[class]
	w.by in {"fs.createReadStream.pipe", "stream.pipeline", "fs.createWriteStream"}
}

filled_classes := {"workspace", "tmp", "home", "outside", "shm"}

# yes writes for as long as there is room.
findings contains {"id": "SBX-RES-0004", "at": c.at, "msg": "what yes prints, which has no end, is written to a file"} if {
	some c in input.commands.yes
	count(c.pipe_to) == 0
	not "timeout" in c.wrappers
	c.line in redirected
}

redirected contains f.line if {
	some class in filled_classes
	some f in input.files.write[class]
	f.by in {">", ">|", "&>"}
}

# What has no end is copied into a file.
findings contains {"id": "SBX-RES-0004", "at": f.at, "msg": sprintf("%s, which has no end, is copied into a file", [f.path])} if {
	some f in input.files.read.device_safe
	f.path in {"/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"}
	f.by == "cat"
	f.line in copied_whole
	f.line in written
}

copied_whole contains c.line if {
	some c in input.commands.cat
	not bounded(c.pipe_to)
}

written contains w.line if {
	some class in filled_classes
	some w in input.files.write[class]
}

bounded(names) if {
	some name in names
	name in {"head", "dd", "sed", "pv", "split", "timeout", "read"}
}

enormous(size) if regex.match(`^[+]?([0-9]+[TPEZYtpezy]i?B?|[0-9]{3,}[Gg]i?B?|[0-9]{6,}[Mm]i?B?|[0-9]{12,})$`, size)

unbounded(words) if {
	not some_count(words)
	some w in words
	startswith(w, "of=")
	not startswith(w, "of=/dev/")
}

unbounded(words) if {
	some w in words
	regex.match(`^count=[0-9]{3,}$`, w)
	some s in words
	regex.match(`^bs=([0-9]+[Gg]|[0-9]{4,}[Mm])$`, s)
}

unbounded(words) if {
	some w in words
	regex.match(`^count=[0-9]{6,}$`, w)
	some s in words
	regex.match(`^bs=[0-9]+[Mm]$`, s)
}

some_count(words) if {
	some w in words
	startswith(w, "count=")
}

# METADATA
# title: Keeps a processor busy in the background
# custom:
#   id: SBX-RES-0005
#   severity: high
#   category: resources
#   cwe: ["CWE-400"]
#   attack: ["T1496"]
#   remediation: "End what is started."
#   match:
#     - {"language": "bash", "code": "yes > /dev/null & yes > /dev/null &"}
#     - {"language": "bash", "code": "for i in 1 2 3 4; do yes > /dev/null & done"}
#     - {"language": "bash", "code": "while :; do cat x & done"}
#     - {"language": "python", "code": "import threading\nwhile True:\n    threading.Thread(target=print).start()"}
#     - {"language": "python", "code": "import socket, threading\ns = socket.socket()\nwhile True:\n    try:\n        s.accept()\n    except OSError:\n        pass\n    threading.Thread(target=print).start()"}
#     - {"language": "python", "code": "import threading\nwhile True:\n    t = threading.Thread(target=print)\n    t.start()\n    t.join(0)"}
#     - {"language": "python", "code": "import threading\nu = threading.Thread(target=print)\nu.start()\nwhile True:\n    t = threading.Thread(target=print)\n    t.start()\n    u.join()"}
#     - {"language": "python", "code": "import socket, threading\ns = socket.socket()\nwhile True:\n    False and s.accept()\n    threading.Thread(target=print).start()"}
#     - {"language": "python", "code": "import threading\nclass S:\n    def accept(self):\n        return 1\ns = S()\nwhile True:\n    s.accept()\n    threading.Thread(target=print).start()"}
#   not_match:
#     - {"language": "python", "code": "import socket, threading\ns = socket.socket()\nwhile True:\n    try:\n        c = s.accept()\n    except OSError:\n        continue\n    threading.Thread(target=print, args=(c,)).start()"}
#     - {"language": "python", "code": "import threading\nwhile True:\n    t = threading.Thread(target=print)\n    t.start()\n    t.join()"}
#     - {"language": "python", "code": "import socket, threading\ndef talk(c):\n    c.recv(9)\ns = socket.socket()\nwhile True:\n    c, _ = s.accept()\n    t = threading.Thread(target=talk, args=(c,))\n    t.start()"}
#     - {"language": "bash", "code": "yes | head -3"}
#     - {"language": "bash", "code": "yes"}
#     - {"language": "bash", "code": "timeout 1 yes > /dev/null"}
#     - {"language": "bash", "code": "yes > /dev/null & sleep 1; kill $!"}
#     - {"language": "bash", "code": "while read x; do echo $x; done"}
findings contains {"id": "SBX-RES-0005", "at": c.at, "msg": "yes is left running in the background, more than once"} if {
	some c in left_running
	several
}

# What runs without end and is left; in the foreground its reader, its caller
# or a limit ends it.
left_running contains c if {
	some c in input.commands.yes
	c.background
	count(c.pipe_to) == 0
	not "timeout" in c.wrappers
}

several if count(left_running) > 1

several if {
	some c in left_running
	some block in {"for", "while", "until"}
	block in c.in
}

findings contains {"id": "SBX-RES-0005", "at": s.at, "msg": sprintf("%s in a loop without end", [s.detail])} if {
	some s in input.structs.infinite_loop
	startswith(s.detail, "background")
	not contains(s.detail, "sleep")
}

findings contains {"id": "SBX-RES-0005", "at": s.at, "msg": sprintf("%s in a loop without end", [s.detail])} if {
	some s in input.structs.infinite_loop
	s.detail in {"threading.Thread.start", "subprocess.Popen"}
}

# METADATA
# title: Tries out keys
# custom:
#   id: SBX-RES-0006
#   severity: high
#   category: resources
#   cwe: ["CWE-307"]
#   attack: ["T1110.002"]
#   remediation: "Do not break passwords in a sandbox."
#   match:
#     - {"language": "python", "code": "import hashlib\nfor a in 'abc':\n    for b in 'abc':\n        if hashlib.md5((a + b).encode()).hexdigest() == 'abc':\n            print(a + b)"}
#     - {"language": "python", "code": "import hashlib\nn = 0\nwhile True:\n    if hashlib.sha256(str(n).encode()).hexdigest().startswith('0000'):\n        break\n    n += 1"}
#     - {"language": "bash", "code": "for a in {a..c}; do for b in {a..c}; do h=$(echo -n $a$b | sha256sum); [[ $h == ab* ]] && echo $a$b; done; done"}
#     - {"language": "bash", "code": "while read p; do unzip -P \"$p\" -o s.zip && echo \"$p\" && break; done < words"}
#     - {"language": "python", "code": "import bcrypt\nfor w in open('words'):\n    if bcrypt.checkpw(w.strip(), b'x'):\n        print(w)"}
#     - {"language": "python", "code": "import hashlib, itertools, string\nfor p in itertools.product(string.ascii_lowercase, repeat=6):\n    if hashlib.md5(''.join(p).encode()).hexdigest() == 'abc':\n        print(p)"}
#   not_match:
#     - {"language": "python", "code": "import itertools\nprint(list(itertools.product('ab', repeat=2)))"}
#     - {"language": "python", "code": "import hashlib\nprint(hashlib.md5(b'x').hexdigest())"}
#     - {"language": "bash", "code": "for f in *.txt; do echo \"$f\" | md5sum; done"}
#     - {"language": "bash", "code": "for f in *.zip; do unzip -P secret $f; done"}
#     - {"language": "python", "code": "import hashlib\nfor n in ['a', 'b']:\n    if hashlib.md5(open(n, 'rb').read()).hexdigest() == 'abc':\n        print(n)"}
#     - {"language": "python", "code": "import hashlib\nseen = set()\nfor line in open('a'):\n    h = hashlib.sha1(line.encode()).hexdigest()\n    if h in seen:\n        continue\n    seen.add(h)"}
#     - {"language": "python", "code": "import hashlib\nfor line in open('SUMS'):\n    want, name = line.split()\n    if hashlib.sha256(open(name, 'rb').read()).hexdigest() != want:\n        print(name)"}
findings contains {"id": "SBX-RES-0006", "at": a.at, "msg": sprintf("all texts of a length are hashed: %s and %s", [by, a.by])} if {
	some a in input.actions.hash
	not a.idle
	some by, line in enumerated_from
	a.line >= line
}

# enumerated_from has the first place where texts are enumerated, by what does it.
enumerated_from[by] := min({e.line | some e in input.actions.enumerate; e.by == by; not few(e)}) if {
	some by in enumerators
}

enumerators := {e.by | some e in input.actions.enumerate}

# enumerated_to has the last one of those where the texts are long.
enumerated_to[by] := max({e.line | some e in input.actions.enumerate; e.by == by; long(e)}) if {
	some by in enumerators
}

long(e) if {
	some n in e.args
	regex.match(`^([4-9]|[1-9][0-9]+)$`, n)
}

findings contains {"id": "SBX-RES-0006", "at": s.at, "msg": s.detail} if {
	some s in input.structs.key_search
}

findings contains {"id": "SBX-RES-0006", "at": c.at, "msg": sprintf("one text after the other is hashed by %s and compared", [name])} if {
	some name in {"md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum"}
	some c in input.commands[name]
	count(c.operands) == 0
	some source in {"echo", "printf"}
	source in c.pipe_from
	in_search(c)
}

findings contains {"id": "SBX-RES-0006", "at": c.at, "msg": sprintf("one password after the other is tried by %s", [name])} if {
	some name, flags in {"unzip": {"-P"}, "7z": {"-p"}, "unrar": {"-p"}, "gpg": {"--passphrase"}, "openssl": {"-k", "-pass"}, "qpdf": {"--password"}, "zip": {"-P"}}
	some c in input.commands[name]
	some flag in flags
	c.values[flag] in {"", "pass:"}
	left_when_found(c)
}

in_search(c) if left_when_found(c)

in_search(c) if count([b | some b in c.in; b in loops]) > 1

loops := {"for", "while", "until"}

# left_when_found: a loop that ends at the first hit.
left_when_found(c) if {
	some b in c.in
	b in loops
	leaves_loop
}

leaves_loop if {
	some stop in {"break", "exit", "return"}
	some s in input.commands[stop]
	some l in s.in
	l in loops
}

# What is hashed by a function that stands before the search.
findings contains {"id": "SBX-RES-0006", "at": a.at, "msg": sprintf("all texts of a length are hashed: %s and %s", [by, a.by])} if {
	some a in input.actions.hash
	not a.idle
	some by, line in enumerated_to
	a.line < line
}

# few: all texts of one or two letters.
few(e) if {
	some n in e.args
	n in {"1", "2"}
}

# METADATA
# title: Leaves one busy process in the background
# custom:
#   id: SBX-RES-0007
#   severity: medium
#   category: resources
#   cwe: ["CWE-400"]
#   attack: ["T1496"]
#   remediation: "End what is started."
#   match:
#     - {"language": "bash", "code": "yes > /dev/null &"}
#   not_match:
#     - {"language": "bash", "code": "yes"}
findings contains {"id": "SBX-RES-0007", "at": c.at, "msg": "yes is left running in the background"} if {
	some c in left_running
	not several
}
