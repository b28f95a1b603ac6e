"""Builds the wheel and the source archive with the standard library alone (PEP 517).

pip and build use it as the backend of pyproject.toml; `make sdk` calls it as a program:
python3 caisson_build.py FOLDER. The same sources give the same bytes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "caisson" / "__init__.py").read_text()).group(1)  # type: ignore[union-attr]
NAME = f"caisson-{VERSION}"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip archive can say


def metadata() -> str:
    """Return what the package says of itself."""
    head = {
        "Metadata-Version": "2.1", "Name": "caisson", "Version": VERSION, "Summary": "Run code that nobody has read yet, in sandboxes",
        "Requires-Python": ">=3.9", "Description-Content-Type": "text/markdown",
    }  # fmt: skip
    return "".join(f"{k}: {v}\n" for k, v in head.items()) + "\n" + (ROOT / "README.md").read_text()


def sources() -> List[str]:
    """Return the files of the package, below the root."""
    found = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "caisson").rglob("*") if p.is_file())
    return [p for p in found if "__pycache__" not in p]


def build_wheel(folder: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    """Write the wheel into a folder and return its name."""
    info = f"{NAME}.dist-info/"
    files: Dict[str, bytes] = {p: (ROOT / p).read_bytes() for p in sources()}
    files[info + "METADATA"] = metadata().encode()
    files[info + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: caisson_build\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{p},sha256={_digest(b)},{len(b)}\n" for p, b in files.items()) + info + "RECORD,,\n"
    files[info + "RECORD"] = record.encode()
    name = f"{NAME}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, content)
    return name


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def build_sdist(folder: str, config_settings: Any = None) -> str:
    """Write the source archive into a folder and return its name."""
    tests = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").glob("*.py"))
    files = {p: (ROOT / p).read_bytes() for p in [*sources(), *tests, "README.md", "pyproject.toml", "packaging/caisson_build.py"]}
    files["PKG-INFO"] = metadata().encode()
    name = f"{NAME}.tar.gz"
    with open(os.path.join(folder, name), "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, content in files.items():
                entry = tarfile.TarInfo(f"{NAME}/{path}")
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
    return name


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for build in (build_wheel, build_sdist):
        print(os.path.join(sys.argv[1], build(sys.argv[1])))
