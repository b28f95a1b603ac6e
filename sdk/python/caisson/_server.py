"""The server that this package speaks with: one that is named, or one that it starts.

Processes of one user with the same settings share what they start. Each holds a FIFO
open for writing; the kernel closes it for those that die, and ``caisson serve --lease``
ends once nobody holds it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from ._transport import Address
from .errors import InvalidError, UnavailableError

START_PATIENCE = 60.0


def binary() -> str:
    """Find the program: CAISSON_BIN, PATH, or bin above this package in a checkout."""
    named = os.environ.get("CAISSON_BIN", "")
    beside = Path(__file__).resolve().parents[3] / "bin" / "caisson"
    found = named or shutil.which("caisson") or (str(beside) if beside.is_file() else "")
    if not found or not os.access(found, os.X_OK):
        raise UnavailableError(
            f"{named} is not a program" if named else "there is no caisson in PATH",
            "install caisson, set CAISSON_BIN to it, or CAISSON_HOST to a server",
        )
    return os.path.abspath(found)


def named(host: str = "", token: str = "") -> Optional[Address]:
    """Return the server that arguments or the environment name, or None."""
    host = host or os.environ.get("CAISSON_HOST", "")
    if not host:
        return None
    token = token or os.environ.get("CAISSON_TOKEN", "")
    if not token and os.environ.get("CAISSON_TOKEN_FILE"):
        token = Path(os.environ["CAISSON_TOKEN_FILE"]).read_text().strip()
    try:
        return Address(host, token, os.environ.get("CAISSON_TLS_CA", ""))
    except ValueError as e:
        raise InvalidError(str(e)) from None


class Private:
    """A server on a socket of this user's, started at need and shared. Safe for concurrent use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lease = -1
        self._address: Optional[Address] = None

    def address(self) -> Address:
        """Return where the server is, starting one where there is none. Raises UnavailableError."""
        with self._lock:
            if self._address is None:
                self._join()
            assert self._address is not None
            return self._address

    def lost(self, address: Address) -> bool:
        """See whether anybody answers there, forget it where not, and report that one is to be had."""
        with self._lock:
            if self._address is address and not _answers(address):
                self._drop()
        return True

    def release(self) -> None:
        """Stop using it: it ends where this was the last user."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._lease >= 0:
            os.close(self._lease)
        self._lease, self._address = -1, None

    def _join(self) -> None:
        program = binary()
        folder = _folder(program)
        with _locked(folder / "lock"):
            lease, noted = folder / "lease", folder / "address"
            address = Address(noted.read_text()) if noted.exists() else None
            if address is not None:
                self._lease = _hold(lease)
                if self._lease >= 0 and _answers(address):
                    self._address = address
                    return
                self._drop()
                with contextlib.suppress(FileNotFoundError):  # it has removed its own
                    os.unlink(address.path)
            for old in (lease, noted):
                with contextlib.suppress(FileNotFoundError):
                    old.unlink()
            os.mkfifo(lease, 0o600)
            # Open for both, since for writing alone it would wait for the server.
            self._lease = os.open(lease, os.O_RDWR | os.O_CLOEXEC)
            try:
                self._address = Address(_start(program, folder, lease, START_PATIENCE if address else 0))
            except BaseException:
                self._drop()
                raise
            noted.write_text(self._address.text)


def _hold(lease: Path) -> int:
    """Open a lease that a server reads; -1 where none does."""
    try:
        fd = os.open(lease, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.ENXIO, errno.ENOENT):
            return -1
        raise
    return fd


def _answers(address: Address) -> bool:
    """Whether a server is there: one that was killed may still take connections, and answers none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(START_PATIENCE)
        try:
            sock.connect(address.path)
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return sock.recv(1) != b""
        except OSError:
            return False


def _folder(program: str) -> Path:
    """The folder that processes with the same settings share: short, and this user's alone."""
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith(("CAISSON_", "XDG_", "DOCKER_")) or k in ("HOME", "PATH"))
    key = hashlib.sha256(repr((program, settings)).encode()).hexdigest()[:12]
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"caisson-py-{os.getuid()}-{key}"
    folder.mkdir(mode=0o700, exist_ok=True)
    st = folder.lstat()
    if not stat.S_ISDIR(st.st_mode) or st.st_uid != os.getuid() or st.st_mode & 0o077:
        raise InvalidError(f"{folder} is not this user's alone", "remove it, or set XDG_RUNTIME_DIR to a folder of yours")
    return folder


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _usual() -> Address:
    """Where a server listens that was started without --listen."""
    env = os.environ.get
    if env("CAISSON_RUNTIME_DIR"):
        folder = Path(env("CAISSON_RUNTIME_DIR", ""))
    elif os.geteuid() == 0:
        folder = Path("/run/caisson")
    elif env("XDG_RUNTIME_DIR"):
        folder = Path(env("XDG_RUNTIME_DIR", "")) / "caisson"
    else:
        state = env("CAISSON_STATE_DIR") or Path(env("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "caisson"
        folder = Path(state) / "run"
    return Address(f"unix://{folder}/caisson.sock")


def _start(program: str, folder: Path, lease: Path, patience: float) -> str:
    """Start a server and return its address, once it answers.

    One of the same state folder that runs already is used where it listens at the usual
    place; patience is how long one that may be at its end is waited for.
    """
    command = [program, "serve", "--listen", f"unix://{folder}/{uuid.uuid4().hex[:8]}.sock", "--lease", str(lease), "--drain", "5s"]
    until = time.monotonic() + patience
    while True:
        with open(folder / "log", "wb") as log:
            # A session of its own: an interrupt at this terminal is not for it.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True, env=_environment())
        assert process.stdout is not None
        with process.stdout:
            line = process.stdout.readline().decode().strip()
        if line:
            threading.Thread(target=process.wait, daemon=True).start()  # so that it is reaped
            return line
        code = process.wait()
        why = (folder / "log").read_text(errors="replace").strip().splitlines()  # type: List[str]
        taken = code == 122 and "another server" in "".join(why)
        if taken and _answers(_usual()):
            return _usual().text
        if not taken or time.monotonic() > until:
            hint = "set CAISSON_HOST to the address of the one that runs" if code == 122 else "caisson doctor says what is missing"
            raise UnavailableError(f"caisson serve ended with {code}: {' '.join(why[-3:])}", hint)
        time.sleep(0.1)


def _environment() -> Dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("CAISSON_HOST", "CAISSON_TOKEN", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET")}


private = Private()
# A child that was forked is a user of its own, and its lease a copy: both stay.
os.register_at_fork(after_in_child=lambda: setattr(private, "_lock", threading.Lock()))
