"""Prints reproduced values beside the published ones."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overheard.papers.experiment import Experiment
from overheard.papers.reproduced_value import ReproducedValue


def print_reproduction(
    experiment: Experiment, figures: Sequence[ReproducedValue], console: Console
) -> None:
    """Print one table per setting with one row per value, and the differences to the paper."""
    console.print(Text(experiment.title, style="bold"))
    for setting, values in groupby(figures, key=_shared_setting):
        console.print(Text(f"\n{setting}", style="italic"))
        table = Table(
            "value", "measured on", "reproduced", "95 % interval", "published", "better"
        )
        table.columns[0].no_wrap = True
        for figure in values:
            table.add_row(
                Text(figure.name),
                Text(figure.setting.removeprefix(setting).removeprefix("; ")),
                _number(figure.value),
                _interval(figure),
                "not published" if figure.published is None else _number(figure.published),
                figure.better,
            )
        console.print(table)
    console.print(Text(f"\nDifferences from the paper's setting: {experiment.differences}"))


def _shared_setting(figure: ReproducedValue) -> str:
    """Return the part before the first semicolon: the run, without what was measured on it."""
    return figure.setting.partition("; ")[0]


def _interval(figure: ReproducedValue) -> str:
    if figure.low is None:
        return ""
    return f"{_number(figure.low)} to {_number(figure.high)}"


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
