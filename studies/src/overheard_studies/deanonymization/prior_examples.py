"""Figure 7: re-identification by the number of prior examples per user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.linkage.known_updates import UpdateSource
from overheard.plans.plan import Plan
from overheard_studies.deanonymization.charts import ValueSeries, series_figure
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import (
    UPDATE_SOURCES,
    build_identity_attacks,
)
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_update,
)
from overheard_studies.deanonymization.published_numbers import published_in_text
from overheard_studies.deanonymization.result_rows import (
    PRECISION,
    ResultRows,
    build_result_rows,
)
from overheard_studies.deanonymization.scenarios import (
    BLOGS,
    QUICK_SCENARIO,
    WISDM,
    IdentityScenario,
)
from overheard_studies.experiment import Experiment
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

ONE_EXAMPLE_NOTE = "the text says for PIPA that one prior example gives 0.134, 7 times chance"


@final
@dataclass(frozen=True, slots=True)
class RecordCountPanel:
    """A scenario and the numbers of prior records that are compared.

    Args:
        scenario: scenario with the users.
        counts: largest numbers of prior records per user; all records are used too.
        sources: sources of known updates.

    """

    scenario: IdentityScenario
    counts: tuple[int, ...]
    sources: tuple[UpdateSource, ...] = UPDATE_SOURCES


@final
@dataclass(frozen=True, slots=True)
class PriorExamplesExperiment(Experiment, IllustratedExperiment):
    """Every attack with a limited number of prior records per user.

    Args:
        panels: scenarios and numbers of records.
        reduced: the same for a quick run.
        name: name of the figure.

    """

    panels: tuple[RecordCountPanel, ...] = (
        RecordCountPanel(BLOGS, (1, 4, 16, 64), ("shadow",)),
        RecordCountPanel(WISDM, (1, 2, 4, 8, 16, 32)),
    )
    reduced: tuple[RecordCountPanel, ...] = (RecordCountPanel(QUICK_SCENARIO, (1, 4, 16)),)
    name: str = "figure7"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Re-identification by the number of prior examples per user"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(one.scenario for one in self.panels)} The heights in the "
            "paper's figure could not be read; "
            f"{ONE_EXAMPLE_NOTE}. The prior examples are a random half of each user's records, "
            "of which the server has at most the given number. A record of blogs is a post, "
            "which gives several windows of words; the paper counts sentences. If the server "
            "has fewer records, the user's shadow device holds fewer too, and the federation "
            "learns from these."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per number of records, and one with all records."""
        plans = {}
        for one in self.reduced if quick else self.panels:
            for count in (*one.counts, None):
                limited_people = replace(build_known_user_settings("random"), records=count)
                attacks = tuple(
                    attack
                    for source in one.sources
                    for attack in build_identity_attacks(one.scenario, source)
                )
                plans[_key(one.scenario, count)] = build_plan(
                    one.scenario, limited_people, (threat_per_update(attacks),)
                )
        return plans

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the average precision and times chance of each attack by number of records."""
        full, values = self.plans(quick=False), list[ReproducedValue]()
        for panel in self.panels:
            for count in (*panel.counts, None):
                key = _key(panel.scenario, count)
                if key in runs.audits:
                    run = runs.plans[key]
                    context = describe_setting(panel.scenario, run, full.get(key))
                    values += _read_threat(
                        build_result_rows(runs.audits[key]), key, run, panel, context
                    )
        return tuple(values)

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw the average precision by number of records, with a line for each attack."""
        by_name = {one.name: one for one in values}
        page_figures = []
        for panel in self.panels:
            counts = [n for n in panel.counts if _key(panel.scenario, n) in runs.audits]
            if not counts:
                continue
            names = [
                f"{source}_{attack.name}"
                for source in panel.sources
                for attack in build_identity_attacks(panel.scenario, source)
            ]
            lines = [
                ValueSeries(
                    name.replace("_", " "),
                    counts,
                    [by_name[f"{_key(panel.scenario, n)}_{name}_{PRECISION}"] for n in counts],
                )
                for name in names
            ]
            title = f"Figure 7: {panel.scenario.name}"
            page_figures.append(
                series_figure(title, lines, "prior records per user", PRECISION)
            )
        return PageContent(tuple(page_figures))


def _key(scenario: IdentityScenario, count: int | None) -> str:
    return f"{scenario.key}_records_{count or 'all'}"


def _read_threat(
    rows: ResultRows, key: str, run: Plan, panel: RecordCountPanel, context: str
) -> list[ReproducedValue]:
    (threat,), values = run.threats, list[ReproducedValue]()
    sources = [
        source
        for source in panel.sources
        for _ in build_identity_attacks(panel.scenario, source)
    ]
    assert run.data.people is not None
    is_one_record = run.data.people.records == 1
    for attack, source in zip(threat.attacks, sources, strict=True):
        for score in (PRECISION, "times_chance"):
            as_published = (is_one_record, source, attack.name, score) == (
                True, "shadow", "reidentify_mlp", PRECISION,
            )  # fmt: skip
            values.append(
                rows.reproduced_value(
                    f"{key}_{source}_{attack.name}_{score}",
                    f"{context}; {attack.name}, {source} updates: {score.replace('_', ' ')}"
                    + (" (published: PIPA)" if as_published else ""),
                    (threat.attack_name(attack), score),
                    published_in_text("one_example_precision") if as_published else None,
                )
            )
        values += rows.baseline_values(
            f"{key}_{source}_{attack.name}",
            f"{context}; {attack.name}",
            threat.attack_name(attack),
        )
    return values
