"""Runs a program that returns a value: by return at top level, or as its last
expression. Its top-level names are globals, and await works there."""

import ast
import inspect
import json
import os
import sys
import types

import caisson_tools

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class _Top(ast.NodeTransformer):
    """Makes what stands at top level, and in no scope of its own, fit for a function."""

    awaits = False

    def visit(self, node):
        if isinstance(node, _SCOPES):  # what of it is evaluated here is all that matters
            for inner in getattr(node, "decorator_list", []) + getattr(node, "bases", []) + [getattr(node, "args", None)]:
                if inner is not None:
                    self.visit(inner)
            return node
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or isinstance(node, ast.comprehension) and node.is_async:
            self.awaits = True
        if isinstance(node, ast.AnnAssign):
            node.simple = 0  # else the name could not be global
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            text = "__import__('builtins').exec(%r, globals())" % ("from %s%s import *" % ("." * node.level, node.module or ""))
            made = ast.parse(text).body[0]
            for inner in ast.walk(made):
                ast.copy_location(inner, node)
            return made
        return self.generic_visit(node)


def _compiled(text, shown):
    """The program as the code of a function, and whether that is to be awaited."""
    tree, top = ast.parse(text, shown), _Top()
    future = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    body = [s for s in tree.body if s not in future]
    if body and isinstance(body[-1], ast.Expr):
        body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    body = [top.visit(s) for s in body]
    made = ast.parse("async def f(): pass" if top.awaits else "def f(): pass").body[0]
    made.name, made.body = "<module>", body or made.body

    def code():
        module = compile(ast.Module(future + [made], []), shown, "exec", dont_inherit=True)
        return next(c for c in module.co_consts if inspect.iscode(c) and c.co_name == "<module>")

    first = code()
    if first.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        raise SyntaxError("'yield' outside function", (shown, None, None, None))
    names = [n for n in first.co_varnames + first.co_cellvars if n.isidentifier()]
    if names:
        made.body.insert(0, ast.copy_location(ast.Global(names), made.body[0]))
    return code(), top.awaits


def _plain(value):
    try:
        return caisson_tools._plain(value)
    except TypeError:
        what = type(value).__name__ + " is not JSON"
        raise TypeError(what + ": await it" if inspect.isawaitable(value) else what) from None


def _say(text):
    caisson_tools._wait("", None, text.encode())


def _raised(kind, message, traceback):
    sys.stderr.write(traceback or "%s\n" % message)
    _say(json.dumps({"raise": {"kind": kind, "message": message, "traceback": traceback}}))
    sys.exit(1)


def _failed(e, shown):
    import traceback

    trace = e.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != shown:
        trace = trace.tb_next
    if trace is None and not isinstance(e, SyntaxError):
        trace = e.__traceback__
    _raised(type(e).__name__, str(e), "".join(traceback.format_exception(type(e), e, trace)))


def run(text, shown, space):
    """Runs a program in a module's names, and returns what it returns to the host."""
    process = os.getpid()
    try:
        code, awaits = _compiled(text, shown)
        value = types.FunctionType(code, space)()
        if awaits:
            import asyncio

            value = asyncio.run(value)
    except SystemExit:
        raise
    except BaseException as e:
        if os.getpid() != process:
            raise
        _failed(e, shown)
    if os.getpid() != process:
        return  # a child of the program, whose value nobody waits for
    try:
        text = json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError, MemoryError) as e:
        _raised("value", "the program returned what is not JSON: %s" % e, "")
    try:
        _say('{"return": %s}' % text)
    except caisson_tools.ToolError as e:
        _raised("value", str(e), "")


def _start():
    import __main__

    del sys.argv[0]
    sys.path[0] = ""
    with open(sys.argv[0], "rb") as f:
        text = f.read()
    space = __main__.__dict__
    for name in [n for n in space if not n.startswith("__")]:
        del space[name]
    space["__file__"], space["__doc__"] = sys.argv[0], None
    run(text, sys.argv[0], space)


if __name__ == "__main__":
    __import__("caisson_program")._start()
