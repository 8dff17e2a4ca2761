"""Keeps the figures of an experiment in a file that a script can hold against a bar."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError
from overheard.core.scorer import Better
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure

FILE = "figures.json"


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class FigureEntry:
    """One figure, with all that is needed to read it without its neighbours.

    Args:
        experiment: such as "table3".
        name: see `Figure`, as all that follow but the last two.
        setting: what it was measured on.
        ours: measured; None where it could not be.
        low: of the interval.
        high: of the interval.
        published: by the paper.
        better: the direction; None of what has none.
        quick: whether it comes from a run of reduced size, which no paper should be held to.
        differences: how the setting departs from the paper's.

    """

    experiment: str
    name: str
    setting: str
    ours: float | None
    low: float | None
    high: float | None
    published: float | None
    better: Better | None
    quick: bool
    differences: str


ENTRIES = TypeAdapter(tuple[FigureEntry, ...])


def write_figures(
    experiment: Experiment, figures: Sequence[Figure], folder: Path, *, quick: bool
) -> Path:
    """Write `figures.json`, a list with one entry a figure, whole or not at all.

    Returns:
        Where it lies.

    Raises:
        OutputError: if the disk or the permissions do not allow it.

    """
    entries = tuple(
        FigureEntry(
            experiment.name,
            one.name,
            one.setting,
            one.ours,
            one.low,
            one.high,
            one.published,
            one.better,
            quick,
            experiment.differences,
        )
        for one in figures
    )
    path = folder / FILE
    write_text(path, ENTRIES.dump_json(entries, indent=2).decode() + "\n")
    return path


def read_figures(folder: Path) -> tuple[Figure, ...]:
    """The figures that an experiment left in its folder.

    Raises:
        OutputError: if there are none, or the file is damaged.

    """
    path = folder / FILE
    try:
        entries = ENTRIES.validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        raise OutputError(
            f"{path}: holds no figures of an experiment: run `overheard reproduce` into this "
            "folder"
        ) from error
    return tuple(
        Figure(one.name, one.setting, one.ours, one.low, one.high, one.published, one.better)
        for one in entries
    )
