"""Runs texts, one after the other, in one namespace. caisson hands it to its agent."""


def _caisson(ctl):
    import ast, linecache, os, resource, signal, sys, traceback

    write, close, opened_by, dup2, read_line = os.write, os.close, os.open, os.dup2, open(ctl + "/go", "rb", 0).readline
    end, base = os.open(ctl + "/end", os.O_WRONLY), [os.dup(n) for n in range(3)]
    space = sys.modules["__main__"].__dict__
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def times():
        own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return " ".join("0m%.6fs" % t for t in (own.ru_utime, own.ru_stime, others.ru_utime, others.ru_stime))

    def say(key, what, more=""):
        write(end, b"%s\0%s\0%s\0" % (key, str(what).encode(), more.encode()))

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

    count = 0
    while True:
        try:
            at, key, source = read_line().rstrip(b"\n").split(b" ")
        except KeyboardInterrupt:
            continue
        count += 1
        status = 0
        try:
            try:
                with open(at + b".text", encoding="utf-8", errors="surrogateescape") as f:
                    text = f.read()
                files = [opened_by(source, os.O_RDONLY), opened_by(at + b".out", os.O_WRONLY), opened_by(at + b".err", os.O_WRONLY)]
                for n, fd in enumerate(files):
                    dup2(fd, n)
                    close(fd)
                if source != b"/dev/null":
                    say(key, "opened")
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
        for n, fd in enumerate(base):
            dup2(fd, n)
        say(key, status, times())


_caisson("{ctl}")
