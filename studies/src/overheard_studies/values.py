"""The values of a study beside those of the paper: their file, and tables of them."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import floor, isfinite, log10
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.core.errors import OutputError
from overheard.core.scorer import Better
from overheard.disk.writing import write_text
from overheard.drawing.figures import ReportTable
from overheard.findings.names import make_printable
from overheard.findings.number_format import MINUS, NO_NUMBER, format_number
from overheard.statistics.estimate import Estimate
from overheard_studies.how_run import HowRun
from overheard_studies.pages.experiment_page import PaperStatement

VALUES_FILE = "figures.json"

STRICT = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


@checked_dataclass(frozen=True, slots=True, config=STRICT)
class ReproducedValue:
    """One reproduced value and the value that the paper publishes.

    Args:
        name: unique within the study.
        setting: description of what it was measured on.
        value: mean over users and seeds; None if it could not be measured; `setting` then says
            why. Its name in the file is `ours`.
        low: lower end of its 95 % interval; None if there is none.
        high: upper end of the interval.
        published: the paper's value; None if it gives none, or if that part of its text is
            lost.
        better: whether higher or lower values mean a better attack or, for an accuracy, a
            better model; None for a value without a direction, such as a share.

    """

    name: str
    setting: str
    value: Annotated[float | None, Field(alias="ours")]
    low: float | None
    high: float | None
    published: float | None
    better: Better | None

    @property
    def texts(self) -> tuple[str, str, str]:
        """The value, its interval and the published value, as tables show them.

        The first two have two digits of the interval's width, so that its ends differ. The
        published value has up to four digits, as in the papers.

        >>> ReproducedValue("a", "", 0.98254, 0.98060, 0.98448, 0.9932, None).texts
        ('0.9825', '0.9806 to 0.9845', '0.9932')
        >>> ReproducedValue("a", "", -19.2, -52.0, 13.3, None, None).texts
        ('−19', '−52 to 13', '–')
        """
        published = NO_NUMBER if self.published is None else _show(self.published, ".4g")
        low, high = self.low, self.high
        if self.value is None or low is None or high is None or not isfinite(high - low):
            return format_number(self.value), NO_NUMBER, published
        numbers = (self.value, low, high)
        if high - low <= LEAST_WIDTH:
            value, lowest, highest = map(format_number, numbers)
        else:
            places = max(0, 1 - floor(log10(high - low)))
            value, lowest, highest = (_show(one, f".{places}f") for one in numbers)
        return value, f"{lowest} to {highest}", published


LEAST_WIDTH = 1e-5
"""Width of an interval up to which its numbers are shown with few significant digits."""


def _show(number: float, form: str) -> str:
    if not isfinite(number):
        return NO_NUMBER
    text = format(number, form)
    return MINUS + text[1:] if text.startswith("-") else text


Values = Sequence[ReproducedValue]


def make_value(
    name: str,
    setting: str,
    measured: Estimate | float | None,
    published: float | None = None,
    better: Better | None = None,
) -> ReproducedValue:
    """Make a value from an estimate, from a number without an interval, or from None."""
    if not isinstance(measured, Estimate):
        return ReproducedValue(name, setting, measured, None, None, published, better)
    return ReproducedValue(
        name, setting, measured.mean, measured.low, measured.high, published, better
    )


@checked_dataclass(frozen=True, slots=True, config=STRICT)
class StoredValues:
    """The content of the file.

    Args:
        experiment: name of the study, such as "table3".
        quick: whether it was run at a reduced size or with fewer seeds, and so should not be
            compared with the paper.
        differences: how the setting differs from the paper's.
        values: the values, in the order of the study.
        how_run: how they were measured; None = not known.
        conclusions: what the study concluded from them.

    """

    experiment: str
    quick: bool
    differences: str
    values: tuple[ReproducedValue, ...]
    how_run: HowRun | None = None
    conclusions: tuple[PaperStatement, ...] = ()


CONTENT = TypeAdapter(StoredValues)


def write_values(stored: StoredValues, folder: Path) -> Path:
    """Write `figures.json`, atomically, and return its path.

    Raises:
        OutputError: if the file cannot be written.

    """
    path = folder / VALUES_FILE
    text = CONTENT.dump_json(stored, indent=2, by_alias=True, exclude_defaults=True).decode()
    write_text(path, text + "\n", inside=folder)
    return path


def load_values(folder: Path) -> StoredValues:
    """Load the values that a study wrote to its folder, and how it was run.

    Raises:
        OutputError: if the file is missing or damaged, or a number in it is not finite.

    """
    path = folder / VALUES_FILE
    try:
        stored = CONTENT.validate_json(path.read_bytes())
        # What was not finite when it was written stands there as null.
        if not all(map(isfinite, _numbers(stored.values))):
            raise ValueError("a number is not finite")
    # Pydantic's error is a ValueError, too.
    except (ValueError, OSError) as error:
        raise OutputError(
            f"{path}: the file is missing or damaged; run `overheard reproduce` with "
            "this folder as its output"
        ) from error
    return stored


def _numbers(values: Values) -> Iterator[float]:
    for one in values:
        for number in (one.value, one.low, one.high, one.published):
            if number is not None:
                yield number


def tabulate_values(caption: str, values: Sequence[ReproducedValue]) -> ReportTable:
    """Return the table of the values in a figure."""
    return ReportTable(
        caption,
        ("Value", "Setting", "Mean", "95 % interval"),
        tuple(
            (
                make_printable(one.name),
                make_printable(one.setting.partition("; ")[2]),
                *one.texts[:2],
            )
            for one in values
        ),
        2,
    )


@dataclass(frozen=True, slots=True)
class Published:
    """What a paper publishes, and how studies differ from it: a file beside this package.

    Args:
        paper: name of the paper, and of its file.

    """

    paper: str

    # Any: nested tables with numbers and texts as leaves.
    def find(self, *path: str | None) -> Any:
        """Return what stands at a path of keys; None if there is nothing."""
        node: Any = _document(self.paper)
        for step in path:
            if not isinstance(node, Mapping) or step not in node:
                return None
            node = node[step]
        return node

    def number(self, *path: str | None, scale: float = 1.0) -> float | None:
        """Return the number at a path, divided by `scale`; None if there is none."""
        found = self.find(*path)
        return None if found is None else float(found) / scale

    def differences(self, *names: str, **settings: object) -> str:
        """Return texts on how a setting differs from the paper's, with settings filled in."""
        texts = [self.find("differences", name) or name for name in names if name]
        return " ".join(one.strip().replace("\n", " ") for one in texts).format(**settings)


@cache
def _document(paper: str) -> Mapping[str, Any]:
    file = files("overheard_studies").joinpath(f"published/{paper}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
