"""Calls tools of the host: what the module tools stands on.

One connection for each process carries all calls, in frames; a thread reads it. The
protocol is caisson's: a header of length, call and type, then JSON.
"""

import base64
import collections
import json
import keyword
import os
import socket
import struct
import sys
import threading

_HEADER = struct.Struct(">IIB")
_PART, _LAST, _CANCEL = 1, 2, 3
_PIECE = 64 << 10
_OPEN = 1000  # calls of one connection; others wait here
_LARGE = 1 << 20
_HERE = os.path.dirname(os.path.abspath(__file__))


class ToolError(Exception):
    """A call has no result. kind says what is wrong in one word, hint what to do."""

    kind = "internal"

    def __init__(self, message, tool="", kind="", hint=""):
        super().__init__(message + ("\n" + hint if hint else ""))
        self.message, self.tool, self.hint = message, tool, hint
        self.kind = kind or self.kind


KINDS = {}


def _kind(name, kind, *also):
    KINDS[kind] = type(name, (ToolError,) + also, {"kind": kind, "__module__": "tools"})


_kind("Invalid", "invalid", ValueError)
_kind("NotFound", "not_found", LookupError)
_kind("Conflict", "conflict")
_kind("Denied", "denied", PermissionError)
_kind("Exhausted", "exhausted")
_kind("Unsupported", "unsupported")
_kind("Unavailable", "unavailable", ConnectionError)
_kind("TimedOut", "timed_out", TimeoutError)
ToolError.__module__ = "tools"


def _error(tool, said):
    kind = said.get("kind", "internal")
    return KINDS.get(kind, ToolError)(said.get("message", ""), tool, kind, said.get("hint", ""))


def _plain(value):
    """What JSON has no form for."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset)):
        return list(value)
    if hasattr(value, "tolist"):  # of numpy
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    raise TypeError("%s cannot be handed to a tool" % type(value).__name__)


def _bytes(value, schema):
    """A result with its bytes, where the schema says that there are."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, str) and schema.get("contentEncoding") == "base64":
        return base64.b64decode(value)
    if isinstance(value, list) and "items" in schema:
        return [_bytes(item, schema["items"]) for item in value]
    if isinstance(value, dict) and "properties" in schema:
        return {key: _bytes(item, schema["properties"].get(key)) for key, item in value.items()}
    return value


class _Call:
    """One that is open. done is called with its answer, from any thread."""

    __slots__ = ("request", "done", "parts", "number")

    def __init__(self, request, done):
        self.request, self.done, self.parts, self.number = request, done, [], None


class _Line:
    """The connection of a process."""

    def __init__(self):
        self.lock, self.writing = threading.Lock(), threading.Lock()
        self.open, self.waiting, self.last, self.closed = {}, collections.deque(), 0, False
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.connect(os.environ["CAISSON_TOOLS"])
        except BaseException:
            self.sock.close()
            raise
        threading.Thread(target=self._read, daemon=True, name="caisson tools").start()

    def begin(self, call):
        with self.lock:
            if self.closed:
                raise OSError("closed")
            if len(self.open) >= _OPEN:
                self.waiting.append(call)
                return
            self._number(call)
        self._send(call)

    def _number(self, call):
        while True:
            self.last = self.last % 0xFFFFFFFF + 1
            if self.last not in self.open:
                break
        call.number = self.last
        self.open[call.number] = call

    def _send(self, call):
        view, call.request = memoryview(call.request), None
        while True:
            piece, view = view[:_PIECE], view[_PIECE:]
            with self.writing:
                self.sock.sendall(_HEADER.pack(len(piece), call.number, _PART if view else _LAST) + piece)
            if not view:
                return

    def cancel(self, call):
        with self.lock:
            if call.number is None:
                if call in self.waiting:
                    self.waiting.remove(call)
                return
            if self.open.pop(call.number, None) is None:
                return
        with self.writing:
            self.sock.sendall(_HEADER.pack(0, call.number, _CANCEL))
        self._next()

    def _next(self):
        with self.lock:
            if not self.waiting or len(self.open) >= _OPEN:
                return
            call = self.waiting.popleft()
            self._number(call)
        self._send(call)

    def _read(self):
        try:
            with self.sock.makefile("rb", _PIECE) as source:
                while True:
                    header = source.read(_HEADER.size)
                    if len(header) < _HEADER.size:
                        break
                    size, number, kind = _HEADER.unpack(header)
                    payload = source.read(size)
                    if len(payload) < size:
                        break
                    with self.lock:
                        call = self.open.get(number)
                        if call is not None and kind == _LAST:
                            del self.open[number]
                    if call is None:
                        continue  # it was given up
                    call.parts.append(payload)
                    if kind == _LAST:
                        call.done(b"".join(call.parts))
                        self._next()
        except OSError:
            pass
        with self.lock:
            self.closed = True
            left = list(self.open.values()) + list(self.waiting)
            self.open.clear()
            self.waiting.clear()
        for call in left:
            call.done(None)


_line = None
_lines = threading.Lock()


def _forked():
    global _line, _lines
    _line, _lines = None, threading.Lock()  # the parent's is not the child's


os.register_at_fork(after_in_child=_forked)


def _begin(tool, call):
    """Begins a call on the process's connection, and returns that."""
    global _line
    try:
        with _lines:
            if _line is None or _line.closed:
                _line = _Line()
            line = _line
        line.begin(call)
        return line
    except (OSError, KeyError, RuntimeError) as e:
        raise KINDS["unavailable"]("the host does not answer for tools: %s" % e, tool) from None


def _answered(tool, schema, text):
    if text is None:
        raise KINDS["unavailable"]("the host has closed the way to tools", tool)
    answer = json.loads(text)
    if answer.get("error"):
        raise _error(tool, answer["error"])
    return _bytes(answer.get("result"), schema)


def _wait(tool, schema, request):
    ready, said = threading.Event(), []

    def done(text):
        said.append(text)
        ready.set()

    call = _Call(request, done)
    line = _begin(tool, call)
    try:
        ready.wait()
    except BaseException:
        line.cancel(call)
        raise
    return _answered(tool, schema, said[0])


def _future(tool, schema, request, loop):
    future = loop.create_future()

    def settle(text, failed=None):
        if future.done():
            return
        try:
            if failed is not None:
                raise failed
            future.set_result(_answered(tool, schema, text))
        except Exception as e:
            future.set_exception(e)

    def tell(*args):
        try:
            loop.call_soon_threadsafe(settle, *args)
        except RuntimeError:
            pass  # the loop is over, and nobody waits

    call, line = _Call(request, tell), []

    def begin():
        try:
            line.append(_begin(tool, call))
        except ToolError as e:
            tell(None, e)

    if len(request) > _LARGE:  # it takes a while, and the loop has others
        threading.Thread(target=begin, daemon=True).start()
    else:
        begin()

    def end(future):
        if future.cancelled() and line:
            line[0].cancel(call)

    future.add_done_callback(end)
    return future


def _running():
    asyncio = sys.modules.get("asyncio.events")  # without it no loop runs
    return asyncio._get_running_loop() if asyncio else None


def call(tool, arguments, schema=None):
    """Calls a tool: a result, or where a loop runs something to await."""
    request = json.dumps({"tool": tool, "arguments": arguments}, default=_plain, allow_nan=False).encode()
    loop = _running()
    if loop is None:
        return _wait(tool, schema, request)
    return _future(tool, schema, request, loop)


_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict, "null": None}


def _type(schema):
    """The type that a schema stands for, as far as it says."""
    if not isinstance(schema, dict):
        return None, False
    if schema.get("contentEncoding") == "base64":
        return bytes, True
    if "enum" in schema or "const" in schema:
        import typing

        return typing.Literal[tuple(schema.get("enum", [schema.get("const")]))], True
    kind = schema.get("type")
    if isinstance(kind, list):
        import typing

        kinds = [_type(dict(schema, type=k))[0] for k in kind]
        return typing.Union[tuple(kinds)], True
    if kind not in _TYPES:
        return None, False
    inner, known = _type(schema.get("items") if kind == "array" else schema.get("additionalProperties"))
    if known and kind in ("array", "object") and sys.version_info >= (3, 9):
        return (list[inner] if kind == "array" else dict[str, inner]), True
    return _TYPES[kind], True


def _named(name):
    return name.isidentifier() and not keyword.iskeyword(name)


def _doc(spec, properties):
    lines = [spec.get("description") or "A tool of the host."]
    told = ["    %s: %s" % (name, p["description"]) for name, p in properties.items() if isinstance(p, dict) and p.get("description")]
    if told:
        lines += ["", "Args:"] + told
    result = spec.get("result")
    if isinstance(result, dict) and result.get("description"):
        lines += ["", "Returns:", "    " + result["description"]]
    return "\n".join(lines)


def function(spec):
    """A function with the signature that a tool's schema gives."""
    tool, schema, result = spec["name"], spec.get("parameters"), spec.get("result")
    schema = schema if isinstance(schema, dict) else None
    properties = (schema or {}).get("properties") or {}
    required = [n for n in (schema or {}).get("required", []) if _named(n)]
    plain = [n for n in required if n in properties or n] + [n for n in properties if _named(n) and n not in required]
    defaults = {n: properties.get(n, {}).get("default") if isinstance(properties.get(n), dict) else None for n in plain}
    head = [n if n in required else "%s=_defaults[%r]" % (n, n) for n in plain]
    rest = schema is None or not properties or bool(schema.get("additionalProperties")) or any(not _named(n) for n in properties)
    if rest:
        head.append("**_rest")
    space = {"_defaults": defaults, "_call": call, "_result": result, "_required": set(required)}
    exec(
        "def %s(%s):\n"
        " _a = {k: v for k, v in {%s}.items() if v is not None or k in _required}\n"
        " _a.update(%s)\n"
        " return _call(%r, _a, _result)\n"
        % (spec["inside"], ", ".join(head), ", ".join("%r: %s" % (n, n) for n in plain), "_rest" if rest else "{}", tool),
        space,
    )
    made = space[spec["inside"]]
    made.__doc__, made.__module__, made.__qualname__ = _doc(spec, properties), "tools", spec["inside"]
    hints = {}
    for name in plain:
        hint, known = _type(properties.get(name))
        if known:
            hints[name] = hint
    hint, known = _type(result)
    if known:
        hints["return"] = hint
    made.__annotations__ = hints
    return made


def functions():
    """All tools that there are, as functions by name."""
    with open(os.path.join(_HERE, "tools.json"), encoding="utf-8") as f:
        return {spec["inside"]: function(spec) for spec in json.load(f) if _named(spec["inside"])}
