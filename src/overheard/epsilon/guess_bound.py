"""Lower bounds of epsilon from guesses about the membership of randomly assigned canaries."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from jaxtyping import Bool, Float, Shaped
from scipy.optimize import brentq

from overheard.core.parties import COHORT, Party
from overheard.epsilon.curve_bound import largest_refuted_strength
from overheard.epsilon.guess_estimate import estimate_gaussian_mu
from overheard.epsilon.threshold_bound import (
    EpsilonBound,
    GuessCounts,
    GuessEvidence,
    candidate_thresholds,
    longest_findings_by_attack,
)
from overheard.epsilon.trade_off import CurveFamily, GaussianFamily, repeated_pair
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.privacy.bound_settings import BoundSettings

SIGNIFICANCE_LEVEL = 0.05
"""The probability with which a bound may exceed the true epsilon."""

MAX_EPSILON = 50.0
"""The largest bound that is computed."""


def epsilon_from_guesses(
    counts: GuessCounts,
    odds: float,
    delta: float,
    level: float = SIGNIFICANCE_LEVEL,
    times: int = 1,
) -> float:
    """Return the largest epsilon that these guesses refute; 0 = none.

    Each canary was assigned to its client or held out at random, independently. Take an
    (epsilon, 0)-private mechanism, and condition on the models and on earlier canaries. A
    canary guessed to be a member is one with probability at most
    odds e^epsilon / (1 + odds e^epsilon). One guessed to be a non-member is one with at most
    e^epsilon / (odds + e^epsilon). So correct guesses are bounded by a sum of two binomials,
    however canaries depend on each other (Steinke, Nasr and Jagielski 2023, NeurIPS, Theorem
    5.2, for odds of 1).

    Under (epsilon, delta)-privacy a canary's probability may be larger, on average by at most
    p (1 - p) delta either way, where p is the probability of being a member. For
    p P - q (p P + (1 - p) Q), where positive, is p (1 - q) times P - e^epsilon Q, which sums to
    delta, and q is p or more. So with n canaries it makes a guess correct with probability at
    most 2 p (1 - p) n delta; the paper has a tighter term.

    >>> counts = GuessCounts(36, 36, 0, 36)
    >>> round(epsilon_from_guesses(counts, 1.0, 0.0), 3)  # ln(.9201 / .0799)
    2.444

    Args:
        counts: the numbers of guesses.
        odds: the odds of a canary to be a member.
        delta: the delta of the mechanism (0..1).
        level: the probability with which a true epsilon may be refuted.
        times: steps of the claimed relation from a canary in to a canary out.

    """
    share = 2 * odds / (1 + odds) ** 2 * counts.canaries

    def excess(epsilon: float) -> float:
        far, far_delta = repeated_pair(epsilon, delta, times)
        return _tail_probability(counts, odds, far) + share * far_delta - level

    if excess(0.0) >= 0:
        return 0.0
    most = MAX_EPSILON / times
    return float(brentq(excess, 0.0, most)) if excess(most) > 0 else most


def _tail_probability(tally: GuessCounts, odds: float, epsilon: float) -> float:
    """Return the probability of at least as many correct guesses."""
    from scipy.stats import binom  # only here: importing it takes half a second

    ratio = exp(epsilon)
    right_in = np.arange(tally.guessed_in + 1)
    exactly = binom.pmf(right_in, tally.guessed_in, odds * ratio / (1 + odds * ratio))
    at_least = binom.sf(tally.right - right_in - 1, tally.guessed_out, ratio / (odds + ratio))
    return float(exactly @ at_least)


def bound_epsilon_at_odds(
    findings: Sequence[Finding],
    odds: float,
    delta: float,
    seed: int = 0,
    *,
    level: float = SIGNIFICANCE_LEVEL,
    times: int = 1,
) -> EpsilonBound | None:
    """Compute a lower bound of epsilon from canaries that older versions assigned at odds.

    A held-out canary is scored for one client, drawn at random; a member for its own client.
    Attack and thresholds are chosen on every other canary, and the bound is computed on the
    other half. Canaries above one threshold are guessed to be members, those below the other
    one non-members.

    Args:
        findings: findings on membership of single clients, with the same seeds and targets for
            each attack. Only those from the most rounds are used.
        odds: expected number of canaries of a client per held-out canary.
        delta: the delta of the mechanism.
        seed: the seed of the draws of clients.
        level: the probability with which the bound may exceed the true epsilon.
        times: steps of the claimed relation from a canary in to a canary out.

    Returns:
        The bound; None if there are fewer than two canaries.

    """
    by_name = {
        name: _assign_canaries(group, odds, seed)
        for name, group in longest_findings_by_attack(findings).items()
    }
    candidates = [
        (*_choose_thresholds(one.half(0), delta), name)
        for name, one in by_name.items()
        if len(one.scores) > 1
    ]
    if not candidates:
        return None
    _, above, below, attack = max(candidates)
    evaluation = by_name[attack].half(1)
    tally = evaluation.count_guesses(above, below)
    return EpsilonBound(
        epsilon_from_guesses(tally, evaluation.odds, delta, level, times),
        attack,
        GuessEvidence(above, below, tally),
        int(evaluation.is_member.sum()),
        int((~evaluation.is_member).sum()),
        level,
    )


@dataclass(frozen=True, slots=True)
class CanaryClaim:
    """A claim as canaries test it.

    Args:
        family: the mechanisms of which the claim is one; None = a bare epsilon.
        delta: the delta of its epsilon.
        times: steps of its relation from a canary in to a canary out.

    """

    family: CurveFamily | None
    delta: float
    times: int

    def bound(self, counts: GuessCounts, level: float) -> float:
        """Return the largest epsilon that guesses at fair odds refute; 0 = none."""
        if self.family is None:
            return epsilon_from_guesses(counts, 1.0, self.delta, level, self.times)
        strength = largest_refuted_strength(
            self.family,
            counts.canaries,
            counts.guessed_in + counts.guessed_out,
            counts.right,
            level=level,
            times=self.times,
        )
        return self.family.epsilon(strength, self.delta) if strength else 0.0

    def estimate(self, counts: GuessCounts) -> float | None:
        """Return an estimate of epsilon, which proves nothing; None = there is none."""
        if not isinstance(self.family, GaussianFamily):
            return None
        guesses = counts.guessed_in + counts.guessed_out
        mu = estimate_gaussian_mu(counts.canaries, guesses, guesses - counts.right)
        return self.family.epsilon(mu / self.times, self.delta) if mu else 0.0


def bound_epsilon_by_canaries(
    findings: Sequence[Finding],
    runs: Sequence[ArmRun],
    claim: CanaryClaim,
    settings: BoundSettings,
    level: float = SIGNIFICANCE_LEVEL,
) -> EpsilonBound | None:
    """Compute a lower bound of epsilon from canaries that fair coins gave to clients or not.

    Each canary is scored for the client that it was offered to. The highest scores are guessed
    to be members, as many of the lowest ones non-members. Their number is chosen before the
    run. So is the attack, or else it is chosen on every other canary, and the bound is computed
    on the other half.

    Args:
        findings: findings on membership, with the same seeds and targets for each attack. Only
            those from the most rounds are used.
        runs: the runs, which state the client of each canary.
        claim: what is tested.
        settings: the choices made before the run.
        level: the probability with which a true claim may be refuted.

    Returns:
        The bound; None if there are fewer than two canaries of the targets.

    """
    by_attack = {
        name: _offered_canaries(group, runs)
        for name, group in longest_findings_by_attack(findings).items()
    }
    by_attack = {name: one for name, one in by_attack.items() if len(one.scores) > 1}
    if not by_attack:
        return None
    named = [
        name
        for name in by_attack
        if settings.attack and re.split(r"[(,]", name)[0] == settings.attack
    ]
    if len(named) == 1:
        (attack,) = named
        tested = by_attack[attack]
    else:
        attack = max(
            named or by_attack,
            key=lambda name: by_attack[name].half(0).guess_surest(settings).counts.right,
        )
        tested = by_attack[attack].half(1)
    evidence = tested.guess_surest(settings)
    return EpsilonBound(
        claim.bound(evidence.counts, level),
        attack,
        evidence,
        int(tested.is_member.sum()),
        int((~tested.is_member).sum()),
        level,
        "guesses" if claim.family is None else "curve",
        claim.estimate(evidence.counts),
    )


def count_surest(canaries: int, share: float | None) -> int:
    """Return the number of canaries to guess.

    >>> count_surest(100, None), count_surest(1000, None), count_surest(100, 0.1)
    (30, 150, 10)

    Args:
        canaries: number of canaries.
        share: the share to guess; None = by their number.

    """
    if share is None:
        share = float(np.interp(canaries, (500, 1000), (0.3, 0.15)))
    return min(max(round(share * canaries), 1), canaries)


@dataclass(frozen=True, slots=True, eq=False)
class _AssignedCanaries:
    """Canaries, each scored for one client; `odds` of being a member of that client."""

    scores: Float[np.ndarray, " canaries"]
    is_member: Bool[np.ndarray, " canaries"]
    odds: float

    def half(self, parity: int) -> "_AssignedCanaries":
        """Return those at even or odd indices."""
        return _AssignedCanaries(self.scores[parity::2], self.is_member[parity::2], self.odds)

    def count_guesses(self, above: float, below: float) -> GuessCounts:
        guessed_in = self.scores > above
        guessed_out = (self.scores < below) & ~guessed_in
        right = (guessed_in & self.is_member) | (guessed_out & ~self.is_member)
        return GuessCounts(
            int(right.sum()), int(guessed_in.sum()), int(guessed_out.sum()), len(self.scores)
        )

    def guess_surest(self, settings: BoundSettings) -> GuessEvidence:
        """Guess those with the highest scores to be members, with the lowest non-members."""
        guesses = count_surest(len(self.scores), settings.guesses)
        order = np.argsort(self.scores, kind="stable")
        low, high = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
        right = int(self.is_member[high].sum() + (~self.is_member[low]).sum())
        return GuessEvidence(
            float(self.scores[high[0]]),
            float(self.scores[low[-1]]) if len(low) else -np.inf,
            GuessCounts(right, len(high), len(low), len(self.scores)),
        )


def _choose_thresholds(half: _AssignedCanaries, delta: float) -> tuple[float, float, float]:
    """Return the largest bound with its two thresholds; either may be unused."""
    levels = candidate_thresholds(half.scores)

    def bound_at(above: float, below: float) -> tuple[float, float, float]:
        return (
            epsilon_from_guesses(half.count_guesses(above, below), half.odds, delta),
            above,
            below,
        )

    best_above = max(bound_at(float(level), -np.inf) for level in levels)
    best_below = max(bound_at(np.inf, float(level)) for level in levels)
    return max(best_above, best_below, bound_at(best_above[1], best_below[2]))


def _assign_canaries(findings: Sequence[Finding], odds: float, seed: int) -> _AssignedCanaries:
    generator = np.random.default_rng(seed)
    runs = defaultdict[int, list[Finding]](list)
    for one in findings:
        runs[one.cell.seed].append(one)
    # Runs with updates of fewer targets are left out, as their odds differ.
    targets = max(map(len, runs.values()))
    scores, are_in = [], []
    for run in (run for run in runs.values() if len(run) == targets):
        claimed = np.array([one.claimed.numbers for one in run])  # (targets, canaries)
        true = np.array([one.true_numbers for one in run])
        is_member, is_held_out = (true == 1).any(0), (true == -1).all(0)
        random_clients = generator.integers(len(run), size=true.shape[1])
        clients = np.where(is_member, true.argmax(0), random_clients)
        is_used = is_member | is_held_out
        scores.append(claimed[clients, np.arange(len(clients))][is_used])
        are_in.append(is_member[is_used])
    return _AssignedCanaries(np.concatenate(scores), np.concatenate(are_in), odds * targets)


def _offered_canaries(findings: Sequence[Finding], runs: Sequence[ArmRun]) -> _AssignedCanaries:
    """Return the canaries offered to the targets of findings, each scored for its client."""
    clients_of = {run.seed: np.array(run.canary_clients, dtype=object) for run in runs}
    scores, are_in = [], []
    for one in findings:
        true, clients = np.array(one.true_numbers), clients_of[one.cell.seed]
        is_used = (true != 0) & _is_offered(clients, one.target, one.cell.observers)
        scores.append(np.array(one.claimed.numbers)[is_used])
        are_in.append(true[is_used] > 0)
    return _AssignedCanaries(np.concatenate(scores), np.concatenate(are_in), 1.0)


def _is_offered(
    clients: Shaped[np.ndarray, " canaries"], target: Party, observers: Sequence[Party]
) -> Bool[np.ndarray, " canaries"]:
    """Return which canaries were offered to a target; of a cohort, to any but observers."""
    if target != COHORT:
        return np.array(clients == target, dtype=bool)
    return np.array([bool(one) and one not in observers for one in clients], dtype=bool)
