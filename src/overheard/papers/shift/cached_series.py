"""The cached measures by round, stored in the folder of their audit."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError
from overheard.papers.shift.measure import LeakageMeasure
from overheard.papers.shift.measured_series import MeasuredSeries

SERIES_FILE = "series.json"


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SeriesEntry:
    """One measure, see `MeasuredSeries`.

    Args:
        measure: key of the measure.
        name: name of the measure, in words.
        since: first round on new data.
        shifted: values by round, one mapping per run.
        control: the same for the controls.

    """

    measure: str
    name: str
    since: int
    shifted: tuple[dict[int, float], ...]
    control: tuple[dict[int, float], ...]


ENTRIES = TypeAdapter(tuple[SeriesEntry, ...])


def save_series(followed: Sequence[MeasuredSeries], folder: Path) -> None:
    """Write `series.json` into the folder of an audit, atomically.

    Raises:
        OutputError: if the file cannot be written.

    """
    entries = tuple(
        SeriesEntry(
            one.measure.key,
            one.measure.name,
            one.shift_round,
            tuple(map(dict, one.shifted)),
            tuple(map(dict, one.control)),
        )
        for one in followed
    )
    write_text(folder / SERIES_FILE, ENTRIES.dump_json(entries, indent=1).decode() + "\n")


def load_series(
    folder: Path, measures: Sequence[LeakageMeasure]
) -> tuple[MeasuredSeries, ...] | None:
    """Load these measures; None if none or other measures were saved.

    Raises:
        OutputError: if the file is damaged.

    """
    path = folder / SERIES_FILE
    if not path.is_file():
        return None
    try:
        entries = ENTRIES.validate_json(path.read_bytes())
    except ValidationError as error:
        raise OutputError(
            f"{path}: the file is damaged; remove it, and it is created again"
        ) from error
    if [one.measure for one in entries] != [one.key for one in measures]:
        return None
    return tuple(
        MeasuredSeries(measure, one.since, one.shifted, one.control)
        for measure, one in zip(measures, entries, strict=True)
    )
