"""Values as data: there and back, and a decoder that strangers write for."""

import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import pathlib
import random
import struct
import tracemalloc
import unittest
import uuid
from typing import Any

from caisson.values import MAGIC, ValueFormatError, decode, encode

try:
    import numpy
except ImportError:
    numpy = None


class Kind(enum.Enum):
    ONE = 1


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any = None


@dataclasses.dataclass(frozen=True)
class Key:
    a: Any

    def __post_init__(self):
        assert not getattr(self, "closed", False), "the decoder calls no constructor"


class Plain:
    def __init__(self):
        self.x = 1

    def __setattr__(self, name, value):
        if name == "trap":
            raise AssertionError("the decoder calls no method")
        object.__setattr__(self, name, value)


KNOWN = {"Kind": Kind, "Pair": Pair, "Key": Key, "Plain": Plain}
EAST = datetime.timezone(datetime.timedelta(hours=3))
VALUES = [
    None, True, False, 0, -1, 1 << 53, -(1 << 2000), 10**5000, 0.1, -0.0, math.inf, 1e308, 2 + 3j, "", "é\0\ud800", b"", bytes(range(256)),
    bytearray(b"x"), [], [1, [2]], (), (1, (2,)), {}, {1: "a", "1": "b", (1, 2): None, None: 3, 1.5: 4}, set(), {1, "a", (2,)}, frozenset({frozenset()}),
    datetime.datetime(2020, 1, 2, 3, 4, 5, 6), datetime.datetime(2020, 1, 2, tzinfo=EAST, fold=1), datetime.date(1, 1, 1), datetime.time(1, 2, 3),
    datetime.timedelta(-1, 2, 3), decimal.Decimal("-1.50E+10"), decimal.Decimal("Infinity"), fractions.Fraction(1, 3), uuid.UUID(int=5),
    pathlib.Path("/a/b"), pathlib.PurePosixPath("a"), Kind.ONE, Pair([1], Kind.ONE), Key((1, 2)), {Key(1): {Key((2, "x"))}}, frozenset({Key((1, Kind.ONE))}),
]  # fmt: skip


def message(root, *nodes, blob=b""):
    header = json.dumps([root, list(nodes)]).encode()
    return MAGIC + struct.pack("!Q", len(header)) + header + blob


class TestThereAndBack(unittest.TestCase):
    def test_values(self):
        for i, v in enumerate(VALUES):
            with self.subTest(i):
                got = decode(encode(v, KNOWN), KNOWN)
                self.assertEqual((got, type(got)), (v, type(v)))
        self.assertEqual(decode(encode(VALUES, KNOWN), KNOWN), VALUES)
        self.assertTrue(math.isnan(decode(encode(math.nan))))
        self.assertEqual(math.copysign(1, decode(encode(-0.0))), -1)
        self.assertEqual(vars(decode(encode(Plain(), KNOWN), KNOWN)), {"x": 1})

    def test_cycles_and_shared(self):
        shared = [1]
        both = decode(encode([shared, {"a": shared}, (shared,)]))
        self.assertTrue(both[0] is both[1]["a"] is both[2][0])
        loop = []
        loop.append((loop, {"self": loop}))
        got = decode(encode(loop))
        self.assertTrue(got[0][0] is got and got[0][1]["self"] is got)
        p = Pair(None)
        p.a = [p]
        got = decode(encode(p, KNOWN), KNOWN)
        self.assertIs(got.a[0], got)

    def test_deep(self):
        deep, flat = [], ()
        for _ in range(200_000):
            deep, flat = [deep], (flat,)
        for v in (deep, flat):
            got, n = decode(encode(v)), 0
            while got:
                got, n = got[0], n + 1
            self.assertEqual(n, 200_000)
            with self.assertRaises(ValueFormatError) as caught:
                encode([v, object()])
            self.assertIn("result[1]", str(caught.exception))

    def test_paths(self):
        for v, path in (
            ({"a": [1, {2: object()}]}, "result['a'][1][2]: a builtins.object"), (Pair((lambda: 1,)), "result.a[0]: a builtins.function"),
            ([type], "result[0]"), ({object(): 1}, "result.key[object]"), ([Exception()], "result[0]"), (open, "result: "),
        ):  # fmt: skip
            with self.assertRaises(ValueFormatError) as caught:
                encode(v, KNOWN)
            self.assertIn(path, str(caught.exception))

        class Sub(list):
            def __repr__(self):
                raise AssertionError

        self.assertRaises(ValueFormatError, encode, [Sub()])
        self.assertRaises(ValueFormatError, encode, Pair(1), {})
        self.assertRaisesRegex(ValueFormatError, "larger than 1000", encode, ["x" * 600, "y" * 600], None, 1000)

    @unittest.skipIf(numpy is None, "no numpy")
    def test_numpy(self):
        for a in (numpy.arange(6).reshape(2, 3), numpy.zeros((0, 3)), numpy.array(5.5), numpy.array(["a", "bc"]), numpy.array(["2020-01-01"], "M8[D]"), numpy.arange(10)[::2]):
            got = decode(encode(a))
            self.assertTrue((got == a).all() and got.dtype == a.dtype and got.shape == a.shape)
            got[...] = got  # it can be written to
        self.assertEqual(decode(encode(numpy.float32(1.5))), numpy.float32(1.5))
        with self.subTest("arrays stay where they are"):
            whole = bytearray(encode([numpy.arange(6), numpy.asfortranarray(numpy.arange(6).reshape(2, 3))]))
            one, two = decode(whole)
            self.assertTrue(one.flags.aligned and one.flags.writeable and not one.flags.owndata)
            one[0] = 7
            self.assertEqual((decode(bytes(whole))[0][0], two.tolist()), (7, [[0, 1, 2], [3, 4, 5]]))
        with self.subTest("never two in one place"):
            forged = encode([numpy.arange(6), numpy.arange(6, 12)]).replace(b"[6],64,48]", b"[6],32,48]")
            self.assertEqual(decode(forged)[0].tolist(), [10, 11, 0, 0, 0, 1])
            self.assertRaisesRegex(ValueFormatError, "one place", decode, bytearray(forged))
        self.assertRaisesRegex(ValueFormatError, "object", encode, numpy.array([object()]))
        for bad in (["a", "O", [1], 0, 8], ["a", "<f8", [2], 0, 8], ["a", "<f8", [-1], 0, 8], ["a", "<f8,<f8", [1], 0, 16], ["a", "<f8", [1 << 62], 0, 0]):
            self.assertRaises(ValueFormatError, decode, message([0], bad, blob=bytes(16)))


class TestStrangers(unittest.TestCase):
    def test_wrong(self):
        for bad in (
            b"", MAGIC, MAGIC + b"\xff" * 8, b"x" * 100, message([5]), message([-1]), message(["a"]), message({}), message([0], ["?"]), message([0], []),
            message([0], 5), message([0], ["t", [0]]), message([0], ["t", [1]], ["z", [0]]), message([0], ["s", [1]], ["l"]), message([0], ["d", 1]),
            message([0], ["b", 0, 1 << 40]), message([0], ["b", -1, 1]), message([0], ["b", 0.0, 1]), message([0], ["i", "9" * 5 + "g"]), message([0], ["e", "os", "x"]),
            message([0], ["e", "Kind", "TWO"]), message([0], ["e", "Pair", "a"]), message([0], ["o", "builtins.object"]), message([0], ["o", "Pair", "c", 1]),
            message([0], ["o", "Pair", "__class__", 1]), message([0], ["o", "Kind", "x", 1]), message([0], ["o", "Plain", "__dict__", 1]), message([0], ["U", "x"]),
            message([0], ["T", "x", 0]), message([0], ["N", [0]]), MAGIC + struct.pack("!Q", 30_000) + b"[" * 30_000, MAGIC + struct.pack("!Q", 9_000) + b"9" * 9_000,
        ):  # fmt: skip
            with self.subTest(bad[:80]):
                self.assertRaises(ValueFormatError, decode, bad, KNOWN)
        got = decode(message([0], ["o", "Plain", "trap", 1]), KNOWN)  # no method of the class had a word
        self.assertEqual(vars(got), {"trap": 1})

    def test_bounded(self):
        many = message([0], ["l", *([n + 1] for n in range(1000))], *(["b", 0, 1 << 20] for _ in range(1000)), blob=bytes(1 << 20))
        wide = message([0], *([["l"]] * 200_000))
        tracemalloc.start()
        try:
            for bad in (many, wide, b"x" * (5 << 20)):
                self.assertRaises(ValueFormatError, decode, bad, KNOWN, 4 << 20)
            self.assertLess(tracemalloc.get_traced_memory()[1], 12 << 20)
        finally:
            tracemalloc.stop()

    def test_fuzzed(self):
        chance = random.Random(5)
        whole = encode([VALUES, b"blob" * 10], KNOWN)
        texts = [b'"o"', b'"Pair"', b'["d",', b"[0]", b"[9]", b"-", b"1e999", b"NaN", b"null", b"[[", b'"a"', b'"t"', b'"z"', b"99999999"]
        decoded = 0
        for _ in range(20_000):
            b = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(b))
                if chance.random() < 0.5:
                    b[at] = chance.randrange(256)
                else:
                    b[at : at + chance.randint(0, 4)] = chance.choice(texts)
            (n,) = struct.unpack("!Q", whole[8:16])
            b[8:16] = struct.pack("!Q", max(0, n + len(b) - len(whole)))  # made to fit, so that what is behind it is reached
            try:
                decode(bytes(b), KNOWN, 1 << 20)
                decoded += 1
            except ValueFormatError:
                pass  # anything else fails the test
        self.assertGreater(decoded, 100)


if __name__ == "__main__":
    unittest.main()
