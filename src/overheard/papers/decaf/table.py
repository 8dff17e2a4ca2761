"""Tables III to VII: Decaf's claims about each user, compared with the published ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.findings.finding import Audit
from overheard.papers.decaf.benchmark import DecafBenchmark
from overheard.papers.decaf.by_user import l1_by_user
from overheard.papers.decaf.differences import common
from overheard.papers.decaf.plans import DecafSize, plan, setting
from overheard.papers.decaf.printed import printed_mean, printed_mean_guess
from overheard.papers.decaf.scores import ATTACK, DISTANCES, VERDICTS, direction, told_as
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import ReadingPlace, best_round, figure, mean, mean_guess
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax

SUPPORT = "uniform on the true support"
UNIFORM = "uniform"
OTHERS = ("mean_softmax", "bias_inversion")


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
            f"{common(self.benchmark)} The paper attacks one round at random among the first "
            "few. Here it is the best of them, the same for all users and seeds, which "
            "favours the attack; every round is reported too. The two other attacks are "
            "reported at their own best round."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan with the attack and two baseline attacks."""
        attacks = (Decaf(), MeanSoftmax(), BiasInversion())
        return {"audit": plan(self.benchmark, self.reduced if quick else self.full, attacks)}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return distances, null-class scores, guesses, other attacks, rounds and users."""
        audit = runs.audits["audit"]
        run, full = runs.plans["audit"], self.plans(quick=False)["audit"]
        context, rounds = setting(self.benchmark, run, full), range(run.training.rounds)
        best = best_round(audit, ATTACK, "l1", rounds)
        best_filter, best_setting = (
            ReadingPlace(ATTACK, (best,)),
            f"{context}; round {best + 1}, the best round",
        )
        return (
            *self._mean_values(audit, best_filter, best_setting),
            *self._guess_values(audit, best_filter, context),
            *(_best_round_value(audit, other, rounds, context) for other in OTHERS),
            *(_round_value(audit, number, context) for number in rounds),
            *l1_by_user(audit, best_filter, self.benchmark.users, best_setting),
        )

    def _mean_values(
        self, audit: Audit, finding_filter: ReadingPlace, context: str
    ) -> list[Figure]:
        return [
            figure(
                told_as(score),
                context,
                mean(audit, finding_filter, score),
                printed_mean(self.benchmark.users, score),
                direction(score),
            )
            for score in (*DISTANCES, *VERDICTS)
        ]

    def _guess_values(
        self, audit: Audit, finding_filter: ReadingPlace, context: str
    ) -> list[Figure]:
        return [
            figure(
                f"{name}_l1",
                f"{context}; {words}",
                mean_guess(audit, finding_filter, "l1", guess),
                printed_mean_guess(self.benchmark.users, "l1", guess),
                "lower",
            )
            for name, guess, words in (
                (
                    "uniform_on_true_support",
                    SUPPORT,
                    "uniform guess on the classes that the user holds",
                ),
                ("blind_uniform", UNIFORM, "uninformed guess: uniform over classes"),
            )
        ]


def _best_round_value(audit: Audit, attack: str, rounds: range, context: str) -> Figure:
    best = best_round(audit, attack, "l1", rounds)
    return figure(
        f"{attack}_mean_l1",
        f"{context}; round {best + 1}, the attack's best round",
        mean(audit, ReadingPlace(attack, (best,)), "l1"),
        None,
        "lower",
    )


def _round_value(audit: Audit, number: int, context: str) -> Figure:
    return figure(
        f"mean_l1_round_{number + 1}",
        f"{context}; round {number + 1}",
        mean(audit, ReadingPlace(ATTACK, (number,)), "l1"),
        None,
        "lower",
    )
