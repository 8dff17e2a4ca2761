"""Tables 2 and 3: distances between each method's label shares and the true ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.plans.plan import Plan
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.whispers.differences import MISPRINTS, common_differences
from overheard_studies.whispers.methods import METHODS, Method
from overheard_studies.whispers.plans import build_plan
from overheard_studies.whispers.published_rows import read_published_rows
from overheard_studies.whispers.scenario import WhispersScenario
from overheard_studies.whispers.table_columns import TableColumn, make_distance_values


@final
@dataclass(frozen=True, slots=True)
class WhispersTableExperiment(Experiment):
    """Every method in every scenario, compared with the uniform guess.

    Args:
        name: name of the table.
        topic: topic, in words.
        scenarios: scenarios, one per column.
        methods: methods, one per row.

    """

    name: str
    topic: str
    scenarios: tuple[WhispersScenario, ...]
    methods: tuple[Method, ...] = METHODS

    @property
    def title(self) -> str:
        """Title of the table."""
        return f"Distances between claimed and true label shares, {self.topic}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common_differences(one.benchmark for one in self.scenarios)} {MISPRINTS}"

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per scenario."""
        return {
            one.key: build_plan(
                one,
                one.benchmark.reduced if quick else one.benchmark.full,
                quick=quick,
                methods=self.methods,
            )
            for one in self.scenarios
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return each distance of each method and of the guess, by scenario."""
        full = self.plans(quick=False)
        values = []
        for one in self.scenarios:
            if one.key not in runs.audits:
                continue
            run = runs.plans[one.key]
            context = describe_setting(one.name, run, full[one.key])
            column = TableColumn(
                one.key,
                context,
                runs.audits[one.key],
                run,
                read_published_rows(self.name, one.key),
            )
            values += make_distance_values(column, self.methods)
        return tuple(values)
