"""The file with the values of an experiment, for scripts that check them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError
from overheard.core.scorer import Better
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue

VALUES_FILE = "figures.json"


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class ValueEntry:
    """One value; for the fields see `ReproducedValue`, where `ours` is `value`."""

    name: str
    setting: str
    ours: float | None
    low: float | None
    high: float | None
    published: float | None
    better: Better | None


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class ExperimentEntry:
    """The content of the file.

    Args:
        experiment: name of the experiment, such as "table3".
        quick: whether it was run at a reduced size or with fewer seeds, and so should not be
            compared with the paper.
        differences: how the setting differs from the paper's.
        values: the values, in the order of the experiment.

    """

    experiment: str
    quick: bool
    differences: str
    values: tuple[ValueEntry, ...]


CONTENT = TypeAdapter(ExperimentEntry)


def write_values(
    experiment: Experiment, values: Sequence[ReproducedValue], folder: Path, *, quick: bool
) -> Path:
    """Write `figures.json`, with the setting and one entry per value, atomically.

    Returns:
        Path of the file.

    Raises:
        OutputError: if the file cannot be written.

    """
    entries = tuple(
        ValueEntry(
            one.name, one.setting, one.value, one.low, one.high, one.published, one.better
        )
        for one in values
    )
    content = ExperimentEntry(experiment.name, quick, experiment.differences, entries)
    path = folder / VALUES_FILE
    write_text(path, CONTENT.dump_json(content, indent=2).decode() + "\n")
    return path


@dataclass(frozen=True, slots=True)
class StoredValues:
    """The values of an experiment's folder.

    Args:
        values: the values.
        quick: whether they were measured at a reduced size or with fewer seeds.
        differences: how the setting differs from the paper's.

    """

    values: tuple[ReproducedValue, ...]
    quick: bool
    differences: str


def load_values(folder: Path) -> tuple[ReproducedValue, ...]:
    """Load the values that an experiment wrote to its folder.

    Raises:
        OutputError: if the file is missing or damaged.

    """
    return load_stored_values(folder).values


def load_stored_values(folder: Path) -> StoredValues:
    """Load the values that an experiment wrote to its folder, and how it was run.

    Raises:
        OutputError: if the file is missing or damaged.

    """
    path = folder / VALUES_FILE
    try:
        content = CONTENT.validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        raise OutputError(
            f"{path}: the file is missing or damaged; run `overheard reproduce` with "
            "this folder as its output"
        ) from error
    values = tuple(
        ReproducedValue(
            one.name, one.setting, one.ours, one.low, one.high, one.published, one.better
        )
        for one in content.values
    )
    return StoredValues(values, content.quick, content.differences)
