"""caisson: run code that nobody has read yet, in sandboxes.

    from caisson import Sandbox

    with Sandbox() as sb:
        print(sb.run_code("print(6 * 7)").stdout)

It speaks with the server that CAISSON_HOST names; without one it starts ``caisson serve``
by itself, for as long as somebody uses it.
"""

from .aio import AsyncClient, AsyncSandbox
from .client import Client, Running
from ._tools import Tool, tool
from .errors import (
    CaissonError,
    CanceledError,
    CommandError,
    ConflictError,
    DeniedError,
    ExhaustedError,
    InternalError,
    InvalidError,
    NotFoundError,
    TimedOutError,
    UnavailableError,
    UnsupportedError,
)
from .functions import CallTimeout, CrashedError, Outcome, RemoteError, SandboxExecutor, SandboxFunction, sandbox_run
from .sandbox import Exec, Files, Sandbox, Shell
from .types import Approval, Artifact, ChangeRecord, Changes, Decision, FileChange, FileInfo, Finding, Output, ProgramError, ProgramResult, Progress, Result, Snapshot, TestReport, ToolCall
from .values import ValueFormatError

__version__ = "0.1.0"
__all__ = [
    "Approval", "Artifact", "AsyncClient", "AsyncSandbox", "CaissonError", "CallTimeout", "CanceledError", "ChangeRecord", "Changes", "Client",
    "CommandError", "ConflictError", "CrashedError", "Decision", "DeniedError", "Exec", "ExhaustedError", "FileChange", "FileInfo", "Files",
    "Finding", "InternalError", "InvalidError", "NotFoundError", "Outcome", "Output", "ProgramError", "ProgramResult", "Progress", "RemoteError", "Result", "Running", "Sandbox",
    "SandboxExecutor", "SandboxFunction", "Shell", "Snapshot", "TestReport", "TimedOutError", "Tool", "ToolCall", "UnavailableError", "UnsupportedError",
    "ValueFormatError", "sandbox_run", "tool",
]  # fmt: skip
