"""Tables III to VII: Decaf's claims about each user, compared with the published ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.findings.audit import Audit
from overheard.plans.plan import Plan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard_studies.decaf.benchmark import DecafBenchmark
from overheard_studies.decaf.by_user import l1_by_user
from overheard_studies.decaf.differences import common_differences
from overheard_studies.decaf.plans import DecafSize, build_plan, describe_setting
from overheard_studies.decaf.published_scores import (
    mean_published_guess_score,
    mean_published_score,
)
from overheard_studies.decaf.scores import (
    ATTACK,
    DISTANCES,
    NULL_CLASS_SCORES,
    PUBLISHED_DECAF,
    better_direction,
    value_name,
)
from overheard_studies.estimates import (
    FindingFilter,
    find_best_round,
    mean_guess_score,
    mean_score,
    reproduced_value,
)
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

TRUE_SUPPORT_GUESS = "uniform on the true support"
UNIFORM_GUESS = "uniform"
OTHER_ATTACKS = ("mean_softmax", "bias_inversion")


FULL = DecafSize(rounds=5, seeds=(0, 1, 2, 3, 4))
REDUCED = DecafSize(rounds=5, seeds=(0,))


@final
@dataclass(frozen=True, slots=True)
class DecafTableExperiment(Experiment):
    """One table: the attack on every user, in the best of the first rounds.

    Args:
        name: name of the table.
        benchmark: data set and users.
        full: size of a full run.
        reduced: size of a quick run.

    """

    name: str
    benchmark: DecafBenchmark
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED

    @property
    def title(self) -> str:
        """Title of the table."""
        return f"Composition of each user's data as Decaf infers it, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.benchmark)} The paper attacks one round at random among "
            "the first "
            "few. Here it is the best of them, the same for all users and seeds, which "
            "favours the attack; every round is reported too. The two other attacks are "
            "reported at their own best round."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan with the attack and two baseline attacks."""
        attacks = (PUBLISHED_DECAF, MeanSoftmax(), BiasInversion())
        return {
            "audit": build_plan(self.benchmark, self.reduced if quick else self.full, attacks)
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return distances, null-class scores, guesses, other attacks, rounds and users."""
        audit = runs.audits["audit"]
        run, full = runs.plans["audit"], self.plans(quick=False)["audit"]
        context, rounds = (
            describe_setting(self.benchmark, run, full),
            range(run.training.rounds),
        )
        best = find_best_round(audit, ATTACK, "l1", rounds)
        best_filter, best_setting = (
            FindingFilter(ATTACK, (best,)),
            f"{context}; round {best + 1}, the best round",
        )
        return (
            *self._mean_values(audit, best_filter, best_setting),
            *self._guess_values(audit, best_filter, context),
            *(_best_round_value(audit, other, rounds, context) for other in OTHER_ATTACKS),
            *(_round_value(audit, number, context) for number in rounds),
            *l1_by_user(audit, best_filter, self.benchmark.users, best_setting),
        )

    def _mean_values(
        self, audit: Audit, finding_filter: FindingFilter, context: str
    ) -> list[ReproducedValue]:
        return [
            reproduced_value(
                value_name(score),
                context,
                mean_score(audit, finding_filter, score),
                mean_published_score(self.benchmark.users, score),
                better_direction(score),
            )
            for score in (*DISTANCES, *NULL_CLASS_SCORES)
        ]

    def _guess_values(
        self, audit: Audit, finding_filter: FindingFilter, context: str
    ) -> list[ReproducedValue]:
        return [
            reproduced_value(
                f"{name}_l1",
                f"{context}; {words}",
                mean_guess_score(audit, finding_filter, "l1", guess),
                mean_published_guess_score(self.benchmark.users, "l1", guess),
                "lower",
            )
            for name, guess, words in (
                (
                    "uniform_on_true_support",
                    TRUE_SUPPORT_GUESS,
                    "uniform guess on the classes that the user holds",
                ),
                ("blind_uniform", UNIFORM_GUESS, "uninformed guess: uniform over classes"),
            )
        ]


def _best_round_value(
    audit: Audit, attack: str, rounds: range, context: str
) -> ReproducedValue:
    best = find_best_round(audit, attack, "l1", rounds)
    return reproduced_value(
        f"{attack}_mean_l1",
        f"{context}; round {best + 1}, the attack's best round",
        mean_score(audit, FindingFilter(attack, (best,)), "l1"),
        None,
        "lower",
    )


def _round_value(audit: Audit, number: int, context: str) -> ReproducedValue:
    return reproduced_value(
        f"mean_l1_round_{number + 1}",
        f"{context}; round {number + 1}",
        mean_score(audit, FindingFilter(ATTACK, (number,)), "l1"),
        None,
        "lower",
    )
