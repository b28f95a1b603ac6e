"""Runs a call in a sandbox: the text that is handed in with it, beside call, data and values.

It is read as a text and runs nowhere else. What it writes is judged by nobody: the host
decodes it as data, whoever has written it.
"""

import array
import asyncio
import fcntl
import inspect
import os
import socket
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
values = sys.modules.get("_caisson_values")  # a warm interpreter's, which may be of another version
with open(os.path.join(HERE, "caisson_values.py"), "rb") as f:
    if values is None or values.text != f.read():
        import caisson_values as values
sys.modules["caisson_values"] = values
PID = os.getpid()


def main():
    # What the function patches later, this has already.
    hand_back, leave, encode, problem_of = _hand_back, os._exit, values.pieces, _problem_of
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
    hand_back(answer)
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


def _hand_back(pieces):
    """Hand the answer to the sandbox's agent, as a file that nobody can change any more."""
    fd = os.memfd_create("answer", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    for piece in pieces:
        left = memoryview(piece)
        while left:
            left = left[os.write(fd, left) :]
    fcntl.fcntl(fd, 1033, 15)  # F_ADD_SEALS: of itself, shrinking, growing and writing
    to = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    to.connect(HERE + "/answer.sock")
    to.sendmsg([b"a"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    if to.recv(1) != b"\x01":
        raise OSError("the answer was not taken: there was one before, or it is too large")


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
