"""Reads the source files of an app; nothing is imported or run."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import final

from overheard.core.errors import PlanError
from overheard.disk.folders import walk_folders
from overheard.disk.limits import SOURCE_FILES, refuse_large
from overheard.disk.reading import parse_python, parse_toml, read_text
from overheard.doctor.source.nvflare_job import (
    NvflareJob,
    is_nvflare_job,
    read_nvflare_job,
)

MOST_FILES = 1000
"""The most source files, and the most folders, that are looked at."""

LEFT_OUT = re.compile(
    r"\..*|__pycache__|site-packages|node_modules|v?env|build|dist|tests?|.*\.egg-info"
)
"""Folders without the code of an app."""

COMPILED = (".pyc", ".so", ".pyd")
"""Modules without a source; compiled sources lie in `__pycache__`, which is left out."""

TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py|setup\.py")


@final
@dataclass(frozen=True, slots=True, eq=False)
class AppFile:
    """A parsed source file.

    Args:
        module: its dotted name.
        path: its path in the app.
        tree: its syntax.
        lines: its text by line.
        imports: full dotted name of each imported name.
        parents: of each node of its syntax, the node around it.

    """

    module: str
    path: str
    tree: ast.Module
    lines: tuple[str, ...]
    imports: Mapping[str, str]
    parents: Mapping[ast.AST, ast.AST]


@final
@dataclass(frozen=True, slots=True)
class AppFiles:
    """What was read of an app.

    Args:
        files: the files that could be parsed.
        unread: what could not be read and why, in sentences.
        config: the configuration of a Flower app, with dotted names.
        nodes: number of nodes that its configuration gives to a simulation; None = not stated.
        texts: text of each file that was read, by its path, with the configuration and with
            what could not be parsed.
        job: the settings of an NVFlare job; None = it is none.

    """

    files: tuple[AppFile, ...]
    unread: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict[str, object])
    nodes: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    job: NvflareJob | None = None


def read_app_files(path: Path) -> AppFiles:
    """Read a Python file, or all Python files of a folder but tests and environments.

    Of an NVFlare job the files of settings are read, too; it may have no Python file.

    Raises:
        PlanError: if none can be read, or they are too many or too large.

    """
    folder = path if path.is_dir() else path.parent
    files, unread, texts, size = list[AppFile](), list[str](), dict[str, str](), 0
    job = read_nvflare_job(path) if path.is_dir() and is_nvflare_job(path) else None
    if job is not None:
        texts |= job.texts
        unread += job.unread
    paths = sorted(_source_paths(path, unread)) if path.is_dir() else [path]
    if not paths and job is None:
        raise PlanError(f"{path}: has no Python files: name the folder of an app")
    if len(paths) > MOST_FILES:
        raise PlanError(
            f"{path}: has more than {MOST_FILES} Python files: name the folder of one app"
        )
    # An app may import itself by the name of its folder, as run from the folder above.
    own = f"{folder.resolve().name}."
    inside = {one.relative_to(folder).parts[0].removesuffix(".py") for one in paths}
    for one in paths:
        relative = one.relative_to(folder)
        try:
            text = read_text(one, PlanError, inside=folder, part=SOURCE_FILES)
        except PlanError as error:
            unread.append(f"{relative} was not read: {error}")
            continue
        size += len(text)
        refuse_large(f"{path}: the source code", size, PlanError, part=SOURCE_FILES)
        texts[relative.as_posix()] = text
        try:
            files.append(_parse(text, relative, own, inside))
        except SyntaxError as error:
            line = f", line {error.lineno}" if error.lineno else ""
            unread.append(f"{relative}{line} is no Python that can be read: {error.msg}")
    if not files and job is None:
        raise PlanError(f"{path}: has no Python that can be read: {unread[0]}")
    config, nodes = _read_config(folder, unread, texts)
    return AppFiles(tuple(files), tuple(unread), config, nodes, texts, job)


def digest_files(files: AppFiles) -> str:
    """Return the SHA-256 of the names and texts of all files that were read, in hexadecimal."""
    digest = sha256()
    for pair in sorted(files.texts.items()):
        for text in pair:
            content = text.encode("utf-8", "backslashreplace")
            digest.update(f"{len(content)}:".encode())
            digest.update(content)
    return digest.hexdigest()


def _source_paths(folder: Path, unread: list[str]) -> Iterator[Path]:
    """Yield the Python files in a folder; links and compiled modules are told as unread."""
    compiled = list[str]()
    for number, (place, folders, names) in enumerate(walk_folders(folder)):
        if number == MOST_FILES:
            raise PlanError(
                f"{folder}: has more than {MOST_FILES} folders: name the folder of one app"
            )
        folders[:] = [one for one in folders if not LEFT_OUT.fullmatch(one)]
        for name in names:
            if name.endswith(".py"):
                if not TEST_FILE.fullmatch(name):
                    yield place / name
            elif (place / name).is_symlink() and (place / name).is_dir():
                relative = (place / name).relative_to(folder)
                unread.append(f"{relative} was not read: it is a link to a folder")
            elif name.endswith(COMPILED):
                compiled.append((place / name).relative_to(folder).as_posix())
    if compiled:
        more = f" and {len(compiled) - 3} more" if len(compiled) > 3 else ""
        unread.append(f"{', '.join(sorted(compiled)[:3])}{more} cannot be read: compiled code")


def _parse(text: str, relative: Path, own: str, inside: set[str]) -> AppFile:
    tree = parse_python(text)
    module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
    parents = dict[ast.AST, ast.AST]()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        for child in ast.iter_child_nodes(node):
            parents[child] = node
            pending.append(child)
    is_package = relative.name == "__init__.py"
    imports = {
        name: dotted.removeprefix(own)
        if dotted.removeprefix(own).partition(".")[0] in inside
        else dotted
        for name, dotted in _imports(tree, module, is_package=is_package)
    }
    lines = tuple(text.splitlines())
    return AppFile(module, relative.as_posix(), tree, lines, imports, parents)


def _imports(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[tuple[str, str]]:
    """Yield the names that a file imports, with the full dotted names."""
    package = module.split(".")[: None if is_package else -1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                first = one.name.partition(".")[0]
                yield (one.asname, one.name) if one.asname else (first, first)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for one in node.names:
                yield one.asname or one.name, f"{source}.{one.name}"


def _read_config(
    folder: Path, unread: list[str], texts: dict[str, str]
) -> tuple[Mapping[str, object], int | None]:
    """Return the configuration of a Flower app, and its number of simulated nodes."""
    path = folder / "pyproject.toml"
    if not path.exists():
        return {}, None
    try:
        texts[path.name] = read_text(path, PlanError, inside=folder)
        content = parse_toml(texts[path.name], str(path), PlanError)
    except PlanError as error:
        unread.append(f"pyproject.toml was not read: {error}")
        return {}, None
    flower = dict(_flatten(content, "")).items()
    start, nodes = "tool.flwr.app.config.", None
    for name, value in flower:
        is_nodes = name.startswith("tool.flwr.federations.") and "num-supernodes" in name
        if is_nodes and isinstance(value, int):
            nodes = value
    config = {name.removeprefix(start): value for name, value in flower if start in name}
    return config, nodes


def _flatten(content: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    pending: list[tuple[str, object]] = [(prefix, content)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            dot = "." if name else ""
            pending += [(f"{name}{dot}{key}", inner) for key, inner in value.items()]
        else:
            yield name, value
