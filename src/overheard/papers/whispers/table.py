"""Tables 2 and 3: distances between each method's label shares and the true ones."""

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
    """Every method in every scenario, compared with the uniform guess.

    Args:
        name: name of the table.
        shows: topic, in words.
        scenarios: scenarios, one per column.
        methods: methods, one per row.

    """

    name: str
    shows: str
    scenarios: tuple[Scenario, ...]
    methods: tuple[Method, ...] = METHODS

    @property
    def title(self) -> str:
        """Title of the table."""
        return f"Distances between claimed and true label shares, {self.shows}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common(one.benchmark for one in self.scenarios)} {MISPRINTS}"

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per scenario."""
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
        """Return each distance of each method and of the guess, by scenario."""
        full = self.plans(quick=False)
        values = []
        for one in self.scenarios:
            if one.key not in runs.audits:
                continue
            run = runs.plans[one.key]
            context = setting(one.name, run, full[one.key])
            column = Column(
                one.key, context, runs.audits[one.key], run, rows(self.name, one.key)
            )
            values += distances(column, self.methods)
        return tuple(values)
