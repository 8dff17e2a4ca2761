"""Section VI-D2: membership inference under FedAvg and under FLiP."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from overheard.auditing.work_items import single_rounds
from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.data.datasets.mnist import Mnist
from overheard.data.partition.candidates import CandidateSettings
from overheard.learning.models.alexnet import AlexNet
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.registries import question_of_attack
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.lira_pooled import LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from overheard.questions.membership.scorer import FALSE_POSITIVE_RATES
from overheard.questions.membership.statistics.record_rates import estimate_record_rates
from overheard_studies.estimates import (
    FindingFilter,
    mean_score,
    mean_score_over_rounds,
    reproduced_value,
    select_findings,
)
from overheard_studies.experiment import Experiment
from overheard_studies.flip.accuracy import COMMON_DIFFERENCES
from overheard_studies.flip.published_numbers import published_membership_accuracy
from overheard_studies.flip.scenarios import (
    CIFAR10,
    QUICK_MNIST,
    TEN_PER_STEP_FLIP,
    FlipScenario,
)
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting

# Any: each attack has its own claim type.
AttacksByName = Mapping[str, Attack[Any]]

ATTACKS: AttacksByName = {
    "shadow": ShadowMembership(models=128, booster="catboost"),
    "lira": Lira(models=128),
    "lira_pooled": LiraPooled(models=128),
    "lira_offline": Lira(models=128, online=False),
    "loss": LossMembership(),
}

REDUCED_ATTACKS: AttacksByName = {
    "shadow": ShadowMembership(),
    "lira": Lira(models=32),
    "lira_pooled": LiraPooled(models=32),
    "lira_offline": Lira(models=32, online=False),
    "loss": LossMembership(),
}

SINGLE_ROUNDS = 5
"""Number of rounds that are also attacked alone; of 100 they are the paper's 1, 25, 50, 75,
100."""

SINGLE_ROUND_SCORES = ("membership_accuracy", "membership_auc", "tpr_at_1_percent")
"""The scores that are reported for single rounds."""

CANDIDATES = CandidateSettings(members=200, outsiders=1000)

FULL = replace(
    CIFAR10,
    model=AlexNet(),
    examples=1_200,
    samples=(20,),
    rounds=20,
    flip_rounds=100,
    epochs=5,
)

REDUCED = replace(
    QUICK_MNIST,
    source=Mnist(shrink=2),
    model=Mlp(hidden=(64,)),
    examples=600,
    rounds=20,
    flip=TEN_PER_STEP_FLIP,
    flip_rounds=60,
    samples=(20,),
    epochs=5,
    extra_arms=(),
)


@final
@dataclass(frozen=True, slots=True)
class MembershipExperiment(Experiment):
    """The paper's attack and stronger ones, on clients under FedAvg and under FLiP.

    Args:
        full: scenario of a full run.
        reduced: scenario of a quick run.
        attacks: attacks by their names in the values; the paper's is "shadow".
        reduced_attacks: attacks of a quick run, by the same names.
        candidates: candidate records.
        auxiliary: auxiliary examples for shadow models.
        name: name of the experiment.

    """

    full: FlipScenario = FULL
    reduced: FlipScenario = REDUCED
    attacks: AttacksByName = field(default_factory=lambda: ATTACKS)
    reduced_attacks: AttacksByName = field(default_factory=lambda: REDUCED_ATTACKS)
    candidates: CandidateSettings = CANDIDATES
    auxiliary: int = 1500
    name: str = "membership"

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return "Membership under FedAvg and under FLiP"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{COMMON_DIFFERENCES} The paper attacks the models of rounds 1, 25, 50, 75 and "
            "100, and "
            "reports one accuracy. It does not say whether that is a mean, how members and "
            "non-members are balanced, and at which threshold it is measured; 49.75 % is "
            "below the uninformed guess. Here the candidate records have equal total weight "
            "of members and non-members, and the threshold is fixed beforehand. The first, "
            "the last and three evenly spaced rounds between them are attacked alone, and the "
            "published value is shown next to their mean. All rounds are also attacked "
            "together. In addition to the paper's attack there are LiRA, Overheard's variant "
            "of LiRA and the loss alone, and true positive rates at low false positive rates, "
            "all of which the paper leaves out. Values whose names end in by_record have "
            "exact intervals over records instead of intervals over clients and runs. Against "
            "FLiP, shadow models train as under FedAvg, starting from the model that follows "
            "from the server's set. A quick run has MNIST of 14 x 14 pixels instead of "
            "CIFAR-10, and a layer of 64 instead of AlexNet. It has 32 shadow models per "
            "round instead of 128, and 300 stumps of scikit-learn instead of 10,000 of "
            "CatBoost (the extra `published_membership_accuracy`)."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan with both arms."""
        attacks = self.reduced_attacks if quick else self.attacks
        threat = ThreatPlan(attacks=tuple(attacks.values()), by_round=SINGLE_ROUNDS)
        scenario = self.reduced if quick else self.full
        plan = scenario.build_plan(
            (threat,), auxiliary=self.auxiliary, candidates=self.candidates
        )
        return {"audit": plan}

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return every attack's scores in each arm, over all rounds and for single rounds."""
        run = runs.plans["audit"]
        named_attacks = zip(self.attacks, run.threats[0].attacks, strict=True)
        return tuple(
            one
            for name, attack in named_attacks
            for arm in run.arms
            for one in self._attack_values(runs, name, attack, arm)
        )

    def _attack_values(
        self,
        runs: ExperimentRuns,
        name: str,
        # Any: each attack has its own claim type.
        attack: Attack[Any],
        arm: ArmPlan,
    ) -> Iterator[ReproducedValue]:
        audit, run = runs.audits["audit"], runs.plans["audit"]
        threat = run.threats[0]
        kind = "fedavg" if arm.distillation is None else "flip"
        key, plan_name = f"{kind}_{name}", threat.attack_name(attack)
        context = describe_setting(run.data.source.name, run, self.plans(quick=False)["audit"])
        context = f"{context}; {arm.name}, {name}"
        published = published_membership_accuracy(kind) if name == "shadow" else None
        all_rounds = tuple(range(run.rounds_of(arm)))
        all_filter = FindingFilter(plan_name, all_rounds, arm.name)
        try:
            rates = estimate_record_rates(select_findings(audit, all_filter))
        except NeedsError as error:
            description = f"{context}; not measured: {error}"
            accuracy = _name(key, "membership_accuracy")
            yield ReproducedValue(accuracy, description, None, None, None, published, "higher")
            return
        for score in self._scores():
            score_mean = mean_score(audit, all_filter, score)
            yield reproduced_value(_name(key, score), context, score_mean, None, "higher")
        exact_context = f"{context}, exact interval over records"
        pooled = {"membership_accuracy": rates.accuracy, **rates.true_positive_rates}
        for score, rate in pooled.items():
            yield reproduced_value(
                _name(key, score, "by_record"), exact_context, rate, None, "higher"
            )
        attacked_rounds = single_rounds(threat, question_of_attack(attack), all_rounds)
        for score in SINGLE_ROUND_SCORES:
            for number in attacked_rounds:
                score_mean = mean_score(
                    audit, FindingFilter(plan_name, (number,), arm.name), score
                )
                round_name = f"round_{number + 1}"
                description = f"{context}, round {number + 1} alone"
                yield reproduced_value(
                    _name(key, score, round_name), description, score_mean, None, "higher"
                )
            score_mean = mean_score_over_rounds(
                audit, plan_name, attacked_rounds, score, arm.name
            )
            yield reproduced_value(
                _name(key, score, "mean_of_rounds"),
                f"{context}, mean of {len(attacked_rounds)} single rounds",
                score_mean,
                published if score == "membership_accuracy" else None,
                "higher",
            )

    def _scores(self) -> tuple[str, ...]:
        """Return the scores that this number of non-members allows."""
        rate_scores = [
            name for rate, name in FALSE_POSITIVE_RATES if self.candidates.outsiders * rate >= 1
        ]
        return ("membership_accuracy", "membership_auc", *rate_scores)


def _name(*parts: str) -> str:
    return "_".join(parts).replace(".", "_")
