"""The cached measures by round, stored in the folder of their audit."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.archive.atomic import write_text
from overheard_studies.shift.measure import LeakageMeasure
from overheard_studies.shift.measured_series import MeasuredSeries

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


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class CachedSeries:
    """Measures, and what they depend on.

    Args:
        origin: the plan and the code, from `describe_origin`.
        measures: one entry per measure.

    """

    origin: str
    measures: tuple[SeriesEntry, ...]


CACHED_SERIES = TypeAdapter(CachedSeries)


def save_series(followed: Sequence[MeasuredSeries], folder: Path, origin: str) -> None:
    """Write `series.json` into the folder of an audit, atomically.

    Args:
        followed: the measures.
        folder: folder of the audit.
        origin: what the measures depend on, from `describe_origin`.

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
    text = CACHED_SERIES.dump_json(CachedSeries(origin, entries), indent=1).decode()
    write_text(folder / SERIES_FILE, text + "\n")


def load_series(
    folder: Path, measures: Sequence[LeakageMeasure], origin: str
) -> tuple[MeasuredSeries, ...] | None:
    """Load these measures of this origin; None if there is no such file that can be read."""
    try:
        cached = CACHED_SERIES.validate_json((folder / SERIES_FILE).read_bytes())
    except (ValidationError, FileNotFoundError):
        return None
    saved = [one.measure for one in cached.measures]
    if cached.origin != origin or saved != [one.key for one in measures]:
        return None
    return tuple(
        MeasuredSeries(measure, one.since, one.shifted, one.control)
        for measure, one in zip(measures, cached.measures, strict=True)
    )
