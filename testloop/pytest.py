# Runs pytest on what is staged beside this file: tests/ is judged, solution/ is
# what it is judged on. What it is to do comes on standard input; what it finds
# goes out on what was standard output, one line a fact, each signed with a key
# that lies in this program's memory alone. Package testloop reads them.
import builtins
import sys

# The functions below keep these, whatever a solution makes of the real ones.
__builtins__ = dict(vars(builtins))


def main():
    import ast
    import ctypes
    import fcntl
    import fnmatch
    import hashlib
    import inspect
    import json
    import operator
    import os
    import time
    import types
    from _json import encode_basestring_ascii as quoted

    base = os.path.dirname(os.path.abspath(__file__))
    tests, solution = base + "/tests", base + "/solution"
    text = b""
    while part := os.read(0, 1 << 16):
        text += part
    cfg = json.loads(text)
    inner = bytes(b ^ 0x36 for b in bytes.fromhex(cfg["key"]))
    outer = bytes(b ^ 0x5C for b in bytes.fromhex(cfg.pop("key")))
    text = None
    out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 300)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # nobody of the same user reads this memory
    sys.path[:] = [p for p in sys.path if p not in ("", base)]
    for name in [n for n in os.environ if n.startswith("PYTEST_")]:
        del os.environ[name]
    sys.stdout.reconfigure(line_buffering=True)
    streams = (sys.stdout, sys.stderr)

    write, leave, clock, sha256, is_ = os.write, os._exit, time.perf_counter, hashlib.sha256, operator.is_
    code_of, isawaitable, isasync = operator.attrgetter("__code__"), inspect.isawaitable, inspect.iscoroutinefunction
    isasyncgen, pause = inspect.isasyncgenfunction, time.sleep
    Function, Method, Code = types.FunctionType, types.MethodType, types.CodeType
    count = {"line": 0, "mark": 0}

    # What is said.

    def put(fd, data):
        while data:
            try:
                data = data[write(fd, data):]
            except BlockingIOError:
                pause(0.01)
            except OSError:
                leave(70)

    def encoded(v):
        kind = type(v)
        if kind is str:
            return quoted(v)
        if kind is list:
            return "[" + ",".join([encoded(x) for x in v]) + "]"
        if kind is dict:
            return "{" + ",".join([quoted(k) + ":" + encoded(x) for k, x in v.items()]) + "}"
        if v is None or kind is bool:
            return {None: "null", True: "true", False: "false"}[v]
        return "%.6f" % v if kind is float else "%d" % v

    def signed(data):
        return sha256(outer + sha256(inner + data).digest()).hexdigest().encode()

    def send(kind, **fields):
        count["line"] += 1
        line = encoded({"n": count["line"], "kind": kind, **fields}).encode()
        put(out, b"\n" + signed(line) + b" " + line + b"\n")

    def mark():
        # Splits what is printed: who reads it knows which test it is of.
        for s in streams:
            try:
                s.flush()
            except BaseException:
                pass
        count["mark"] += 1
        put(2, b"\0" + signed(b"mark %d" % count["mark"]) + b"\0")

    def plain(v, most=4000):
        # A text of a stranger's, exactly a str, and bounded.
        try:
            v = str.__getitem__(v if isinstance(v, str) else str(v), slice(0, most + 1))
        except BaseException as e:
            v = "<no text: %s>" % type(e).__name__
        return v if len(v) <= most else v[:most] + "…"

    def shown(path):
        path = plain(path)
        return path[len(base) + 1:] if path.startswith(base + "/") else path

    # What the tests are, before anything of the solution runs.

    sources, known, expected, static, declares = {}, set(), {}, [], {}
    state = {"frozen": [], "functions": [], "codes": (), "own": set(), "lenient": False}
    skipping = {"skip", "skipif", "xfail", "skipIf", "skipUnless", "skipTest", "SkipTest", "expectedFailure", "importorskip", "exit"}

    def mentions(node, words):
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and n.id in words or isinstance(n, ast.Attribute) and n.attr in words:
                return True
            if isinstance(n, ast.alias) and n.name in words:
                return True
        return False

    def remember(co, file, prefix):
        known.add(co)
        for c in co.co_consts:
            if isinstance(c, Code):
                name = prefix + c.co_name
                expected.setdefault((file, name), []).append(c)
                remember(c, file, name + ".")

    def matches(name, patterns):
        return any(name.startswith(p) or any(x in p for x in "*?[") and fnmatch.fnmatchcase(name, p) for p in patterns)

    def list_tests(body, file, prefix, words, whole, ini):
        for n in body:
            if isinstance(n, ast.ClassDef):
                case = any(mentions(b, {"TestCase", "IsolatedAsyncioTestCase"}) for b in n.bases)
                odd = any(isinstance(x, ast.FunctionDef) and x.name in ("__init__", "__new__") or
                          isinstance(x, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__test__" for t in x.targets) for x in n.body)
                if odd or not case and not matches(n.name, ini["python_classes"]):
                    continue
                marked = whole or any(mentions(d, words) for d in n.decorator_list) or any(mentions(x, words) for x in n.body if isinstance(x, ast.Assign))
                list_tests(n.body, file, prefix + n.name + "::", words, marked, {**ini, "python_functions": ["test"]} if case else ini)
            elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and matches(n.name, ini["python_functions"]):
                if any(mentions(d, {"fixture"}) for d in n.decorator_list):
                    continue
                name = file + "::" + prefix + n.name
                if name not in declares:
                    static.append(name)
                declares[name] = whole or mentions(n, words)

    def read_tests(config, rewrite):
        ini = {k: list(config.getini(k)) for k in ("python_files", "python_classes", "python_functions")}
        trees = {}
        for top in (tests, solution):
            for folder, _, names in os.walk(top):
                for name in sorted(names):
                    path = os.path.join(folder, name)
                    if not name.endswith(".py"):
                        continue
                    with open(path, "rb") as f:
                        raw = f.read()
                    sources[path] = raw.decode("utf-8", "replace").splitlines()
                    if top is tests:
                        try:
                            trees[path] = ast.parse(raw)
                        except (SyntaxError, ValueError, RecursionError):
                            pass  # its import will say so
        everywhere = False
        for path, tree in trees.items():
            if os.path.basename(path) == "conftest.py":
                everywhere = everywhere or mentions(tree, skipping)
                state["lenient"] = state["lenient"] or any(
                    isinstance(n, ast.FunctionDef) and n.name.startswith(("pytest_collect", "pytest_ignore", "pytest_pycollect", "pytest_itemcollected"))
                    or isinstance(n, ast.Name) and n.id.startswith("collect_ignore") for n in ast.walk(tree))
        if any(o.startswith(("-k", "-m", "--deselect", "--ignore")) for o in config.getini("addopts")):
            state["lenient"] = True
        codes = {}
        for path, tree in trees.items():
            file = path[len(tests) + 1:]
            name = os.path.basename(path)
            test = file in cfg["paths"] or any(fnmatch.fnmatch(name, p) for p in ini["python_files"])
            try:
                if test or name == "conftest.py":
                    _, co = rewrite(path, config)
                    codes[path] = co
                else:
                    with open(path, "rb") as f:
                        co = compile(f.read(), path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError):
                continue
            remember(co, file, "")
            if not test:
                continue
            words = set(skipping)
            for n in tree.body:
                if isinstance(n, ast.Assign) and mentions(n.value, words):
                    words.update(t.id for t in n.targets if isinstance(t, ast.Name))
            list_tests(tree.body, file, "", words, everywhere or "pytestmark" in words, ini)
        return codes

    # pytest, as it is before anything of the solution runs. An attribute that is
    # another later is a solution's doing.

    loose = {
        "_pytest.assertion.util": {"_reprcompare", "_assertion_pass", "_config"},
        "_pytest.debugging.pytestPDB": {"_pluginmanager", "_config", "_saved", "_recursive_debug", "_wrapped_pdb_cls"},
    }

    def freeze():
        functions = {}

        def add(v):
            v = getattr(v, "__func__", v)
            for f in (v, getattr(v, "fget", None), getattr(v, "__wrapped__", None)):
                if type(f) is Function:
                    functions[id(f)] = f

        seen = set()
        for name, mod in list(sys.modules.items()):
            if name.partition(".")[0] not in ("pytest", "_pytest", "pluggy", "unittest"):
                continue
            space = vars(mod)
            skip = loose.get(name, set()) | {"__warningregistry__"}
            state["frozen"].append((name, space, tuple(k for k in space if k not in skip), skip))
            for v in list(space.values()):
                add(v)
                theirs = isinstance(v, type) and v.__module__.partition(".")[0] in ("pytest", "_pytest", "pluggy", "unittest", "builtins")
                if theirs and v not in seen and getattr(builtins, v.__name__, None) is not v:
                    seen.add(v)
                    members = type.__dict__["__dict__"].__get__(v)
                    of = v.__module__ + "." + v.__name__
                    skip = loose.get(of, set())
                    state["frozen"].append((of, members, tuple(k for k in members if k not in skip), skip))
                    for m in list(members.values()):
                        add(m)
        state["frozen"] = [(name, s, s.get, keys, tuple(map(s.get, keys)), skip) for name, s, keys, skip in state["frozen"]]
        state["functions"] = list(functions.values())
        state["codes"] = tuple(map(code_of, state["functions"]))
        state["own"] = set()
        rest = list(state["codes"])
        while rest:
            co = rest.pop()
            state["own"].add(id(co))
            rest.extend(c for c in co.co_consts if isinstance(c, Code))

    def harmless(v):
        return type(v) in (bool, int, str)  # pytest notes that it has warned of something

    def intact():
        for _, space, get, keys, values, skip in state["frozen"]:
            if not all(map(is_, map(get, keys), values)):
                return False
            if len(space) > len(keys) and any(k not in keys and k not in skip and not harmless(space[k]) for k in space):
                return False
        return all(map(is_, map(code_of, state["functions"]), state["codes"]))

    def changed():
        # Names what is not as it was, for people.
        for name, space, get, keys, values, skip in state["frozen"]:
            for k, v in zip(keys, values):
                if get(k) is not v:
                    return plain("%s.%s" % (name, k), 200)
            for k in space:
                if k not in keys and k not in skip and not harmless(space[k]):
                    return plain("%s.%s" % (name, k), 200)
        for f, c in zip(state["functions"], state["codes"]):
            if f.__code__ is not c:
                return plain("the code of " + f.__qualname__, 200)
        return "a function of the tests"

    modules = {}  # of the tests: their functions, as they were once imported

    def freeze_module(mod):
        names = vars(mod)
        held = [(names, k, v, v.__code__) for k, v in names.items() if type(v) is Function and v.__code__ in known]
        for c in [v for v in names.values() if isinstance(v, type) and v.__module__ == mod.__name__]:
            members = type.__dict__["__dict__"].__get__(c)
            held += [(members, k, v, v.__code__) for k, v in members.items() if type(v) is Function and v.__code__ in known]
        modules[id(mod)] = held

    def module_intact(mod):
        return all(space.get(k) is f and f.__code__ is c for space, k, f, c in modules.get(id(mod), ()))

    def underlying(obj):
        return obj.__func__ if type(obj) is Method else obj

    def of_tests(f, depth=0):
        # Whether a function is the tests', or a decorator's around one of theirs.
        if type(f) is not Function or depth > 4:
            return False
        if f.__code__ in known:
            return True
        inside = [f.__dict__.get("__wrapped__")]
        for cell in f.__closure__ or ():
            try:
                inside.append(cell.cell_contents)
            except ValueError:
                pass  # it is empty
        return any(of_tests(x, depth + 1) for x in inside)

    def by_tests(error):
        # Whether the tests raised it themselves: the innermost code that is not
        # pytest's. None is pytest alone, for a mark.
        tb, last = error.__traceback__, None
        while tb is not None:
            code = tb.tb_frame.f_code
            if id(code) not in state["own"] and code not in ours:
                last = code
            tb = tb.tb_next
        if last is None:
            return None
        return last in known

    # How an error is told.

    def entries(error):
        found = []
        tb = error.__traceback__
        while tb is not None and len(found) < 1000:
            code = tb.tb_frame.f_code
            if id(code) not in state["own"] and code not in ours and not code.co_filename.startswith("<frozen "):
                path, line = plain(code.co_filename), tb.tb_lineno or 0
                lines = sources.get(path, [])
                source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
                found.append({"file": shown(path), "line": line, "function": plain(code.co_name, 200), "source": plain(source, 400)})
            tb = tb.tb_next
        return found if len(found) <= 24 else found[:6] + found[-18:]

    def told(error):
        kind = plain(type(error).__name__, 200)
        message = plain(error)
        place = {}
        if isinstance(error, SyntaxError):
            place = {"file": shown(error.filename or ""), "line": error.lineno if type(error.lineno) is int else 0}
        tb = entries(error)
        if not place and tb:
            place = {"file": tb[-1]["file"], "line": tb[-1]["line"]}
        return {"type": kind, "message": kind + (": " + message if message else ""), "traceback": tb, **place}

    sys.path.append(tests)
    sys.path.append(solution)
    paths = [sys.path.pop(), sys.path.pop()][::-1]

    import pytest
    from _pytest import unittest as cases
    from _pytest._io.saferepr import saferepr
    from _pytest.assertion import rewrite as rewriting
    from _pytest.outcomes import Exit, XFailed
    import _pytest.doctest, _pytest.assertion.util, _pytest.skipping, _pytest.python

    PlainFunction, TestCaseFunction, Module = pytest.Function, cases.TestCaseFunction, pytest.Module
    now = {}

    def begin_state(item):
        now.clear()
        now.update(item=item, reports=[], returned=False, tampered=False, compare=None, error=None)

    def verdict(item):
        # The outcome, and the error that it comes of.
        if now["tampered"]:
            return "error", None, "pytest or the tests were changed while it ran: " + changed()
        whens = {}
        for when, outcome, xfail, error in now["reports"]:
            whens[when] = (outcome, xfail, error)
        declared = declares.get(item.nodeid.partition("[")[0], state["marks"])
        for when in ("setup", "call"):
            if when not in whens:
                return "error", None, "its %s was not reported" % when
            outcome, xfail, error = whens[when]
            if outcome == "skipped":
                marked = xfail is not None and not isinstance(error, XFailed)
                by = None if error is None or marked else by_tests(error)
                if by or by is None and declared:
                    return ("xfailed" if xfail is not None else "skipped"), error, xfail
                return "failed", error, "it was skipped by something other than the tests"
            if outcome == "failed":
                return ("error" if when == "setup" else "failed"), error, None
        if isinstance(item, PlainFunction) and not isinstance(item, TestCaseFunction) and not now["returned"]:
            return "error", None, "its function was not run"
        outcome, _, error = whens.get("teardown", ("failed", None, None))
        if outcome != "passed":
            return "error", error, "its teardown did not end well"
        return ("xpassed" if whens["call"][1] is not None else "passed"), None, None

    def genuine(item):
        f = underlying(item.obj)
        held = functions.get(id(item))
        if held is None or f is not held[0] or getattr(f, "__code__", None) is not held[1]:
            return False
        return of_tests(f)

    functions = {}

    def run_one(item, nextitem):
        begin_state(item)
        mark()
        started = clock()
        send("start", id=plain(item.nodeid))
        if not intact() or not module_intact(item.module if hasattr(item, "module") else None):
            now["tampered"] = True
        else:
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            except BaseException as e:
                now["reports"].append(("call", "failed", None, e))
            if not intact() or not module_intact(getattr(item, "module", None)):
                now["tampered"] = True
        outcome, error, why = verdict(item)
        took = clock() - started
        mark()
        fields = {"id": plain(item.nodeid), "outcome": outcome, "ms": took * 1000}
        if error is not None:
            fields.update(told(error))
        if why:
            fields["message"] = plain(why) + (": " + fields["message"] if fields.get("message") else "")
        if now["compare"] is not None and outcome in ("failed", "error", "xfailed"):
            fields["assertion"] = now["compare"]
        spec = getattr(item, "callspec", None)
        if spec is not None:
            fields["parameters"] = {plain(k, 200): plain(saferepr(v, 400), 400) for k, v in spec.params.items()}
        send("end", **fields)

    hook = pytest.hookimpl
    plugin = types.ModuleType("caisson")

    @hook()  # after what pytest itself changes first, and before any conftest.py
    def pytest_load_initial_conftests(early_config):
        codes = read_tests(early_config, lambda p, c: rewriting._rewrite_test(pathlib_path(p), c))
        rewriting._read_pyc = lambda source, pyc, *rest: codes.get(str(source))
        state["marks"] = any(declares.values())
        if any("unittest" in line for lines in sources.values() for line in lines):
            import unittest.mock
        freeze()
        send("tests", names=static, lenient=state["lenient"])
        sys.path.extend(paths)
        if os.path.exists(tests + "/conftest.py"):
            send("file", file="conftest.py")

    import pathlib
    pathlib_path = pathlib.Path

    @hook(trylast=True)
    def pytest_configure(config):
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            config.pluginmanager.unregister(reporter)

    @hook(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(collector):
        if isinstance(collector, Module):
            send("file", file=plain(collector.nodeid))
        outcome = yield
        if not intact():
            send("problem", file=plain(collector.nodeid), message="pytest was changed while it was imported: " + changed())
            return
        rep = outcome.get_result()
        if isinstance(collector, Module) and rep.outcome == "passed":
            freeze_module(collector.obj)
        if rep.outcome == "passed":
            return
        error = rep.call.excinfo.value
        cause = error.__cause__ if isinstance(error, collector.CollectError) and error.__cause__ is not None else error
        if rep.outcome == "skipped" and by_tests(error):
            send("skipped", file=plain(collector.nodeid), message=plain(error))
            return
        fields = told(cause)
        fields.update(place=shown(fields.pop("file", "")))
        if rep.outcome == "skipped":
            fields["message"] = "it was skipped by something other than the tests: " + fields["message"]
        send("problem", file=plain(collector.nodeid), **fields)

    @hook(hookwrapper=True, trylast=True)
    def pytest_fixture_setup(fixturedef, request):
        yield
        if now and not intact():
            now["tampered"] = True

    @hook(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(item, call):
        outcome = yield
        rep = outcome.get_result()
        if now.get("item") is item:
            error = call.excinfo.value if call.excinfo is not None else None
            xfail = rep.wasxfail if hasattr(rep, "wasxfail") else None
            now["reports"].append((rep.when, rep.outcome, xfail, error))

    @hook(tryfirst=True)
    def pytest_pyfunc_call(pyfuncitem):
        obj = pyfuncitem.obj
        if pyfuncitem is not now.get("item") or not intact() or not genuine(pyfuncitem):
            now["tampered"] = True
            return True
        if isasync(obj) or isasyncgen(obj):
            now["returned"] = True  # by a plugin's word, or pytest's own
            return None
        args = {a: pyfuncitem.funcargs[a] for a in pyfuncitem._fixtureinfo.argnames}
        try:
            result = obj(**args)
        except (KeyboardInterrupt, SystemExit, GeneratorExit, Exit) as e:
            raise RuntimeError("it raised %s(%s)" % (type(e).__name__, plain(e, 200))) from e
        finally:
            if not intact():
                now["tampered"] = True
        if isawaitable(result):
            raise TypeError("it returned something to await, which nobody awaits")
        now["returned"] = True
        return True

    def pytest_assertrepr_compare(config, op, left, right):
        now["compare"] = {"left": plain(saferepr(left, 2000)), "op": plain(op, 20), "right": plain(saferepr(right, 2000))}

    def pytest_warning_recorded(warning_message, when, nodeid, location):
        count["warning"] = count.get("warning", 0) + 1
        if count["warning"] <= 100:
            w = warning_message
            send("warning", id=plain(nodeid), message=plain(w.message, 1000), type=plain(getattr(w.category, "__name__", ""), 100),
                 file=shown(w.filename), line=w.lineno if type(w.lineno) is int else 0)

    @hook(tryfirst=True)
    def pytest_runtestloop(session):
        done = set(cfg["done"])
        items = [i for i in session.items if plain(i.nodeid) not in done]
        for i in session.items:
            f = underlying(i.obj) if hasattr(i, "obj") else None
            functions[id(i)] = (f, getattr(f, "__code__", None))
        ids = [plain(i.nodeid) for i in session.items]
        for at in range(0, len(ids), 500):
            send("items", names=ids[at:at + 500])
        send("collected")
        mark()
        for at, item in enumerate(items):
            run_one(item, items[at + 1] if at + 1 < len(items) else None)
        return True

    for f in (pytest_load_initial_conftests, pytest_configure, pytest_make_collect_report, pytest_fixture_setup, pytest_runtest_makereport,
              pytest_pyfunc_call, pytest_assertrepr_compare, pytest_warning_recorded, pytest_runtestloop):
        setattr(plugin, f.__name__, f)
    ours = set()

    def learn(co):
        ours.add(co)
        for c in co.co_consts:
            if isinstance(c, Code):
                learn(c)

    learn(sys._getframe().f_code)
    ini = tests + "/" + cfg["ini"] if cfg["ini"] else os.devnull
    argv = ["-c", ini, "--rootdir", tests, "--import-mode=importlib", "--capture=no", "-q", "--continue-on-collection-errors"]
    for name in ("cacheprovider", "stepwise", "pastebin", "junitxml", "python_path", "xdist"):
        argv += ["-p", "no:" + name]
    argv += ["--ignore=" + tests + "/" + f for f in cfg["ignore"]]
    argv += [tests + "/" + p for p in cfg["paths"]] or [tests]
    run = pytest.main
    for name in ("__main__", "ctypes", "_ctypes", "ctypes._endian"):
        sys.modules.pop(name, None)
    sys.modules["__main__"] = types.ModuleType("__main__")
    code = int(run(argv, plugins=[plugin]))
    mark()
    send("done", code=code)
    leave(0)


main()
