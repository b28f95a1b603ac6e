"""A WebSocket's client (RFC 6455), as far as caisson's server speaks it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import socket
import struct
import threading
from typing import Mapping, Optional, Tuple, Union

from .errors import UnavailableError, from_problem

MAX_MESSAGE = 256 << 20
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class WebSocket:
    """One connection. One thread receives; any may send."""

    def __init__(self, sock: socket.socket, path: str, host: str, headers: Mapping[str, str]) -> None:
        self._sock = sock
        self._in = sock.makefile("rb")
        self._lock = threading.Lock()
        try:
            self._open(path, host, headers)
        except BaseException:
            self.close()
            raise

    def _open(self, path: str, host: str, headers: Mapping[str, str]) -> None:
        key = base64.b64encode(os.urandom(16))
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key.decode()}"]
        lines += [f"{k}: {v}" for k, v in headers.items()]
        self._sock.sendall("\r\n".join(lines + ["", ""]).encode())
        status = self._in.readline(1 << 16)
        if not status:
            raise ConnectionAbortedError("it hung up")
        got = {}
        while True:
            line = self._in.readline(1 << 16).strip()
            if not line:
                break
            name, _, value = line.partition(b":")
            got[name.strip().lower()] = value.strip()
        if b" 101 " not in status:
            raise self._refused(status, int(got.get(b"content-length", b"0")))
        if got.get(b"sec-websocket-accept") != base64.b64encode(hashlib.sha1(key + _MAGIC).digest()):
            raise UnavailableError("the server speaks no WebSocket", "see what listens at the address")

    def _refused(self, status: bytes, length: int) -> Exception:
        with contextlib.suppress(ValueError):
            problem = json.loads(self._in.read(min(length, 1 << 20)))
            if isinstance(problem, dict):
                return from_problem(problem)
        return UnavailableError(f"the server opens no WebSocket: {status.decode('latin-1').strip()}")

    def send(self, message: Union[str, bytes]) -> None:
        """Send a message: text, or bytes. Raises OSError."""
        kind, payload = (_TEXT, message.encode()) if isinstance(message, str) else (_BINARY, message)
        self._frame(kind, payload)

    def _frame(self, kind: int, payload: bytes) -> None:
        n = len(payload)
        head = struct.pack("!BB", 0x80 | kind, 0x80 | (n if n < 126 else 126 if n < 1 << 16 else 127))
        head += b"" if n < 126 else struct.pack("!H", n) if n < 1 << 16 else struct.pack("!Q", n)
        mask = os.urandom(4)
        # One number times another is much quicker than a loop over the bytes.
        pad = (mask * (n // 4 + 1))[:n]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(n, "big")
        with self._lock:
            self._sock.sendall(head + mask + masked)

    def receive(self) -> Optional[Union[str, bytes]]:
        """Return the next message, or None at the end. Raises OSError."""
        kind, whole = 0, bytearray()
        while True:
            opcode, last, payload = self._read_frame()
            if opcode == _PING:
                self._frame(_PONG, payload)
            elif opcode == _CLOSE:
                with contextlib.suppress(OSError):  # the server may be gone already
                    self._frame(_CLOSE, payload[:2])
                return None
            elif opcode != _PONG:
                kind = opcode or kind
                whole += payload
                if len(whole) > MAX_MESSAGE:
                    raise UnavailableError(f"the server sent more than {MAX_MESSAGE} bytes at once")
                if last:
                    return whole.decode() if kind == _TEXT else bytes(whole)

    def _read_frame(self) -> Tuple[int, bool, bytes]:
        first, second = self._exactly(2)
        n = second & 0x7F
        if n == 126:
            (n,) = struct.unpack("!H", self._exactly(2))
        elif n == 127:
            (n,) = struct.unpack("!Q", self._exactly(8))
        if n > MAX_MESSAGE:
            raise UnavailableError(f"the server sent more than {MAX_MESSAGE} bytes at once")
        return first & 0x0F, bool(first & 0x80), self._exactly(n)

    def _exactly(self, n: int) -> bytes:
        try:
            b = self._in.read(n)
        except ValueError:  # another thread has closed it
            b = b""
        if len(b) < n:
            raise ConnectionResetError("the connection was cut off")
        return b

    def cut(self) -> None:
        """Have who receives see the end of the connection."""
        with contextlib.suppress(OSError):  # it was closed already
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        self.cut()
        self._in.close()
        self._sock.close()
