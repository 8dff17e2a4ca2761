"""Names and sentences are in the words of the field: see docs/glossary.md."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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


def names_in(path: Path) -> Iterator[tuple[int, str]]:
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
        for place, paragraph in prose()
        for match in re.finditer(phrase, re.sub(r"`[^`]*`", "", paragraph))
    ]
    assert found == []


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
