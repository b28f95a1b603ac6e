# Goes on with main() of runner.py: pytest's tests, by hooks of ours.
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
        ini = {k: list(early_config.getini(k)) for k in ("python_files", "python_classes", "python_functions")}
        rewritten = {}

        def as_pytest(path, test):
            if not test:
                return compiled(path)
            rewritten[path] = rewriting._rewrite_test(pathlib_path(path), early_config)[1]
            return rewritten[path]

        read_tests(ini, as_pytest)
        rewriting._read_pyc = lambda source, pyc, *rest: rewritten.get(str(source))
        if any(o.startswith(("-k", "-m", "--deselect", "--ignore")) for o in early_config.getini("addopts")):
            state["lenient"] = True
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

    @hook(tryfirst=True)
    def pytest_collection_modifyitems(items):
        items[:] = [i for i in items if not (hasattr(i, "obj") and of_solution(i.obj))]

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

    for f in (pytest_load_initial_conftests, pytest_configure, pytest_make_collect_report, pytest_collection_modifyitems, pytest_fixture_setup, pytest_runtest_makereport,
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
