"""Digests of the source code that stored results depend on."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import final
from uuid import uuid4

import overheard
from overheard.core.custom_code.reference import find_module_file, references_of

PACKAGE = "overheard"

IMPORT_STATEMENT = re.compile(
    rb"^[ \t]*(?:import [\w., ]+|from [\w.]+ import (?:\([^()]*\)|[\w., *]+))$", re.MULTILINE
)
"""An import on lines of its own."""

OTHER_IMPORT = re.compile(rb"\bimport\b|\\\n")
"""What may be an import after all those are left out, also one that a backslash continues."""

INSTALLED_FOLDERS = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, whose code is that of a release."""

SIMULATING_PACKAGES = (
    "core",
    "data",
    "defenses",
    "learning",
    "linkage",
    "questions",
    "simulation",
    "statistics",
)
"""The packages of Overheard that the stored results of simulations depend on."""


def code_digest(modules: Iterable[str], plugins: Iterable[object]) -> str:
    """Return a digest of all code that modules and plugins depend on, 24 hexadecimal digits.

    It covers the source files of the modules, of the plugins' classes, of functions that their
    settings name, and of everything that those files import. Of other packages it covers those
    of the plugins, and modules outside of the folders of installed packages. It does not cover
    code that is imported by a name computed at run time. It is the same on every machine.

    A class without a source file, as typed into a notebook, gives another digest each time.

    Args:
        modules: dotted names of modules.
        plugins: objects with settings, such as attacks and defenses; None is left out.

    """
    return _digest(_needed_files(modules, plugins))


def file_digests(modules: Iterable[str], plugins: Iterable[object]) -> Mapping[str, str]:
    """Return a digest of each file that `code_digest` covers, by the name of its module."""
    return {name: file.digest for name, file in sorted(_needed_files(modules, plugins).items())}


def simulation_digest(plugins: Iterable[object]) -> str:
    """Return a digest of the code of simulations: Overheard's own, and that of the plugins.

    Attacks of Overheard have the same digest, so that they share simulations.
    """
    files = {
        name: file
        for name, file in _needed_files((), plugins).items()
        if not _is_inside(name, PACKAGE)
    }
    return _digest(files, _simulating_code())


@final
@dataclass(frozen=True, slots=True)
class _SourceFile:
    """The digest of a module's file and the names of all modules that it may import.

    Importing a module imports the packages above it, too.
    """

    digest: str
    imported: frozenset[str]


def _digest(files: Mapping[str, _SourceFile], begin: str = "") -> str:
    digest = blake2b(begin.encode(), digest_size=12)
    for name, file in sorted(files.items()):
        digest.update(f"{name} {file.digest}\n".encode())
    return digest.hexdigest()


@cache
def _simulating_code() -> str:
    home = Path(overheard.__file__).parent
    digest = blake2b(digest_size=12)
    for package in SIMULATING_PACKAGES:
        for path in sorted((home / package).rglob("*.py")):
            digest.update(f"{path.relative_to(home).as_posix()}\n".encode())
            digest.update(_read_text(path))
    return digest.hexdigest()


def _needed_files(
    modules: Iterable[str], plugins: Iterable[object]
) -> Mapping[str, _SourceFile]:
    """Return the files that modules and plugins depend on, by the names of their modules."""
    named = [*modules, *(name for plugin in plugins for name in _modules_of(plugin))]
    # The packages of plugins are followed although they are installed.
    followed = frozenset(name.partition(".")[0] for name in named)
    found, pending = dict[str, _SourceFile](), list(dict.fromkeys(named))
    met = set(pending)
    while pending:
        name = pending.pop()
        file = _source_file(name)
        if file is None:
            if name in named:
                # No source is known, so nothing stored may be used again.
                found[name] = _SourceFile(uuid4().hex, frozenset())
            continue
        found[name] = file
        # Most modules are imported by many files: each is looked at once.
        new = file.imported - met
        met |= new
        pending += [one for one in new if _is_followed(one, followed)]
    return found


def _modules_of(plugin: object) -> Iterator[str]:
    """Yield the module of a plugin's class, and those of functions that its settings name."""
    if plugin is None:
        return
    yield type(plugin).__module__
    yield from (reference.partition(":")[0] for reference in references_of(plugin))


def _is_followed(name: str, packages: frozenset[str]) -> bool:
    """Return whether an imported module counts as code that may change between audits."""
    top = name.partition(".")[0]
    if top == PACKAGE or top in packages:
        return True
    return top not in sys.stdlib_module_names and _is_outside_installed(top)


@cache
def _is_outside_installed(top: str) -> bool:
    path = find_module_file(top)
    return path is not None and not INSTALLED_FOLDERS & set(path.parts)


def _source_file(name: str) -> _SourceFile | None:
    """Return the file of a module as it was when the module was loaded; None if it has none."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    # A module that is loaded again has another spec.
    loaded = _LOADED.get(name)
    if spec is not None and loaded is not None and loaded[0] is spec:
        return loaded[1]
    path = find_module_file(name)
    if path is None:
        return None
    stat = path.stat()
    file = _read_source(name, path, stat.st_mtime_ns, stat.st_size)
    if spec is not None:
        _LOADED[name] = (spec, file)
    return file


_LOADED = dict[str, tuple[object, _SourceFile]]()
"""By module, its spec and its file; later changes of the file do not change loaded code."""


@cache
def _read_source(name: str, path: Path, changed: int, size: int) -> _SourceFile:
    content = _read_text(path)
    digest = blake2b(content, digest_size=8).hexdigest()
    above = frozenset(_parents(name))
    try:
        tree = _parse_imports(content)
    except (SyntaxError, ValueError):
        # A compiled module; its bytes are all that is known of it.
        return _SourceFile(digest, above)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return _SourceFile(digest, above.union(_imported(tree, package)))


def _read_text(path: Path) -> bytes:
    # A checkout may have other ends of lines.
    return path.read_bytes().replace(b"\r\n", b"\n")


def _parse_imports(content: bytes) -> ast.AST:
    """Parse the imports of a file alone, or all of it if that might miss one: it takes long."""
    if not OTHER_IMPORT.search(IMPORT_STATEMENT.sub(b"", content)):
        statements = (one.strip() for one in IMPORT_STATEMENT.findall(content))
        with suppress(SyntaxError):  # such as a line of a docstring
            return ast.parse(b"\n".join(statements))
    return ast.parse(content)


def _imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the absolute names of all modules that a file may import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = [*(above if node.level else ()), *([node.module] if node.module else ())]
            source = ".".join(parts)
            yield source
            # A name that is imported from a package may be a module too.
            if not _is_plain_module(source):
                yield from (f"{source}.{alias.name}" for alias in node.names)


def _is_plain_module(name: str) -> bool:
    """Return whether a module is a file of its own, so that no modules are inside."""
    path = find_module_file(name)
    return path is not None and path.name != "__init__.py"


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _is_inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")
