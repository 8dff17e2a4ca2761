"""How large epsilon is at least, by guesses at what became of canaries."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import brentq
from scipy.stats import binom

from overheard.epsilon.bound import EpsilonBound, GuessEvidence, Tally, by_attack, thresholds
from overheard.findings.finding import Finding

LEVEL = 0.05
"""How often a bound may lie above the truth."""

MOST = 50.0
"""Epsilon beyond which nobody asks."""


def proven_by_guesses(tally: Tally, odds: float, delta: float) -> float:
    """The largest epsilon that so many right guesses refute, at 95 % confidence; 0 = none.

    Each canary was put into its client, or nowhere, by a die of its own. Given the models, and
    what became of the canaries before it, one that is said to be in is in with a chance of
    odds e^epsilon / (1 + odds e^epsilon) at most under an (epsilon, 0)-private mechanism, and
    one that is said to be out is out with e^epsilon / (odds + e^epsilon). So right guesses are
    no more than a sum of two binomials, however canaries hang together (Steinke, Nasr and
    Jagielski 2023, NeurIPS, Theorem 5.2, with odds of 1). Under an (epsilon, delta)-private one
    a canary's chance may be larger; by how much it is so on average is at most p (1 - p) delta
    either way, of a chance p to be in: p P - q (p P + (1 - p) Q), where it is positive, is
    p (1 - q) times P - e^epsilon Q, which sums up to delta, and q is p or more. So it makes one
    guess or more right, of n canaries, with a chance of 2 p (1 - p) n delta at most; the paper
    has a finer term.

    >>> round(proven_by_guesses(Tally(36, 36, 0, 36), 1.0, 0.0), 3)  # ln(.9201 / .0799)
    2.444

    Args:
        tally: of the guesses.
        odds: that a canary goes in.
        delta: of the mechanism (0..1).

    """
    beyond = 2 * odds / (1 + odds) ** 2 * tally.canaries * delta

    def excess(epsilon: float) -> float:
        return _at_least(tally, odds, epsilon) + beyond - LEVEL

    if excess(0.0) >= 0:
        return 0.0
    return float(brentq(excess, 0.0, MOST)) if excess(MOST) > 0 else MOST


def _at_least(tally: Tally, odds: float, epsilon: float) -> float:
    """The chance of as many right guesses at least."""
    gain = exp(epsilon)
    inside = np.arange(tally.inside + 1)
    there = binom.pmf(inside, tally.inside, odds * gain / (1 + odds * gain))
    rest = binom.sf(tally.right - inside - 1, tally.outside, gain / (odds + gain))
    return float(there @ rest)


def bound_by_guesses(
    findings: Sequence[Finding], odds: float, delta: float, seed: int = 0
) -> EpsilonBound | None:
    """The lower bound of epsilon by the attacks of some observers on canaries.

    Each canary of nobody is asked of one client alone, drawn by chance, as each of a client is
    of its own. Attack and thresholds, above which a canary is said to be in and below which
    out, are chosen on every other canary, and the bound is reckoned on the rest.

    Args:
        findings: of membership of single clients. Of each attack those from the most rounds
            count, of the same seeds and targets alike.
        odds: how many canaries a client gets for one that goes nowhere, on average.
        delta: of the mechanism.
        seed: of the draw.

    Returns:
        The bound; None where there are fewer than two canaries.

    """
    asked = {name: _asked(own, odds, seed) for name, own in by_attack(findings).items()}
    chosen = [
        (*_chosen(one.half(0), delta), name)
        for name, one in asked.items()
        if len(one.scores) > 1
    ]
    if not chosen:
        return None
    _, above, below, attack = max(chosen)
    rest = asked[attack].half(1)
    tally = rest.guessed(above, below)
    return EpsilonBound(
        proven_by_guesses(tally, rest.odds, delta),
        attack,
        GuessEvidence(above, below, tally),
        int(rest.are_in.sum()),
        int((~rest.are_in).sum()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Canaries, each asked of one client; `odds` that it was put in there."""

    scores: Float[np.ndarray, " canaries"]
    are_in: Bool[np.ndarray, " canaries"]
    odds: float

    def half(self, parity: int) -> "_Asked":
        """Those at even or odd places."""
        return _Asked(self.scores[parity::2], self.are_in[parity::2], self.odds)

    def guessed(self, above: float, below: float) -> Tally:
        said_in = self.scores > above
        said_out = (self.scores < below) & ~said_in
        right = (said_in & self.are_in) | (said_out & ~self.are_in)
        return Tally(
            int(right.sum()), int(said_in.sum()), int(said_out.sum()), len(self.scores)
        )


def _chosen(half: _Asked, delta: float) -> tuple[float, float, float]:
    """The epsilon that is proven by the best thresholds, and these; either may be unused."""
    levels = thresholds(half.scores)

    def proven(above: float, below: float) -> tuple[float, float, float]:
        return proven_by_guesses(half.guessed(above, below), half.odds, delta), above, below

    first = max(proven(float(level), -np.inf) for level in levels)
    last = max(proven(np.inf, float(level)) for level in levels)
    return max(first, last, proven(first[1], last[2]))


def _asked(findings: Sequence[Finding], odds: float, seed: int) -> _Asked:
    draw = np.random.default_rng(seed)
    runs = defaultdict[int, list[Finding]](list)
    for one in findings:
        runs[one.cell.seed].append(one)
    # Where fewer targets were heard, the odds would be others.
    targets = max(map(len, runs.values()))
    scores, are_in = [], []
    for own in (own for own in runs.values() if len(own) == targets):
        said = np.array([one.claimed for one in own])  # (targets, canaries)
        true = np.array([one.true for one in own])
        held, nobodys = (true == 1).any(0), (true == -1).all(0)
        homes = np.where(held, true.argmax(0), draw.integers(len(own), size=true.shape[1]))
        asked = held | nobodys
        scores.append(said[homes, np.arange(len(homes))][asked])
        are_in.append(held[asked])
    return _Asked(np.concatenate(scores), np.concatenate(are_in), odds * targets)
