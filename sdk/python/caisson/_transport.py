"""HTTP over a Unix socket or TCP: requests, events, and what is retried."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import http.client
import json
import os
import socket
import ssl
import threading
import time
import uuid
from typing import IO, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union
from urllib.parse import quote, urlencode, urlsplit

from ._websocket import WebSocket
from .errors import CanceledError, UnavailableError, from_problem

CONNECT_TIMEOUT = 10.0
RETRIES = 3
Body = Union[bytes, IO[bytes], None]


class Scope:
    """The connections that a call has open, so that another thread can end them."""

    def __init__(self, loop: "Optional[asyncio.AbstractEventLoop]" = None) -> None:
        self._lock = threading.Lock()
        self._open: List[socket.socket] = []
        self.loop = loop  # that the call is awaited in
        self.ended = False

    def add(self, sock: socket.socket) -> None:
        """Take in a connection. Raises CanceledError where the call was ended."""
        with self._lock:
            self._open.append(sock)
            if self.ended:
                _shut(sock)
                raise CanceledError("the call was given up")

    def end(self) -> None:
        """End the call: what it waits for fails."""
        with self._lock:
            self.ended = True
            for sock in self._open:
                _shut(sock)


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it was closed already
        sock.shutdown(socket.SHUT_RDWR)


scope: "contextvars.ContextVar[Optional[Scope]]" = contextvars.ContextVar("caisson_scope", default=None)


class Event(NamedTuple):
    """A server-sent event."""

    name: str
    id: str
    data: Any


class _Unreached(Exception):
    """Nobody answers, so that nothing was asked; it has the error that says so."""


class _Connection(http.client.HTTPConnection):
    """A connection to an address of caisson's, Unix or TCP."""

    def __init__(self, address: "Address", sock: socket.socket) -> None:
        super().__init__(address.host or "localhost", address.port or 80)
        self.sock = sock


class Address:
    """Where a server is: unix:///path, http://host:port, https://host:port or host:port."""

    def __init__(self, text: str, token: str = "", ca: str = "") -> None:
        if "://" not in text:
            text = "http://" + text
        parts = urlsplit(text)
        if parts.scheme not in ("unix", "http", "https") or not (parts.path if parts.scheme == "unix" else parts.hostname):
            raise ValueError(f"{text!r} is no address of a server: write unix:///path, http://host:port or https://host:port")
        self.text, self.token = text, token
        self.path = parts.path if parts.scheme == "unix" else ""
        self.host, self.port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context(cafile=ca or None) if parts.scheme == "https" else None

    def dial(self) -> socket.socket:
        """Open a connection. Raises OSError."""
        if self.path:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(CONNECT_TIMEOUT)
                sock.connect(self.path)
            except BaseException:
                sock.close()
                raise
        else:
            sock = socket.create_connection((self.host, self.port), CONNECT_TIMEOUT)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_hostname=self.host)
        sock.settimeout(None)
        current = scope.get()
        if current is not None:
            current.add(sock)
        return sock

    def headers(self) -> Dict[str, str]:
        """Return the headers that show who asks."""
        return {"Authorization": "Bearer " + self.token} if self.token else {}


class Transport:
    """Requests to one server. Safe for concurrent use; each call has a connection of its own.

    ``address`` is asked anew for each call, and ``lost`` is told of one that gave no
    answer: a server that was started for this process may have to be started again.
    """

    def __init__(self, address: Callable[[], Address], lost: Callable[[Address], bool] = lambda address: False) -> None:
        self.address, self.lost = address, lost

    def dial(self) -> Tuple[Address, socket.socket]:
        """Open a connection. Raises UnavailableError."""
        try:
            return self._dial()
        except _Unreached as e:
            raise e.args[0] from e.__cause__

    def _dial(self) -> Tuple[Address, socket.socket]:
        for again in (True, False):
            address = self.address()
            try:
                return address, address.dial()
            except OSError as e:
                if not (again and self.lost(address)):
                    raise _Unreached(UnavailableError(f"reach the server at {address.text}: {e}", "see that caisson serve runs there")) from e
        raise AssertionError("unreachable")

    def upgrade(self, path: str) -> Tuple[socket.socket, WebSocket]:
        """Open a WebSocket. Raises UnavailableError, and errors of the server.

        Nothing was asked where the server ended before it answered: another may be had.
        """
        for again in (True, False):
            address, sock = self.dial()
            try:
                return sock, WebSocket(sock, path, address.host or "localhost", address.headers())
            except OSError as e:
                sock.close()
                _check_ended()
                if not (again and self.lost(address)):
                    raise UnavailableError(f"reach the server at {address.text}: {e}", "see that caisson serve runs there") from e
        raise AssertionError("unreachable")

    def open(self, method: str, path: str, query: Optional[Mapping[str, Any]] = None, body: Body = None, headers: Optional[Mapping[str, str]] = None) -> http.client.HTTPResponse:
        """Send a request and return its answer, open. Errors of the server are raised.

        It is sent anew where its connection is lost and nothing can happen twice: a POST
        carries a key by which the server carries it out once.
        """
        pairs = [(k, _text(v)) for k, vs in (query or {}).items() for v in (vs if isinstance(vs, (list, tuple)) else [vs]) if v not in (None, "", False)]
        target = path + ("?" + urlencode(pairs, quote_via=quote) if pairs else "")
        sent = {"Connection": "close", **(headers or {})}
        if method == "POST":
            sent.setdefault("Idempotency-Key", uuid.uuid4().hex)
        again = RETRIES if body is None or isinstance(body, bytes) else 0
        for attempt in range(again + 1):
            conn = None
            try:
                address, sock = self._dial()
                conn = _Connection(address, sock)
                conn.request(method, target, body, {**address.headers(), **sent})
                answer = conn.getresponse()
            except (OSError, http.client.HTTPException, _Unreached) as e:
                if conn:
                    conn.close()
                _check_ended()
                if attempt == again:
                    if isinstance(e, _Unreached):
                        raise e.args[0] from e.__cause__
                    raise UnavailableError(f"ask the server at {address.text}: {e or type(e).__name__}", "see that caisson serve runs there") from e
                if conn:
                    self.lost(address)
                time.sleep(0.05 * 2**attempt)
                continue
            if answer.status >= 400:
                with answer:
                    raise from_problem(_problem(answer))
            return answer
        raise AssertionError("unreachable")

    def json(self, method: str, path: str, query: Optional[Mapping[str, Any]] = None, body: Any = None) -> Any:
        """Send a request with JSON and return the JSON of its answer, None of an empty one."""
        content = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        with self.open(method, path, query, content, kind) as answer:
            try:
                text = answer.read()
            except (OSError, http.client.HTTPException) as e:
                raise UnavailableError(f"read the server's answer: {e}") from e
        return json.loads(text) if text else None

    def pages(self, path: str, query: Optional[Mapping[str, Any]] = None) -> Iterator[Any]:
        """Yield the items of a list, page by page."""
        cursor = ""
        while True:
            page = self.json("GET", path, {**(query or {}), "cursor": cursor})
            yield from page["items"] or []
            cursor = page.get("next") or ""
            if not cursor:
                return

    def events(self, method: str, path: str, query: Optional[Mapping[str, Any]] = None, body: Any = None, last: str = "") -> Iterator[Event]:
        """Yield the events of a stream, the last one named end. One that is cut off raises UnavailableError."""
        headers = {"Accept": "text/event-stream"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if last:
            headers["Last-Event-ID"] = last
        with self.open(method, path, query, None if body is None else json.dumps(body).encode(), headers) as answer:
            try:
                for event in _parse(answer):
                    if event.name == "error":
                        raise from_problem(event.data)
                    yield event
                    if event.name == "end":
                        return
            except (OSError, http.client.HTTPException) as e:
                _check_ended()
                raise UnavailableError(f"the stream was cut off: {e}") from e
        raise UnavailableError("the stream was cut off", "ask again: the server may have ended")


def _check_ended() -> None:
    current = scope.get()
    if current is not None and current.ended:
        raise CanceledError("the call was given up")


def _text(value: Any) -> str:
    return "true" if value is True else os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _problem(answer: http.client.HTTPResponse) -> Mapping[str, Any]:
    text = answer.read(1 << 26)
    try:
        problem = json.loads(text)
    except ValueError:
        problem = None
    if isinstance(problem, dict):
        return problem
    return {"kind": "internal", "message": f"the server answered {answer.status}: {text[:200].decode('utf-8', 'replace')}"}


def _parse(lines: Iterator[bytes]) -> Iterator[Event]:
    name, number, data = "message", "", []  # type: str, str, List[str]
    for raw in lines:
        line = raw.decode("utf-8").rstrip("\r\n")
        if not line:
            if data:
                yield Event(name, number, json.loads("\n".join(data)))
            name, data = "message", []
            continue
        key, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if key == "event":
            name = value
        elif key == "id":
            number = value
        elif key == "data":
            data.append(value)
