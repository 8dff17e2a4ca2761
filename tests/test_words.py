"""Names and sentences are in the words of the field: see docs/glossary.md."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.prose import ROOT, SOURCE, all_prose, count_words, sentences

WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))

LONGEST = 35
"""Words of a sentence at most."""


def words_of(name: str) -> list[str]:
    """The words of a name, in lower case.

    >>> words_of("_HTTPReplyTimes"), words_of("mean_update")
    (['http', 'reply', 'times'], ['mean', 'update'])
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+", name)
    return [part.lower() for part in parts]


@cache
def names_in(path: Path) -> tuple[tuple[int, str], ...]:
    """The names of a file, which is parsed once for all tests."""
    return tuple(iterate_names(path))


def iterate_names(path: Path) -> Iterator[tuple[int, str]]:
    """The module, and every class, function, parameter, field and constant of a file."""
    yield 1, path.stem if path.stem != "__init__" else path.parent.name
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.lineno, node.name
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        if isinstance(node, ast.ClassDef | ast.Module):
            for statement in node.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                if isinstance(statement, ast.AnnAssign):
                    targets = [statement.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield target.lineno, target.id


@cache
def prose() -> tuple[tuple[str, str], ...]:
    """All that there is to read, each paragraph with its place."""
    return tuple(all_prose())


@cache
def prose_without_code() -> tuple[tuple[str, str], ...]:
    """The same without names in backticks."""
    return tuple((place, re.sub(r"`[^`]*`", "", text)) for place, text in prose())


def test_no_name_has_a_word_that_is_not_to_come_back() -> None:
    frozen = set(WORDS["frozen"]["names"])
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}: {word} -> {WORDS['names'][word]}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, name in names_in(path)
        if name not in frozen
        for word in words_of(name)
        if word in WORDS["names"]
    ]
    assert found == []


def test_every_frozen_name_is_in_use() -> None:
    used = {name for path in SOURCE.rglob("*.py") for _, name in names_in(path)}
    assert set(WORDS["frozen"]["names"]) <= used


@pytest.mark.parametrize("phrase", WORDS["phrases"])
def test_no_phrase_comes_back(phrase: str) -> None:
    better = WORDS["phrases"][phrase]
    found = [
        f"{place}: {match[0]} -> {better}"
        for place, paragraph in prose_without_code()
        for match in re.finditer(phrase, paragraph)
    ]
    assert found == []


REFERENCE = re.compile(r"`(?:overheard\.)?((?:[a-z_]+\.)+\w+)(?:\(\))?`")

ROOMS = {path.name for path in SOURCE.iterdir() if path.is_dir()}

FILE_ENDINGS = (".py", ".toml", ".json", ".md", ".csv", ".html")


PLAN_KEYS = set(
    json.loads(Path(__file__).with_name("frozen.json").read_text())["keys of plans"]
)


def is_reference(name: str) -> bool:
    """Whether a dotted name begins like one of a module, not of a plan key or a file."""
    first, second, *_ = name.split(".")
    return first in ROOMS and second not in PLAN_KEYS and not name.endswith(FILE_ENDINGS)


@cache
def exists(name: str, package: str) -> bool:
    """Whether a module, or a name in a module, can be found from a package."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join([package, *parts[:count]]))
        except ImportError:
            continue
        for part in parts[count:]:
            fields = getattr(found, "__dataclass_fields__", {})
            found = getattr(found, part, fields.get(part))
        return found is not None
    return False


def test_every_module_named_in_prose_exists() -> None:
    lost = []
    for place, paragraph in prose():
        question = re.match(r"src/overheard/questions/(\w+)/", place)
        packages = ["overheard", *([f"overheard.questions.{question[1]}"] if question else [])]
        for name in filter(is_reference, REFERENCE.findall(paragraph)):
            if not any(exists(name, package) for package in packages):
                lost.append(f"{place}: {name}")
    assert lost == []


def test_no_sentence_is_long() -> None:
    found = [
        f"{place}: {count_words(sentence)} words: {sentence}"
        for place, paragraph in prose()
        for sentence in sentences(paragraph)
        if count_words(sentence) > LONGEST
    ]
    assert found == []


def test_sentences_are_split_and_counted() -> None:
    text = (
        "One sentence, e.g. `a b c` here. Another (see eq. 3) of seven words, here? “A third.”"
    )
    assert [count_words(one) for one in sentences(text)] == [5, 7, 2]


def test_pages_are_wrapped() -> None:
    found = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]:
        code = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            code ^= line.lstrip().startswith("```")
            bare = re.sub(r"\]\([^)]*\)", "]", line)
            if len(bare) > 100 and not code and not line.lstrip().startswith(("|", "```")):
                found.append(f"{page.relative_to(ROOT)}:{number}: {len(bare)} columns")
    assert found == []
