# The fork server of warm interpreters: it has imported what is asked for, and holds one
# fork ready. The agent hands it an exec: its group and user first, and the call once
# everything else is given up. What follows runs as if Python had been started for it.
def _fork():
    import os
    import sys

    del sys.path[0]  # the agent's folder, which is no place for modules
    import atexit

    # To take apart what the server has imported, as Python does at its end, would copy all
    # of it page by page. The program's own modules are, so that what they hold is ended.
    def leave():
        if ends[0] is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            return  # which Python tells
        for name, module in list(sys.modules.items()):
            if name not in imported and type(module) is type(sys):
                space = module.__dict__
                for first in (True, False):
                    for key in list(space):
                        if key != "__builtins__" and (not first or key[0] == "_" and key[1:2] != "_"):
                            space[key] = None
        # Cycles are ended in any order, a file before what is to be written to it.
        for thing in gc.get_objects():
            if issubclass(type(thing), files):
                try:
                    thing.flush()
                except Exception:
                    pass  # it is closed, or full, which nobody asks about at this point
        gc.collect()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            return
        os._exit(ends[0])

    ends, imported, files = [None], set(), ()
    atexit.register(leave)  # the first, and so the last to be called
    import array
    import ctypes
    import gc
    import io
    import json
    import site
    import socket
    import stat
    import struct
    import time

    # What functions of the Python package speak with their caller, if it is theirs.
    def text_of(name):
        with open(os.path.dirname(__file__) + "/warm_" + name, "rb") as f:
            return f.read()

    values = type(sys)("_caisson_values")
    values.text = text_of("values.py")
    sys.modules[values.__name__] = values
    exec(compile(values.text, "caisson_values.py", "exec"), values.__dict__)
    # So is the program that calls them compiled, and the one that runs what was judged.
    inside, boot = text_of("inside.py"), text_of("boot.py")
    values.compiled = {inside: compile(inside, "caisson_inside.py", "exec", dont_inherit=True)}
    booting = compile(boot, "caisson_boot.py", "exec", dont_inherit=True)
    rules = int(sys.argv[1])  # of Landlock, that each fork takes on; 0 is none
    for name in sys.argv[2:]:
        try:
            __import__(name)
        except ImportError:
            pass  # an image without it
    libc = ctypes.CDLL(None, use_errno=True)
    capset, prctl, syscall = libc.capset, libc.prctl, libc.syscall
    control = socket.socket(fileno=3)
    files = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
    imported.update(set(sys.modules) - {"__main__"})
    gc.collect()
    gc.freeze()

    def strip():
        # The version of 64-bit sets, this process, and no capability in any of them.
        if capset(struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", 0, 0, 0, 0, 0, 0)) != 0:
            os._exit(125)
        if rules and syscall(446, rules, 0) != 0:  # landlock_restrict_self
            os._exit(125)
        prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: what is in /proc/self is the program's

    def become(take):
        # Until here it has the server's user; the agent waits for the pid.
        data, ancillary, _, _ = control.recvmsg(8, socket.CMSG_SPACE(4 * 4))
        if len(data) != 8:
            os._exit(0)  # the agent has let go of the server
        os.write(take, b"t")
        fds = array.array("i")
        for _, _, content in ancillary:
            fds.frombytes(content)
        group, user = struct.unpack("=II", data)
        os.setgroups([group])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        strip()
        os.setsid()
        control.close()
        for i in range(3):
            os.dup2(fds[i], i)
        call = fds[3]
        os.write(call, struct.pack("=i", os.getpid()))
        text = b""
        while True:
            piece = os.read(call, 1 << 16)
            if not piece:
                break
            text += piece
        os.closerange(3, max(fds) + 4)
        if len(text) < 4 or len(text) != 4 + struct.unpack("=I", text[:4])[0]:
            os._exit(125)  # nobody waits for it any more
        return text[4:]

    # What a fork writes to, it copies page by page first: what most programs do is done
    # here once before anybody waits for it.
    def rehearse():
        prctl(3, 0, 0, 0, 0)  # PR_GET_DUMPABLE
        json.loads('{"argv": ["python3", "x"], "env": {"A": "b"}, "dir": "/"}')
        values.decode(values.encode({"data": {}, "args": [1, "a"]}))
        os.environ.update(dict(os.environ))
        os.path.realpath(__file__)
        time.tzset()
        exec(compile("import os\ndef f(a=1, *b, **c): return [x for x in b]", "", "exec"), {})
        io.TextIOWrapper(open(0, "rb", closefd=False), "utf-8").detach().detach()

    def spare():
        # Its parent ends at once, so that it becomes the agent's own child.
        taken, take = os.pipe()
        orphaned, parted = os.pipe()
        between = os.fork()
        if between == 0:
            try:
                if os.fork():
                    os._exit(0)
            except OSError:
                os._exit(1)
            os.close(taken)
            os.close(parted)
            os.read(orphaned, 1)
            os.close(orphaned)
            rehearse()
            return become(take)
        os.close(take)
        os.close(orphaned)
        if os.waitpid(between, 0)[1] != 0:
            os._exit(1)
        os.close(parted)
        gone = not os.read(taken, 1)
        os.close(taken)
        if gone:
            os._exit(0)
        return None

    control.send(b"ready")
    text = None
    while text is None:
        text = spare()

    call = json.loads(text)
    os.umask(0o022)
    os.environ.clear()
    os.environ.update(call["env"])
    try:
        os.chdir(call["dir"])
    except OSError as e:
        os.write(2, ("working directory %s: %s\n" % (call["dir"], e.strerror)).encode())
        os._exit(126)
    site.USER_BASE = site.USER_SITE = None  # the server's, who has no home: told anew where asked for
    time.tzset()
    if not stat.S_ISCHR(os.fstat(0).st_mode):  # the server's own was none that may be waited for
        source = open(0, "rb", closefd=False)
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(source, sys.stdin.encoding, sys.stdin.errors)
        sys.stdin.mode = "r"

    def excepthook(kind, value, trace):
        while trace is not None and trace.tb_frame.f_code.co_filename == here:
            trace = trace.tb_next
        plain(kind, value.with_traceback(trace), trace)

    here, plain = __file__, sys.excepthook
    sys.excepthook = sys.__excepthook__ = excepthook
    argv = call["argv"][1:]
    inline = argv[0] == "-c"
    if inline:
        code, name, first, sys.argv = argv[1], "<string>", "", ["-c"] + argv[2:]
    else:
        name = argv[0]
        first, sys.argv = os.path.dirname(os.path.realpath(name)), argv
        try:
            with open(name, "rb") as f:
                code = f.read()
        except OSError as e:
            os.write(2, os.fsencode("%s: can't open file %r: [Errno %d] %s\n" % (call["argv"][0], os.path.abspath(name), e.errno, e.strerror)))
            os._exit(2)
    sys.orig_argv = call["argv"]
    sys.path[:0] = [first] + [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(":") if p]
    space = sys.modules["__main__"].__dict__
    for name_ in ("_fork", "_run", "__file__", "__cached__"):
        space.pop(name_, None)
    if not inline:
        space["__file__"], space["__cached__"] = name, None

    def program():
        text = code
        if not inline and text.startswith(boot):
            exec(booting, space)
            text = text[len(boot):]
        return compile(text, name, "exec", dont_inherit=True)

    return program, space, ends


def _run():
    text, space, ends = _fork()
    try:
        exec(text(), space)
        ends[0] = 0
    except SystemExit as e:
        ends[0] = 0 if e.code is None else e.code & 0xFF if type(e.code) is int else None
        raise
    except Exception:
        ends[0] = 1
        raise


_run()
