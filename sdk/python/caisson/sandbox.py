"""A sandbox that lasts: a session of the server's, with its files, shells and changes."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union
from urllib.parse import quote

from . import types
from ._execs import Exec
from ._run import Asker, Input, pieces_of
from .client import Client, Command, Files as FilesGiven, OnOutput, Running, Tools, env_of, limits_of, refused_as_result, run_of
from .errors import InvalidError, NotFoundError


class Files:
    """The workspace of a sandbox. Paths are relative to it; nothing leads out of it."""

    def __init__(self, sandbox: "Sandbox") -> None:
        self._sandbox = sandbox

    def _ask(self, method: str, tail: str, query: Optional[Mapping[str, Any]] = None, body: Any = None) -> Any:
        return self._sandbox._ask(method, "/files" + tail, query, body)

    def write(self, path: str, content: Union[str, bytes, IO[bytes]], mode: int = 0o644) -> int:
        """Write a file, of any size, and return how many bytes were taken."""
        if isinstance(content, str):
            content = content.encode()
        transport, where = self._sandbox.client.transport, self._sandbox.path("/files/content")
        with transport.open("PUT", where, {"path": path, "mode": f"{mode:o}"}, content, {"Content-Type": "application/octet-stream"}) as answer:
            return int(json.load(answer)["bytes"])

    def read(self, path: str, offset: int = 0, length: Optional[int] = None) -> bytes:
        """Read a file, or a part of it."""
        return b"".join(self.chunks(path, offset, length))

    def read_text(self, path: str) -> str:
        """Read a file in UTF-8."""
        return self.read(path).decode()

    def chunks(self, path: str, offset: int = 0, length: Optional[int] = None) -> Iterator[bytes]:
        """Yield a file piece by piece, for one that is too large for memory."""
        query = {"path": path, "offset": offset or None, "length": length}
        with self._sandbox.client.transport.open("GET", self._sandbox.path("/files/content"), query) as answer:
            while True:
                piece = answer.read(1 << 20)
                if not piece:
                    return
                yield piece

    def download(self, path: str, to: "str | os.PathLike[str]") -> Path:
        """Copy a file to this machine; one that fails half-way leaves nothing."""
        target = Path(to)
        fd, name = tempfile.mkstemp(prefix=".caisson-", dir=target.parent)
        try:
            with open(fd, "wb") as f:
                for piece in self.chunks(path):
                    f.write(piece)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
        return target

    def upload(self, source: "str | os.PathLike[str]", path: str) -> int:
        """Copy a file of this machine into the workspace."""
        with open(source, "rb") as f:
            return self.write(path, f)

    def list(self, path: str = ".", depth: int = 1) -> List[types.FileInfo]:
        """Return what is below a folder."""
        items = self._ask("GET", "/tree", {"path": path, "depth": depth})["items"]
        return [types.read(types.FileInfo, item) for item in items or []]

    def stat(self, path: str) -> types.FileInfo:
        """Return one entry. Raises NotFoundError."""
        return types.read(types.FileInfo, self._ask("GET", "/stat", {"path": path}))

    def exists(self, path: str) -> bool:
        """Report whether something is there."""
        try:
            self.stat(path)
        except NotFoundError:
            return False
        return True

    def mkdir(self, path: str, mode: int = 0o755) -> None:
        """Make a folder."""
        self._ask("POST", "/mkdir", {"path": path, "mode": f"{mode:o}"})

    def move(self, old: str, new: str) -> None:
        """Give an entry another name."""
        self._ask("POST", "/move", {"from": old, "to": new})

    def remove(self, path: str, recursive: bool = False) -> None:
        """Remove an entry."""
        self._ask("DELETE", "", {"path": path, "recursive": recursive})


class Shell:
    """A shell whose folder, variables and functions stay from one text to the next."""

    def __init__(self, sandbox: "Sandbox", name: str) -> None:
        self._sandbox, self.name = sandbox, name

    def run(
        self, text: str, *, timeout: Optional[float] = None, stdin: Input = None, expect: Sequence[Mapping[str, Any]] = (),
        on_output: Optional[OnOutput] = None, on_approval: Optional[Asker] = None,
    ) -> types.Result:  # fmt: skip
        """Run a text. ``expect`` answers what it asks: ``[{"pattern": "Name: $", "reply": "Ann\\n"}]``."""
        run = run_of(timeout=timeout, text=text, expect=[dict(e) for e in expect] or None)
        message = {"session": self._sandbox.name, "shell": self.name, "shell_run": run}
        return self._sandbox.client.carry_out(message, stdin=stdin, on_output=on_output, on_approval=on_approval or self._sandbox.on_approval)

    def close(self) -> None:
        """Close it with everything that it started."""
        self._sandbox._ask("DELETE", f"/shells/{quote(self.name, safe='')}")

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        except NotFoundError:
            pass  # a text has ended it


class Sandbox:
    """A sandbox that lasts from ``with`` to its end; see :class:`caisson.Client` for where.

    Sizes are bytes or texts such as "512m", times seconds. ``timeout`` is for each exec
    that has none of its own. With ``keep`` the session stays, and ``Sandbox(name=...,
    attach=True)`` takes one up that there is. ``on_approval`` is called with an
    :class:`Approval` where policy asks, and returns True, False or "always". ``packages``
    are there beside the language's own: see :func:`caisson.sandbox_run`.
    """

    def __init__(
        self,
        language: str = "python",
        *,
        name: str = "",
        image: Optional[str] = None,
        timeout: Optional[float] = None,
        memory: Union[int, str, None] = None,
        cpus: Optional[float] = None,
        pids: Optional[int] = None,
        disk: Union[int, str, None] = None,
        network: Any = None,
        env: Optional[Mapping[str, str]] = None,
        idle: Optional[float] = None,
        ttl: Optional[float] = None,
        labels: Optional[Mapping[str, str]] = None,
        runtime: Optional[str] = None,
        files: Optional[FilesGiven] = None,
        packages: Optional[Sequence[str]] = None,
        keep: bool = False,
        attach: bool = False,
        client: Optional[Client] = None,
        on_approval: Optional[Asker] = None,
        on_progress: Optional[Callable[[types.Progress], Any]] = None,
    ) -> None:
        if attach and not name:
            raise InvalidError("which sandbox?", "name the session to attach to")
        self.client = client or Client()
        self.name, self.language, self.timeout = name, language, timeout
        self.on_approval, self._on_progress = on_approval, on_progress
        self._keep, self._attach, self._open, self._given = keep or attach, attach, False, files
        asked = {
            "name": name or None, "language": language, "image": image, "network": network, "runtime": runtime,
            "limits": limits_of(memory, cpus, pids, disk) or None, "env": env_of(env) or None, "labels": dict(labels or {}) or None,
            "idle_ms": idle and idle * 1000, "ttl_ms": ttl and ttl * 1000,
        }  # fmt: skip
        self._asked, self._packages = {k: v for k, v in asked.items() if v is not None}, packages
        self.files = Files(self)

    def start(self) -> "Sandbox":
        """Create it, or take up the one that there is; ``with`` does so."""
        if self._attach:
            found = self.client.transport.json("GET", f"/v1/sessions/{quote(self.name, safe='')}")
            self.language = found["language"]
        else:
            image = self.client.image_of(self.language, self._asked.get("image"), self._packages)
            if self._on_progress:
                self.client.ensure(image or self.language, self._on_progress)
            if image:
                self._asked["image"] = image
            self.name = self.client.transport.json("POST", "/v1/sessions", body=self._asked)["name"]
        self._open = True
        try:
            for path, content in (self._given or {}).items():
                self.files.write(path, content)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Remove it with its workspace and all that runs in it, unless it is kept; again does nothing."""
        if not self._open:
            return
        self._open = False
        if not self._keep:
            try:
                self.remove()
            except NotFoundError:
                pass  # somebody else has removed it, or its time was over

    def remove(self) -> None:
        """Remove it, also where it is kept."""
        self._open = False
        self.client.transport.json("DELETE", self._path(), {"force": True})

    def __enter__(self) -> "Sandbox":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _path(self, tail: str = "") -> str:
        return f"/v1/sessions/{quote(self.name, safe='')}{tail}"

    def path(self, tail: str = "") -> str:
        """Return the path of a call about this sandbox. Raises InvalidError before its start."""
        if not self._open:
            raise InvalidError("the sandbox is not open", "use it inside of: with Sandbox() as sb")
        return self._path(tail)

    def _ask(self, method: str, tail: str, query: Optional[Mapping[str, Any]] = None, body: Any = None) -> Any:
        return self.client.transport.json(method, self.path(tail), query, body)

    def _run(self, command: Optional[Command], options: Dict[str, Any]) -> Dict[str, Any]:
        self.path()
        options["timeout"] = options["timeout"] if options.get("timeout") is not None else self.timeout
        return {"session": self.name, "run": run_of(command, **options)}

    def run(
        self,
        command: Command,
        *,
        language: Optional[str] = None,
        files: Optional[FilesGiven] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Input = None,
        timeout: Optional[float] = None,
        max_output: Union[int, str, None] = None,
        artifacts: Optional[Sequence[str]] = None,
        track: Optional[str] = None,
        approve: Optional[str] = None,
        warm: bool = False,
        program: bool = False,
        tools: Tools = None,
        on_output: Optional[OnOutput] = None,
        on_approval: Optional[Asker] = None,
    ) -> types.Result:
        """Run a command: a list is one program, a text a shell's. Raises DeniedError where it is refused.

        ``warm`` forks a Python that runs in place of starting one, ``tools`` are functions
        that it may call, ``program`` has it return a value: see :meth:`Client.run`.
        """
        message = self._run(command, {
            "language": language, "files": files, "env": env, "cwd": cwd, "timeout": timeout, "max_output": max_output,
            "artifacts": artifacts, "track": track, "approve": approve, "warm": warm or None, "program": program or None,
        })  # fmt: skip
        return self.client.carry_out(message, stdin=stdin, on_output=on_output, on_approval=on_approval or self.on_approval, tools=tools)

    def run_code(self, code: str, language: str = "", **options: Any) -> types.Result:
        """Run code of the sandbox's language, or of another, with the options of :meth:`run`.

        What was refused is a result too, with the status ``rejected``.
        """
        return refused_as_result(lambda: self.run(code, language=language or self.language, **options))

    def exec(self, command: Command, *, stream: bool = False, background: bool = False, **options: Any) -> "Union[types.Result, Running, Exec]":
        """Run a command as :meth:`run` does; or have its output as it comes, or have it go on by itself.

        With ``stream`` it returns a :class:`Running`, with ``background`` an :class:`Exec`,
        whose standard input ``input=True`` keeps open.
        """
        if not stream and not background:
            return self.run(command, **options)
        stdin, on_approval, tools = options.pop("stdin", None), options.pop("on_approval", None) or self.on_approval, options.pop("tools", None)
        self.path()
        # The sandbox's own timeout is for what is waited for.
        message = {"session": self.name, "run": run_of(command, **options), "start": True} if background else self._run(command, options)
        if stream:
            return Running(self.client.begin(message, stdin=stdin, on_approval=on_approval, tools=tools))
        if stdin is not None:
            raise InvalidError("what goes on by itself has no standard input of its caller's", "give input=True, and write to it")
        record = self.client.begin(message, on_approval=on_approval, output=False, tools=tools).finish()
        return Exec(self, types.read(types.ExecRecord, record))

    def execs(self, running: bool = False) -> List[types.ExecRecord]:
        """Return the execs that run, and those in the background that have ended."""
        query = {"session": self.name, "running": running}
        return [types.read(types.ExecRecord, item) for item in self.client.transport.pages("/v1/execs", query)]

    def shell(self, name: str = "", *, kind: Optional[str] = None, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None) -> Shell:
        """Open a shell: kind is bash, sh or python."""
        body = {"name": name, "kind": kind, "dir": cwd, "env": env_of(env) or None}
        opened = self._ask("POST", "/shells", body={k: v for k, v in body.items() if v})
        return Shell(self, opened["name"])

    def changes(self, exec_id: str = "", exact: bool = False) -> List[types.ChangeRecord]:
        """Return what execs changed in the workspace, the oldest first."""
        return [types.read(types.ChangeRecord, item) for item in self.client.transport.pages(self.path("/changes"), {"exec": exec_id, "exact": exact})]

    def diff(self, exec_id: str = "") -> types.Changes:
        """Return what differs since the beginning, or what one exec changed, with texts."""
        items = self.client.transport.pages(self.path("/diff"), {"exec": exec_id})
        return types.Changes(types.read(types.FileChange, item) for item in items)

    def undo(self, exec_id: Union[str, types.Result], *, since: bool = False, force: bool = False) -> types.Undone:
        """Take back what an exec changed, or all since before it."""
        number = exec_id if isinstance(exec_id, str) else exec_id.exec_id
        return types.read(types.Undone, self._ask("POST", "/undo", body={"exec": number, "since": since, "force": force}))

    def snapshot(self, name: str = "") -> types.Snapshot:
        """Keep the workspace as it is; what runs has to have ended."""
        return types.read(types.Snapshot, self._ask("POST", "/snapshots", body={"name": name} if name else {}))

    def restore(self, snapshot: Union[str, types.Snapshot]) -> None:
        """Make the workspace what a snapshot kept."""
        number = snapshot if isinstance(snapshot, str) else snapshot.id
        self._ask("POST", f"/snapshots/{quote(number, safe='')}/restore")

    def fork(self, name: str = "", *, snapshot: Union[str, types.Snapshot] = "", keep: bool = False) -> "Sandbox":
        """Return a sandbox of its own with a copy of the workspace; use it as a context manager, or close it."""
        number = snapshot if isinstance(snapshot, str) else snapshot.id
        body = {k: v for k, v in {"name": name, "snapshot": number}.items() if v}
        made = self._ask("POST", "/fork", body=body)["session"]["name"]
        fork = Sandbox(self.language, name=made, attach=True, timeout=self.timeout, client=self.client, on_approval=self.on_approval)
        fork._keep = keep
        return fork.start()

    def test(self, solution: Union[str, Mapping[str, str]], tests: Union[str, Mapping[str, str], None] = None, **options: Any) -> types.TestReport:
        """Judge a solution by tests; it runs in a sandbox of its own, with nothing of this one's."""
        return self.client.test(solution, tests, **{"language": self.language, **options})

    def pause(self) -> None:
        """Freeze what runs in it."""
        self._ask("POST", "/pause")

    def resume(self) -> None:
        """Let it go on."""
        self._ask("POST", "/resume")

    def __repr__(self) -> str:
        return f"<Sandbox {self.name or 'not started'}, {self.language}>"
