"""One page of all reproduced experiments of a folder, beside the published values."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from overheard.disk.writing import write_text
from overheard.drawing.figures import ReportTable
from overheard.findings.names import make_printable
from overheard.findings.number_format import BARE_NUMBER
from overheard.statistics.estimate import Estimate
from overheard_studies.pages.published_chart import PublishedPoint, published_chart
from overheard_studies.pages.reproductions_page import ExperimentSummary, reproductions_page
from overheard_studies.reproduce import find_papers
from overheard_studies.study import LEFT_OUT, PAGE_FILE, Study
from overheard_studies.values import VALUES_FILE, ReproducedValue, StoredValues, load_values

OVERVIEW_FILE = "index.html"

Comparison = Literal[
    "reproduced",
    "stronger here",
    "weaker here",
    "differs",
    "not published",
    "not measured",
    "no interval",
    "reduced size",
]
"""How a value compares with the published one; the last four say why it cannot be compared."""

COMPARED: tuple[Comparison, ...] = ("reproduced", "stronger here", "weaker here", "differs")
"""The comparisons of values that can be compared."""


def all_experiments() -> Iterator[tuple[str, Study]]:
    """Yield every experiment with its name on the command line, such as "decaf/table3"."""
    for paper, library in find_papers().items():
        for name, experiment in library.studies().items():
            yield f"{paper}/{name}", experiment


def experiment_folder(name: str, *, quick: bool) -> str:
    """Return the name of the folder of an experiment, such as "decaf-table3-quick"."""
    return name.replace("/", "-") + ("-quick" if quick else "")


def compare_value(one: ReproducedValue, *, quick: bool) -> Comparison:
    """Compare a value with the published one.

    It is reproduced if its 95 % interval holds the published value. Whether an attack is
    stronger follows from the direction of the value.

    >>> value = ReproducedValue("l1", "MNIST", 0.2, 0.15, 0.25, 0.3, "lower")
    >>> compare_value(value, quick=False)
    'stronger here'
    """
    if one.value is None or one.published is None:
        return "not measured" if one.value is None else "not published"
    if quick or one.low is None or one.high is None:
        return "reduced size" if quick else "no interval"
    if one.low <= one.published <= one.high:
        return "reproduced"
    if one.better is None:
        return "differs"
    is_stronger = (one.value > one.published) == (one.better == "higher")
    return "stronger here" if is_stronger else "weaker here"


def write_overview(folder: Path) -> Path:
    """Write the page of all experiments that were run into sub-folders of this one.

    Returns:
        Path of the page, `index.html`.

    Raises:
        OutputError: if a file with values is damaged, or the page cannot be written.

    """
    path = folder / OVERVIEW_FILE
    write_text(path, overview_page(folder), inside=folder)
    return path


def overview_page(folder: Path) -> str:
    """Return the page of all experiments that were run into sub-folders of this one.

    Where an experiment was run at its full size and at a reduced size, the full one counts.

    Raises:
        OutputError: if a file with values is damaged.

    """
    summaries, rows = list[ExperimentSummary](), list[tuple[str, ...]]()
    for name, experiment in all_experiments():
        stored, link = None, ""
        for quick in (True, False):
            place = experiment_folder(name, quick=quick)
            if (folder / place / VALUES_FILE).exists():
                stored = load_values(folder / place)
                link = f"{place}/{PAGE_FILE}" if (folder / place / PAGE_FILE).exists() else ""
        summaries.append(_summary(name, experiment, stored, link))
        rows.append(_count_row(name, experiment, stored))
    headers = ("Experiment", "Shows", "Size", "Values", *(one.capitalize() for one in COMPARED))
    counts = ReportTable("Experiments and their values", headers, tuple(rows), 3)
    return reproductions_page(counts, summaries)


def _summary(
    name: str, experiment: Study, stored: StoredValues | None, link: str
) -> ExperimentSummary:
    if stored is None:
        return ExperimentSummary(name, experiment.title, "", "", None, None)
    return ExperimentSummary(
        name,
        experiment.title,
        stored.differences,
        link,
        _chart(name, stored.values),
        _values_table(name, stored),
    )


def _count_row(name: str, experiment: Study, stored: StoredValues | None) -> tuple[str, ...]:
    title = make_printable(experiment.title)
    if stored is None:
        return (name, title, "not run", *("" for _ in range(1 + len(COMPARED))))
    counts = Counter(compare_value(one, quick=stored.quick) for one in stored.values)
    is_part = any(one.value is None and one.name.endswith(LEFT_OUT) for one in stored.values)
    size = "reduced" if stored.quick else "part" if is_part else "full"
    return (
        name,
        title,
        size,
        str(sum(one.value is not None for one in stored.values)),
        *(str(counts[one]) for one in COMPARED),
    )


def _chart(name: str, values: Sequence[ReproducedValue]) -> Markup | None:
    points = [
        PublishedPoint(
            f"{one.name}, {one.setting}",
            one.published,
            one.value,
            None if one.low is None or one.high is None else (one.low, one.high),
        )
        for one in values
        if one.value is not None and one.published is not None
    ]
    return published_chart(points, f"{name}: values here and published") if points else None


def _values_table(name: str, stored: StoredValues) -> ReportTable:
    headers = ("Value", "Setting", "Comparison", "Here", "95 % interval", "Published")
    return ReportTable(
        f"{name}: values",
        headers,
        tuple(
            (
                make_printable(one.name),
                make_printable(one.setting),
                compare_value(one, quick=stored.quick),
                BARE_NUMBER.format(one.value),
                BARE_NUMBER.format_interval(Estimate(one.value or 0.0, one.low, one.high)),
                BARE_NUMBER.format(one.published),
            )
            for one in stored.values
        ),
        3,
    )
