"""Execs in the background."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Optional, Union

from . import types
from .errors import UnavailableError

if TYPE_CHECKING:
    from .sandbox import Sandbox

RECONNECT_PATIENCE = 60.0


@dataclass(frozen=True)
class _Piece:
    data: bytes = b""


class Exec:
    """An exec that goes on by itself, whoever is there; ``record`` is what began it."""

    def __init__(self, sandbox: "Sandbox", record: types.ExecRecord) -> None:
        self._sandbox, self.record, self.id = sandbox, record, record.id
        self._exit: Optional[types.Exit] = None

    def _ask(self, what: str, body: Any = None) -> Any:
        return self._sandbox._ask("POST", f"/execs/{self.id}/{what}", body=body)

    def output(self, follow: bool = True) -> Iterator[types.Output]:
        """Yield what it puts out, from its beginning or what is kept of that on, to its end.

        A connection that is lost is made again where it was; nothing comes twice. With
        follow False it yields what is there.
        """
        path, last, lost = self._sandbox.path(f"/execs/{self.id}/output"), "", 0.0
        while True:
            try:
                for event in self._sandbox.client.transport.events("GET", path, {"follow": follow}, last=last):
                    last, lost = event.id or last, 0.0
                    if event.name == "end":
                        self._exit = types.read(types.Exit, event.data.get("exit") or {}) if event.data.get("ended") else self._exit
                        return
                    yield types.Output(event.name, types.read(_Piece, event.data).data)
            except UnavailableError:
                lost = lost or time.monotonic()
                if time.monotonic() - lost > RECONNECT_PATIENCE:
                    raise
                time.sleep(0.1)

    def wait(self) -> types.Exit:
        """Wait for its end."""
        while self._exit is None:
            for _ in self.output():
                pass
        return self._exit

    def write(self, data: Union[str, bytes], end: bool = False) -> int:
        """Write to its standard input, where that was kept open, and return how much was taken."""
        data = data.encode() if isinstance(data, str) else data
        body = {"data_base64": base64.b64encode(data).decode()} if data else {}
        return int(self._ask("input", {**body, "end": end})["bytes"])

    def signal(self, number: int, everything: bool = False) -> None:
        """Signal its process, or everything that it started."""
        self._ask("signal", {"signal": int(number), "all": everything})

    def kill(self) -> None:
        """End it with everything that it started."""
        self._ask("kill")

