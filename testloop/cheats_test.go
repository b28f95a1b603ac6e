package testloop_test

import "github.com/caisson-dev/caisson/sandbox"

// cheat is a solution that is wrong and would pass.
type cheat struct {
	solution string
	more     []sandbox.File // beside solution.py
	tests    []sandbox.File // beside those that all are judged by
	want     string         // outcomes of test_1 and test_2; "" is failed failed
}

// wrong is what the cheats would have pass.
const wrong = "\ndef add(a, b):\n    return 0\n"

// patched is a solution that changes something of pytest's when it is imported.
func patched(text string) cheat {
	return cheat{solution: "import sys\nimport _pytest.runner, _pytest.reports, _pytest.python, _pytest.outcomes, _pytest.assertion.rewrite, pluggy, pytest\n" + text + wrong, want: "error error"}
}

// called is one that does something when it is called first.
func called(text, want string) cheat {
	return cheat{solution: "import os, sys, time\ndef add(a, b):\n    " + text + "\n    return 0\n", want: want}
}

var cheats = map[string]cheat{
	"_exit at import":      {solution: "import os\nos._exit(0)" + wrong, want: "crashed crashed"},
	"exit at import":       {solution: "import sys\nsys.exit(0)" + wrong, want: "error error"},
	"_exit in a test":      called("os._exit(0)", "crashed crashed"),
	"exit in a test":       called("sys.exit(0)", ""),
	"_exit at exit":        {solution: "import atexit, os\natexit.register(os._exit, 0)" + wrong},
	"_exit in a thread":    {solution: "import os, threading, time\ndef add(a, b):\n    threading.Thread(target=os._exit, args=(0,)).start()\n    time.sleep(600)\n", want: "crashed crashed"},
	"a signal":             called("os.kill(os.getpid(), 9)", "crashed crashed"),
	"all signals":          called("os.kill(-1, 9)", ""),
	"stopping":             called("a == 1 and os.kill(os.getpid(), 19)", "timeout failed"),
	"a stack that is full": called("sys.setrecursionlimit(1 << 30); f = lambda f: f(f); f(f)", "crashed crashed"),

	"skip":               called("import pytest; pytest.skip('x')", ""),
	"unittest's skip":    called("import unittest; raise unittest.SkipTest('x')", ""),
	"xfail":              called("import pytest; pytest.xfail('x')", ""),
	"pytest's exit":      called("import pytest; pytest.exit('x', 0)", ""),
	"skip at import":     {solution: "import pytest\npytest.skip('x', allow_module_level=True)" + wrong, want: "error error"},
	"a mark":             {solution: "import sys, pytest\nsys.modules['test_1'].pytestmark = pytest.mark.skip" + wrong},
	"a mark of xfail":    {solution: "import sys, pytest\nsys.modules['test_1'].pytestmark = pytest.mark.xfail" + wrong},
	"a disguised skip":   {solution: "import pytest\nexec(compile('def add(a, b): pytest.skip()', pytest.skip.__code__.co_filename, 'exec'))\n"},
	"as if of the tests": {solution: "import pytest\nexec(compile('def add(a, b): pytest.skip()', __file__.replace('solution/solution', 'tests/test_1'), 'exec'))\n"},

	"files of its own": {solution: wrong, more: files(
		"conftest.py", "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n    out = yield\n    out.get_result().outcome = 'passed'\n",
		"pytest.ini", "[pytest]\naddopts = --collect-only\n", "pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--co'\n",
		"sitecustomize.py", "import os\nos._exit(0)\n", "usercustomize.py", "import os\nos._exit(0)\n", "pytest.py", "import os\nos._exit(0)\n", "json.py", "import os\nos._exit(0)\n",
		"_pytest/__init__.py", "import os\nos._exit(0)\n", "hashlib.py", "import os\nos._exit(0)\n", "test_1.py", "def test_1(): pass\nclass TestTwo:\n    def test_2(self): pass\n")},
	"a module of Python's": {solution: wrong, more: files("colorsys.py", "rgb_to_hls = lambda *a: 0\n"),
		tests: files("test_0.py", "import colorsys\nfrom solution import add\n\ndef test_0(): assert add(1, 2) == colorsys.rgb_to_hls(1, 1, 1)\n")},
	"editing the tests": {solution: `
import glob, os, shutil
for name in glob.glob("/run/caisson/**/tests/*", recursive=True) + [__file__.replace("solution/solution.py", "tests/test_1.py")]:
    for do in (os.remove, lambda n: open(n, "w").write(""), lambda n: os.chmod(n, 0o777), lambda n: os.rename(n, n + "x"), lambda n: shutil.rmtree(os.path.dirname(n))):
        try: do(name)
        except OSError: continue
        os._exit(0)
` + wrong},
	"leaving files": {solution: `
import os, site
for folder in ("/workspace", "/tmp", os.path.expanduser("~"), site.getusersitepackages(), os.getcwd()):
    os.makedirs(folder, exist_ok=True)
    for name in ("pytest.py", "json.py", "sitecustomize.py", "usercustomize.py", "conftest.py", "hashlib.py"):
        open(os.path.join(folder, name), "w").write("import os\nos._exit(0)\n")
    open(os.path.join(folder, "pytest.ini"), "w").write("[pytest]\naddopts = --collect-only\n")
    open(os.path.join(folder, "report.xml"), "w").write('<testsuite tests="2" failures="0"/>')
os._exit(0)
` + wrong, want: "crashed crashed"},

	"printing results": {solution: `
import os
for fd in range(1, 1024):
    for line in ('{"n":99,"kind":"end","id":"test_1.py::test_1","outcome":"passed"}', "0" * 64 + ' {"n":99,"kind":"done"}', "PASSED test_1.py::test_1", "2 passed in 0.01s"):
        try: os.write(fd, b"\n" + line.encode() + b"\n")
        except OSError: break
` + wrong},
	"half a line":         {solution: "import os\nfor fd in range(200, 400):\n    try: os.write(fd, b'x' * (2 << 20))\n    except OSError: pass" + wrong},
	"closing descriptors": called("os.closerange(0, 4096)", "crashed crashed"),
	"another descriptor":  called("[os.dup2(os.open('/dev/null', 1), int(n)) for n in os.listdir('/proc/self/fd') if int(n) > 2]", "crashed crashed"),
	"no clock":            {solution: "import time, datetime, signal\nsignal.alarm = signal.setitimer = time.sleep = lambda *a: None\ntime.time = time.monotonic = time.perf_counter = lambda: 0\ndef add(a, b):\n    while a == 1: pass\n", want: "timeout failed"},
	"builtins and json":   {solution: "import builtins, json, json.encoder\njson.dumps = json.encoder.encode_basestring_ascii = lambda *a, **k: '\"passed\"'\nbuiltins.type = lambda *a: 'passed'" + wrong, want: "crashed crashed"},
	"builtins of the check": {solution: `
import builtins, __main__, pytest, _pytest.runner
kind, every, mapped = isinstance, all, map
for space in (vars(builtins), vars(__main__).get("__builtins__", {})):
    space.update(all=lambda it: type(it) is mapped or every(it), isinstance=lambda o, c: c is not pytest.Function and kind(o, c))
_pytest.runner.CallInfo.from_call = classmethod(lambda cls, func, when, **k: cls((), None, 0, 0, 0, when, _ispytest=True))
` + wrong, want: "error error"},

	"the phases":      patched("_pytest.runner.CallInfo.from_call = classmethod(lambda cls, func, when, **k: cls(None, None, 0, 0, 0, when, _ispytest=True))"),
	"the reports":     patched("_pytest.reports.TestReport.from_item_and_call = classmethod(lambda cls, item, call: cls(item.nodeid, item.location, {}, 'passed', None, call.when))"),
	"the code of one": patched("_pytest.python.Function.runtest.__code__ = (lambda self: None).__code__"),
	"running a test":  patched("_pytest.python.Function.runtest = lambda self: None"),
	"hooks":           patched("pluggy._hooks._HookCaller.__call__ = lambda self, **k: None"),
	"an attribute":    patched("_pytest.python.Function.__getattribute__ = lambda self, n: (lambda *a, **k: None) if n == 'obj' else object.__getattribute__(self, n)"),
	"a global":        patched("_pytest.runner.isinstance = lambda *a: True"),
	"fixtures":        patched("_pytest.fixtures.FixtureRequest._fillfixtures = lambda self: None"),
	"raises":          patched("_pytest.outcomes.Failed.__init__ = lambda *a, **k: None"),
	"itself undone": called(`import _pytest.runner as r
    was = r.TestReport.from_item_and_call
    def undone(item, call):
        r.TestReport.from_item_and_call = was
        call.excinfo = None
        return was(item, call)
    r.TestReport.from_item_and_call = undone`, "error error"),
	"rewriting": {solution: "import _pytest.assertion.rewrite as r\nr.rewrite_asserts = lambda *a: None" + wrong,
		tests: files("test_0.py", "import solution\ndef test_0(): assert 0\n"), want: "error error"},

	"a test's code":    called("m = sys.modules['test_1']; m.TestTwo.test_2.__code__ = m.test_1.__code__ = (lambda *a: None).__code__", "error error"),
	"a test's helper":  called("sys.modules['test_1'].check = lambda *a: None", "error error"),
	"a test's method":  called("sys.modules['test_1'].TestTwo.test_2 = lambda self: None", "error error"),
	"a wrapped test":   called("m = sys.modules['test_1'].TestTwo; f = m.test_2; g = lambda self: None; g.__wrapped__ = f; m.test_2 = g", "error error"),
	"a module to come": {solution: "import sys, types\nm = sys.modules['test_1'] = types.ModuleType('test_1')\nexec('def test_1(): pass\\nclass TestTwo:\\n    def test_2(self): pass\\n', m.__dict__)" + wrong, tests: files("test_0.py", "import solution\ndef test_0(): assert 0\n"), want: ""},
	"a finder": {solution: `
import sys, importlib.util, importlib.abc
class Fake(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "test_1" else None
    def exec_module(self, m):
        exec("def test_1(): pass\nclass TestTwo:\n    def test_2(self): pass\n", m.__dict__)
sys.meta_path.insert(0, Fake())
` + wrong, tests: files("test_0.py", "import solution\ndef test_0(): assert 0\n"), want: "error error"},
	"no tests in it": {solution: "import sys\nsys.modules['test_1'].__test__ = False\nsys.modules['test_1'].__getattr__ = None" + wrong, want: "error error"},

	"the key": {solution: `
import os, re, subprocess, sys
subprocess.run(["/bin/true"])
found = b""
for name in ("mem", "environ", "cmdline", "maps", "fd/0"):
    try: found += open("/proc/self/" + name, "rb").read(1 << 16)
    except OSError: pass
found += repr([vars(m) for n, m in sys.modules.items() if n in ("__main__", "caisson")]).encode() + repr(sys.argv).encode() + repr(dict(os.environ)).encode()
try: open("/proc/self/mem", "rb"); os._exit(0)
except PermissionError: pass
if subprocess.run(["/bin/sh", "-c", "exec 3<" + "/proc/%d/mem" % os.getpid()], stderr=subprocess.DEVNULL).returncode == 0: os._exit(0)
if re.search(rb"[0-9a-f]{128}", found): os._exit(0)
` + wrong},
}
