"""Keeps what the tests of a quadruple answered, so that a rerun need not train again."""

from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError
from overheard.papers.flip.attribute_tests import QuadrupleAnswer


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Kept:
    """Answers, and what they hang on.

    Args:
        settings: of the tests, as text.
        answers: one a test and federation.

    """

    settings: str
    answers: tuple[QuadrupleAnswer, ...]


KEPT = TypeAdapter(Kept)


def save(path: Path, settings: str, answers: tuple[QuadrupleAnswer, ...]) -> None:
    """Write the answers, whole or not at all.

    Raises:
        OutputError: if the disk or the permissions do not allow it.

    """
    text = KEPT.dump_json(Kept(settings, answers), indent=1).decode()
    write_text(path, text + "\n")


def load(path: Path, settings: str) -> tuple[QuadrupleAnswer, ...] | None:
    """What was saved under these settings; None if nothing was, or under others.

    Raises:
        OutputError: if the file is damaged.

    """
    if not path.is_file():
        return None
    try:
        kept = KEPT.validate_json(path.read_bytes())
    except ValidationError as error:
        raise OutputError(f"{path}: is damaged: remove it, and it is made anew") from error
    return kept.answers if kept.settings == settings else None
