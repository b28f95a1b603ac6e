"""Values as data: an encoder, and a decoder that can make nothing but data.

A message is MAGIC, the length of a header in eight bytes, the header in JSON, and then
the contents of what is large, each at a multiple of ALIGN, so that arrays can stay where they are. The header lists nodes, ``[tag, ...]``; inside of a node a
value is None, a bool, a small int, a float or a str as it stands, or ``[n]``, the node n.
So cycles and shared references stay what they are. The decoder imports nothing by a name
from the data and calls no constructor of the caller's: it makes instances of the classes
that its caller hands it, and fills in their fields.

This file runs on both sides, and alone: in a sandbox it lies beside the call.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import pathlib
import re
import struct
import sys
import uuid
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

MAGIC = b"CAISSON1"
MAX_BYTES = 256 << 20
ALIGN = 64
Buffer = Union[bytes, bytearray, memoryview]
# A node of a few letters can be some hundred bytes of memory: the header's share.
HEADER_SHARE = 16
_SMALL = 1 << 53
_DTYPE = re.compile(r"[<>|=]?[biufcSUmM?]\d{0,9}(\[\d{0,4}[a-zA-Z]{1,2}\])?")


class ValueFormatError(ValueError):
    """A value that does not travel, or a message that is none; it names the path inside."""


class _Node:
    __slots__ = ("body", "parent", "key")

    def __init__(self, parent: "Optional[_Node]", key: str) -> None:
        self.body: List[Any] = []
        self.parent, self.key = parent, key

    def path(self) -> str:
        parts, node, n = [], self, 0  # type: List[str], Optional[_Node], int
        while node is not None:
            if n < 40:
                parts.append(node.key)
            node, n = node.parent, n + 1
        return ("…" if n > 40 else "") + "".join(reversed(parts))


class _Encoder:
    def __init__(self, known: Mapping[str, type], limit: int) -> None:
        self.names = {cls: name for name, cls in known.items()}
        self.limit, self.size = limit, 0
        self.nodes: List[_Node] = []
        self.index: Dict[int, int] = {}
        self.keep: List[Any] = []  # what was seen lives on, so that no id comes twice
        self.blobs: List[Buffer] = []
        self.todo: List[Tuple[_Node, Any]] = []
        self._at = 0  # where the next content begins

    def value(self, v: Any, parent: Optional[_Node], key: str) -> Any:
        """Return a value as it stands in a node; what it holds is left to do."""
        if v is None or type(v) in (bool, float, str) or type(v) is int and -_SMALL < v < _SMALL:
            if type(v) is str:
                self.add(len(v), parent, key)
            return v
        at = self.index.get(id(v))
        if at is None:
            at = len(self.nodes)
            node = _Node(parent, key)
            self.nodes.append(node)
            self.keep.append(v)
            self.index[id(v)] = at
            self.add(16, parent, key)
            self.todo.append((node, v))
        return [at]

    def add(self, n: int, parent: Optional[_Node], key: str) -> None:
        self.size += n
        if self.size > self.limit:
            raise ValueFormatError(f"{parent.path() if parent else ''}{key}: the value is larger than {self.limit} bytes")

    def fill(self, node: _Node, v: Any) -> List[Any]:
        kind = type(v)
        if kind in (list, tuple):
            tag = "l" if kind is list else "t"
            return [tag, *[self.value(x, node, f"[{i}]") for i, x in enumerate(v)]]
        if kind in (set, frozenset):
            return ["s" if kind is set else "z", *[self.value(x, node, "{…}") for x in v]]
        if kind is dict:
            pairs = []  # type: List[Any]
            for k, x in v.items():
                name = f"[{_shown(k)}]"
                pairs += [self.value(k, node, f".key{name}"), self.value(x, node, name)]
            return ["d", *pairs]
        if kind is int:
            self.add(v.bit_length() // 4, node, "")
            return ["i", hex(v)]
        if kind is complex:
            return ["c", v.real, v.imag]
        if kind in (bytes, bytearray):
            return ["b" if kind is bytes else "B", *self.large(v, node)]
        plain = _plain(v, kind)
        if plain is not None:
            return plain
        if isinstance(v, (datetime.datetime, datetime.time)) and v.tzinfo is not None:
            raise ValueFormatError(f"{node.path()}: a time of the zone {_shown(v.tzinfo)} does not travel: give it an offset, datetime.timezone")
        if kind in self.names:
            if isinstance(v, enum.Enum):
                return ["e", self.names[kind], v.name]
            state = {f.name: getattr(v, f.name) for f in dataclasses.fields(v)} if dataclasses.is_dataclass(v) else getattr(v, "__dict__", None)
            if state is not None:
                return ["o", self.names[kind], *[y for k, x in state.items() for y in (k, self.value(x, node, "." + k))]]
        array = self.array(v, node)
        if array is not None:
            return array
        raise ValueFormatError(f"{node.path()}: a {kind.__module__}.{kind.__qualname__} does not travel: only data does, and classes that the caller knows")

    def array(self, v: Any, node: _Node) -> Optional[List[Any]]:
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(v, (numpy.ndarray, numpy.generic)) or type(v).__module__ != "numpy":
            return None
        if v.dtype.hasobject or not _DTYPE.fullmatch(v.dtype.str):
            raise ValueFormatError(f"{node.path()}: an array of {v.dtype} does not travel: only plain numbers, texts and times do")
        return ["a" if isinstance(v, numpy.ndarray) else "g", v.dtype.str, list(v.shape), *self.large(_bytes_of(numpy, v), node)]

    def large(self, b: Buffer, node: _Node) -> List[int]:
        self.add(len(b) + ALIGN, node, "")
        at = self._at
        self.blobs += [b, bytes(-len(b) % ALIGN)]
        self._at += len(b) + -len(b) % ALIGN
        return [at, len(b)]


def _bytes_of(numpy: Any, v: Any) -> Buffer:
    """Return the bytes of an array, without a copy where they lie in order."""
    if not isinstance(v, numpy.ndarray) or v.nbytes == 0:
        return bytes(v.tobytes())
    return memoryview(numpy.ascontiguousarray(v).reshape(-1).view(numpy.uint8))


def _shown(v: Any) -> str:
    """Show a value for a path, whatever its repr does."""
    if type(v) in (str, int, float, bool, type(None), bytes):
        return repr(v)[:40]
    return type(v).__qualname__


def _plain(v: Any, kind: type) -> Optional[List[Any]]:
    if kind is datetime.datetime and type(v.tzinfo) in (type(None), datetime.timezone):
        return ["T", v.isoformat(), v.fold]
    if kind is datetime.date:
        return ["D", v.isoformat()]
    if kind is datetime.time and type(v.tzinfo) in (type(None), datetime.timezone):
        return ["H", v.isoformat(), v.fold]
    if kind is datetime.timedelta:
        return ["E", v.days, v.seconds, v.microseconds]
    if kind is decimal.Decimal:
        return ["N", str(v)]
    if kind is fractions.Fraction:
        return ["F", hex(v.numerator), hex(v.denominator)]
    if kind is uuid.UUID:
        return ["U", v.hex]
    if kind in (pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath):
        return ["P" if isinstance(v, pathlib.Path) else "p", str(v)]
    return None


def encode(value: Any, known: Optional[Mapping[str, type]] = None, limit: int = MAX_BYTES, name: str = "result") -> bytes:
    """Encode a value. known are classes whose instances may be in it, by their names.

    Raises ValueFormatError, with the path inside the value, for what does not travel.
    """
    return b"".join(pieces(value, known, limit, name))


def pieces(value: Any, known: Optional[Mapping[str, type]] = None, limit: int = MAX_BYTES, name: str = "result") -> List[Buffer]:
    """Encode a value as :func:`encode` does, in pieces: what is large is in its own place."""
    e = _Encoder(known or {}, limit)
    root = e.value(value, None, name)
    while e.todo:
        node, v = e.todo.pop()
        node.body = e.fill(node, v)
    header = json.dumps([root, [n.body for n in e.nodes]], separators=(",", ":")).encode()
    if len(header) > max(limit // HEADER_SHARE, 1 << 16):
        raise ValueFormatError(f"{name}: the value has too many parts for a limit of {limit} bytes")
    header += b" " * (-(16 + len(header)) % ALIGN)
    return [MAGIC, struct.pack("!Q", len(header)), header, *e.blobs]


def decode(message: Any, known: Optional[Mapping[str, type]] = None, limit: int = MAX_BYTES) -> Any:
    """Decode a message; whoever wrote it, the outcome is data, or a ValueFormatError.

    Arrays of one that can be written in, a bytearray or a map, stay there, and it is theirs from then on.
    """
    try:
        return _Decoder(memoryview(message), known or {}, limit).decode()
    except ValueFormatError:
        raise
    except Exception as e:  # of a message that lies: a wrong type, index, number or name
        raise ValueFormatError(f"no message of values: {type(e).__name__}") from None


def _bounded_int(text: str) -> int:
    if len(text) > 20:
        raise ValueFormatError("no message of values: a number is too long")
    return int(text)


class _Decoder:
    def __init__(self, message: memoryview, known: Mapping[str, type], limit: int) -> None:
        if len(message) > limit or message[:8] != MAGIC or len(message) < 16:
            raise ValueFormatError("no message of values, or one that is too large")
        (n,) = struct.unpack("!Q", message[8:16])
        if n > max(limit // HEADER_SHARE, 1 << 16) or n > len(message) - 16:
            raise ValueFormatError("no message of values: its header is too large")
        self.known = known
        self.blobs = message[16 + n :]
        self.stay: List[Tuple[int, int]] = []  # the contents that arrays lie in
        self.left = limit  # of what contents may take: many nodes could name the same
        self.root, self.nodes = json.loads(bytes(message[16 : 16 + n]), parse_int=_bounded_int)
        self.made: List[Any] = [_UNMADE] * len(self.nodes)

    def decode(self) -> Any:
        later = []
        for i, node in enumerate(self.nodes):
            made = self.begin(node)
            if made is not _UNMADE:
                self.made[i] = made
            else:
                later.append(i)
        self.stay.sort()
        if any(end > begin for (_, end), (begin, _) in zip(self.stay, self.stay[1:])):
            raise ValueFormatError("no message of values: two arrays in one place")
        for i in later:
            self.finish(i)
        # Fields before keys: the hash of a key may be of its fields.
        for tags in ("lo", "sd"):
            for i, node in enumerate(self.nodes):
                if node[0] in tags:
                    self.fill(self.made[i], node)
        return self.value(self.root)

    def value(self, v: Any) -> Any:
        if type(v) is not list:
            if type(v) is dict:
                raise ValueFormatError("no message of values: a stray object")
            return v
        (at,) = v
        if type(at) is not int or at < 0:
            raise ValueFormatError("no message of values: a wrong reference")
        return self.made[at]

    def begin(self, node: List[Any]) -> Any:
        """Make what needs no other node, and what is filled later; else _UNMADE."""
        tag, rest = node[0], node[1:]
        if tag == "o":
            cls = self.cls(rest[0])
            if issubclass(cls, (enum.Enum, BaseException, type)):
                raise ValueFormatError(f"no message of values: {rest[0]} is no class of data")
            return object.__new__(cls)
        if tag in ("t", "z"):
            return _UNMADE
        if tag == "e":
            return self.cls(rest[0]).__members__[rest[1]]  # type: ignore[attr-defined]
        if tag in ("a", "g"):
            return self.array(tag, *rest)
        return _MAKERS[tag](self, *rest)

    def cls(self, name: str) -> type:
        found = self.known.get(name)
        if found is None:
            raise ValueFormatError(f"it has a {name!r:.60}, which the caller does not know: name the class in types=")
        return found

    def blob(self, at: int, n: int) -> memoryview:
        self.left -= n
        if type(at) is not int or type(n) is not int or not 0 <= at <= at + n <= len(self.blobs) or self.left < 0:
            raise ValueFormatError("no message of values: contents out of bounds")
        return self.blobs[at : at + n]

    def array(self, tag: str, dtype: str, shape: List[int], at: int, n: int) -> Any:
        import numpy

        if not _DTYPE.fullmatch(dtype):
            raise ValueFormatError("no message of values: no plain array")
        kind = numpy.dtype(dtype)
        if kind.hasobject or any(type(x) is not int or x < 0 for x in shape) or _product(shape) * kind.itemsize != n:
            raise ValueFormatError("no message of values: no plain array")
        content: Buffer = self.blob(at, n)
        if content.readonly:
            content = bytearray(content)
        else:
            self.stay.append((at, at + n))
        flat = numpy.frombuffer(content, kind) if n else numpy.zeros(0, kind)
        made = flat.reshape(shape)
        return made if tag == "a" else made[()]

    def finish(self, first: int) -> None:
        """Make a tuple or a frozenset once all that it holds is there, without recursion."""
        stack, open_ = [first], set()  # type: List[int], set[int]
        while stack:
            i = stack[-1]
            if self.made[i] is not _UNMADE:
                stack.pop()
                continue
            node = self.nodes[i]
            held_in = [self.nodes[v[0]] for v in node[1:] if node[0] == "z" and type(v) is list and self.nodes[v[0]][0] == "o"]
            missing = [v[0] for n in (node, *held_in) for v in n[1:] if type(v) is list and self.value(v) is _UNMADE]
            if missing:
                if i in open_:
                    raise ValueFormatError("no message of values: it holds itself")
                open_.add(i)
                stack += missing
                continue
            for v in node[1:]:  # a frozenset takes the hash of what it holds, which has to be whole
                if node[0] == "z" and type(v) is list and self.nodes[v[0]][0] == "o":
                    self.fill(self.made[v[0]], self.nodes[v[0]])
            held = (self.value(v) for v in node[1:])
            self.made[i] = tuple(held) if node[0] == "t" else frozenset(held)
            stack.pop()

    def fill(self, made: Any, node: List[Any]) -> None:
        tag, rest = node[0], node[1:]
        if tag == "l":
            made.extend(self.value(v) for v in rest)
        elif tag == "s":
            made.update(self.value(v) for v in rest)
        elif tag == "d":
            made.update((self.value(rest[i]), self.value(rest[i + 1])) for i in range(0, len(rest), 2))
        else:
            fields = {f.name for f in dataclasses.fields(made)} if dataclasses.is_dataclass(made) else None
            for i in range(1, len(rest), 2):
                if type(rest[i]) is not str or rest[i].startswith("__") or fields is not None and rest[i] not in fields:
                    raise ValueFormatError(f"no message of values: {rest[0]} has no such field")
                object.__setattr__(made, rest[i], self.value(rest[i + 1]))


_UNMADE = object()
_MAKERS: Dict[str, Any] = {
    "l": lambda d, *_: [],
    "s": lambda d, *_: set(),
    "d": lambda d, *_: {},
    "i": lambda d, v: int(v, 16),
    "c": lambda d, re_, im: complex(re_, im),
    "b": lambda d, at, n: bytes(d.blob(at, n)),
    "B": lambda d, at, n: bytearray(d.blob(at, n)),
    "T": lambda d, v, fold: datetime.datetime.fromisoformat(v).replace(fold=fold),
    "D": lambda d, v: datetime.date.fromisoformat(v),
    "H": lambda d, v, fold: datetime.time.fromisoformat(v).replace(fold=fold),
    "E": lambda d, *v: datetime.timedelta(*v),
    "N": lambda d, v: decimal.Decimal(v),
    "F": lambda d, n, m: fractions.Fraction(int(n, 16), int(m, 16)),
    "U": lambda d, v: uuid.UUID(hex=v),
    "P": lambda d, v: pathlib.Path(v),
    "p": lambda d, v: pathlib.PurePath(v),
}


def _product(shape: List[int]) -> int:
    n = 1
    for x in shape:
        n *= x
    return n
