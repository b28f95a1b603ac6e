"""Tools: functions of this program, which programs in a sandbox may call."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import json
import os
import pathlib
import re
import types as pytypes
import typing
import uuid
from collections import abc
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from .errors import CaissonError, ExhaustedError, InvalidError

MAX_RESULT = 48 << 20  # a server reads an answer as one message
# A schema, and what makes of data that fits it the value that the function takes.
Form = Tuple[Dict[str, Any], Callable[[Any], Any]]

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_TEXTS: Dict[Any, Callable[[str], Any]] = {
    uuid.UUID: uuid.UUID, decimal.Decimal: decimal.Decimal, datetime.datetime: datetime.datetime.fromisoformat,
    datetime.date: datetime.date.fromisoformat, pathlib.Path: pathlib.Path, pathlib.PurePath: pathlib.PurePath,
}  # fmt: skip
_LISTS = {list: list, set: set, frozenset: frozenset, abc.Sequence: list, abc.Iterable: list, abc.Collection: list, abc.Set: set}
_DICTS = (dict, abc.Mapping, abc.MutableMapping)
_UNIONS = (Union, getattr(pytypes, "UnionType", Union))
# Kinds of errors that are no CaissonError, the first that fits.
_KINDS = ((TimeoutError, "timed_out"), (PermissionError, "denied"), (FileNotFoundError, "not_found"), (LookupError, "not_found"), (ValueError, "invalid"))


class Tool:
    """A function that programs in a sandbox may call; see :func:`tool`. Called here, it is the function."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        if not callable(function):
            raise InvalidError(f"{function!r} is no function", "decorate a function with def")
        self.function, self.name = function, str(options.pop("name", None) or getattr(function, "__name__", ""))
        description, told = _described(inspect.getdoc(function) or "")
        self.declaration: Dict[str, Any] = {"name": self.name, "description": options.pop("description", None) or description}
        timeout, rate = options.pop("timeout", None), options.pop("rate", None)
        if timeout is not None:
            self.declaration["timeout_ms"] = timeout * 1000
        if rate is not None:
            self.declaration["rate"] = {"calls": rate[0], "per_ms": rate[1] * 1000}
        for key in ("concurrency", "budget", "verdict"):
            if options.get(key) is not None:
                self.declaration[key] = options[key]
            options.pop(key, None)
        if options:
            raise InvalidError(f"tool {self.name}: there is no option {min(options)}", "see help(caisson.tool)")
        self._read_signature(told)
        functools.update_wrapper(self, function)

    def _read_signature(self, told: Mapping[str, str]) -> None:
        try:
            self._signature = inspect.signature(self.function)
            plain = self.function if inspect.isroutine(self.function) else getattr(self.function, "__caisson_function__", type(self.function).__call__)
            hints = typing.get_type_hints(plain, include_extras=True)
        except (NameError, TypeError, ValueError, AttributeError) as e:
            raise InvalidError(f"tool {self.name}: its type hints cannot be read: {e}", "have the names in them be there where it is defined") from None
        self._forms: Dict[str, Form] = {}
        properties: Dict[str, Any] = {}
        schema: Dict[str, Any] = {"type": "object", "properties": properties, "required": [], "additionalProperties": False}
        for p in self._signature.parameters.values():
            where = f"tool {self.name}: {p.name}"
            if p.kind is p.VAR_POSITIONAL:
                raise InvalidError(f"{where}: arguments of tools have names", "take a list")
            form = self._forms[p.name] = form_of(hints.get(p.name, Any), where)
            if p.kind is p.VAR_KEYWORD:
                schema["additionalProperties"] = form[0]
                continue
            properties[p.name] = dict(form[0])
            if told.get(p.name):
                properties[p.name].setdefault("description", told[p.name])
            if p.default is p.empty:
                schema["required"].append(p.name)
            elif p.default is not None:
                try:
                    properties[p.name]["default"] = json.loads(text_of(p.default))
                except (TypeError, ValueError):
                    pass  # it is the function's own, which takes it where nothing is said
        self.declaration["parameters"] = schema
        if hints.get("return", Any) is not Any:
            self.declaration["result"] = form_of(hints["return"], f"tool {self.name}: its result")[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def answer(self, arguments: Mapping[str, Any], loop: Optional[asyncio.AbstractEventLoop] = None) -> Dict[str, Any]:
        """Answer a call: with its result, or with the problem. Coroutines run in the loop, or in one of their own."""
        try:
            return {"result": self._answer(arguments, loop)}
        except BaseException as e:  # what ends a program ends no answer
            if isinstance(e, CaissonError):
                return {"problem": {"kind": e.kind, "message": e.message, "hint": e.hint}}
            kind = next((kind for cls, kind in _KINDS if isinstance(e, cls)), "internal")
            try:
                said = str(e)
            except Exception:
                said = ""
            return {"problem": {"kind": kind, "message": f"{type(e).__name__}: {said}" if said else type(e).__name__}}

    def _answer(self, arguments: Mapping[str, Any], loop: Optional[asyncio.AbstractEventLoop]) -> Any:
        given: Dict[str, Any] = {}
        for p in self._signature.parameters.values():
            read = self._forms[p.name][1]
            if p.kind is p.VAR_KEYWORD:
                given[p.name] = {k: read(v) for k, v in arguments.items() if k not in self._signature.parameters or k == p.name}
            elif p.name in arguments:
                given[p.name] = read(arguments[p.name])
        bound = inspect.BoundArguments(self._signature, given)  # type: ignore[arg-type]
        result = self.function(*bound.args, **bound.kwargs)
        if inspect.isawaitable(result):
            waiting = _awaited(result)
            result = asyncio.run_coroutine_threadsafe(waiting, loop).result() if loop else asyncio.run(waiting)
        text = text_of(result)
        if len(text) > MAX_RESULT:
            raise ExhaustedError(f"tool {self.name}: its result has more than {MAX_RESULT >> 20} MiB", "return less, or have the program ask for parts")
        return json.loads(text)


async def _awaited(result: Any) -> Any:
    return await result


def tool(function: Any = None, **options: Any) -> Any:
    """Make a tool of a function, for ``tools=`` of runs: programs inside call it, and it runs here.

    Its schema is read off its type hints, its description and those of its parameters off
    its docstring. A coroutine function runs in the caller's event loop where there is one.
    What it raises is raised inside, as ``tools.ToolError`` with its kind and message.

    Options: ``name``, ``description``, ``timeout`` in seconds, ``concurrency``, ``budget``
    (calls of one run), ``rate`` (calls, in so many seconds), ``verdict`` (allow, ask or
    deny). See docs/tools.md.
    """
    if function is None:
        return lambda f: Tool(f, **options)
    return Tool(function, **options)


def tools_of(given: Optional[Iterable[Any]]) -> Optional[List[Union[Tool, str]]]:
    """Return what is given as ``tools=``: functions as tools, and names of the server's own as they are."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, abc.Iterable):
        raise InvalidError("tools= takes a list of functions, and of names of the server's tools", "write tools=[f]")
    return [t if isinstance(t, (str, Tool)) else Tool(t) for t in given]


def text_of(value: Any) -> str:
    """Return a value as JSON. Raises TypeError and ValueError."""
    return json.dumps(value, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return what JSON has no form for as what it has."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (uuid.UUID, decimal.Decimal)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    for name in ("isoformat", "tolist"):  # of times, and of numpy
        if hasattr(value, name):
            return getattr(value, name)()
    raise TypeError(f"a {type(value).__qualname__} is nothing that a tool can answer")


def form_of(hint: Any, where: str, within: Tuple[Any, ...] = ()) -> Form:
    """Return the schema of a type, and what reads it. Raises InvalidError for what no data is."""
    args, origin = typing.get_args(hint), typing.get_origin(hint) or hint

    def inner(h: Any) -> Form:
        return form_of(h, where, (*within, hint))

    if hint is Any or isinstance(hint, typing.TypeVar):
        return {}, lambda v: v
    if hasattr(hint, "__metadata__"):  # of Annotated
        schema, read = inner(args[0])
        told = [m for m in hint.__metadata__ if isinstance(m, str)]
        return ({**schema, "description": told[0]} if told else schema), read
    if origin in _UNIONS:
        return _union(args, inner)
    if origin is typing.Literal or isinstance(hint, type) and issubclass(hint, enum.Enum):
        values = list(args) if origin is typing.Literal else [m.value for m in hint]
        return {"enum": values}, (_one_of(values) if origin is typing.Literal else hint)
    if hint in (bytes, bytearray):
        return {"type": "string", "contentEncoding": "base64"}, lambda v: hint(base64.b64decode(v, validate=True))
    if hint in _TEXTS:
        return {"type": "string"}, lambda v: _TEXTS[hint](_is(str, v))
    if hint is None or hint in _TYPES:
        cls = type(None) if hint is None else hint
        return {"type": _TYPES[cls]}, lambda v: _is(cls, v)
    if origin is tuple and args and args[-1] is not Ellipsis:
        forms = [inner(a) for a in args]
        return {"type": "array", "prefixItems": [f[0] for f in forms], "minItems": len(forms), "maxItems": len(forms)}, lambda v: tuple(f[1](x) for f, x in zip(forms, v))
    if origin in _LISTS or origin is tuple:
        schema, read = inner(args[0] if args else Any)
        return {"type": "array", "items": schema}, lambda v: _LISTS.get(origin, tuple)(read(x) for x in _is(list, v))
    if origin in _DICTS:
        if args and args[0] not in (str, Any):
            raise InvalidError(f"{where}: the keys of {hint} are no texts", "write Dict[str, ...]")
        schema, read = inner(args[1] if args else Any)
        return {"type": "object", "additionalProperties": schema}, lambda v: {k: read(x) for k, x in _is(dict, v).items()}
    if dataclasses.is_dataclass(hint) or hasattr(hint, "__total__"):  # a TypedDict
        if hint in within:
            raise InvalidError(f"{where}: {hint.__qualname__} holds itself", "take a dict")
        return _fields(hint, inner)
    raise InvalidError(f"{where}: a {getattr(hint, '__qualname__', hint)} is no data", "take and return what JSON has, bytes, times, enums or dataclasses")


def _is(cls: Any, v: Any) -> Any:
    if cls is float and type(v) is int:
        return float(v)
    if cls is int and type(v) is float and v.is_integer():
        return int(v)
    if type(v) is not cls:
        raise ValueError(f"{v!r:.60} is no {cls.__name__}")
    return v


def _one_of(values: List[Any]) -> Callable[[Any], Any]:
    def read(v: Any) -> Any:
        if not any(type(v) is type(x) and v == x for x in values):
            raise ValueError(f"{v!r:.60} is none of {values}")
        return v

    return read


def _union(args: Tuple[Any, ...], inner: Callable[[Any], Form]) -> Form:
    forms = [inner(a) for a in args if a is not type(None)]
    may_be_none = len(forms) < len(args)

    def read(v: Any) -> Any:
        if v is None and may_be_none:
            return None
        for n, (_, one) in enumerate(forms):
            try:
                return one(v)
            except (ValueError, TypeError, LookupError):
                if n == len(forms) - 1:
                    raise

    schemas = [f[0] for f in forms]
    if len(schemas) == 1 and "type" in schemas[0]:
        return {**schemas[0], "type": [schemas[0]["type"], "null"]}, read
    return {"anyOf": schemas + [{"type": "null"}] * may_be_none}, read


def _fields(cls: Any, inner: Callable[[Any], Form]) -> Form:
    """Return the form of a dataclass, or of a TypedDict, which stays a dict."""
    hints = typing.get_type_hints(cls)
    if dataclasses.is_dataclass(cls):
        names = [f.name for f in dataclasses.fields(cls) if f.init]
        required = [f.name for f in dataclasses.fields(cls) if f.init and f.default is f.default_factory is dataclasses.MISSING]
    else:
        names, required = list(hints), sorted(cls.__required_keys__)
    forms = {name: inner(hints[name]) for name in names}
    schema = {"type": "object", "properties": {k: f[0] for k, f in forms.items()}, "required": required, "additionalProperties": False}
    return schema, lambda v: cls(**{k: forms[k][1](x) for k, x in _is(dict, v).items()})


_PARAM = re.compile(r":param\s+(?:[^:\n]*\s)?\*{0,2}(\w+):\s*(.*)")
_ARG = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?):\s*$|:(param|returns?|raises|rtype|type)\b")


def _described(doc: str) -> Tuple[str, Dict[str, str]]:
    """Read a docstring: what stands before its sections, and what is said of parameters, by :param or under Args."""
    lines = doc.splitlines()
    end = next((i for i, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    told: Dict[str, str] = {}
    section, indent, last = "", 0, ""
    for line in lines[end:]:
        text, at = line.strip(), len(line) - len(line.lstrip())
        found = _PARAM.match(line)
        if found:
            last, section, indent = found[1], "Args", 0
            told[last] = found[2].strip()
        elif _SECTION.match(line):
            section, indent, last = line.split(":")[0], 0, ""
        elif section in ("Args", "Arguments", "Parameters") and text:
            indent = indent or (0 if last else at)
            arg = _ARG.match(text) if at == indent and indent else None
            if arg:
                last = arg[1]
                told[last] = arg[2].strip()
            elif last:
                told[last] = f"{told[last]} {text}".strip()
    return "\n".join(lines[:end]).strip(), told
