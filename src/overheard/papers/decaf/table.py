"""Tables III to VII: what Decaf says of each user, beside what the paper says it said."""

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
    """One table: the attack on every user, at the best of the first rounds.

    Args:
        name: of the table.
        benchmark: its data and users.
        full: how much is run.
        reduced: how much is run in a hurry.

    """

    name: str
    benchmark: DecafBenchmark
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED

    @property
    def title(self) -> str:
        """What the table shows."""
        return f"Composition of each user's data as Decaf infers it, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.benchmark)} The paper attacks one round at random among the first "
            "few; we take the best of them, one and the same for all users and seeds, which "
            "favours the attack; every round is given too. The two other attacks are given at "
            "their own best round."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit with the attack and the two that it must beat."""
        attacks = (Decaf(), MeanSoftmax(), BiasInversion())
        return {"audit": plan(self.benchmark, self.reduced if quick else self.full, attacks)}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Distances, verdicts on null classes, guesses, other attacks, rounds, users."""
        audit = runs.audits["audit"]
        run, full = runs.plans["audit"], self.plans(quick=False)["audit"]
        where, rounds = setting(self.benchmark, run, full), range(run.training.rounds)
        best = best_round(audit, ATTACK, "l1", rounds)
        there, at_best = ReadingPlace(ATTACK, (best,)), f"{where}; round {best + 1}, the best"
        return (
            *self._means(audit, there, at_best),
            *self._guesses(audit, there, where),
            *(_at_its_best(audit, other, rounds, where) for other in OTHERS),
            *(_at(audit, number, where) for number in rounds),
            *l1_by_user(audit, there, self.benchmark.users, at_best),
        )

    def _means(self, audit: Audit, there: ReadingPlace, where: str) -> list[Figure]:
        return [
            figure(
                told_as(score),
                where,
                mean(audit, there, score),
                printed_mean(self.benchmark.users, score),
                direction(score),
            )
            for score in (*DISTANCES, *VERDICTS)
        ]

    def _guesses(self, audit: Audit, there: ReadingPlace, where: str) -> list[Figure]:
        return [
            figure(
                f"{name}_l1",
                f"{where}; {what}",
                mean_guess(audit, there, "l1", guess),
                printed_mean_guess(self.benchmark.users, "l1", guess),
                "lower",
            )
            for name, guess, what in (
                ("uniform_on_true_support", SUPPORT, "a guess that knows the null classes"),
                ("blind_uniform", UNIFORM, "a guess that knows nothing"),
            )
        ]


def _at_its_best(audit: Audit, attack: str, rounds: range, where: str) -> Figure:
    best = best_round(audit, attack, "l1", rounds)
    return figure(
        f"{attack}_mean_l1",
        f"{where}; round {best + 1}, its best",
        mean(audit, ReadingPlace(attack, (best,)), "l1"),
        None,
        "lower",
    )


def _at(audit: Audit, number: int, where: str) -> Figure:
    return figure(
        f"mean_l1_round_{number + 1}",
        f"{where}; round {number + 1}",
        mean(audit, ReadingPlace(ATTACK, (number,)), "l1"),
        None,
        "lower",
    )
