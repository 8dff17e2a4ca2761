"""Tables 2 and 3: how far every method's shares lie from the true ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.papers.setting import setting
from overheard.papers.whispers.columns import Column, distances
from overheard.papers.whispers.differences import MISPRINTS, common
from overheard.papers.whispers.methods import METHODS, Method
from overheard.papers.whispers.plans import plan
from overheard.papers.whispers.printed import rows
from overheard.papers.whispers.scenario import Scenario
from overheard.plans.plan import Plan


@final
@dataclass(frozen=True, slots=True)
class WhispersTableExperiment(Experiment):
    """Every method in every scenario, beside the uniform guess.

    Args:
        name: of the table.
        shows: what sets it apart, in words.
        scenarios: its columns.
        methods: its rows.

    """

    name: str
    shows: str
    scenarios: tuple[Scenario, ...]
    methods: tuple[Method, ...] = METHODS

    @property
    def title(self) -> str:
        """What the table shows."""
        return f"Distances between claimed and true label shares, {self.shows}"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return f"{common(one.benchmark for one in self.scenarios)} {MISPRINTS}"

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a scenario."""
        return {
            one.key: plan(
                one,
                one.benchmark.reduced if quick else one.benchmark.full,
                quick=quick,
                methods=self.methods,
            )
            for one in self.scenarios
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Each distance of each method, then the guess's, scenario by scenario."""
        full = self.plans(quick=False)
        figures = []
        for one in self.scenarios:
            if one.key not in runs.audits:
                continue
            run = runs.plans[one.key]
            where = setting(one.name, run, full[one.key])
            column = Column(one.key, where, runs.audits[one.key], run, rows(self.name, one.key))
            figures += distances(column, self.methods)
        return tuple(figures)
