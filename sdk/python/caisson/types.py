"""What calls return: plain data, read from a server's JSON by :func:`read`."""

from __future__ import annotations

import base64
import functools
import html
import os
import typing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar

from .errors import CommandError, InvalidError

T = TypeVar("T")


@functools.lru_cache(maxsize=None)
def _plan(cls: type) -> List[Tuple[str, str, bool, Optional[Callable[[Any], Any]]]]:
    """Return a class's fields: its name and its key in JSON, whether it is of bytes, and else what makes it."""
    hints = typing.get_type_hints(cls)
    return [(f.name, f.metadata.get("key", f.name), hints[f.name] in (bytes, Optional[bytes]), _maker(hints[f.name])) for f in fields(cls)]


def _maker(hint: Any) -> Optional[Callable[[Any], Any]]:
    """Return what makes a value of a type from JSON; None is as it stands."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        return _maker(args[0])
    if origin is list:
        each = _maker(args[0])
        return (lambda items: [each(item) for item in items]) if each else list
    return functools.partial(read, hint) if hasattr(hint, "__dataclass_fields__") else None


def read(cls: Type[T], data: Mapping[str, Any]) -> T:
    """Make a dataclass from an object of JSON.

    Fields that the object lacks have their default, and what the class does not know
    is left out, so that a newer server does no harm. A field of bytes is read from the
    text of its name, or from base64 beside it.
    """
    values: Dict[str, Any] = {}
    for name, key, binary, make in _plan(cls):
        given = data.get(key)
        if binary:
            if data.get(key + "_base64") is not None:
                values[name] = base64.b64decode(data[key + "_base64"])
            elif given is not None:
                values[name] = given.encode()
        elif given is not None:
            values[name] = make(given) if make else given
    return cls(**values)


def table(head: List[str], rows: List[List[str]]) -> str:
    """Write a table in HTML; every text is escaped, since it may be a stranger's."""
    def line(tag: str, cells: List[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"


@dataclass(frozen=True)
class Finding:
    """What policy found in what was to be run."""

    id: str
    title: str = ""
    severity: str = ""
    category: str = ""
    verdict: str = ""
    contained: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    message: str = ""
    remediation: str = ""


@dataclass(frozen=True)
class Decision:
    """Policy's word about a run: ``verdict`` is allow, ask or deny."""

    verdict: str = ""
    level: str = ""
    findings: List[Finding] = field(default_factory=list)
    policy_revision: str = ""
    refused: str = ""


@dataclass(frozen=True)
class FileChange:
    """What an exec did to one path: ``op`` is created, modified, deleted, renamed or mode."""

    path: str
    op: str = ""
    kind: str = ""
    size: int = 0
    size_before: int = 0
    by: str = ""
    old_path: str = field(default="", metadata={"key": "from"})
    mode: int = 0
    sha256: str = ""
    diff: str = ""
    added: int = 0
    removed: int = 0
    note: str = ""


class Changes(List[FileChange]):
    """A list of changes, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return table(
            ["change", "path", "size", "before", "by"],
            [[c.op, f"{c.old_path} → {c.path}" if c.old_path else c.path, str(c.size), str(c.size_before), c.by] for c in self],
        )


@dataclass(frozen=True)
class ChangeRecord:
    """What one exec changed, or the session between two."""

    id: int = 0
    exec_id: str = ""
    time: str = ""
    undoes: List[int] = field(default_factory=list)
    partial: str = ""
    changes: List[FileChange] = field(default_factory=list)

    def _repr_html_(self) -> str:
        return Changes(self.changes)._repr_html_()


@dataclass(frozen=True)
class Undone:
    """What came of an undo; ``skipped`` are old contents that were not kept."""

    record: ChangeRecord = field(default_factory=ChangeRecord)
    skipped: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Artifact:
    """A file that a run has left to be collected.

    ``data`` is None where it was not carried; ``left`` says why. The path is the
    sandbox's word: :meth:`save` refuses one that leads out of the folder.
    """

    path: str
    size: int = 0
    type: str = ""
    left: str = ""
    data: Optional[bytes] = None

    def save(self, folder: "str | os.PathLike[str]") -> Path:
        """Write the content below a folder and return where. A link there is not followed."""
        if self.data is None:
            raise InvalidError(f"the content of {self.path!r} is not here: {self.left}", "read it by files.read while the sandbox lives")
        target = Path(folder)
        parts = self.path.split("/")
        if any(p in ("", ".", "..") or "\0" in p or os.sep in p or (os.altsep or "\0") in p for p in parts):
            raise InvalidError(f"the path {self.path!r} leads out of the folder")
        target.mkdir(parents=True, exist_ok=True)
        for part in parts[:-1]:
            target = target / part
            if target.is_symlink():
                raise InvalidError(f"{str(target)!r} is a link", "save into an empty folder")
            target.mkdir(exist_ok=True)
        target = target / parts[-1]
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        with open(os.open(target, flags, 0o666), "wb") as f:
            f.write(self.data)
        return target


@dataclass(frozen=True)
class Usage:
    """What an exec used."""

    cpu_ms: int = 0
    wall_ms: int = 0
    peak_memory_bytes: int = 0
    processes_peak: int = 0


@dataclass(frozen=True)
class Truncated:
    """How many bytes of each stream are missing from a result."""

    stdout: int = 0
    stderr: int = 0


@dataclass(frozen=True)
class ProgramError:
    """Why a program has no value: ``kind`` is an exception's class, value, conflict, or how it ended."""

    kind: str = ""
    message: str = ""
    traceback: str = ""


@dataclass(frozen=True)
class ProgramResult:
    """What a program has returned."""

    success: bool = False
    value: Any = None
    error: Optional[ProgramError] = None


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool; ``error`` says why it had no result."""

    tool: str
    verdict: str = ""
    error_kind: str = ""
    error: str = ""
    arguments_bytes: int = 0
    result_bytes: int = 0
    duration_ms: float = 0


@dataclass(frozen=True)
class Result:
    """What came of a run. A program that ran and failed is a result, not an error.

    ``stdout`` and ``stderr`` are text, in which what is not UTF-8 is replaced;
    ``stdout_bytes`` and ``stderr_bytes`` are exact.
    """

    exec_id: str = ""
    session: str = ""
    language: str = ""
    exit_code: int = 0
    exit_reason: str = ""
    signal: str = ""
    cause: str = ""
    events: List[str] = field(default_factory=list)
    stdout_bytes: bytes = field(default=b"", metadata={"key": "stdout"})
    stderr_bytes: bytes = field(default=b"", metadata={"key": "stderr"})
    truncated: Truncated = Truncated()
    duration_ms: int = 0
    timed_out: bool = False
    oom_killed: bool = False
    usage: Usage = Usage()
    changes: List[FileChange] = field(default_factory=list)
    changes_error: str = ""
    artifacts: List[Artifact] = field(default_factory=list)
    artifacts_error: str = ""
    decision: Decision = Decision()
    replaced: bool = False
    warm: bool = False
    sandbox: str = ""
    image: str = ""
    runtime: str = ""
    not_enforced: List[str] = field(default_factory=list)
    calls: List[ToolCall] = field(default_factory=list)
    program: Optional[ProgramResult] = None

    @property
    def value(self) -> Any:
        """What a run with ``program=True`` returned; None of others."""
        return self.program.value if self.program else None

    @property
    def stdout(self) -> str:
        """Standard output as text."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with 0, and has its value where it was to return one."""
        return self.exit_reason == "exited" and self.exit_code == 0 and (self.program is None or self.program.success)

    @property
    def status(self) -> str:
        """``success``, ``error``, or ``rejected`` where policy or a person refused it."""
        return "success" if self.ok else "rejected" if self.exit_reason == "denied" else "error"

    @property
    def error(self) -> str:
        """Why it is no success, in words; "" of one that is."""
        if self.ok:
            return ""
        if self.exit_reason == "denied":
            found = [f.message for f in self.decision.findings if f.verdict in ("ask", "deny", "")]
            return "; ".join([self.decision.refused] + found).strip("; ") or "refused"
        if self.program and self.program.error and self.exit_reason == "exited":
            return self.program.error.traceback or self.program.error.message
        return self.stderr.strip() or self.cause or f"ended by {self.exit_reason} with exit code {self.exit_code}"

    def check(self) -> "Result":
        """Return this result, or raise :class:`CommandError` where it is no success."""
        if not self.ok:
            raise CommandError(f"it ended by {self.exit_reason} with exit code {self.exit_code}: {self.error}", result=self)
        return self

    def to_dict(self) -> Dict[str, Any]:
        """Return what an agent is told: status, output, error and what goes with them."""
        return {
            "status": self.status,
            "stdout": self.stdout,
            "stderr": self.stderr,
            **({"value": self.value} if self.program else {}),
            "error": self.error,
            "exit_code": self.exit_code,
            "exit_reason": self.exit_reason,
            "duration_ms": self.duration_ms,
            "artifacts": [a.path for a in self.artifacts],
            "findings": [{"id": f.id, "message": f.message, "line": f.line, "remediation": f.remediation} for f in self.decision.findings],
        }

    def _repr_html_(self) -> str:
        colour = {"success": "#2a7", "rejected": "#b60"}.get(self.status, "#c33")
        parts = [f'<b style="color:{colour}">{self.status}</b> {html.escape(self.exit_reason)}, exit code {self.exit_code}, {self.duration_ms} ms']
        for text in (self.stdout, self.stderr if self.status != "rejected" else self.error):
            if text:
                parts.append(f"<pre>{html.escape(text)}</pre>")
        for a in self.artifacts:
            # Only formats that run nothing in the page: a picture in SVG could.
            if a.data is not None and a.type in ("image/png", "image/jpeg", "image/gif", "image/webp"):
                parts.append(f'<img alt="{html.escape(a.path)}" src="data:{a.type};base64,{base64.b64encode(a.data).decode()}">')
        if self.changes:
            parts.append(Changes(self.changes)._repr_html_())
        return "<div>" + "".join(parts) + "</div>"


@dataclass(frozen=True)
class Output:
    """A piece of an exec's output: ``stream`` is stdout or stderr."""

    stream: str
    data: bytes

    @property
    def text(self) -> str:
        """The piece as text."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class FileInfo:
    """One entry of a workspace: ``type`` is file, dir, link or other."""

    path: str
    type: str = ""
    size: int = 0
    mode: int = 0
    mtime: str = ""
    target: str = ""


@dataclass(frozen=True)
class Exit:
    """How an exec ended."""

    exit_code: int = 0
    exit_reason: str = ""
    signal: str = ""
    cause: str = ""


@dataclass(frozen=True)
class ExecRecord:
    """An exec of a session; ``exit`` is None while it runs."""

    id: str
    session: str = ""
    sandbox: str = ""
    argv: List[str] = field(default_factory=list)
    background: bool = False
    started: str = ""
    ended: str = ""
    exit: Optional[Exit] = None


@dataclass(frozen=True)
class Snapshot:
    """A kept workspace."""

    id: str
    name: str = ""
    created: str = ""
    copied: str = ""


@dataclass(frozen=True)
class Question:
    """What policy asks about: its texts are whole, and a stranger's."""

    kind: str = ""
    language: str = ""
    command: List[str] = field(default_factory=list)
    dir: str = ""
    image: str = ""
    texts: List[Dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Approval:
    """A question to a person about a run; an answer holds for its digest alone."""

    id: str
    digest: str = ""
    state: str = ""
    actor: str = ""
    session: str = ""
    question: Question = Question()
    decision: Decision = Decision()


@dataclass(frozen=True)
class Progress:
    """News of a long step, such as the making of an image."""

    ref: str = ""
    text: str = ""
    current_bytes: int = 0
    total_bytes: int = 0
    done: bool = False


@dataclass(frozen=True)
class TestOutcome:
    """What came of one test: ``outcome`` is passed, failed, error, skipped, timeout or crashed."""

    __test__ = False  # pytest collects what is named so

    id: str
    outcome: str = ""
    type: str = ""
    message: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class TestReport:
    """What came of a solution under test; ``raw`` is all that the server said."""

    __test__ = False

    all_passed: bool = False
    tests: List[TestOutcome] = field(default_factory=list)
    totals: Dict[str, int] = field(default_factory=dict)
    problems: List[Dict[str, Any]] = field(default_factory=list)
    trust: str = ""
    raw: Dict[str, Any] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return table(["test", "outcome", "message"], [[t.id, t.outcome, t.message] for t in self.tests])
