"""What the package is made of: archives, types' reading, and the documents' examples."""

import ast
import contextlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

from caisson import Artifact, InvalidError, Result, types
from caisson.client import limits_of, size_of

ROOT = Path(__file__).resolve().parents[1]


class TestDocuments(unittest.TestCase):
    def test_examples_run(self):
        ran = 0
        for document in (ROOT / "README.md", ROOT.parents[1] / "README.md"):
            if not document.exists():  # in a source archive
                continue
            for block in re.findall(r"^```python\n(.*?)^```", document.read_text(), re.S | re.M):
                with self.subTest(document=str(document)), contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
                    program = Path(folder) / "example.py"  # functions need a file to be read from
                    program.write_text(block)
                    done = subprocess.run([sys.executable, program], env=with_package(), capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                ran += 1
        self.assertGreaterEqual(ran, 1)


def with_package():
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT)}


class TestSources(unittest.TestCase):
    def test_of_python_3_9_alone(self):
        for path in (ROOT / "caisson").glob("*.py"):
            tree = ast.parse(path.read_text(), feature_version=(3, 9))
            imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
            imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level}
            unknown = {m.split(".")[0] for m in imported} - set(getattr(sys, "stdlib_module_names", imported)) - {"numpy", "caisson_values", "caisson_call"}
            self.assertEqual((unknown if hasattr(sys, "stdlib_module_names") else set(), path.name), (set(), path.name))

    def test_decoder_runs_nothing(self):
        tree = ast.parse((ROOT / "caisson" / "values.py").read_text())
        called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        self.assertEqual(called & {"eval", "exec", "__import__", "compile", "open"}, set())
        self.assertNotIn("pickle", (ROOT / "caisson" / "functions.py").read_text() + (ROOT / "caisson" / "values.py").read_text())


class TestArchives(unittest.TestCase):
    def test_built_alike(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            for folder in (one, two):
                subprocess.run([sys.executable, ROOT / "packaging" / "caisson_build.py", folder], check=True, capture_output=True)
            names = sorted(p.name for p in Path(one).iterdir())
            self.assertEqual(len(names), 2)
            for name in names:
                self.assertEqual((Path(one) / name).read_bytes(), (Path(two) / name).read_bytes())
            wheel, archive = Path(one) / names[0], Path(one) / names[1]
            with zipfile.ZipFile(wheel) as z:
                self.assertLessEqual({"caisson/__init__.py", "caisson/py.typed"}, set(z.namelist()))
            code = "import caisson; print(caisson.__file__)"
            said = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(wheel)}, cwd=one, check=True, capture_output=True, text=True)
            self.assertIn(".whl", said.stdout)
            with tarfile.open(archive) as t:
                self.assertTrue(any(n.endswith("/pyproject.toml") for n in t.getnames()))


class TestTypes(unittest.TestCase):
    def test_read(self):
        r = types.read(Result, {"exit_code": 1, "exit_reason": "exited", "stdout_base64": "/w==", "stderr": "é", "newer": 1, "usage": {"cpu_ms": 5}})
        self.assertEqual((r.stdout_bytes, r.stderr_bytes, r.stdout, r.usage.cpu_ms), (b"\xff", "é".encode(), "\ufffd", 5))

    def test_artifacts_stay_in_their_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(Artifact("a/b", data=b"x").save(folder).read_bytes(), b"x")
            (Path(folder) / "link").symlink_to("/tmp")
            for path in ("../x", "/x", "a/../../x", "link/x", "", "a//b", "a\0b"):
                self.assertRaises(InvalidError, Artifact(path, data=b"x").save, folder)
            (Path(folder) / "l2").symlink_to(Path(folder) / "elsewhere")
            self.assertRaises(OSError, Artifact("l2", data=b"x").save, folder)
            self.assertFalse((Path(folder) / "elsewhere").exists())
            self.assertRaises(InvalidError, Artifact("big", left="too large").save, folder)

    def test_sizes(self):
        self.assertEqual([size_of(s) for s in (5, "7", "2k", "1.5m", "4GiB", "1gb")], [5, 7, 2048, 3 << 19, 4 << 30, 1 << 30])
        for bad in ("", "x", "1q"):
            self.assertRaises(InvalidError, size_of, bad)
        self.assertEqual(limits_of("1k", None, 3), {"memory_bytes": 1024, "pids": 3})


if __name__ == "__main__":
    unittest.main()
