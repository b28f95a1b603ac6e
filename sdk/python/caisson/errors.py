"""What goes wrong, by kind: one class for each kind that a server tells."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type


class CaissonError(Exception):
    """An error with its kind, what was the matter, and a hint at what to do next.

    ``result`` is what came of the call nonetheless, in the form of the server's, and
    ``decision`` policy's word where it refused.
    """

    kind = "internal"

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        request_id: str = "",
        decision: Optional[Mapping[str, Any]] = None,
        result: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.request_id = request_id
        self.decision = decision
        self.result = result

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message


class InternalError(CaissonError):
    """A fault of caisson's own."""


class InvalidError(CaissonError):
    """The request is wrong and will stay so."""

    kind = "invalid"


class NotFoundError(CaissonError):
    """What was named does not exist."""

    kind = "not_found"


class ConflictError(CaissonError):
    """It exists already, or is in a state that forbids this."""

    kind = "conflict"


class DeniedError(CaissonError):
    """Policy, a person, or a permission said no."""

    kind = "denied"


class ExhaustedError(CaissonError):
    """A limit or a resource is used up."""

    kind = "exhausted"


class UnsupportedError(CaissonError):
    """This engine, kernel or runtime cannot do it."""

    kind = "unsupported"


class UnavailableError(CaissonError):
    """The server, the engine or the agent cannot be reached now."""

    kind = "unavailable"


class TimedOutError(CaissonError):
    """A step of caisson's own took too long; not a program's timeout."""

    kind = "timed_out"


class CanceledError(CaissonError):
    """The caller gave up."""

    kind = "canceled"


class CommandError(CaissonError):
    """A program failed where :meth:`Result.check` asked that it does not."""

    kind = "conflict"


_KINDS: Dict[str, Type[CaissonError]] = {
    c.kind: c
    for c in (
        InternalError, InvalidError, NotFoundError, ConflictError, DeniedError, ExhaustedError,
        UnsupportedError, UnavailableError, TimedOutError, CanceledError,
    )
}  # fmt: skip


def from_problem(problem: Mapping[str, Any]) -> CaissonError:
    """Make the error that a server's answer tells of."""
    cls = _KINDS.get(str(problem.get("kind")), InternalError)
    return cls(
        str(problem.get("message") or problem.get("kind") or "the server told no reason"),
        str(problem.get("hint") or ""),
        request_id=str(problem.get("request_id") or ""),
        decision=problem.get("decision"),
        result=problem.get("result"),
    )
