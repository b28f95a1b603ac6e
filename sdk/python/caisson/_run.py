"""A run over a WebSocket: standard input, output, questions and artifacts beside it."""

from __future__ import annotations

import itertools
import json
import mmap
import struct
import threading
from typing import IO, Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

from . import _mapped, types
from ._tools import Tool
from ._transport import Transport, _check_ended, scope
from .errors import CaissonError, CanceledError, DeniedError, UnavailableError, from_problem

PATH = "/v1/connect"
MAX_PIECE = 32 << 10
STDIN, STDOUT, STDERR = range(3)

Input = Union[str, bytes, IO[bytes], Iterable[bytes], None]
Asker = Callable[[types.Approval], Union[bool, str]]
ArtifactTaker = Callable[[types.Artifact], Optional[Callable[[bytes], Any]]]


def pieces_of(data: Input) -> Iterator[bytes]:
    """Yield what is given as input in pieces that may be sent."""
    if data is None:
        return
    if isinstance(data, str):
        data = data.encode()
    if isinstance(data, (bytes, bytearray, memoryview)):
        source: Iterable[bytes] = [bytes(data)]
    elif hasattr(data, "read"):
        source = iter(lambda: data.read(MAX_PIECE), b"")  # type: ignore[union-attr]
    else:
        source = data
    for whole in source:
        if isinstance(whole, str):
            whole = whole.encode()
        for i in range(0, len(whole), MAX_PIECE):
            yield whole[i : i + MAX_PIECE]


class Connection:
    """One run. It is iterated over once, for its output; then it has its answer.

    To close it before its end cancels the run.
    """

    def __init__(
        self, transport: Transport, begin: Dict[str, Any], stdin: Input = None, ask: Optional[Asker] = None, artifact: Optional[ArtifactTaker] = None,
        output: bool = True, tools: Optional[List[Union[Tool, str]]] = None, mapped: Optional[Callable[[mmap.mmap], Any]] = None,
        contents: Optional[Dict[str, bytes]] = None,
    ) -> None:  # fmt: skip
        self._ask, self._artifact = ask, artifact
        self._tools = {t.name: t for t in tools or () if isinstance(t, Tool)}
        call = scope.get()
        self._loop = call.loop if call else None
        self._stdin = pieces_of(stdin)
        self._credit = threading.Semaphore(0)
        self._feeding: Optional[threading.Thread] = None
        self._over = threading.Event()
        self._failed: Optional[Exception] = None
        self._contents: Dict[str, bytes] = contents or {}
        self._sending: Dict[int, Iterator[bytes]] = {}
        self._takers: Dict[int, Callable[[bytes], Any]] = {}
        self._withdrawn: Dict[int, bool] = {}
        self.result: Any = None
        self.problem: Optional[CaissonError] = None
        sock, self._ws = transport.upgrade(PATH)
        # A server on this machine has large contents mapped here, in place of sending them.
        self._mapped, self._server = mapped, _mapped.server_of(sock) if mapped else 0
        want = {"stdin": stdin is not None, "stdout": output, "stderr": output, "asks": ask is not None, "artifacts": artifact is not None, "descriptors": self._server > 0}
        begin = {**begin, **{k: True for k, v in want.items() if v}}
        if tools is not None:
            begin["run"] = {**begin["run"], "tools": [t if isinstance(t, str) else t.name for t in tools]}
            begin["tools"] = [t.declaration for t in tools if isinstance(t, Tool)]
        self._say(begin)

    def _say(self, message: Dict[str, Any]) -> None:
        try:
            self._ws.send(json.dumps(message))
        except OSError:
            pass  # the end of the connection is told by who receives

    def __iter__(self) -> Iterator[types.Output]:
        if self._over.is_set():
            return
        try:
            while True:
                message = self._ws.receive()
                if isinstance(message, bytes):
                    stream, piece = struct.unpack("!I", message[:4])[0], message[4:]
                    if stream in (STDOUT, STDERR):
                        yield types.Output("stdout" if stream == STDOUT else "stderr", piece)
                    elif stream in self._takers:
                        self._takers[stream](piece)
                    continue
                if message is None or self._take(json.loads(message)):
                    break
        except OSError as e:
            _check_ended()
            if self._failed:
                raise self._failed from None
            raise UnavailableError(f"the run's connection was lost: {e}", "what it started has been ended; run it again") from e
        finally:
            self.close()
        if self.result is None and self.problem is None:
            _check_ended()
            raise UnavailableError("the run's connection ended without its result", "see whether the server still runs")

    def _take(self, m: Dict[str, Any]) -> bool:
        """Take in a message, and report whether it is the last one."""
        kind, stream = m["type"], m.get("stream", 0)
        if kind == "result":
            self.result = m.get("result")
            self.problem = from_problem(m["problem"]) if m.get("problem") else None
            return True
        if kind == "want" and stream == STDIN and not m.get("ref"):
            for _ in range(m.get("credit", 0)):
                self._credit.release()
            if self._feeding is None:
                self._feeding = threading.Thread(target=self._feed, daemon=True)
                self._feeding.start()
        elif kind == "want":
            self._send(stream, m.get("ref"), m.get("credit", 0))
        elif kind == "ask":
            threading.Thread(target=self._answer, args=(stream, m["approval"]), daemon=True).start()
        elif kind == "call":
            threading.Thread(target=self._call, args=(stream, m), daemon=True).start()
        elif kind == "asked":
            self._withdrawn[stream] = True
        elif kind == "artifact" and m.get("descriptor"):
            self._say({"type": "take", "stream": stream, "none": not self._map(m)})
        elif kind == "artifact":
            taker = self._artifact(types.read(types.Artifact, m["artifact"])) if self._artifact else None
            if taker:
                self._takers[stream] = taker
            self._say({"type": "take", "stream": stream, "none": taker is None})
        elif kind == "end" and stream in self._takers:
            del self._takers[stream]
            self._say({"type": "take", "stream": stream})
        return False

    def _send(self, stream: int, ref: Any, credit: int) -> None:
        """Send as much as was asked for of a content that the run names."""
        if ref not in self._contents:
            self._say({"type": "end", "stream": stream, "problem": {"kind": "not_found", "message": f"no content {ref!r}"}})
            return
        pieces = self._sending.setdefault(stream, pieces_of(self._contents[ref]))
        for piece in itertools.islice(pieces, credit):
            self._ws.send(struct.pack("!I", stream) + piece)
            credit -= 1
        if credit:
            self._say({"type": "end", "stream": stream})

    def _map(self, m: Dict[str, Any]) -> bool:
        found = _mapped.open_descriptor(self._server, m["descriptor"], m["artifact"]["size"])
        if found is not None and self._mapped:
            self._mapped(found)
        return found is not None

    def _feed(self) -> None:
        """Send standard input as it is asked for."""
        try:
            for piece in self._stdin:
                while not self._credit.acquire(timeout=0.2):
                    if self._over.is_set():
                        return
                if self._over.is_set():
                    return
                self._ws.send(struct.pack("!I", STDIN) + piece)
        except Exception as e:  # of the caller's own iterator: it ends the run, and is the caller's to see
            if not self._over.is_set():
                self._failed = e
                self._ws.cut()
            return
        self._say({"type": "end", "stream": STDIN})

    def _answer(self, stream: int, approval: Dict[str, Any]) -> None:
        answer: Dict[str, Any] = {"id": approval["id"], "approve": False, "by": "python", "via": "api"}
        try:
            said = self._ask(types.read(types.Approval, approval)) if self._ask else False
            answer["approve"] = said is True or said == "always"
            answer["always"] = said == "always"
        except Exception as e:  # a callback that fails approves nothing, and says why
            answer["note"] = f"the callback failed: {type(e).__name__}: {e}"
        if not self._withdrawn.pop(stream, False):
            self._say({"type": "answer", "stream": stream, "answer": answer})

    def _call(self, stream: int, m: Dict[str, Any]) -> None:
        found = self._tools.get(m["tool"])
        reply = found.answer(m.get("arguments") or {}, self._loop) if found else {"problem": {"kind": "not_found", "message": f"there is no tool {m['tool']!r}"}}
        if not self._withdrawn.pop(stream, False):
            self._say({"type": "answer", "stream": stream, **reply})

    def close(self) -> None:
        """End the run where it goes on, and the connection."""
        self._over.set()
        self._ws.close()

    def finish(self) -> Any:
        """Read all that is left and return the result. Errors of the server are raised."""
        for _ in self:
            pass
        if self.problem:
            if isinstance(self.problem, DeniedError) and self.problem.result is None:
                self.problem.result = self.result
            raise self.problem
        if self.result is None:
            raise CanceledError("the run was given up before its end")
        return self.result
