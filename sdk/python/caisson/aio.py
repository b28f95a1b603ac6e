"""The same for asyncio: each name is that of its twin, and is awaited.

Every call runs in a thread. Where its task is cancelled, so is the call: its connection
is closed, and what ran in the foreground ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator, Optional, TypeVar, Union, cast

from . import types
from ._execs import Exec
from ._transport import Scope, scope
from .client import Client, Running
from .sandbox import Files, Sandbox, Shell

T = TypeVar("T")

# asyncio's own pool has a few threads for each processor: what waits for runs would
# hold up everything else.
_threads = ThreadPoolExecutor(256, "caisson")
_END = object()


async def call(f: Callable[..., T], *args: Any, **options: Any) -> T:
    """Call f in a thread. Callbacks among its options may be coroutine functions."""
    loop = asyncio.get_running_loop()
    options = {k: _from_thread(loop, v) if inspect.iscoroutinefunction(v) else v for k, v in options.items()}
    own, context = Scope(loop), contextvars.copy_context()
    context.run(scope.set, own)
    future = loop.run_in_executor(_threads, functools.partial(context.run, f, *args, **options))
    try:
        return cast(T, await asyncio.shield(future))
    except asyncio.CancelledError:
        future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # it was told by the cancelling
        own.end()
        raise


def _from_thread(loop: asyncio.AbstractEventLoop, f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: asyncio.run_coroutine_threadsafe(f(*args), loop).result()


async def _each(items: Iterator[T], cancel: Callable[[], Any] = lambda: None) -> AsyncIterator[T]:
    try:
        while True:
            item = await call(next, items, _END)  # type: ignore[arg-type]
            if item is _END:
                return
            yield item
    except (asyncio.CancelledError, GeneratorExit):
        cancel()
        raise


def _twin(method: Callable[..., T]) -> Callable[..., Awaitable[T]]:
    """Make the asynchronous twin of a method; self.sync is whose it is."""

    @functools.wraps(method)
    async def twin(self: Any, *args: Any, **options: Any) -> T:
        return await call(functools.partial(method, self.sync), *args, **options)

    return twin


def _same(name: str, doc: str) -> Any:
    """Make the property that is that of self.sync."""
    return property(lambda self: getattr(self.sync, name), doc=doc)


class _Twin:
    def __init__(self, sync: Any) -> None:
        self.sync = sync

    def __repr__(self) -> str:
        return f"<async {self.sync!r}>"


class AsyncRunning(_Twin):
    """A run that goes on: ``async for`` yields its output as it comes."""

    wait = _twin(Running.wait)
    result = _same("result", "The result, None while it runs or where there is none.")

    def __aiter__(self) -> AsyncIterator[types.Output]:
        return _each(iter(self.sync), self.sync.cancel)

    async def cancel(self) -> None:
        """End it with everything that it started."""
        self.sync.cancel()

    async def __aenter__(self) -> "AsyncRunning":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.sync.cancel()


class AsyncExec(_Twin):
    """An exec that goes on by itself, whoever is there."""

    wait, write, signal, kill = _twin(Exec.wait), _twin(Exec.write), _twin(Exec.signal), _twin(Exec.kill)
    id, record = _same("id", "Its id."), _same("record", "What began it.")

    def output(self, follow: bool = True) -> AsyncIterator[types.Output]:
        """Yield what it puts out; see :meth:`Exec.output`."""
        return _each(self.sync.output(follow))


class AsyncFiles(_Twin):
    """The workspace of a sandbox."""

    write, read, read_text = _twin(Files.write), _twin(Files.read), _twin(Files.read_text)
    download, upload, list = _twin(Files.download), _twin(Files.upload), _twin(Files.list)
    stat, exists, mkdir, move, remove = _twin(Files.stat), _twin(Files.exists), _twin(Files.mkdir), _twin(Files.move), _twin(Files.remove)

    def chunks(self, path: str, offset: int = 0, length: Optional[int] = None) -> AsyncIterator[bytes]:
        """Yield a file piece by piece."""
        return _each(self.sync.chunks(path, offset, length))


class AsyncShell(_Twin):
    """A shell whose state stays from one text to the next."""

    run, close = _twin(Shell.run), _twin(Shell.close)
    name = _same("name", "Its name.")

    async def __aenter__(self) -> "AsyncShell":
        return self

    async def __aexit__(self, *given: object) -> None:
        await call(self.sync.__exit__, *given)


class AsyncClient(_Twin):
    """A server of caisson; takes what :class:`Client` takes."""

    run, run_code, test, ensure, check = _twin(Client.run), _twin(Client.run_code), _twin(Client.test), _twin(Client.ensure), _twin(Client.check)
    approvals, answer = _twin(Client.approvals), _twin(Client.answer)
    image_of, sessions = _twin(Client.image_of), _twin(Client.sessions)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(args[0] if args and isinstance(args[0], Client) else Client(*args, **options))


class AsyncSandbox(_Twin):
    """A sandbox that lasts from ``async with`` to its end; takes what :class:`Sandbox` takes.

    Its callbacks may be coroutine functions where they are given to a method.
    """

    run, run_code, execs, test = _twin(Sandbox.run), _twin(Sandbox.run_code), _twin(Sandbox.execs), _twin(Sandbox.test)
    changes, diff, undo = _twin(Sandbox.changes), _twin(Sandbox.diff), _twin(Sandbox.undo)
    snapshot, restore, pause, resume = _twin(Sandbox.snapshot), _twin(Sandbox.restore), _twin(Sandbox.pause), _twin(Sandbox.resume)
    close, remove = _twin(Sandbox.close), _twin(Sandbox.remove)
    name, language, timeout = _same("name", "The session's name."), _same("language", "Its language."), _same("timeout", "What execs have that are given none.")

    def __init__(self, *args: Any, **options: Any) -> None:
        if isinstance(options.get("client"), AsyncClient):
            options["client"] = options["client"].sync
        super().__init__(args[0] if args and isinstance(args[0], Sandbox) else Sandbox(*args, **options))
        self.files, self.client = AsyncFiles(self.sync.files), AsyncClient(self.sync.client)

    async def start(self) -> "AsyncSandbox":
        """Create it; ``async with`` does so."""
        await call(self.sync.start)
        return self

    async def exec(self, command: Any, **options: Any) -> Union[types.Result, AsyncRunning, AsyncExec]:
        """Run a command; see :meth:`Sandbox.exec`."""
        made = await call(self.sync.exec, command, **options)
        return AsyncRunning(made) if isinstance(made, Running) else AsyncExec(made) if isinstance(made, Exec) else made

    async def shell(self, name: str = "", **options: Any) -> AsyncShell:
        """Open a shell; see :meth:`Sandbox.shell`."""
        return AsyncShell(await call(self.sync.shell, name, **options))

    async def fork(self, name: str = "", **options: Any) -> "AsyncSandbox":
        """Return a sandbox with a copy of the workspace; see :meth:`Sandbox.fork`."""
        return AsyncSandbox(await call(self.sync.fork, name, **options))

    async def __aenter__(self) -> "AsyncSandbox":
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()
