"""The commands that the documentation tells a reader to type."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.prose import ROOT, pages

PROGRAMS = (
    "overheard", "make", "pip", "python", "flwr", "cp", "cd", "git", "pytest", "source",
    "mkdocs", "docker",
)  # fmt: skip
"""Programs whose lines in a block of code are commands."""

SHELLS = ("", "sh", "bash", "console", "shell")
"""Languages of blocks that may hold commands; "" = none is stated."""

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)

_COMMAND = re.compile(rf"\s*(?:\$ )?(?:\w+=\S+ )*((?:{'|'.join(PROGRAMS)})\b.*)")

_INLINE = re.compile(r"`(overheard [^`]+)`")


@dataclass(frozen=True)
class Block:
    """A block of shell code of a page: its commands, in the order in which they are typed."""

    place: str
    commands: tuple[str, ...]


def shell_blocks() -> Iterator[Block]:
    """Every block with a command, of the README and of all pages."""
    for page in pages():
        if page.name == "CHANGELOG.md":
            continue
        blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
        for number, (language, body) in enumerate(blocks, 1):
            found = tuple(filter(None, map(command_of, body.splitlines())))
            if found and language in SHELLS:
                yield Block(f"{page.relative_to(ROOT)} block {number}", found)


def command_of(line: str) -> str:
    """The command of a line, without variables before it and the comment; "" if it has none.

    >>> command_of("PYTHONPATH=. overheard audit plan.toml   # your plan")
    'overheard audit plan.toml'
    """
    found = _COMMAND.fullmatch(line)
    return re.split(r"\s+# ", found[1])[0].strip() if found else ""


def mentioned_commands() -> Iterator[tuple[str, str]]:
    """Every `overheard ...` within a sentence, with its place."""
    for page in pages():
        if page.name == "CHANGELOG.md":
            continue
        for found in _INLINE.findall(page.read_text(encoding="utf-8")):
            yield str(page.relative_to(ROOT)), " ".join(found.split())


NOT_RUN: dict[str, str] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)["not_run"]
"""Commands that no test runs, each with the reason. One that ends in `*` is a beginning."""


def reason_not_run(command: str) -> str | None:
    """Why no test runs a command; None = a test does."""
    for key, reason in NOT_RUN.items():
        beginning = key.removesuffix("*")
        if command == key or (beginning != key and command.startswith(beginning)):
            return reason
    return None
