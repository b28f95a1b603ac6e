package python

import "testing"

// TestLibrary follows values through objects of the standard library that only
// carry them.
func TestLibrary(t *testing.T) {
	t.Parallel()
	const gone = "delete /etc/x"
	check(t, []example{
		{"option", "import argparse, os\np = argparse.ArgumentParser()\np.add_argument('--my-path', default='/etc/x')\na = p.parse_args()\nos.remove(a.my_path)", []string{gone}},
		{"option in a group", "import argparse, os\np = argparse.ArgumentParser()\np.add_argument_group('g').add_argument('-f', dest='f', default='/etc/x')\na, rest = p.parse_known_args()\nos.remove(a.f)", []string{gone}},
		{"option of a subcommand", "import argparse, os\np = argparse.ArgumentParser()\ns = p.add_subparsers()\nq = s.add_parser('d')\nq.add_argument('--f', default='/etc/x')\nq.set_defaults(func=lambda a: os.remove(a.f))\na = p.parse_args()\na.func(a)", []string{gone}},
		{"option given in the program", "import argparse, os\np = argparse.ArgumentParser()\np.add_argument('--f')\na = p.parse_args(['--f', '/etc/x'])\nos.remove(a.f)", []string{gone}},
		{"option as a path", "import argparse, pathlib\np = argparse.ArgumentParser()\np.add_argument('--f', type=pathlib.Path, default='/etc/x')\np.parse_args().f.unlink()", []string{gone}},
		{"option of click", "import click, os\n@click.command()\n@click.option('--f', default='/etc/x')\ndef main(f):\n    os.remove(f)\nmain()", []string{gone}},
		{"option without default", "import argparse, os\np = argparse.ArgumentParser()\np.add_argument('f')\nos.remove(p.parse_args().f)", []string{"!delete /etc"}},
		{"dataclass", "from dataclasses import dataclass\nimport os\n@dataclass\nclass A:\n    n: int\n    p: str\nos.remove(A(1, '/etc/x').p)", []string{gone}},
		{"dataclass of another", "from dataclasses import dataclass\nimport os\n@dataclass\nclass A:\n    n: int\n@dataclass\nclass B(A):\n    p: str\nos.remove(B(1, '/etc/x').p)", []string{gone}},
		{"named tuple", "from collections import namedtuple\nimport os\nT = namedtuple('T', 'a b')\na, b = T(1, '/etc/x')\nos.remove(b)", []string{gone}},
		{"typed named tuple", "from typing import NamedTuple\nimport os\nclass T(NamedTuple):\n    a: int\n    b: str\nos.remove(T(1, '/etc/x')[1])", []string{gone}},
		{"enum", "from enum import Enum\nimport os\nclass E(Enum):\n    A = '/etc/x'\nos.remove(E.A.value)", []string{gone}},
		{"enum listed", "from enum import Enum\nimport os\nclass E(Enum):\n    A = '/etc/x'\n    B = '/etc/y'\nfor e in E:\n    os.remove(e.value)", []string{gone, "delete /etc/y"}},
		{"enum by name", "from enum import Enum\nimport os\nclass E(Enum):\n    A = '/etc/x'\nos.remove(E['A'].value)", []string{gone}},
		{"json", "import json, os\nos.remove(json.loads('{\"a\": [{\"b\": \"/etc/x\"}]}')['a'][0]['b'])", []string{gone}},
		{"broken json", "import json, os\nos.remove(json.loads('{\"a\": ')['a'])", []string{"!delete /etc"}},
		{"template", "import os, string\nos.remove(string.Template('/$a/${b}$$').substitute({'a': 'etc'}, b='x')[:-1])", []string{gone}},
		{"queue", "import queue, os\nq = queue.Queue()\nq.put('/etc/x')\nos.remove(q.get())", []string{gone}},
		{"queue of a thread that waits", "import queue, os, threading\nq = queue.Queue()\ndef w(q):\n    while True:\n        os.remove(q.get())\nthreading.Thread(target=w, args=(q,)).start()\nq.put('/etc/x')", []string{gone}},
		{"exception", "import os\nclass E(Exception): pass\ntry:\n    raise E('/etc/x')\nexcept E as e:\n    os.remove(e.args[0])", []string{gone}},
		{"builtin exception", "import os\ntry:\n    raise ValueError('/etc/x')\nexcept ValueError as e:\n    os.remove(str(e))", []string{gone}},
		{"match", "import os\ndef f(c):\n    match c:\n        case {'p': p}: os.remove(p)\n        case ('d', p): os.remove(p)\nf(('d', '/etc/x'))\nf({'p': '/etc/y'})", []string{gone, "delete /etc/y"}},
		{"context manager", "import os, contextlib\n@contextlib.contextmanager\ndef f(p):\n    yield p\nwith f('/etc/x') as p:\n    os.remove(p)", []string{gone}},
		{"namespace", "import os, types\nos.remove(types.SimpleNamespace(p='/etc/x').p)", []string{gone}},
		{"found by hand", "import importlib.util\ns = importlib.util.find_spec('os')\nm = importlib.util.module_from_spec(s)\ns.loader.exec_module(m)\nm.remove('/etc/x')", []string{gone}},
		{"site packages", "import sysconfig\nopen(sysconfig.get_paths()['purelib'] + '/x.pth', 'w')", []string{"write /usr/lib/python3/site-packages/x.pth"}},
		{"descriptor", "import os, tempfile\nfd, p = tempfile.mkstemp()\nos.write(fd, b'rm -rf /etc')\nos.system('sh ' + p)", []string{"sh sh /tmp/tmp1_8"}},
		{"splat of a call", "import os\n[*map(lambda f: f('/etc/x'), [os.remove])]", []string{gone}},
	})
}

// TestApplied follows functions that are handed over to be called later.
func TestApplied(t *testing.T) {
	t.Parallel()
	const def = "import os\ndef f(p, q=None):\n    os.remove(p)\n"
	const gone = "delete /etc/x"
	check(t, []example{
		{"thread", def + "import threading\nthreading.Thread(target=f, args=('/etc/x',)).start()", []string{gone}},
		{"thread by name", def + "import threading\nthreading.Thread(target=f, kwargs={'p': '/etc/x'}).start()", []string{gone}},
		{"timer", def + "import threading\nthreading.Timer(5, f, ['/etc/x']).start()", []string{gone}},
		{"process", def + "import multiprocessing\nmultiprocessing.Process(target=f, args=('/etc/x',)).start()", []string{gone}},
		{"submit", def + "from concurrent.futures import ThreadPoolExecutor as T\nwith T() as t:\n    t.submit(f, '/etc/x', q=1)", []string{gone}},
		{"map", def + "from concurrent.futures import ThreadPoolExecutor as T\nwith T() as t:\n    t.map(f, ['/etc/x', '/etc/y'])", []string{gone, "delete /etc/y"}},
		{"pool", def + "from multiprocessing import Pool\nwith Pool() as p:\n    p.map(f, ['/etc/x'])", []string{gone}},
		{"scheduler", def + "import sched\ns = sched.scheduler()\ns.enter(1, 1, f, argument=('/etc/x',))", []string{gone}},
		{"at exit", def + "import atexit\natexit.register(f, '/etc/x')", []string{gone}},
		{"method", "import os, threading\nclass A:\n    def f(self, p):\n        os.remove(p)\nthreading.Thread(target=A().f, args=('/etc/x',)).start()", []string{gone}},
		{"program as a function", "from plumbum import local\nlocal['rm']['-rf']('/etc/x')", []string{"cmd rm -rf /etc/x"}},
		{"program by its name", "import sh\nsh.rm('-rf', '/etc/x')", []string{"cmd rm -rf /etc/x"}},
		{"module that is called sh", "import sh\nsh.frobnicate('/etc/x')", []string{"!cmd"}},
	})
}

// TestOwnText: text that stands in a program's own documentation is followed.
func TestOwnText(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"class's text", "import os\nclass A:\n    'rm -rf /etc/x'\nos.system(A.__doc__)", []string{"sh rm -rf /etc/x"}},
		{"function's text", "import os\ndef f():\n    'rm -rf /etc/x'\nos.system(f.__doc__)", []string{"sh rm -rf /etc/x"}},
	})
}

// TestDefaults: what is said where nobody says otherwise is followed, and it
// is known that it may be something else.
func TestDefaults(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"argument", "import os, sys\np = sys.argv[1] if len(sys.argv) > 1 else '/etc/x'\nos.system(f'rm -rf {p}')", []string{"sh rm -rf /etc/x", "dyn partial_code"}},
		{"variable", "import os\nos.system('rm -rf ' + os.environ.get('P', '/etc/x'))", []string{"sh rm -rf /etc/x", "dyn partial_code"}},
		{"empty", "import os\nos.listdir(os.environ.get('P', '') + '/lib')", []string{"!list /lib"}},
		{"words", "import subprocess, sys\nc = sys.argv[1] if len(sys.argv) > 1 else 'rm -rf /etc/x'\nsubprocess.run(c.split())", []string{"cmd rm -rf /etc/x", "dyn opaque_command"}},
		{"quoted words", "import shlex, subprocess\nsubprocess.run(shlex.split('sh -c \"rm -rf /etc/x\"'))", []string{"sh rm -rf /etc/x"}},
	})
}
