"""An attack under test on the planted runs of its question, and what is checked there."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.claims import Claim
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Aggregate, Broadcast, DistilledSet, Update
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.plugin_registry import PluginRegistry
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.testing.require import require

Claims = Mapping[Party, Any]
"""Any: each attack has its own type of claims."""

AttackCheck = Callable[["AttackTrial"], None]


@final
@dataclass(frozen=True, eq=False)
class PlantedRun:
    """A run, compared by identity, so that claims about it can be cached.

    Args:
        transcript: all messages of the run.
        truth: the ground truth.
        knowledge: the attacker's knowledge.
        targets: the targets of claims, three or more.

    """

    transcript: Transcript
    truth: GroundTruth
    knowledge: Knowledge
    targets: tuple[Party, ...]


def beats_guessing_on_the_leaky_run(trial: "AttackTrial") -> None:
    """Check that it beats the uninformed guess on the leaky run."""
    require_gain(trial, 0, "the answer leaks")


def gains_less_on_the_leak_free_run(trial: "AttackTrial") -> None:
    """Check that it gains less than half as much on leak-free runs."""
    most = mean_gain(trial, trial.first_run) / 2
    for run in trial.checks.leak_free_runs():
        gain = mean_gain(trial, run)
        require(gain < most, gain_message(trial, gain, f"less than {most:.3f} without a leak"))


class QuestionChecks(ABC):
    """What contract tests need of a question: its scorer, an example and planted runs.

    A concrete one is a final frozen dataclass without fields, in `checks.py` of the question's
    folder. Another package offers it by an entry point of the group `overheard.checks`.
    """

    name: ClassVar[str]
    """The name of the question."""
    # Any: each question has its own type of claims.
    scorer: ClassVar[Scorer[Any]]
    example: ClassVar[Claim]
    """A claim about a client of a run with three clients and five labels, of any values."""
    attack_checks: ClassVar[tuple[AttackCheck, ...]] = (
        beats_guessing_on_the_leaky_run,
        gains_less_on_the_leak_free_run,
    )
    """The checks of claims: that attacks find what leaks, and nothing else."""
    order_dependent: ClassVar[Collection[str]] = ()
    """Scores that depend on the order of labels."""
    is_across_runs: ClassVar[bool] = False
    """Whether the headline score needs many runs, so that a single claim has none."""
    is_about_labels: ClassVar[bool] = False
    """Whether other label counts of clients make another claim true."""

    @abstractmethod
    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return runs that leak the answer, one or more; general checks use the first."""

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return runs that do not leak the answer."""
        return ()

    def add_truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the truth of the example's run, with what the question is about.

        Args:
            truth: the truth with label counts alone, of the rounds 0 and 1.

        """
        return truth

    def add_knowledge(self, knowledge: Knowledge) -> Knowledge:
        """Return the knowledge of an attacker on the example's run, with what it is given.

        Args:
            knowledge: the knowledge of eight auxiliary examples alone.

        """
        return knowledge


CHECKS = PluginRegistry[QuestionChecks](
    "checks", QuestionChecks, "overheard.questions", "checks"
)


def checks_of(claim_type: type[Claim]) -> QuestionChecks:
    """Return what contract tests need of the question that such claims answer.

    Raises:
        AssertionError: if it is unknown.

    """
    for checks in CHECKS.plugins().values():
        if checks().scorer.claim_type is claim_type:
            return checks()
    raise AssertionError(
        f"no checks are known for claims of {claim_type.__name__}: pass the checks of the "
        "question, or install the package that has them"
    )


@final
@dataclass(frozen=True, eq=False)
class AttackTrial:
    """An attack under test, with its settings, and the checks of its question."""

    attack: Attack[Any]
    checks: QuestionChecks

    @property
    def first_run(self) -> PlantedRun:
        """The run for the general checks."""
        return self.checks.leaky_runs()[0]


@cache
def cached_claims(attack: Attack[Any], run: PlantedRun) -> Claims:
    """Return an attack's claims about a run, cached; also check that the view is not changed.

    Raises:
        AssertionError: if the attack changes the view.

    """
    view = run.transcript.seen_by(SERVER)
    before = _tensors(view, copied=True)
    claims = infer_claims(attack, view, run.targets, run.knowledge)
    after = _tensors(view, copied=False)
    require(
        len(before) == len(after) and all(map(torch.equal, before, after)),
        f"{attack.name} changes the tensors of the view in place: copy them first",
    )
    return claims


def infer_claims(
    attack: Attack[Any], view: View, targets: Sequence[Party], knowledge: Knowledge
) -> Claims:
    """Infer an attack's claims with a fixed seed.

    Raises:
        AssertionError: if what it returns are no claims of its class.

    """
    claims = dict(attack.infer(view, targets, knowledge, Seed(0)))
    for target, claim in claims.items():
        require(
            isinstance(claim, attack.claim_type),
            f"{attack.name} returns a {type(claim).__name__} about {target}, and not a "
            f"{attack.claim_type.__name__}",
        )
    return claims


def claim_numbers(claim: Claim) -> tuple[float, ...]:
    """Return all numbers of a claim, including its timeline."""
    timeline = claim.timeline()
    if timeline is None:
        return claim.numbers()
    since = -1.0 if timeline.since is None else float(timeline.since)
    return (*claim.numbers(), *timeline.statistic, since)


def mean_gain(trial: AttackTrial, run: PlantedRun) -> float:
    """Return the mean gain of the headline score over the best uninformed guess."""
    scorer = trial.checks.scorer
    view, gains = run.transcript.seen_by(SERVER), list[float]()
    for target, claim in cached_claims(trial.attack, run).items():
        rounds = sorted(view.rounds_with_updates(target))
        truth = scorer.true_claim(run.truth, target, rounds, claim)
        scores = scorer.score(claim, truth, scorer.guesses(truth, run.knowledge))
        gains += [
            score.gain
            for score in scores
            if score.name == scorer.headline and score.gain is not None
        ]
    require(gains, f"{trial.attack.name}: no claim has the headline score {scorer.headline!r}")
    return sum(gains) / len(gains)


def claims_about(trial: AttackTrial, run: PlantedRun) -> list[Any]:
    """Return the claims about a run, in the order of its targets; of a joint attack its one."""
    claims = cached_claims(trial.attack, run)
    return [claims[target] for target in asked_targets(trial.attack, run)]


def asked_targets(attack: Attack[Any], run: PlantedRun) -> tuple[Party, ...]:
    """Return whom an attack must claim something about: each target, or `COHORT` if joint."""
    return (COHORT,) if attack.is_joint else run.targets


def require_gain(trial: AttackTrial, least: float, where: str) -> None:
    """Check that it gains more than this on the leaky run."""
    gain = mean_gain(trial, trial.first_run)
    require(gain > least, gain_message(trial, gain, f"more than {least} where {where}"))


def require_no_gain(trial: AttackTrial, most: float, where: str) -> None:
    """Check that it gains at most this on each leak-free run."""
    for run in trial.checks.leak_free_runs():
        gain = mean_gain(trial, run)
        require(gain <= most, gain_message(trial, gain, f"at most {most} where {where}"))


def gain_message(trial: AttackTrial, gain: float, expected: str) -> str:
    """Return that a gain is not as expected."""
    return (
        f"{trial.attack.name}: its gain over the best uninformed guess is {gain:.3f}, expected "
        f"{expected}"
    )


def _tensors(view: View, *, copied: bool) -> list[Tensor]:
    tensors = list[Tensor]()
    for message in view.messages:
        match message.body:
            case Broadcast(weights=weights):
                tensors += weights.values()
            case Update(delta=delta) | Aggregate(delta=delta):
                tensors += delta.values()
            case DistilledSet(inputs=inputs, labels=labels, rates=rates):
                tensors += [inputs, labels, rates]
    return [tensor.clone() for tensor in tensors] if copied else tensors
