"""Functions that run in a sandbox: ``@sandbox_run``, and an executor of such calls."""

from __future__ import annotations

import builtins
import concurrent.futures
import functools
import hashlib
import inspect
import itertools
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

from . import aio, types, values
from ._tools import tools_of
from .capture import Capture, entry_of
from .client import Client, Files, file_of, limits_of, run_of, size_of
from .errors import CaissonError, DeniedError, InvalidError

ANSWER = "/answer"
# What travels with a call is in one message, of which a server takes 64 MiB in base64.
MAX_ARGUMENTS = 40 << 20
_HERE = Path(__file__).parent
# Those that end the program that raises them are not raised here for a sandbox.
_EXCEPTIONS: Dict[str, Type[Exception]] = {n: c for n, c in vars(builtins).items() if isinstance(c, type) and issubclass(c, Exception)}


class RemoteError(CaissonError):
    """An exception from inside whose class is not known here; ``type_name`` names it."""

    def __init__(self, message: str, type_name: str = "") -> None:
        super().__init__(f"{type_name}: {message}" if type_name else message)
        self.type_name = type_name


class CrashedError(CaissonError):
    """A call that ended without an answer: killed, out of memory, or by its own doing."""


class CallTimeout(CrashedError, TimeoutError):
    """A call that took longer than it was given."""


class RemoteTraceback(Exception):
    """The traceback from inside, as a text; the cause of what a call raises."""

    def __str__(self) -> str:
        return "\n" + self.args[0]


@dataclass(frozen=True)
class Outcome:
    """What came of a call: a value, or an error; its output, and the run with what it used."""

    value: Any = None
    error: Optional[BaseException] = None
    result: types.Result = types.Result()

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.error is None

    @property
    def stdout(self) -> str:
        """What it wrote to standard output."""
        return self.result.stdout

    @property
    def stderr(self) -> str:
        """What it wrote to standard error."""
        return self.result.stderr

    @property
    def usage(self) -> types.Usage:
        """What it used."""
        return self.result.usage

    def get(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True)
class Options:
    """How calls run; see :func:`sandbox_run`."""

    timeout: Optional[float] = None
    memory: Union[int, str, None] = None
    cpus: Optional[float] = None
    image: Optional[str] = None
    packages: Optional[Sequence[str]] = None
    runtime: Optional[str] = None
    files: Optional[Files] = None
    quiet: bool = False
    keep: bool = False
    warm: bool = True
    trusted_types: Sequence[type] = ()
    trusted: bool = False
    pool: Optional[Sequence[Union[str, Client]]] = None
    max_result: Union[int, str] = values.MAX_BYTES
    approve: Optional[str] = None
    on_approval: Any = None
    tools: Optional[Sequence[Union[Callable[..., Any], str]]] = None
    client: Optional[Client] = None

    @property
    def most(self) -> int:
        """How many bytes a result may have."""
        return size_of(self.max_result)


@functools.lru_cache(maxsize=None)
def _inside() -> str:
    """Return the text that runs a call."""
    return (_HERE / "_inside.py").read_text()


@functools.lru_cache(maxsize=None)
def _values() -> Tuple[str, bytes]:
    """Return the text of the module of values, behind the name by which servers know it: one that does not asks for it."""
    text = (_HERE / "values.py").read_bytes()
    return "sha256:" + hashlib.sha256(text).hexdigest(), text


@functools.lru_cache(maxsize=None)
def _default_client() -> Client:
    return Client()


def _clients_of(options: Options) -> Iterator[Optional[Client]]:
    """Return whom calls are asked of, in turn; None is the default."""
    if options.pool is None:
        return itertools.repeat(options.client)
    if isinstance(options.pool, str) or not options.pool or options.client:
        raise InvalidError("pool= takes a list of servers, in place of client=", 'write pool=["https://one:7777", Client("https://two:7777")]')
    return itertools.cycle([p if isinstance(p, Client) else Client(p) for p in options.pool])


class SandboxFunction:
    """A function whose calls have a sandbox to themselves each, in which nothing is left of any other."""

    def __init__(self, function: Any, options: Options) -> None:
        self._kind = type(function) if isinstance(function, (staticmethod, classmethod)) else None
        self.__caisson_function__ = function.__func__ if self._kind else function
        if not inspect.isfunction(self.__caisson_function__):
            raise InvalidError(f"{function!r} is no function", "decorate a function with def")
        self._options, self._bound = options, ()  # type: ignore[var-annotated]
        self._clients = _clients_of(options)
        functools.update_wrapper(self, self.__caisson_function__)

    def __get__(self, instance: Any, owner: Optional[type] = None) -> "SandboxFunction":
        bound = () if self._kind is staticmethod else (owner,) if self._kind is classmethod else () if instance is None else (instance,)
        if not bound:
            return self
        made = SandboxFunction(self.__caisson_function__, self._options)
        made._bound, made._clients = bound, self._clients  # type: ignore[assignment]
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function and return its result; what it writes is written here. A coroutine function is awaited."""
        if inspect.iscoroutinefunction(self.__caisson_function__):
            return self._awaited(*args, **kwargs)
        return self._call(args, kwargs, shown=True).get()

    async def _awaited(self, *args: Any, **kwargs: Any) -> Any:
        return (await aio.call(self._call, args, kwargs, shown=True)).get()

    def outcome(self, *args: Any, **kwargs: Any) -> Outcome:
        """Run it and return what came of it: an error of any kind is part of that, and never raised."""
        try:
            return self._call(args, kwargs)
        except Exception as e:
            return Outcome(error=e)

    def submit(self, *args: Any, **kwargs: Any) -> "concurrent.futures.Future[Any]":
        """Have a call carried out, and return its future."""
        return _shared().submit(self, *args, **kwargs)

    def map(self, *iterables: Iterable[Any], timeout: Optional[float] = None) -> Iterator[Any]:
        """Yield the results of a call for each item, in order; the calls run at once."""
        return _shared().map(self, *iterables, timeout=timeout)

    def with_options(self, **options: Any) -> "SandboxFunction":
        """Return the same function with other options."""
        made = SandboxFunction(self.__caisson_function__, Options(**{**vars(self._options), **options}))
        made._bound = self._bound
        return made

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any], shown: bool = False) -> Outcome:
        o = self._options
        call = _Call(self.__caisson_function__, [*self._bound, *args], dict(kwargs), o)
        received, mapped = bytearray(), []  # type: bytearray, List[Any]
        most = o.most + (1 << 20)

        def piece(b: bytes) -> None:
            if len(received) <= most:  # beyond that it is refused, and need not be held
                received.extend(b)

        client = next(self._clients) or _default_client()
        run = run_of(
            None, language="python", code=_inside(), stage=call.stage(), files=o.files, timeout=o.timeout,
            image=client.image_of("python", o.image, o.packages),
            limits={**limits_of(o.memory, o.cpus), **({"file_size_bytes": most} if most > 1 << 30 else {})},  # which is a file's usual bound
            runtime=o.runtime, keep=o.keep or None, approve=o.approve, artifacts=[], answer_bytes=most,
            warm=o.warm and not o.keep or None, track="off",
        )  # fmt: skip
        connection = client.begin(
            {"run": run}, on_approval=o.on_approval, output=shown and not o.quiet, tools=o.tools,
            artifact=lambda a: piece if a.path == ANSWER else None, mapped=mapped.append, contents=dict([_values()]),
        )
        try:
            for out in connection:
                stream = sys.stdout if out.stream == "stdout" else sys.stderr
                stream.write(out.text)
                stream.flush()
            result = types.read(types.Result, connection.finish())
        finally:
            connection.close()
        if not received:  # a small one is in the result
            received = next((bytearray(a.data) for a in result.artifacts if a.path == ANSWER and a.data), received)
        if len(received) > most:
            return Outcome(error=CrashedError(f"the result is larger than {o.max_result} bytes", "give max_result="), result=result)
        return call.outcome(mapped[0] if mapped else received, result)


class _Call:
    """One call: what travels, and what came of it."""

    def __init__(self, function: Callable[..., Any], args: List[Any], kwargs: Dict[str, Any], options: Options) -> None:
        self._options, self._capture = options, Capture(tools_of(options.tools) or [])
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        path, owner = entry_of(function, self._capture)
        args, kwargs = list(bound.args), dict(bound.kwargs)
        if owner is not None and args and isinstance(args[0], type) and _is_classmethod(owner, function.__name__):
            cls = args.pop(0)  # it is bound inside, to the same class
            self._capture.know(cls, f"{function.__qualname__} does not travel")
            path = f"{cls.__qualname__}.{function.__name__}"
        for value in [*args, *kwargs.values(), *options.trusted_types]:
            self._capture.know(value if isinstance(value, type) else type(value), f"{function.__qualname__} does not travel")
        self._args = (path, args, kwargs)

    def _known(self) -> Dict[str, type]:
        """The classes of data by name: those that travel, and those that the caller names."""
        return {**self._capture.classes, **{c.__qualname__: c for c in self._options.trusted_types}}

    def stage(self) -> List[Dict[str, Any]]:
        """Return the files that lie beside the runner."""
        path, args, kwargs = self._args
        o, c, known = self._options, self._capture, self._known()
        limit = o.most
        given = values.encode({"data": c.data, "args": args, "kwargs": kwargs}, known, MAX_ARGUMENTS, "arguments")
        protocol = None
        if o.trusted:
            from . import _trusted

            protocol = _trusted.PROTOCOL
        head = values.encode({"protocol": protocol, "quiet": o.quiet, "classes": sorted(known), "function": path, "limit": limit})
        files = {
            "caisson_call.bin": head + given + struct.pack("!Q", len(head)),
            "caisson_call.py": c.text().encode(),
            **c.files,
        }
        ref, text = _values()
        return [*(file_of(name, content) for name, content in files.items()), {"path": "caisson_values.py", "ref": ref, "size": len(text)}]

    def outcome(self, message: Any, result: types.Result) -> Outcome:
        """Make of the sandbox's answer, which anybody in it may have written, an outcome."""
        if not len(message):
            cls = CallTimeout if result.timed_out else CrashedError
            why = f"the call ended by {result.exit_reason} with exit code {result.exit_code}"
            tail = result.stderr.strip()[-2000:]
            return Outcome(error=cls(why + (f": {tail}" if tail else ", without a result"), result=result), result=result)
        try:
            answer = values.decode(message, self._known(), self._options.most)
            if type(answer) is not dict:
                raise values.ValueFormatError("no message of values: no answer")
            if "result" in answer:
                return Outcome(answer["result"], None, result)
            if "object" in answer and self._options.trusted:
                from . import _trusted

                return Outcome(_trusted.load(answer["object"], self._known()), None, result)
            return Outcome(error=self._error(answer), result=result)
        except Exception as e:  # of a message that lies, or of what a trusted one loads
            return Outcome(error=CrashedError(f"the result cannot be read: {e}", result=result), result=result)

    def _error(self, answer: Dict[str, Any]) -> BaseException:
        name, args, message = answer["error"], answer["args"], answer["message"]
        if type(name) is not str or type(args) is not list or type(message) is not str or type(answer["traceback"]) is not str:
            raise values.ValueFormatError("no message of values: no error")
        if name == "ValueFormatError":  # the path begins where the result lies in the message
            return values.ValueFormatError(message.replace("result['result']", "result", 1))
        cls = self._known().get(name) or (_EXCEPTIONS.get(name) if answer["module"] == "builtins" else None)
        if cls is None or not issubclass(cls, Exception):
            error: Exception = RemoteError(message, name)
        else:
            try:
                error = cls.__new__(cls, *args)  # no __init__ of the caller's runs on what a stranger says
                error.args = tuple(args)
            except Exception:
                error = RemoteError(message, name)
        error.__cause__ = RemoteTraceback(answer["traceback"])
        return error


def _is_classmethod(owner: type, name: str) -> bool:
    raw = inspect.getattr_static(owner, name, None)
    return isinstance(raw, classmethod) or getattr(raw, "_kind", None) is classmethod


def sandbox_run(function: Any = None, **options: Any) -> Any:
    """Have a function run in a sandbox at each call.

    Its arguments and what it uses travel: modules by import, the project's functions and
    classes as source, data as values. The result comes back as data; exceptions are raised
    here, caused by the traceback from inside. Changes to arguments do not come back.

    Options: ``timeout`` in seconds, ``memory``, ``cpus``, ``image``, ``packages`` (of
    Python, by their names, in the version that Debian has: an image with them is
    assembled at first use), ``runtime``, ``files``
    for the workspace, ``quiet`` (output to nowhere), ``keep`` (the sandbox stays where the
    call failed), ``warm`` (False begins each call in a new sandbox and interpreter), ``types`` (classes that may be in the result beside those that travel),
    ``trusted`` (the result may be any object: whatever runs inside can run code here),
    ``pool`` (servers, each asked in turn),
    ``tools`` (functions of this program that it may call, see :func:`tool`, which then
    are called where the function names them), ``max_result`` (bytes, or a size such as "2g"), ``approve``, ``on_approval``, ``client``.
    """
    if "types" in options:
        options["trusted_types"] = tuple(options.pop("types"))
    try:
        chosen = Options(**options)
    except TypeError as e:
        raise InvalidError(f"sandbox_run: {str(e).replace('Options.__init__() ', '')}", "see help(caisson.sandbox_run)") from None
    if function is None:
        return lambda f: SandboxFunction(f, chosen)
    return SandboxFunction(function, chosen)


sandbox_run.__caisson_decorator__ = True  # type: ignore[attr-defined]


class SandboxExecutor(concurrent.futures.Executor):
    """Calls at once, each in a sandbox to itself: one that crashes or takes too long harms no other."""

    def __init__(self, max_workers: Optional[int] = None, **options: Any) -> None:
        self._threads = concurrent.futures.ThreadPoolExecutor(min(8, 2 * (os.cpu_count() or 1)) if max_workers is None else max_workers, "caisson-call")
        self._options = options

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> "concurrent.futures.Future[Any]":  # type: ignore[override]
        """Have a function, decorated or not, run with arguments in a sandbox."""
        made = fn if isinstance(fn, SandboxFunction) else sandbox_run(fn)
        if self._options:
            made = made.with_options(**self._options)
        return self._threads.submit(lambda: made._call(args, kwargs, shown=True).get())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; see :class:`concurrent.futures.Executor`."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)


@functools.lru_cache(maxsize=None)
def _shared() -> SandboxExecutor:
    return SandboxExecutor()
