"""Runs texts, one after the other, in one namespace. caisson hands it to its agent."""


def _caisson(ctl, dir):
    import ast, linecache, os, resource, signal, sys, traceback

    write, close, opened_by, dup2 = os.write, os.close, os.open, os.dup2
    reading, writing = os.O_RDONLY, os.O_WRONLY
    base = [os.dup(n) for n in range(3)]
    space = sys.modules["__main__"].__dict__
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def times():
        own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return " ".join("0m%.6fs" % t for t in (own.ru_utime, own.ru_stime, others.ru_utime, others.ru_stime))

    def put(name, what):
        fd = opened_by(name, writing)
        write(fd, what)
        close(fd)

    def call(name):
        put("/proc/thread-self/comm", name)

    def ring(used=""):
        put(ctl + "/end", used.encode() + b"!")

    def run(text, name):
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        tree = compile(text, name, "exec", ast.PyCF_ONLY_AST)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), space)
        if last is not None:  # as at a prompt, its value is shown
            exec(compile(ast.Interactive([last]), name, "single"), space)

    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass

    def fail():
        kind, value, trace = sys.exc_info()
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        value.__traceback__ = trace
        traceback.print_exception(kind, value, trace)

    call(b"-")
    count = 0
    while True:
        try:
            close(opened_by("%s/%d.go" % (ctl, count), reading))
            with open("%s/%d.run" % (ctl, count), "rb") as f:
                key, source, text = f.read().split(b"\n", 2)
        except KeyboardInterrupt:
            continue
        except OSError:
            raise
        except Exception:  # what handles a signal has failed
            fail()
            continue
        at = b"%s/%d" % (dir.encode(), count)
        count += 1
        status = 0
        try:
            try:
                text = text.decode(errors="surrogateescape")
                files = [opened_by(source, reading), opened_by(at + b".out", writing), opened_by(at + b".err", writing)]
                for n, fd in enumerate(files):
                    dup2(fd, n)
                    close(fd)
                call(b"{name}")
                if source != b"/dev/null":
                    ring()
                sys.stdin = open(0, closefd=False)
                run(text, "<run %d>" % count)
            except KeyboardInterrupt:
                fail()
                status = 130
            except Exception:
                fail()
                status = 1
            flush()
        except KeyboardInterrupt:
            status = 130
        while True:
            try:
                for n, fd in enumerate(base):
                    try:
                        dup2(fd, n)
                    except OSError:
                        pass  # a text has closed it
                call(b"%s%d" % (key, status))
                ring(times())
                break
            except KeyboardInterrupt:
                status = 130


_caisson("{ctl}", "{dir}")
