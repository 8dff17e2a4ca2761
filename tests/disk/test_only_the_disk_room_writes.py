"""Nothing outside of `overheard.disk` makes, replaces or removes files and folders."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import overheard
import overheard_studies

PACKAGES = (Path(overheard.__file__).parent, Path(overheard_studies.__file__).parent)

METHODS = re.compile(
    "write_text|write_bytes|mkdir|touch|rename|unlink|rmdir|symlink_to|hardlink_to|chmod"
    "|lchmod|tofile|to_csv|to_parquet|to_pickle|save_file"
)
"""Methods of any object; those of paths, arrays and tables write."""

OS_NAMES = re.compile(
    "mkdir|makedirs|mkfifo|mknod|link|symlink|rename|renames|replace|remove|removedirs|unlink"
    "|rmdir|f?truncate|[fl]?chmod|[fl]?chown|O_WRONLY|O_RDWR|O_CREAT|O_APPEND|O_TRUNC|O_EXCL"
)

HARMLESS = {"shutil": frozenset({"disk_usage", "get_terminal_size", "which"})}
"""What may be used of a module that otherwise writes."""

EXPLAINED = {
    "cli/exits.py: os.O_WRONLY": "opens the null device",
    "auditing/canaries.py: np.savez": "writes to memory",
    "recorders/nvflare_contents.py: np.memmap": "asks whether an array is one",
    "report/release/released_findings.py: .rename()": "gives a name in findings another one",
    "report/release/safe_texts.py: .rename()": "gives a name in findings another one",
    "learning/workers/worker.py: .tofile()": "writes to a folder of tempfile",
    "doctor/trial/trial_run.py: open() for writing": "writes to a folder of tempfile",
}
"""Uses that write nothing to the disk, with the reason."""


def writes(tree: ast.AST) -> Iterator[str]:
    """Yield how a module writes to the disk."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name("os"), name) if OS_NAMES.fullmatch(name):
                yield f"os.{name}"
            case ast.Attribute(ast.Name("shutil"), name) if name not in HARMLESS["shutil"]:
                yield f"shutil.{name}"
            case ast.Attribute(ast.Name("np" | "numpy" | "torch"), "save" | "savez" | "memmap"):
                yield f"{ast.unparse(node)}"
            case ast.ImportFrom("os" | "shutil", names):
                yield from (f"from {node.module} import {one.name}" for one in names)
            case ast.Call(ast.Attribute(_, name)) if METHODS.fullmatch(name):
                yield f".{name}()"
            # `str.replace` takes two texts, `Path.replace` one path.
            case ast.Call(ast.Attribute(_, "replace"), [_], []):
                yield ".replace()"
            case ast.Call(ast.Name("open") | ast.Attribute(_, "open" | "fdopen")):
                if not all(map(_is_reading, _modes(node))):
                    yield "open() for writing"


def _modes(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what may be the mode of a call of `open`, or of `Path.open`."""
    is_method = isinstance(call.func, ast.Attribute)
    yield from call.args[0 if is_method else 1 :]
    yield from (one.value for one in call.keywords if one.arg in ("mode", None))


def _is_reading(mode: ast.expr) -> bool:
    """Return whether a mode opens to read; names of other types are no modes."""
    if not isinstance(mode, ast.Constant):
        return isinstance(mode, ast.Name | ast.Attribute | ast.BinOp | ast.Call | ast.Subscript)
    return not (isinstance(mode.value, str) and set(mode.value) & set("wax+"))


def test_nothing_else_writes() -> None:
    found = {
        f"{path.relative_to(package).as_posix()}: {how}"
        for package in PACKAGES
        for path in package.rglob("*.py")
        if (package / "disk") not in path.parents
        for how in writes(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == EXPLAINED.keys()


@pytest.mark.parametrize(
    "code",
    [
        'open(path, "w")',
        'open(path, mode="a")',
        'path.open("xb")',
        'path.open(mode="r+b")',
        'gzip.open(path, "wb")',
        'os.fdopen(handle, "wb")',
        "os.open(path, os.O_RDWR)",
        'path.write_text("")',
        "path.with_name(name).unlink()",
        "path.replace(other)",
        "os.replace(path, other)",
        "call(os.remove)",
        "weakref.finalize(one, shutil.rmtree, folder)",
        "from shutil import copy",
        "np.save(path, array)",
    ],
)
def test_notices_code_that_writes(code: str) -> None:
    assert list(writes(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "open(path)",
        'path.open("rb")',
        'gzip.open(path, "rt")',
        "archive.open(entry)",
        "os.open(path, os.O_RDONLY)",
        'text.replace("a", "b")',
        "date.replace(tzinfo=UTC)",
        "shutil.disk_usage(path)",
    ],
)
def test_lets_code_pass_that_reads(code: str) -> None:
    assert list(writes(ast.parse(code))) == []
