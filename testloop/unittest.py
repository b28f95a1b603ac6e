# Goes on with main() of runner.py: tests of Python's own unittest.
    import importlib.util
    import unittest
    import unittest.mock
    import warnings

    now = {"item": None, "events": [], "around": {}, "file": ""}

    def found(test, outcome, error=None, why=""):
        # Of a test, or of what is done around a class or module of them.
        if test is now["item"] or getattr(test, "test_case", None) is now["item"]:
            now["events"].append((outcome, error, why))
            return
        about = plain(getattr(test, "description", test), 400)
        if about.startswith("setUp"):
            now["around"][about.partition("(")[2].rstrip(")")] = (outcome, error, about)
        elif outcome != "passed":
            fields = told(error) if error is not None else {"message": why}
            fields.update(place=shown(fields.pop("file", "")), message=about + ": " + fields["message"])
            fields.pop("assertion", None)
            send("problem", file=now["file"], **fields)

    class Result(unittest.TestResult):
        def addSuccess(self, test):
            found(test, "passed")

        def addError(self, test, err):
            found(test, "failed" if by_method(err[1]) else "error", err[1])

        def addFailure(self, test, err):
            found(test, "failed", err[1])

        def addSkip(self, test, reason):
            found(test, "skipped", sys.exc_info()[1], plain(reason))

        def addExpectedFailure(self, test, err):
            found(test, "xfailed", err[1])

        def addUnexpectedSuccess(self, test):
            found(test, "failed", None, "it passed, though the tests say it would not")

        def addSubTest(self, test, subtest, err):
            if err is not None:
                found(test, "failed", err[1], plain(subtest._subDescription()))

    def by_method(error):
        # Whether the test's own function was running when it was raised.
        tb, method = error.__traceback__, functions.get(id(now["item"]), (None, None))[1]
        while tb is not None and tb.tb_frame.f_code is not method:
            tb = tb.tb_next
        return tb is not None

    def verdict(item, name):
        if now["tampered"]:
            return "error", None, "unittest or the tests were changed while it ran: " + changed()
        cls = type(item)
        events = now["events"] or [now["around"][k] for k in ("%s.%s" % (cls.__module__, cls.__qualname__), cls.__module__) if k in now["around"]]
        for outcome, error, why in events:
            if outcome in ("failed", "error"):
                return outcome, error, why
        for outcome, error, why in events:
            declared = declares.get(name, any(declares.values()))
            by = by_tests(error) if error is not None else None
            if outcome == "skipped" and (by or by is None and declared) or outcome == "xfailed" and declared:
                return outcome, error, why
            if outcome in ("skipped", "xfailed"):
                return "failed", error, "it was %s by something other than the tests" % outcome
        if not events or events[-1][0] != "passed":
            return "error", None, "its function was not run"
        return "passed", None, ""

    functions = {}

    def genuine(item):
        f = underlying(getattr(type(item), item._testMethodName, None))
        held = functions.get(id(item))
        return held is not None and f is held[0] and getattr(f, "__code__", None) is held[1] and (of_tests(f) or item._testMethodName == "runTest")

    def run_one(item, name, mod, results):
        now.update(item=item, events=[], tampered=False)
        mark()
        started = clock()
        send("start", id=name)
        if not intact() or not module_intact(mod) or not genuine(item):
            now["tampered"] = True
        else:
            try:
                unittest.TestSuite([item]).run(results)
            except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as e:
                now["events"].append(("failed", e, "it raised %s" % type(e).__name__))
            if not intact() or not module_intact(mod):
                now["tampered"] = True
        outcome, error, why = verdict(item, name)
        took = clock() - started
        mark()
        fields = {"id": name, "outcome": outcome, "ms": took * 1000}
        if error is not None:
            fields.update(told(error))
        if why:
            fields["message"] = why + (": " + fields["message"] if fields.get("message") else "")
        send("end", **fields)

    def load(path):
        # A module of the tests, from what was compiled before.
        file = path[len(tests) + 1:]
        send("file", file=file)
        name = file[:-3].replace("/", ".")
        try:
            if "." in name:
                importlib.import_module(name.rpartition(".")[0])
            mod = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path))
            sys.modules[name] = mod
            exec(codes[path] if path in codes else compiled(path), mod.__dict__)
        except BaseException as e:
            if not intact():
                send("problem", file=file, message="unittest was changed while it was imported: " + changed())
            elif isinstance(e, unittest.SkipTest) and by_tests(e):
                send("skipped", file=file, message=plain(e))
            else:
                fields = told(e)
                fields.pop("assertion", None)
                fields.update(place=shown(fields.pop("file", "")))
                send("problem", file=file, **fields)
            return None
        if not intact():
            send("problem", file=file, message="unittest was changed while it was imported: " + changed())
            return None
        freeze_module(mod)
        return mod

    def flat(suite):
        for t in suite:
            if isinstance(t, unittest.TestSuite):
                yield from flat(t)
            else:
                yield t

    def warned(message, category, filename, lineno, file=None, line=None):
        count["warning"] = count.get("warning", 0) + 1
        if count["warning"] <= 100:
            send("warning", id="", message=plain(message, 1000), type=plain(getattr(category, "__name__", ""), 100),
                 file=shown(filename), line=lineno if type(lineno) is int else 0)

    ours = set()

    def learn(co):
        ours.add(co)
        for c in co.co_consts:
            if isinstance(c, Code):
                learn(c)

    learn(sys._getframe().f_code)
    codes = read_tests({"python_files": ["test*.py"], "python_classes": [], "python_functions": ["test"]}, lambda path, test: compiled(path))
    state["lenient"] = any("def load_tests" in line for lines in sources.values() for line in lines)
    freeze()
    send("tests", names=static, lenient=state["lenient"])
    sys.path.extend(paths)
    for name in ("__main__", "ctypes", "_ctypes", "ctypes._endian"):
        sys.modules.pop(name, None)
    sys.modules["__main__"] = types.ModuleType("__main__")
    warnings.simplefilter("default")
    warnings.showwarning = warned
    results, loader, todo = Result(), unittest.TestLoader(), []
    results._testRunEntered = True  # each test is a suite, and classes and modules last over several
    done = set(cfg["done"])
    for path in sorted(p for p in sources if p.startswith(tests + "/")):
        file = path[len(tests) + 1:]
        if file in cfg["ignore"] or not (file in cfg["paths"] or not cfg["paths"] and fnmatch.fnmatch(os.path.basename(path), "test*.py")):
            continue
        mod = load(path)
        for item in flat(loader.loadTestsFromModule(mod)) if mod is not None else ():
            f = underlying(getattr(type(item), item._testMethodName, None))
            if of_solution(f):
                continue
            functions[id(item)] = (f, getattr(f, "__code__", None))
            todo.append((item, plain("%s::%s::%s" % (file, type(item).__qualname__, item._testMethodName)), mod, file))
    for at in range(0, len(todo), 500):
        send("items", names=[name for _, name, _, _ in todo[at:at + 500]])
    send("collected")
    mark()
    for item, name, mod, file in todo:
        if name not in done:
            now["file"] = file
            run_one(item, name, mod, results)
    now["item"] = None
    ended = unittest.TestSuite()
    ended._tearDownPreviousClass(None, results)
    ended._handleModuleTearDown(results)
    mark()
    send("done", code=0)
    leave(0)


main()
