"""Every name in backticks exists, in docstrings, comments, messages and pages.

A value, which is no name of this project, stands in quotes within the backticks.
"""

import builtins
import keyword
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import click
import pytest
import typer
from pydantic import BaseModel

from overheard.cli.main import app

ROOT = Path(__file__).parent.parent

SOURCE = ROOT / "src" / "overheard"

FOLDERS = (
    "benchmarks", "docs", "examples", "integrations", "plans", "src", "studies", "tests",
    "versions", "website",
)  # fmt: skip

SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")

NAME = re.compile(r"([A-Za-z_][\w.]*)(?=$|\(|\[| ?= ?)")
"""The name that a span begins with: the whole span, or what is called, indexed or set."""

FILE = re.compile(r"[\w.-]+\.(?:csv|html|json|md|pdf|py|pyi|toml|xml)")

PATH = re.compile(r"\w[\w.-]*(?:/[\w.-]+)+\.(?:j2|md|py|toml|yml)")

FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)

DOCSTRING = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""')

DEFINED = re.compile(
    r"\b(?:def|class|import|as) (\w+)|\b(\w+): |\.(\w+)|^ {0,4}(\w+) = |[\"'](\w+)[\"']",
    re.MULTILINE,
)
"""Functions, classes, modules, parameters, fields, attributes, constants and keys."""

CLASS = re.compile(r"^class (\w+)(?:\(([^)]*)\))?:", re.MULTILINE)


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def files() -> frozenset[Path]:
    """Every file of the repository's folders."""
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*"))
    return frozenset(one for one in chain(ROOT.iterdir(), inside) if one.is_file())


@cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(SOURCE.rglob("*.py")))


@cache
def pages() -> tuple[Path, ...]:
    patterns = ("*.md", "docs/*.md", "examples/**/*.md")
    return tuple(sorted(path for pattern in patterns for path in ROOT.glob(pattern)))


@cache
def code_of(path: Path) -> str:
    """The code of a module, without docstrings, comments and what stands in backticks."""
    text = re.sub(r"`[^`\n]*`", "", DOCSTRING.sub('""', read(path)))
    return re.sub(r"(?m)(?:^|\s)#.*$", "", text)


@cache
def defined() -> frozenset[str]:
    """Every name that the source defines or imports, every file, and the words of Python."""
    names = chain.from_iterable(chain(*(DEFINED.findall(code_of(path)) for path in modules())))
    places = (part for path in files() for part in (path.name, path.stem, path.parent.name))
    return frozenset({*names, *places, *dir(builtins), *keyword.kwlist})


@cache
def written() -> frozenset[str]:
    """The same and every word of code: of tests, examples, plans, jobs and blocks of pages."""
    texts = [read(path) for path in files() if path.suffix in {".py", ".toml", ".yml"}]
    blocks = chain(*(FENCE.findall(read(page)) for page in pages()))
    code = " ".join([*texts, *blocks, read(ROOT / "Makefile")])
    return defined().union(re.findall(r"\w+", code), FILE.findall(code))


@cache
def classes() -> dict[str, list[tuple[Path, str]]]:
    """By class: the modules that define one of this name, each with its bases."""
    found = dict[str, list[tuple[Path, str]]]()
    for path in modules():
        for name, bases in CLASS.findall(code_of(path)):
            found.setdefault(name, []).append((path, bases))
    return found


def has_word(path: Path, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", code_of(path)) is not None


def has_member(owner: str, member: str) -> bool:
    """Whether the module of a class, or of one of its bases, has this word."""
    if owner == "BaseModel":
        return hasattr(BaseModel, member)
    return any(
        has_word(path, member)
        or any(has_member(base, member) for base in re.findall(r"\w+", bases) if base != owner)
        for path, bases in classes().get(owner, ())
    )


def in_module(parts: list[str], folders: list[Path]) -> bool:
    """Whether a dotted name is that of a module, or of something in one."""
    for folder in folders:
        for count in range(len(parts), 0, -1):
            path = folder.joinpath(*parts[:count])
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if file in files():
                    return count == len(parts) or has_word(file, parts[count])
    return False


@cache
def is_library(name: str) -> bool:
    """Whether this is an installed package, or one that an extra of this project is for."""
    extras = re.findall(r"^(\w+) = \[", read(ROOT / "pyproject.toml"), re.MULTILINE)
    return name in extras or find_spec(name) is not None


@cache
def is_literal(name: str) -> bool:
    """Whether the source has a text that is this name, such as that of a file or a score."""
    return any(f'"{name}"' in code_of(path) for path in modules())


def exists(span: str, place: Path) -> bool:
    """Whether the name exists that a text in backticks begins with.

    Args:
        span: such as "Seed", "knowledge.compute", "core.seeds.Seed" or "run(plan)".
        place: the file of the text.

    """
    found = NAME.match(span)
    if found is None:
        return True
    name = found[1]
    known = defined() if place.suffix == ".py" else written()
    if name.endswith("..."):
        return any(one.startswith(name[:-3]) for one in known)
    if name in known or is_literal(name):
        return True
    parts = name.removeprefix("overheard.").split(".")
    if FILE.fullmatch(name):
        return False
    if len(parts) == 1:
        return parts[0] in known or has_word(place, parts[0]) or is_library(parts[0])
    return is_member(parts, span, known, place)


def is_member(parts: list[str], span: str, known: frozenset[str], place: Path) -> bool:
    """Whether a dotted name is in the module, class or library that it begins with."""
    first, second, *_ = parts
    folders = [folder for folder in place.parents if folder.is_relative_to(SOURCE)]
    is_external = is_library(first) and not (SOURCE / first).is_dir()
    if is_external or in_module(parts, folders or [SOURCE]):
        return True
    camel = "".join(word[:1].upper() + word[1:] for word in first.split("_"))
    owners = [one for one in (first, camel, f"{camel}Plan") if one in classes()]
    if any(has_member(owner, second) for owner in owners):
        return True
    # A call with arguments is a line of a user's code, whose variables are not ours.
    if first.islower() and re.search(r"\([^)]", span):
        return all(word in known for word in re.findall(r"\b[A-Z][a-z]\w+", span))
    return not owners and all(part in known for part in parts)


def is_file(path: str, place: Path) -> bool:
    """Whether a path in a text is that of a file."""
    folders = (ROOT, SOURCE, *place.parents)
    return any((folder / path).is_file() for folder in folders if folder.is_relative_to(ROOT))


def spans() -> Iterator[tuple[str, Path, str]]:
    """Every text in backticks of the source and of all pages, with its file and its place."""
    for path in (*modules(), *pages()):
        text = read(path)
        if path.suffix == ".md":
            text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
        for found in SPAN.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield " ".join(found[1].split()), path, f"{path.relative_to(ROOT)}:{line}"


@pytest.mark.slow
def test_every_name_in_backticks_exists() -> None:
    assert [f"{where}: {span}" for span, path, where in spans() if not exists(span, path)] == []


def test_every_path_in_backticks_is_that_of_a_file() -> None:
    paths = [(span, path, where) for span, path, where in spans() if PATH.fullmatch(span)]
    assert len(paths) > 20
    assert [f"{where}: {span}" for span, path, where in paths if not is_file(span, path)] == []


def test_every_command_in_backticks_exists() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group)
    targets = re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE)
    known = {*(f"overheard {name}" for name in group.commands), *(f"make {t}" for t in targets)}
    commands = [
        (found[0], where)
        for span, _, where in spans()
        if (found := re.match(r"(?:overheard|make) [a-z][a-z-]+", span))
    ]
    assert len(commands) > 50
    assert [f"{where}: {command}" for command, where in commands if command not in known] == []


@pytest.mark.parametrize(
    ("span", "is_right"),
    [
        ("Knowledge", True),
        ("knowledge.compute", True),
        ("knowledge.means", False),
        ("core.seeds.Seed", True),
        ("core.seeds.Sead", False),
        ("is_label_equivariant = False", True),
        ("orderless = False", False),
        ("torch.func.vmap", True),
        ("data.people", True),
        ("data.persons", False),
        ("job.add(RecordingWidget(folder))", True),
        ("job.add(RecordingGadget(folder))", False),
        ("findings.json", True),
        ("finding.json", False),
    ],
)
def test_a_wrong_name_is_noticed(span: str, is_right: bool) -> None:
    assert exists(span, SOURCE / "testing" / "attack.py") is is_right
