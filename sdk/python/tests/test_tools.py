"""Tools: functions of this program that are called from inside."""

import asyncio
import dataclasses
import datetime
import enum
import os
import threading
import unittest
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple, TypedDict, Union

import caisson
from caisson import AsyncSandbox, Client, InvalidError, Sandbox, sandbox_run, tool
from caisson._tools import Tool, form_of

HERE = os.getpid()
asked = []


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


class Options(TypedDict):
    deep: bool


@dataclasses.dataclass
class Chain:
    next: Optional["Chain"]


@tool(timeout=20)
def search(query: str, limit: int = 3, *, colour: Colour = Colour.RED) -> List[str]:
    """Search the catalogue.

    It knows all.

    Args:
        query: what is sought,
            in words
        limit (int): how many at most
    """
    asked.append((query, limit, colour, os.getpid()))
    return [f"{query} {i}" for i in range(limit)]


@tool
async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n * 2


def plain(data: bytes, point: Point) -> bytes:
    return data[::-1] + str(point.x + point.y).encode()


def fails(what: str):
    if what == "value":
        raise ValueError("no such value")
    if what == "known":
        raise caisson.ExhaustedError("all used up", "come back later")
    if what == "silent":
        raise LookupError
    if what == "shapeless":
        return object()
    raise SystemExit(3)


class TestDeclarations(unittest.TestCase):
    def test_signature(self):
        self.assertEqual(search.declaration, {
            "name": "search", "timeout_ms": 20_000, "description": "Search the catalogue.\n\nIt knows all.",
            "parameters": {
                "type": "object", "required": ["query"], "additionalProperties": False,
                "properties": {
                    "query": {"type": "string", "description": "what is sought, in words"},
                    "limit": {"type": "integer", "description": "how many at most", "default": 3},
                    "colour": {"enum": ["red", "blue"], "default": "red"},
                },
            },
            "result": {"type": "array", "items": {"type": "string"}},
        })  # fmt: skip
        self.assertEqual(search("a", 1), ["a 0"])  # it is the function here

    def test_described_by_param(self):
        def f(a: int, **rest: float) -> None:
            """Do it.

            :param int a: how often
            :returns: nothing
            """

        got = Tool(f, name="do-it").declaration
        self.assertEqual((got["name"], got["description"]), ("do-it", "Do it."))
        self.assertEqual(got["parameters"]["properties"], {"a": {"type": "integer", "description": "how often"}})
        self.assertEqual((got["parameters"]["additionalProperties"], got["result"]), ({"type": "number"}, {"type": "null"}))

    def test_types(self):
        day = datetime.date(2024, 2, 29)
        for hint, schema, data, value in (
            (Any, {}, [1], [1]),
            (float, {"type": "number"}, 1, 1.0),
            (bytes, {"type": "string", "contentEncoding": "base64"}, "AP8=", b"\0\xff"),
            (Optional[int], {"type": ["integer", "null"]}, None, None),
            (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "1", "1"),
            (Literal["a", 1], {"enum": ["a", 1]}, 1, 1),
            (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1], (1,)),
            (Dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}, {"a": True}, {"a": True}),
            (datetime.date, {"type": "string"}, "2024-02-29", day),
            (Annotated[int, "how many"], {"type": "integer", "description": "how many"}, 1, 1),
            (Options, {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"], "additionalProperties": False}, {"deep": True}, {"deep": True}),
        ):
            with self.subTest(hint):
                made, read = form_of(hint, "x")
                self.assertEqual((made, read(data)), (schema, value))
        schema, read = form_of(List[Point], "x")
        self.assertEqual((schema["items"]["required"], read([{"x": 1}])), (["x"], [Point(1)]))
        for hint, data in ((int, True), (str, 1), (Literal["a"], "b"), (Colour, "green"), (bytes, "*"), (Tuple[int, ...], {})):
            with self.subTest(hint, data=data), self.assertRaises(ValueError):
                form_of(hint, "x")[1](data)
        for hint in (threading.Thread, Dict[int, str], Chain, List[object]):
            with self.subTest(hint), self.assertRaises(InvalidError):
                form_of(hint, "x")

    def test_refused(self):
        def rest(*all: int):
            pass

        def unknown(a: "NoSuchType"):  # noqa: F821
            pass

        for f in (rest, unknown, 5):
            with self.subTest(f), self.assertRaises(InvalidError):
                Tool(f)
        with self.assertRaises(InvalidError):
            tool(colour="red")(plain)
        for given in ("search", search, 5):
            with self.subTest(given), self.assertRaises(InvalidError):
                Client().run("true", tools=given)


class TestCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sb = Sandbox(timeout=60).start()

    @classmethod
    def tearDownClass(cls):
        cls.sb.close()

    def run_code(self, code, **options):
        r = self.sb.run_code(code, **options)
        self.assertEqual(r.status, "success", r.stderr)
        return r.stdout

    def test_call(self):
        asked.clear()
        out = self.run_code("import os\nprint(search('x', colour='blue'), search.__doc__.split('.')[0], os.getpid())", tools=[search])
        self.assertTrue(out.startswith("['x 0', 'x 1', 'x 2'] Search the catalogue "), out)
        self.assertEqual(asked, [("x", 3, Colour.BLUE, HERE)])
        self.assertEqual(self.run_code("print(plain(b'\\0ab', {'x': 2}))", tools=[plain]), "b'ba\\x002.5'\n")
        with self.subTest("a shell"):
            self.assertEqual(self.run_code("tool search --query y --limit 1", language="shell", tools=[search]), '["y 0"]\n')
        with self.subTest("as it streams"), self.sb.exec(["tool", "search", "--query", "z", "--limit", "1"], stream=True, tools=[search]) as run:
            self.assertEqual("".join(p.text for p in run), '["z 0"]\n')
        with self.subTest("a run of its own"):
            self.assertEqual(Client().run_code("print(search('q', 1))", tools=[search]).stdout, "['q 0']\n")
        with self.subTest("a bound method"):
            self.assertEqual(self.run_code("print(upper(text='a'))", tools=[Holder("!").upper]), "A!\n")

    def test_errors(self):
        code = "import tools\ntry:\n    print(fails(%r))\nexcept tools.ToolError as e:\n    print(type(e).__name__, e.kind, e.message, e.hint)"
        for what, said in (
            ("value", "Invalid invalid ValueError: no such value \n"),
            ("known", "Exhausted exhausted all used up come back later\n"),
            ("silent", "NotFound not_found LookupError \n"),
            ("shapeless", "ToolError internal TypeError: a object is nothing that a tool can answer \n"),
            ("exit", "ToolError internal SystemExit: 3 \n"),
        ):
            with self.subTest(what):
                self.assertEqual(self.run_code(code % what, tools=[fails]), said)
        with self.subTest("arguments that do not fit are asked of nobody"):
            asked.clear()
            self.assertIn("invalid", self.run_code("import tools\ntry:\n    search(query=5)\nexcept tools.Invalid as e:\n    print(e.kind)", tools=[search]))
            self.assertEqual(asked, [])

    def test_named_alone(self):
        r = self.sb.run_code("search('x')", tools=[plain])
        self.assertEqual(r.status, "error")
        self.assertIn("NameError", r.stderr)
        with self.assertRaises(caisson.NotFoundError):
            self.sb.run("true", tools=["no_such_tool"])
        with self.assertRaises(InvalidError):
            self.sb.exec("true", tools=[plain], background=True)

    def test_program(self):
        r = self.sb.run_code("print('out')\n{'found': await search('x', limit=1)}", tools=[search], program=True)
        self.assertEqual((r.status, r.value, r.stdout, [c.tool for c in r.calls]), ("success", {"found": ["x 0"]}, "out\n", ["search"]))
        self.assertEqual(r.to_dict()["value"], {"found": ["x 0"]})
        r = Client().run_code("return 1 / 0", program=True)
        self.assertEqual((r.status, r.value, r.program.error.kind), ("error", None, "ZeroDivisionError"))
        self.assertIn("line 1, in <module>", r.error)
        self.assertIsNone(self.sb.run_code("print(1)").program)

    def test_at_once(self):
        barrier = threading.Barrier(8)

        @tool
        def meet(n: int) -> int:
            barrier.wait(60)  # nobody passes before all are here
            return n

        code = "print(sorted(await asyncio.gather(*[meet(i) for i in range(8)])))"
        self.assertEqual(self.run_code(code, tools=[meet]), str(list(range(8))) + "\n")

    def test_given_up(self):
        held, begun = threading.Event(), threading.Event()

        @tool
        def slow() -> str:
            begun.set()
            held.wait(60)
            return "late"

        try:
            r = self.sb.run_code("slow()", tools=[slow], timeout=15)
            self.assertEqual((r.exit_reason, begun.is_set()), ("timeout", True))
        finally:
            held.set()
        self.assertEqual(self.run_code("print(1)"), "1\n")

    def test_async(self):
        self.assertEqual(self.run_code("print(later(4))", tools=[later]), "8\n")

        async def main():
            loops = []

            @tool
            async def where() -> int:
                loops.append(asyncio.get_running_loop())
                return 1

            async with AsyncSandbox(name=self.sb.name, attach=True) as sb:
                r = await sb.run_code("print(where())", tools=[where])
                run = await sb.exec(["tool", "where"], stream=True, tools=[where])
                out = "".join([p.text async for p in run])
            called = await asks_later.with_options(tools=[where])(3)
            return r.stdout, out, called, [loop is asyncio.get_running_loop() for loop in loops]

        asks_later.with_options(tools=[])
        self.assertEqual(asyncio.run(main()), ("1\n", "1\n", 4, [True] * 3))


class Holder:
    def __init__(self, end):
        self.end = end

    def upper(self, text: str) -> str:
        return text.upper() + self.end


@sandbox_run(tools=[search, plain])
def asks(n):
    return os.getpid(), search("inside", n), plain(b"ab", {"x": 1}), helper()


@sandbox_run
async def asks_later(n):
    import tools

    return n + await tools.where()


def helper():
    return search("helper", 1)


@sandbox_run(tools=[later])
def not_named():
    return search("x")


class TestFunctions(unittest.TestCase):
    def test_tools(self):
        asked.clear()
        _, found, data, helped = asks(2)
        self.assertEqual((found, data, helped), (["inside 0", "inside 1"], b"ba1.5", ["helper 0"]))
        self.assertEqual([a[3] for a in asked], [HERE, HERE])
        with self.assertRaisesRegex(InvalidError, "search is a tool"):
            not_named()

    def test_error_inside(self):
        @sandbox_run(tools=[fails])
        def caught():
            import tools

            try:
                fails("value")
            except tools.Invalid as e:
                return e.kind, e.message

        self.assertEqual(caught(), ("invalid", "ValueError: no such value"))
        outcome = sandbox_run(lets_pass, tools=[fails]).outcome()
        self.assertIsInstance(outcome.error, caisson.RemoteError)
        self.assertIn("no such value", str(outcome.error))


def lets_pass():
    fails("value")
