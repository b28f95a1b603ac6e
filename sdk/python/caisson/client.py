"""The client: runs of their own, and what is not of one sandbox."""

from __future__ import annotations

import base64
import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from . import _server, types
from ._run import Asker, Connection, Input
from ._tools import tools_of
from ._transport import Transport
from .errors import DeniedError, InvalidError

Command = Union[str, Sequence[str]]
Files = Mapping[str, Union[str, bytes]]
OnOutput = Callable[[types.Output], Any]
Tools = Optional[Iterable[Union[Callable[..., Any], str]]]

_COMMAND = 'a text for a shell, or a list such as ["ls", "-l"]'
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size_of(value: Union[int, str]) -> int:
    """Read a size: a number of bytes, or a text such as "512m"."""
    if isinstance(value, (int, float)) and value == value and abs(value) != float("inf"):
        return int(value)
    text = value.strip().lower().rstrip("b").rstrip("i") if isinstance(value, str) else ""
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "")
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise InvalidError(f"{value!r} is no size", 'write a number of bytes, or one such as "512m"') from None


def _checked(name: str, value: Any, kind: Any, example: str) -> Any:
    """Return an option, where it is of a kind. Raises InvalidError."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InvalidError(f"{name} takes no {type(value).__name__}", f"write {example}")
    return value


def limits_of(memory: Union[int, str, None] = None, cpus: Optional[float] = None, pids: Optional[int] = None, disk: Union[int, str, None] = None) -> Dict[str, Any]:
    """Return limits as a server takes them; None is the server's default."""
    if cpus is not None:
        _checked("cpus=", cpus, (int, float), "cpus=0.5")
    given = {"memory_bytes": memory and size_of(memory), "cpus": cpus, "pids": pids, "workspace_bytes": disk and size_of(disk)}
    return {k: v for k, v in given.items() if v is not None}


def env_of(env: Optional[Mapping[str, str]]) -> List[str]:
    """Return an environment as a server takes it."""
    for k, v in _checked("env=", env or {}, Mapping, 'env={"NAME": "value"}').items():
        if v is None:
            raise InvalidError(f"the variable {k} is None", "give a text, or leave it out")
    return [f"{k}={v}" for k, v in (env or {}).items()]


def file_of(path: str, content: Union[str, bytes], mode: int = 0o644) -> Dict[str, Any]:
    """Return a file as a server takes it."""
    _checked(f"the content of {path}", content, (str, bytes, bytearray, memoryview), 'files={"name": "content"}, or bytes')
    content = content.encode() if isinstance(content, str) else bytes(content)
    data = {"data_base64": base64.b64encode(content).decode()} if content else {"data": ""}
    return {"path": path, **data, "mode": mode}


# Packages of Python whose name in Debian is not python3- and their own.
_DEBIAN = {
    "attrs": "attr", "beautifulsoup4": "bs4", "opencv-python": "opencv", "pillow": "pil", "psycopg2-binary": "psycopg2", "python-dateutil": "dateutil",
    "pyyaml": "yaml", "pyzmq": "zmq", "scikit-image": "skimage", "scikit-learn": "sklearn",
}  # fmt: skip


def packages_of(language: str, packages: Iterable[str]) -> List[str]:
    """Return the Debian packages that packages of a language are. Raises InvalidError."""
    if isinstance(packages, str):
        raise InvalidError("packages= takes a list", f"write packages=[{packages!r}]")
    found = []
    for name in packages:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]+", name):
            raise InvalidError(f"{name!r} is no name of a package", "leave versions and extras out: there is one of each, Debian's; or name an image of your own by image=")
        name = name.lower().replace("_", "-")
        if language.split("@")[0] == "python" and not name.startswith("python3-"):
            name = "python3-" + _DEBIAN.get(name, name)
        found.append(name)
    return sorted(set(found))


def run_of(command: Optional[Command] = None, **options: Any) -> Dict[str, Any]:
    """Return a run as a server takes it. A command that is one text is for a shell.

    Options have the names of :meth:`Client.run`; those that are None are left out.
    """
    run: Dict[str, Any] = {k: v for k, v in options.items() if v is not None and k not in ("timeout", "env", "files", "cwd", "max_output", "limits")}
    if "code" not in options and "text" not in options and not _checked("a command", command, (str, list, tuple), _COMMAND):
        raise InvalidError("an empty command", "write " + _COMMAND)
    if "artifacts" in run:
        run["artifacts"] = list(_checked("artifacts=", run["artifacts"], (list, tuple), 'artifacts=["out/**"]'))
    if isinstance(command, str):
        run.update(code=command, language=options.get("language") or "shell")
    elif command is not None:
        run["command"] = [str(c) for c in command]
    if options.get("timeout") is not None:
        if not 0 < _checked("timeout=", options["timeout"], (int, float), "seconds: timeout=20") < 1e10:
            raise InvalidError(f"a timeout of {options['timeout']} s", "give seconds above 0, or None for the server's default")
        run["timeout_ms"] = options["timeout"] * 1000
    if options.get("env"):
        run["env"] = env_of(options["env"])
    if options.get("cwd"):
        run["dir"] = options["cwd"]
    if options.get("files"):
        files = _checked("files=", options["files"], Mapping, 'files={"name": "content"}')
        run["files"] = [file_of(k, v) for k, v in files.items()]
    if options.get("max_output") is not None:
        run["output_max_bytes"] = size_of(options["max_output"])
    if options.get("limits"):
        run["limits"] = options["limits"]
    return run


class Running:
    """A run that goes on: iterated over, it yields its output as it comes.

    ``result`` is there once it has ended. As a context manager, or by :meth:`cancel`, it
    ends with its caller.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pieces = iter(connection)

    def __iter__(self) -> Iterator[types.Output]:
        yield from self._pieces

    def wait(self) -> types.Result:
        """Read what is left, and return the result. Raises DeniedError where it was refused."""
        for _ in self:
            pass
        return types.read(types.Result, self._connection.finish())

    @property
    def result(self) -> Optional[types.Result]:
        """The result, None while it runs or where there is none."""
        return types.read(types.Result, self._connection.result) if self._connection.result else None

    def cancel(self) -> None:
        """End it with everything that it started."""
        self._connection.close()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


class Client:
    """A server of caisson: the one that ``host`` or CAISSON_HOST names, else one of this user's own.

    Without a name ``caisson serve`` is started at the first call, for all processes of the
    user together, and ends with the last of them. A client is safe for concurrent use, and
    holds no connection while nothing is asked.
    """

    def __init__(self, host: str = "", token: str = "", *, on_approval: Optional[Asker] = None) -> None:
        address = _server.named(host, token)
        self.transport = Transport(lambda: address) if address else Transport(_server.private.address, _server.private.lost)
        self.on_approval = on_approval

    def begin(self, message: Dict[str, Any], *, stdin: Input = None, on_approval: Optional[Asker] = None, output: bool = True, tools: Tools = None, **more: Any) -> Connection:
        """Begin a run over a connection of its own."""
        return Connection(self.transport, message, stdin, on_approval or self.on_approval, output=output, tools=tools_of(tools), **more)

    def carry_out(
        self, message: Dict[str, Any], *, stdin: Input = None, on_approval: Optional[Asker] = None, on_output: Optional[OnOutput] = None, tools: Tools = None
    ) -> types.Result:
        """Carry out a run and return its result. Raises DeniedError where it was refused."""
        connection = self.begin(message, stdin=stdin, on_approval=on_approval, output=on_output is not None, tools=tools)
        try:
            for piece in connection:
                if on_output:
                    on_output(piece)
            return types.read(types.Result, connection.finish())
        finally:
            connection.close()

    def run(
        self,
        command: Command,
        *,
        language: Optional[str] = None,
        image: Optional[str] = None,
        files: Optional[Files] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Input = None,
        timeout: Optional[float] = None,
        memory: Union[int, str, None] = None,
        cpus: Optional[float] = None,
        pids: Optional[int] = None,
        network: Any = None,
        artifacts: Optional[Sequence[str]] = None,
        approve: Optional[str] = None,
        warm: bool = False,
        program: bool = False,
        runtime: Optional[str] = None,
        tools: Tools = None,
        on_approval: Optional[Asker] = None,
        on_output: Optional[OnOutput] = None,
    ) -> types.Result:
        """Run a command once, in a sandbox of its own: a list is one program, a text a shell's.

        ``warm`` forks a Python that runs in place of starting one. ``tools`` are functions of
        this program that it may call, see :func:`caisson.tool`, and names of the server's
        own; without, it may call all of those. ``program`` has code of Python or Node return a
        value, by return at top level or as its last expression: see :attr:`Result.value`. Raises DeniedError where policy or a person
        refuses.
        """
        run = run_of(
            command, language=language, image=image, files=files, env=env, cwd=cwd, timeout=timeout, network=network,
            limits=limits_of(memory, cpus, pids), artifacts=artifacts, approve=approve, runtime=runtime, warm=warm or None, program=program or None,
        )  # fmt: skip
        return self.carry_out({"run": run}, stdin=stdin, on_approval=on_approval, on_output=on_output, tools=tools)

    def run_code(self, code: str, language: str = "python", **options: Any) -> types.Result:
        """Run code once, with the options of :meth:`run`.

        What was refused is a result too, with the status ``rejected``: this is the shape
        that agents use.
        """
        _checked("language=", language, str, 'language="python"')
        return refused_as_result(lambda: self.run(code, language=language, **options))

    def test(self, solution: Union[str, Mapping[str, str]], tests: Union[str, Mapping[str, str], None] = None, **options: Any) -> types.TestReport:
        """Judge a solution by tests, or by ``cases`` of input and expected output; see docs/testing.md.

        Options are the fields of an exercise, such as ``language``, ``function``, ``compare``.
        """
        body = {"solution": solution, "tests": tests, **options}
        if "timeout" in body:
            body["timeout_ms"] = body.pop("timeout") * 1000
        answer = self.transport.json("POST", "/v1/tests", body={k: v for k, v in body.items() if v is not None})
        return types.read(types.TestReport, {**answer, "raw": answer})

    def ensure(self, language: str, on_progress: Optional[Callable[[types.Progress], Any]] = None) -> None:
        """Have the image of a language present, and tell of its making."""
        for event in self.transport.events("POST", "/v1/images/ensure", body={"name": language}):
            if event.name == "progress" and on_progress:
                on_progress(types.read(types.Progress, event.data))

    def check(self, code: str, language: str = "python") -> types.Decision:
        """Judge code without running it."""
        return types.read(types.Decision, self.transport.json("POST", "/v1/policy/check", body={"language": language, "code": code}))

    def approvals(self, state: str = "pending") -> List[types.Approval]:
        """Return the questions in a state."""
        return [types.read(types.Approval, item) for item in self.transport.pages("/v1/approvals", {"state": state})]

    def answer(self, approval: Union[str, types.Approval], approve: bool, *, always: bool = False, by: str = "python", note: str = "") -> types.Approval:
        """Answer a question, of whomever."""
        number = approval if isinstance(approval, str) else approval.id
        body = {"approve": approve, "always": always, "by": by, "note": note}
        return types.read(types.Approval, self.transport.json("POST", f"/v1/approvals/{number}/answer", body=body))

    def image_of(self, language: str, image: Optional[str] = None, packages: Optional[Iterable[str]] = None) -> Optional[str]:
        """Return the image with packages beside the language's own; None is the language's. The server makes it at first use."""
        if packages is None:
            return image
        if image:
            raise InvalidError("packages= are put beside a language's own, and image= is another", "give one of them")
        for known in self.transport.pages("/v1/languages"):
            if language in (known["name"], *known.get("aliases", [])):
                names = packages_of(known["name"], packages)
                return "_".join([known["image"], *names]) if names else None
        raise InvalidError(f"unknown language {language!r}", "see what there is with: caisson languages")

    def sessions(self) -> List[str]:
        """Return the names of the sessions that there are."""
        return [item["name"] for item in self.transport.pages("/v1/sessions")]


def refused_as_result(run: Callable[[], types.Result]) -> types.Result:
    """Return what run returns; what policy refused is a result."""
    try:
        return run()
    except DeniedError as e:
        if not e.result:
            raise
        return types.read(types.Result, {**e.result, "decision": e.decision or e.result.get("decision")})
