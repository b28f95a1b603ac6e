"""What a function needs to run elsewhere: its source, and that of what it uses.

Modules travel by their import, functions and classes of the project as source, and data
as values. Nothing travels as bytecode: what has no source is refused.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import symtable
import sys
import sysconfig
import textwrap
import types as pytypes
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple, Union

from ._tools import Tool
from .errors import InvalidError

MAX_SOURCE = 8 << 20
_CODE = (pytypes.FunctionType, type)
_INSTALLED = tuple(os.path.realpath(sysconfig.get_path(n)) + os.sep for n in ("stdlib", "platstdlib", "purelib", "platlib"))


_texts: "weakref.WeakKeyDictionary[Any, Tuple[Any, str, List[str]]]" = weakref.WeakKeyDictionary()


class Capture:
    """The module that a call is made from: its text, its data, and files beside it."""

    def __init__(self, tools: Iterable[Union[Tool, str]] = ()) -> None:
        self._tools = [t for t in tools if isinstance(t, Tool)]
        self.imports: List[str] = []
        self.texts: List[str] = []
        self.data: Dict[str, Any] = {}
        self.classes: Dict[str, type] = {}
        self.files: Dict[str, bytes] = {}
        self._names: Dict[str, Any] = {}
        self._done: Set[int] = set()

    def text(self) -> str:
        """Return the text of the module."""
        return "\n".join(["from __future__ import annotations", *self.imports, "", *self.texts, ""])

    def add(self, name: str, value: Any, why: str) -> None:
        """Have a name mean a value in the module. Raises InvalidError for what does not travel."""
        called = next((t for t in self._tools if value is t or value is t.function), None)
        if isinstance(value, Tool) and called is None:
            raise InvalidError(f"{why}: {name} is a tool, which stays here", "name it in tools=")
        value = called or plain_of(value)
        if name in self._names:
            if self._names[name] is not value:
                raise InvalidError(f"{why}: the name {name} means two things in what is to travel", "give one of them another name")
            return
        self._names[name] = value
        if called:
            self.imports.append(f"from tools import {called.name.replace('-', '_')} as {name}")
        elif isinstance(value, pytypes.ModuleType):
            self._module(name, value)
        elif isinstance(value, (*_CODE, pytypes.BuiltinFunctionType)) and _importable(value):
            self.imports.append(f"from {value.__module__} import {value.__qualname__} as {name}")
        elif isinstance(value, _CODE):
            if value.__name__ != name and getattr(value, "__qualname__", name) != name:
                self.add(value.__name__, value, why)
                self.texts.append(f"{name} = {value.__name__}")
            else:
                self._source(value, why)
        elif _literal(value):
            self.texts.insert(0, f"{name} = {value!r}")
        else:
            self.data[name] = value
            self.know(type(value), why)

    def know(self, cls: type, why: str) -> None:
        """Have a class of the project there, under its name, for values that are of it."""
        if _is_ours(cls) and cls.__qualname__ not in self.classes:
            self.add(cls.__name__, cls, why)

    def _module(self, name: str, module: pytypes.ModuleType) -> None:
        self.imports.append(f"import {module.__name__} as {name}" if module.__name__ != name else f"import {name}")
        if _is_ours(module):
            self._files(module.__name__.split(".")[0])

    def _files(self, top: str) -> None:
        module = sys.modules[top]
        path = os.path.realpath(module.__file__ or "")
        paths = [path]
        if os.path.basename(path) == "__init__.py":
            paths = [os.path.join(d, f) for d, _, fs in os.walk(os.path.dirname(path)) for f in fs if f.endswith(".py")]
        root = os.path.dirname(os.path.dirname(path)) if len(paths) > 1 or path.endswith("__init__.py") else os.path.dirname(path)
        for p in paths:
            with open(p, "rb") as f:
                self.files[os.path.relpath(p, root).replace(os.sep, "/")] = f.read()
        if sum(map(len, self.files.values())) > MAX_SOURCE:
            raise InvalidError(f"the sources of {top} are more than {MAX_SOURCE} bytes", "import what is needed inside of the function")

    def _source(self, value: Any, why: str) -> None:
        if id(value) in self._done:
            return
        self._done.add(id(value))
        if isinstance(value, type):
            self.classes[value.__qualname__] = value
            around = {}
        else:
            around = _closure(value, why)
        spaces = vars(sys.modules[value.__module__]) if isinstance(value, type) else value.__globals__  # type: Dict[str, Any]
        text, names = _text_of(value, spaces, why)
        for name in names:
            if name in around:
                self.add(name, around[name], f"{why}, which uses {name}")
            elif name in spaces and name != value.__name__:
                self.add(name, spaces[name], f"{why}, which uses {name}")
        self.texts.append(text)


def plain_of(value: Any) -> Any:
    """Return the function that a decorated one is made of, and everything else as it is."""
    return getattr(value, "__caisson_function__", value)


def _is_ours(value: Any) -> bool:
    """Report whether something is the project's: neither Python's nor installed."""
    module = value if isinstance(value, pytypes.ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or module.__name__ == "builtins":
        return False
    path = getattr(module, "__file__", None)
    if not path:
        return module.__name__ == "__main__"
    real = os.path.realpath(path)
    installed = real.startswith(_INSTALLED) or not {"site-packages", "dist-packages"}.isdisjoint(real.split(os.sep))
    return path.endswith(".py") and not installed or path.startswith("<ipython") or module.__name__ == "__main__"


def _importable(value: Any) -> bool:
    """Report whether something can be had by an import of what is installed."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return module is not None and not _is_ours(value) and getattr(module, value.__qualname__, None) is value


def _literal(value: Any) -> bool:
    if value is None or value is Ellipsis or type(value) in (bool, str, bytes):
        return True
    if type(value) is int:
        return value.bit_length() < 4096
    if type(value) is float:
        return value == value and value not in (float("inf"), float("-inf"))
    return type(value) is tuple and all(map(_literal, value))


def _text_of(value: Any, spaces: Dict[str, Any], why: str) -> Tuple[str, List[str]]:
    """Return a text as it travels, and the names that it takes from around it; of a function once, while that lives."""
    code = value.__code__ if isinstance(value, pytypes.FunctionType) else None
    known = _texts.get(value) if code else None
    if known and known[0] is code:
        return known[1:]
    tree = _tree(value, why)
    _Strip(spaces).visit(tree)
    text = ast.unparse(ast.fix_missing_locations(tree))
    names = _free_names(text, why)
    if code:
        _texts[value] = code, text, names
    return text, names


def _tree(value: Any, why: str) -> ast.Module:
    if getattr(value, "__name__", "") == "<lambda>":
        raise InvalidError(f"{why}: a lambda has no source of its own", "write it as a function with def")
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError) as e:
        raise InvalidError(f"{why}: there is no source of {value.__qualname__} ({e})", "define it in a file or a notebook's cell") from None


def _closure(function: Callable[..., Any], why: str) -> Dict[str, Any]:
    around = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            around[name] = cell.cell_contents
        except ValueError:
            raise InvalidError(f"{why}: the variable {name} around it has no value yet") from None
    return around


class _Strip(ast.NodeTransformer):
    """Takes our decorator from functions, and annotations, which nothing needs there."""

    def __init__(self, spaces: Dict[str, Any]) -> None:
        self._spaces = spaces

    def _def(self, node: Any) -> Any:
        self.generic_visit(node)
        node.decorator_list = [d for d in node.decorator_list if not self._is_ours(d)]
        node.returns = None
        for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
            if a is not None:
                a.annotation = None
        return node

    visit_FunctionDef = _def
    visit_AsyncFunctionDef = _def

    def _is_ours(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            node = node.func
        if isinstance(node, ast.Attribute):
            return node.attr == "sandbox_run"
        found = self._spaces.get(node.id) if isinstance(node, ast.Name) else None
        return getattr(found, "__caisson_decorator__", False) or isinstance(node, ast.Name) and node.id == "sandbox_run"


def _free_names(text: str, why: str) -> List[str]:
    """Return the names that a text takes from around it; to assign to one that is of another function is refused."""
    names: Set[str] = set()

    def walk(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            if symbol.is_global() or table.get_type() == "module" and symbol.is_referenced():
                names.add(symbol.get_name())
        for child in table.get_children():
            walk(child)

    try:
        walk(symtable.symtable(text, "<function>", "exec"))
    except SyntaxError as e:  # a nonlocal whose function does not travel
        raise InvalidError(f"{why}: {e.msg}: what is around it stays here", "return the value in place of assigning it") from None
    return sorted(n for n in names if not hasattr(builtins, n) or n in ("__file__",))


def entry_of(function: Any, capture: Capture) -> Tuple[str, Optional[type]]:
    """Capture a function and return the expression that names it, and its class where it is a method."""
    why, path = f"{function.__qualname__} does not travel", function.__qualname__.split(".")
    if len(path) > 1 and "<locals>" not in path:
        owner: Any = function.__globals__.get(path[0])
        for part in path[1:-1]:
            owner = getattr(owner, part, None)
        if isinstance(owner, type):
            capture.add(path[0], function.__globals__[path[0]], why)
            return function.__qualname__, owner
    capture.add(function.__name__, function, why)
    return function.__name__, None
