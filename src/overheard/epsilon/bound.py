"""How large epsilon is at least, by how well records that were trained on are told apart."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from overheard.findings.finding import Finding
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact import proportion

RANKS = 32
"""Thresholds that are tried from either end of all scores, the closer to the end the denser."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How many records of either kind are above one threshold.

    Args:
        threshold: above which an attack says that a record was trained on.
        found: the share of members above it, with its exact 95 % interval.
        passed: that of records of nobody.

    """

    threshold: float
    found: Estimate
    passed: Estimate


@dataclass(frozen=True, slots=True)
class Tally:
    """How often guesses at canaries were right.

    Args:
        right: guesses that are.
        inside: canaries that are said to be in.
        outside: canaries that are said to be out.
        canaries: of all of which some were guessed at.

    """

    right: int
    inside: int
    outside: int
    canaries: int


@dataclass(frozen=True, slots=True)
class GuessEvidence:
    """What was guessed of canaries, and how often it was right.

    Args:
        above: threshold above which a canary is said to be in; infinite = none is.
        below: threshold below which one is said to be out; -infinite = none is.
        tally: how often that was right.

    """

    above: float
    below: float
    tally: Tally


@dataclass(frozen=True, slots=True)
class EpsilonBound:
    """What one attack proves of epsilon.

    Args:
        epsilon: it is at least as large (0 or more), at 95 % confidence.
        attack: that found it.
        evidence: what proves it.
        members: on which the bound was reckoned.
        outsiders: likewise.

    """

    epsilon: float
    attack: str
    evidence: Rates | GuessEvidence
    members: int
    outsiders: int


def proven(found: float, passed: float, delta: float) -> float:
    """The least epsilon at which a test may find so many and pass so few.

    Of an (epsilon, delta)-private mechanism found <= e^epsilon passed + delta, and likewise of
    the records that are not above the threshold: 1 - passed <= e^epsilon (1 - found) + delta
    (Kairouz, Oh and Viswanath 2015, ICML, Theorem 2.1; turned into a lower bound of epsilon by
    Jagielski, Ullman and Oprea 2020, NeurIPS, section 4). 0 where neither proves more.

    >>> round(proven(0.8, 0.1, 0.0), 3)  # ln 8
    2.079

    Args:
        found: no more than the rate of true positives (0..1).
        passed: no less than that of false ones (above 0, at most 1).
        delta: of the mechanism (0..1).

    """
    sides = ((found - delta, passed), (1 - passed - delta, 1 - found))
    return max([0.0, *(log(more / less) for more, less in sides if more > 0 and less > 0)])


def epsilon_bound(findings: Sequence[Finding], delta: float) -> EpsilonBound | None:
    """The lower bound of epsilon by the attacks of some observers in one arm.

    Attack and threshold are chosen on every other record, members and others apart, and the
    bound is reckoned on the rest, so that the choice needs no correction. Both rates there have
    exact intervals (Clopper and Pearson 1934) of 95 %; at the worse end of each the bound holds
    with 95 % at least, as either end misses with 2.5 %.

    It bounds the epsilon of single records: of a mechanism that covers all of a client's data
    too, since a record is a part of them. Records are taken as independent given the models,
    which of canaries need not be (`epsilon.guesses`), and those of nobody as what a
    client's would have been (`auditing.alike`). It is cautious in that a record of nobody
    counts once a run, however many clients are asked about. With n of either kind to reckon
    on it never exceeds log(n / 3.7), and a stronger attack may prove more: a small bound is no
    proof of privacy.

    Args:
        findings: of membership. Of each attack those from the most rounds count, of the same
            seeds and targets alike.
        delta: of the mechanism.

    Returns:
        The bound; None where no finding has two records of either kind.

    """
    chosen, checked = _halves(findings, 0), _halves(findings, 1)
    tried = [
        (_bound(attack, half, threshold, delta).epsilon, attack, threshold)
        for attack, half in chosen.items()
        if attack in checked
        for threshold in thresholds(half.scores)
    ]
    if not tried:
        return None
    _, attack, threshold = max(tried)
    return _bound(attack, checked[attack], threshold, delta)


@dataclass(frozen=True, slots=True, eq=False)
class _Half:
    """Half of the records; `outside` has the scores (targets, outsiders) of each run."""

    inside: NDArray[np.float64]
    outside: tuple[NDArray[np.float64], ...]

    @property
    def scores(self) -> NDArray[np.float64]:
        return np.concatenate([self.inside, *(run.ravel() for run in self.outside)])


def _halves(findings: Sequence[Finding], parity: int) -> Mapping[str, _Half]:
    """By attack, the records at even or odd places; none where a kind lacks."""
    halves = {name: _half(own, parity) for name, own in by_attack(findings).items()}
    return {
        name: half
        for name, half in halves.items()
        if len(half.inside) and half.outside and all(run.size for run in half.outside)
    }


def by_attack(findings: Sequence[Finding]) -> Mapping[str, Sequence[Finding]]:
    """The findings of each attack from the most rounds."""
    attacks = defaultdict[str, list[Finding]](list)
    for finding in findings:
        attacks[finding.cell.attack].append(finding)
    return {name: _longest(own) for name, own in attacks.items()}


def thresholds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Some of the scores, in order: both ends, and the closer to an end the denser."""
    levels = np.unique(scores)
    ranks = np.unique(np.geomspace(1, len(levels), RANKS).round().astype(int)) - 1
    places = np.unique(np.concatenate([ranks, len(levels) - 1 - ranks]))
    tried: NDArray[np.float64] = levels[places]
    return tried


def _longest(findings: Sequence[Finding]) -> list[Finding]:
    rounds = max((one.cell.rounds for one in findings), key=lambda held: (len(held), held))
    return [one for one in findings if one.cell.rounds == rounds]


def _half(findings: Sequence[Finding], parity: int) -> _Half:
    runs = defaultdict[int, list[NDArray[np.float64]]](list)
    inside = []
    for one in findings:
        scores, true = np.array(one.claimed), np.array(one.true)
        inside.append(scores[true == 1][parity::2])
        runs[one.cell.seed].append(scores[true == -1][parity::2])
    return _Half(np.concatenate(inside), tuple(np.stack(run) for run in runs.values()))


def _bound(attack: str, half: _Half, threshold: float, delta: float) -> EpsilonBound:
    members, outsiders = len(half.inside), sum(run.shape[1] for run in half.outside)
    found = proportion(float((half.inside > threshold).sum()), members)
    # Of each record of nobody, the share of targets that it is taken for a record of.
    passed = proportion(
        sum(float((run > threshold).mean(0).sum()) for run in half.outside), outsiders
    )
    assert found.low is not None
    assert passed.high is not None
    epsilon = proven(found.low, passed.high, delta)
    return EpsilonBound(epsilon, attack, Rates(threshold, found, passed), members, outsiders)
