# Runs a handler of what is staged in function/ beside this file, one call after the
# other, in the convention of AWS Lambda. Calls come on what was standard input, and
# what becomes of them goes out on what was standard output, one signed line each;
# what the handler prints goes to standard error. Package functions speaks with it.
import sys


def main():
    import fcntl
    import hmac
    import importlib
    import inspect
    import json
    import logging
    import os
    import resource
    import time
    import traceback
    import types

    base = os.path.dirname(os.path.abspath(__file__))
    root = base + "/function"
    most = min(300, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 4)
    calls = os.fdopen(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, most), "rb")
    out, log = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, most) for fd in (1, 2))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    cfg = json.loads(calls.readline())
    key, pid, marks = bytes.fromhex(cfg.pop("key")), os.getpid(), 0
    os.environ.update(cfg["env"], LAMBDA_TASK_ROOT=root)
    os.chdir(root)
    sys.path[:] = [root] + [p for p in sys.path if p not in ("", base)]
    sys.stdout.reconfigure(line_buffering=True)

    def put(fd, data):
        while data:
            data = data[os.write(fd, data):]

    def sign(text):
        return hmac.digest(key, text, "sha256").hex().encode()

    def say(text):
        # What was printed before ends at a mark.
        nonlocal marks
        for s in (sys.stdout, sys.stderr):
            try:
                s.flush()
            except Exception:
                pass
        try:
            put(log, b"\0" + sign(b"mark %d" % (marks + 1)) + b"\0")
            mark = marks = marks + 1
        except OSError:
            mark = 0  # the handler has closed it
        text = b'{"mark":%d,"peak":%d,%s}' % (mark, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, text)
        put(out, b"\n" + sign(text) + b" " + text + b"\n")

    def fail(kind, what, message, frames=(), n=0):
        frames = [f.replace(root + "/", "")[:4096] for f in [*frames][-100:]]
        text = json.dumps({"errorType": what, "errorMessage": message[:1 << 18], "stackTrace": frames})
        say(('"n":%d,"kind":"%s","error":%s' % (n, kind, text)).encode())

    def leave(code):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def frames_of(e, ours):
        return traceback.format_list(traceback.extract_tb(e.__traceback__)[ours:])

    def code_of(e):
        return e.code if isinstance(e.code, int) else 0 if e.code is None else 1

    # The root logger prints as the vendor's does.
    class WithRequest(logging.Filter):
        request = ""

        def filter(self, record):
            record.aws_request_id = self.request
            return True

    current, printer = WithRequest(), logging.StreamHandler()
    printer.addFilter(current)
    form = logging.Formatter("[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s", "%Y-%m-%dT%H:%M:%S")
    form.converter = time.gmtime
    printer.setFormatter(form)
    logging.getLogger().addHandler(printer)

    def load():
        name, _, attribute = cfg["handler"].rpartition(".")
        name = name.replace("/", ".")
        try:
            module = importlib.import_module(name)
        except SyntaxError as e:
            return fail("ending", "Runtime.UserCodeSyntaxError", "Syntax error in module '%s': %s" % (name, e), traceback.format_exception_only(e))
        except ImportError as e:
            return fail("ending", "Runtime.ImportModuleError", "Unable to import module '%s': %s" % (name, e), frames_of(e, 2))
        except SystemExit as e:
            leave(code_of(e))
        except BaseException as e:
            return fail("ending", type(e).__name__, str(e), frames_of(e, 2))
        handler = getattr(module, attribute, None)
        if not callable(handler):
            return fail("ending", "Runtime.HandlerNotFound", "Handler '%s' missing on module '%s'" % (attribute, name))
        return handler

    class Context:
        def __init__(self, call):
            self._deadline = time.monotonic() + call["left_ms"] / 1000
            self.aws_request_id = call["id"]
            for k in ("function_name", "function_version", "memory_limit_in_mb", "invoked_function_arn", "log_group_name", "log_stream_name"):
                setattr(self, k, cfg[k])
            self.identity = types.SimpleNamespace(cognito_identity_id=None, cognito_identity_pool_id=None)
            self.client_context = None
            if call.get("client_context"):
                c = call["client_context"]
                self.client_context = types.SimpleNamespace(client=c.get("client"), custom=c.get("custom"), env=c.get("env"))

        def get_remaining_time_in_millis(self):
            return max(0, int((self._deadline - time.monotonic()) * 1000))

    loop = None

    def serve(handler, call):
        nonlocal loop
        n = call["n"]
        current.request = call["id"]
        try:
            value = handler(call["event"], Context(call))
            if inspect.isawaitable(value):
                if loop is None:
                    import asyncio
                    loop = asyncio.new_event_loop()
                value = loop.run_until_complete(value)
        except SystemExit as e:
            leave(code_of(e))
        except BaseException as e:
            if os.getpid() != pid:
                os._exit(1)
            try:
                message = str(e)
            except Exception:
                message = ""
            return fail("failed", type(e).__name__, message, frames_of(e, 1), n)
        if os.getpid() != pid:
            os._exit(0)  # a child that the handler forked, and that came back from it
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except Exception as e:
            return fail("broken", "Runtime.MarshalError", "Unable to marshal response: %s" % e, n=n)
        if len(text) > cfg["most"]:
            return fail("broken", "Function.ResponseSizeTooLarge", "Response payload size exceeded maximum allowed payload size (%d bytes)." % cfg["most"], n=n)
        say(b'"n":%d,"kind":"value","value":%s' % (n, text))

    text = b'{"kind":"up","exec":"%s"}' % os.path.basename(base).encode()
    put(out, b"\n" + sign(text) + b" " + text + b"\n")
    handler = load()
    if handler is None:
        leave(1)
    say(b'"kind":"ready"')
    while line := calls.readline():
        serve(handler, json.loads(line))
    leave(0)


main()
