"""Runs a call in a sandbox: the text that is handed in with it, beside call, data and values.

It is read as a text and runs nowhere else. What it writes is judged by nobody: the host
decodes it as data, whoever has written it.
"""

import asyncio
import inspect
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
values = sys.modules.get("_caisson_values")  # a warm interpreter's, which may be of another version
with open(os.path.join(HERE, "caisson_values.py"), "rb") as f:
    if values is None or values.text != f.read():
        import caisson_values as values
sys.modules["caisson_values"] = values
RESULT = "/workspace/.caisson-result"
PID = os.getpid()


def main():
    # What the function patches later, this has already.
    write, leave, encode, problem_of = _write, os._exit, values.encode, _problem_of
    with open(os.path.join(HERE, "caisson_call.bin"), "rb") as f:
        message = f.read()
    known, options = {}, values.decode(message[: int.from_bytes(message[-8:], "big")])
    if options["quiet"]:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    try:
        import caisson_call as module

        known = {name: _at(module, name) for name in options["classes"]}
        given = values.decode(message[int.from_bytes(message[-8:], "big") : -8], known, options["limit"])
        for name, value in given["data"].items():
            setattr(module, name, value)
        function = _at(module, options["function"])
        outcome = function(*given["args"], **given["kwargs"])
        if inspect.iscoroutine(outcome):
            outcome = asyncio.run(outcome)
        if options["protocol"] is None:
            answer = encode({"result": outcome}, known, options["limit"])
        else:
            import pickle

            answer = encode({"object": pickle.dumps(outcome, options["protocol"])}, {}, options["limit"])
    except BaseException as e:
        answer = encode(problem_of(e), {}, options["limit"])
    if os.getpid() != PID:
        leave(0)  # a child that the function forked has no word in this
    write(RESULT, answer)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the function has closed it
    leave(0)  # threads that the function has left would hold this up


def _at(module, path):
    found = module
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _write(path, content):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    while content:
        content = content[os.write(fd, content[: 1 << 24]) :]
    os.close(fd)


def _problem_of(e):
    """Describe an exception, whatever its own methods do."""
    try:
        message = str(e)
    except BaseException as worse:
        message = "(its __str__ raised %s)" % type(worse).__name__
    try:
        args = list(e.args)
        values.encode(args)
    except BaseException:
        args = [message]
    try:
        lines = traceback.format_exception(type(e), e, e.__traceback__)
    except BaseException:
        lines = ["Traceback (most recent call last):\n", *traceback.format_tb(e.__traceback__), type(e).__name__ + "\n"]
    return {"error": type(e).__qualname__, "module": type(e).__module__, "message": message[:100000], "args": args, "traceback": "".join(lines)[-200000:]}


main()
