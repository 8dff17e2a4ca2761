"""Reproduced values are printed with the published ones, if there are any."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console

from overheard.cli.figures import print_reproduction
from overheard.papers.experiment import Experiment
from overheard.papers.reproduced_value import ReproducedValue
from overheard.papers.runs import ExperimentRuns
from overheard.plans.plan import Plan


@dataclass(frozen=True)
class Small(Experiment):
    name: str = "table1"
    title: str = "A table"
    differences: str = "Ours is smaller."

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        return {}

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        return ()


def test_prints_reproduced_and_published_values(capsys):
    figures = (
        ReproducedValue("l1", "mnist", 0.1234, 0.1, 0.15, 0.12, "lower"),
        ReproducedValue("l2", "mnist", 0.5, None, None, None, "lower"),
    )
    print_reproduction(Small(), figures, Console(width=120))
    told = capsys.readouterr().out
    lines = {line.split("│")[1].strip(): line for line in told.splitlines() if "│" in line}
    assert "0.123" in lines["l1"]
    assert "0.100 to 0.150" in lines["l1"]
    assert "0.120" in lines["l1"]
    assert "not published" in lines["l2"]
    assert "A table" in told
    assert "Ours is smaller." in told
