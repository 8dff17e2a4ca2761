"""The cached outcomes of a quadruple's tests, so that a rerun need not train again."""

from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError
from overheard_studies.flip.attribute_tests import QuadrupleOutcome


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class CachedOutcomes:
    """Outcomes, and the settings that determine them.

    Args:
        settings: settings of the tests, as text.
        answers: outcomes, one per test and federation.

    """

    settings: str
    answers: tuple[QuadrupleOutcome, ...]


CACHED_OUTCOMES = TypeAdapter(CachedOutcomes)


def save_outcomes(path: Path, settings: str, answers: tuple[QuadrupleOutcome, ...]) -> None:
    """Write the outcomes to a file, atomically.

    Raises:
        OutputError: if the file cannot be written.

    """
    text = CACHED_OUTCOMES.dump_json(CachedOutcomes(settings, answers), indent=1).decode()
    write_text(path, text + "\n")


def load_outcomes(path: Path, settings: str) -> tuple[QuadrupleOutcome, ...] | None:
    """Load the outcomes that were saved with these settings; None if there are none.

    Raises:
        OutputError: if the file is damaged.

    """
    if not path.is_file():
        return None
    try:
        cached = CACHED_OUTCOMES.validate_json(path.read_bytes())
    except ValidationError as error:
        raise OutputError(
            f"{path}: the file is damaged; remove it, and it is created again"
        ) from error
    return cached.answers if cached.settings == settings else None
