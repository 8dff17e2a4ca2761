"""Figure 6: re-identification when some senders are unknown to the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.linkage.known_updates import UpdateSource
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.identity.attacks.match_siamese import MatchSiamese
from overheard.questions.same_sender.attacks.link_siamese import LinkSiamese
from overheard_studies.deanonymization.charts import ValueSeries, series_figure
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import build_identity_attacks
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_update,
)
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

HOLDOUT_DIVISOR = 3
"""One user in three does not take part, as published."""

IDENTITY_SCORES = (PRECISION, "times_chance", "top1", "dir_at_1_percent", "matching_auc")

LINKING_SCORES = ("matching_auc", "equal_error_rate")


@final
@dataclass(frozen=True, slots=True)
class OpenWorldExperiment(Experiment, IllustratedExperiment):
    """Open-set re-identification and Siamese matching, by the share of known senders.

    The paper calls an open set an open world.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        seen_percentages: percentages of the senders that the server knows; the paper calls them
            seen.
        source: source of known updates.
        pairs: number of pairs that the matching network learns from.
        name: name of the figure.

    """

    scenarios: tuple[IdentityScenario, ...] = (BLOGS, WISDM)
    reduced: tuple[IdentityScenario, ...] = (QUICK_SCENARIO,)
    seen_percentages: tuple[int, ...] = (25, 50, 75, 100)
    source: UpdateSource = "shadow"
    pairs: int = 32_000
    name: str = "figure6"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Re-identification by the share of senders that the server knows"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.scenarios)} The values in the paper's "
            f"figure could not be read. Its text "
            "says for its photos (PIPA) that "
            "the average precision of re-identification falls from 0.67 to 0.43 and times "
            "chance rises from 3 to 14 as more users are known. It also says that matching "
            "reaches 1.5 times chance with no known user. The prior examples are the earlier "
            "ones. A third of the users is held out. The average precision here is over known "
            "users; the paper's may include the class of unknown users. Matching is reported "
            "as the area under the curve over pairs of an update and a user (match_siamese) "
            "and of two updates (link_siamese); an uninformed guess has 0.5. The known updates "
            f"are {self.source} updates (docs/identity.md)."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set and share."""
        plans = {}
        for scenario in self.reduced if quick else self.scenarios:
            holdout = scenario.clients // HOLDOUT_DIVISOR
            senders = scenario.clients - holdout
            for percentage in self.seen_percentages:
                unseen = senders - senders * percentage // 100
                plans[_key(scenario, percentage)] = build_plan(
                    scenario,
                    build_known_user_settings(
                        scenario.chronological_prior, unseen=unseen, holdout=holdout
                    ),
                    (self._threat(scenario),),
                    clients=senders,
                )
        return plans

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return each attack's scores by share of known senders, with chance and control."""
        full = self.plans(quick=False)
        return tuple(
            value
            for scenario in self.scenarios
            for percentage in self.seen_percentages
            if (key := _key(scenario, percentage)) in runs.audits
            for value in _read_threat(
                build_result_rows(runs.audits[key]),
                key,
                runs.plans[key],
                describe_setting(scenario, runs.plans[key], full.get(key)),
            )
        )

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw the average precision and the matching score by share of known senders."""
        by_name = {one.name: one for one in values}
        page_figures = []
        for scenario in self.scenarios:
            shares = [n for n in self.seen_percentages if _key(scenario, n) in runs.audits]
            if not shares:
                continue
            names = [attack.name for attack in build_identity_attacks(scenario, self.source)]
            for score, attacks in (
                (PRECISION, [*names, "match_siamese"]),
                ("matching_auc", ["match_siamese", "link_siamese"]),
            ):
                lines = [
                    ValueSeries(
                        name,
                        shares,
                        [by_name[f"{_key(scenario, n)}_{name}_{score}"] for n in shares],
                    )
                    for name in attacks
                ]
                title = f"Figure 6: {scenario.name}, {score.replace('_', ' ')}"
                page_figures.append(series_figure(title, lines, "known users, %", score))
        return PageContent(tuple(page_figures))

    def _threat(self, scenario: IdentityScenario) -> ThreatPlan:
        return threat_per_update(
            (
                *build_identity_attacks(scenario, self.source),
                MatchSiamese(
                    updates=self.source,
                    layer=scenario.layer,
                    pairs=self.pairs,
                    most_rounds=scenario.most_rounds,
                ),
                LinkSiamese(
                    updates=self.source,
                    layer=scenario.layer,
                    pairs=self.pairs,
                    most_rounds=scenario.most_rounds,
                ),
            )
        )


def _key(scenario: IdentityScenario, percentage: int) -> str:
    return f"{scenario.key}_seen_{percentage}"


def _read_threat(rows: ResultRows, key: str, plan: Plan, context: str) -> list[ReproducedValue]:
    threat, values = plan.threats[0], list[ReproducedValue]()
    assert plan.data.people is not None
    for attack in threat.attacks:
        scores = LINKING_SCORES if isinstance(attack, LinkSiamese) else IDENTITY_SCORES
        values += [
            rows.reproduced_value(
                f"{key}_{attack.name}_{score}",
                f"{context}; {attack.name}: {score.replace('_', ' ')}",
                (threat.attack_name(attack), score),
            )
            for score in scores
            # Without unknown users there are no false positives.
            if score != "dir_at_1_percent" or plan.data.people.unseen
        ]
        values += rows.baseline_values(
            f"{key}_{attack.name}", f"{context}; {attack.name}", threat.attack_name(attack)
        )
    return values
