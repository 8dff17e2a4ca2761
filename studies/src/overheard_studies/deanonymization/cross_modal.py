"""Cross-modal matching: updates from one modality, known data of users in another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from sklearn.metrics import average_precision_score

from overheard.data.datasets.wisdm import Wisdm
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan
from overheard.questions.identity.attacks.match_cross_modal import MatchCrossModal
from overheard.questions.identity.statistics.ranking import build_matches, build_rankings
from overheard.statistics.estimate import Estimate
from overheard.statistics.roc import ScoredPairs
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.model_utility import mean_over_seeds
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_update,
)
from overheard_studies.deanonymization.published_numbers import published_in_text
from overheard_studies.deanonymization.result_rows import build_result_rows
from overheard_studies.deanonymization.scenarios import (
    BLOGS,
    QUICK_SCENARIO,
    WISDM,
    IdentityScenario,
)
from overheard_studies.estimates import reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

TrainingUsers = Literal["holdout", "everyone"]

TRAINING_USERS: tuple[TrainingUsers, ...] = ("everyone", "holdout")

HOLDOUT_DIVISOR = 3
"""One user in this number of users does not take part."""


@final
@dataclass(frozen=True, slots=True)
class CrossModalExperiment(Experiment):
    """The published network, trained on the participants or on holdout users.

    Args:
        scenarios: data sets with embeddings.
        reduced: the same for a quick run.
        name: name of the experiment.

    """

    scenarios: tuple[IdentityScenario, ...] = (BLOGS, replace(WISDM, source=Wisdm(axes="x")))
    reduced: tuple[IdentityScenario, ...] = (replace(QUICK_SCENARIO, source=Wisdm(axes="x")),)
    name: str = "cross_modal"

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return "Which user sent an update, from known data in another modality"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.scenarios)} The paper's users have photos; captions "
            "that a network "
            "writes for the prior photos serve as texts, embedded by InferSent. Here the "
            "embeddings of blogs describe how and on which day a prior post is written, "
            "without any word of it; the federation learns from the words. For WISDM they "
            "describe the Y and Z axes of prior windows; the federation learns from the X "
            "axis. The paper does not say on which users it learns the pairs of updates and "
            "embeddings, so both the known users and a held-out third are reported. The "
            "average precision is over all pairs of an update and a user. Pairs of two "
            "different people have the same total weight as pairs of one person, which is the "
            "expectation over balanced pairs; an uninformed guess has 0.5. The prior is "
            "random."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set."""
        plans = {}
        for scenario in self.reduced if quick else self.scenarios:
            holdout = scenario.clients // HOLDOUT_DIVISOR
            plans[scenario.key] = build_plan(
                scenario,
                build_known_user_settings("random", holdout=holdout),
                (
                    threat_per_update(
                        tuple(_attack(scenario, learned) for learned in TRAINING_USERS)
                    ),
                ),
                clients=scenario.clients - holdout,
            )
        return plans

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return average precisions of balanced pairs and of users, and the control's."""
        full, values = self.plans(quick=False), list[ReproducedValue]()
        for scenario in self.scenarios:
            if (key := scenario.key) not in runs.audits:
                continue
            audit, run = runs.audits[key], runs.plans[key]
            rows, (threat,) = build_result_rows(audit), run.threats
            context = describe_setting(scenario, run, full.get(key))
            for attack, learned in zip(threat.attacks, TRAINING_USERS, strict=True):
                name, attack_name = f"{key}_{learned}", threat.attack_name(attack)
                description = f"{context}; trained on {learned}"
                for is_control, suffix in ((False, ""), (True, "_iid_control")):
                    value = _balanced(audit, attack_name, is_control)
                    if value is not None:
                        values.append(
                            reproduced_value(
                                f"{name}_balanced{suffix}",
                                f"{description}: average precision of balanced pairs{suffix} "
                                "(published: PIPA)".replace("_", " "),
                                value,
                                None
                                if is_control
                                else published_in_text("cross_modal_precision"),
                                None if is_control else "higher",
                            )
                        )
                values += [
                    rows.reproduced_value(
                        f"{name}_{score}",
                        f"{description}: {score.replace('_', ' ')}",
                        (attack_name, score),
                    )
                    for score in ("matching_auc", "mean_average_precision", "times_chance")
                ]
        return tuple(values)


def balanced_precision(pairs: ScoredPairs) -> float:
    """Return the average precision, with equal total weight of true and false pairs."""
    true = pairs.is_same_user.sum()
    weights = np.where(pairs.is_same_user, 1.0, true / (~pairs.is_same_user).sum())
    return float(
        average_precision_score(pairs.is_same_user, pairs.scores, sample_weight=weights)
    )


def _balanced(audit: Audit, attack: str, is_control: bool) -> Estimate | None:
    findings = [
        one
        for one in audit.findings
        if (one.cell.attack, one.cell.is_control) == (attack, is_control)
    ]
    values = [
        balanced_precision(pairs)
        for pairs in map(build_matches, build_rankings(findings))
        if pairs.has_both_kinds
    ]
    return mean_over_seeds(values) if values else None


def _attack(scenario: IdentityScenario, learned: TrainingUsers) -> MatchCrossModal:
    return MatchCrossModal(
        updates="shadow",
        layer=scenario.layer,
        learn_from=learned,
        most_rounds=scenario.most_rounds,
    )
