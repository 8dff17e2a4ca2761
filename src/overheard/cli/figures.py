"""Prints reproduced figures beside the published ones."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overheard.papers.experiment import Experiment, Figure


def print_figures(experiment: Experiment, figures: Sequence[Figure], console: Console) -> None:
    """One line a figure, then what differs from the paper's setting."""
    console.print(Text(experiment.title, style="bold"))
    table = Table("figure", "setting", "ours", "95 % interval", "published", "better")
    for figure in figures:
        table.add_row(
            Text(figure.name),
            Text(figure.setting),
            _number(figure.ours),
            "" if figure.low is None else f"{_number(figure.low)} to {_number(figure.high)}",
            "not published" if figure.published is None else _number(figure.published),
            figure.better,
        )
    console.print(table)
    console.print(Text(f"How our setting differs: {experiment.differences}"))


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
