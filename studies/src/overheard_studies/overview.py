"""One page of all reproduced experiments of a folder, beside the published values."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from overheard.disk.writing import write_text
from overheard.drawing.figures import ReportTable
from overheard.findings.names import make_printable
from overheard_studies.conclusions_page import conclusion_counts, conclusions_table, of_papers
from overheard_studies.experiments import StoredExperiment, load_experiments
from overheard_studies.pages.published_chart import PublishedPoint, published_chart
from overheard_studies.pages.reproductions_page import ExperimentSummary, reproductions_page
from overheard_studies.values import ReproducedValue, StoredValues

OVERVIEW_FILE = "index.html"

Comparison = Literal[
    "reproduced",
    "better here",
    "worse here",
    "differs",
    "not published",
    "not measured",
    "no interval",
    "reduced size",
]
"""How a value compares with the published one; the last four say why it cannot be compared."""

COMPARED: tuple[Comparison, ...] = ("reproduced", "better here", "worse here", "differs")
"""The comparisons of values that can be compared."""


def compare_value(one: ReproducedValue, *, quick: bool) -> Comparison:
    """Compare a value with the published one.

    It is reproduced if its 95 % interval holds the published value. Whether an attack or model
    is better follows from the direction of the value.

    >>> value = ReproducedValue("l1", "MNIST", 0.2, 0.15, 0.25, 0.3, "lower")
    >>> compare_value(value, quick=False)
    'better here'
    """
    if one.value is None or one.published is None:
        return "not measured" if one.value is None else "not published"
    if quick or one.low is None or one.high is None:
        return "reduced size" if quick else "no interval"
    if one.low <= one.published <= one.high:
        return "reproduced"
    if one.better is None:
        return "differs"
    is_better = (one.value > one.published) == (one.better == "higher")
    return "better here" if is_better else "worse here"


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

    Raises:
        OutputError: if a file with values is damaged.

    """
    experiments = list(load_experiments(folder))
    repeated = of_papers(experiments)
    headers = ("Experiment", "Shows", "Size", "Values", *(one.capitalize() for one in COMPARED))
    rows = tuple(map(_count_row, experiments))
    counts = ReportTable("Experiments and their values", headers, rows, 3)
    return reproductions_page(
        counts,
        conclusion_counts(repeated),
        conclusions_table(repeated),
        [_summary(one) for one in experiments],
    )


def _summary(one: StoredExperiment) -> ExperimentSummary:
    title, stored = one.study.title, one.stored
    if stored is None:
        return ExperimentSummary(one.name, title, "", "", None, None)
    return ExperimentSummary(
        one.name,
        title,
        stored.differences,
        one.link,
        _chart(one.name, stored.values),
        _values_table(one.name, stored),
        {} if one.how_run is None else one.how_run.facts(one.study.paper_size),
    )


def _count_row(one: StoredExperiment) -> tuple[str, ...]:
    start = (one.name, make_printable(one.study.title), make_printable(one.size))
    if one.stored is None:
        return (*start, *("" for _ in range(1 + len(COMPARED))))
    values, quick = one.stored.values, one.stored.quick
    counts = Counter(compare_value(each, quick=quick) for each in values)
    measured = sum(each.value is not None for each in values)
    return (*start, str(measured), *(str(counts[each]) for each in COMPARED))


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
                *one.texts,
            )
            for one in stored.values
        ),
        3,
    )
