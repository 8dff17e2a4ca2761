"""Synthetic claims and truths, and how they fit under all pairings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from _calibrate.cells import CONTROLS, AuditCell, Kind
from overheard.core.seeds import Seed
from overheard.findings.re_paired_fits import re_pair_runs, re_pair_units
from overheard.questions.identity.statistics.identity_fits import identity_fits
from overheard.questions.label_shares.statistics.share_fits import redrawn_share_fits
from overheard.questions.membership.statistics.membership_fits import (
    NON_MEMBER,
    membership_fits,
    record_ranks,
)
from overheard.questions.same_sender.statistics.linkage_fits import linkage_fits, pair_fits
from overheard.questions.shift.statistics.flipped_fits import flipped_fits
from overheard.statistics.judgement import VERDICT_LEVEL
from overheard.statistics.max_t import adjusted_p_values
from overheard.statistics.person_pairings import group_by_runs
from overheard.statistics.re_pairing import re_drawn_runs

CLASSES = 10

PARTITIONS = 199
"""Partitions drawn anew in an audit of label shares."""

SHARES = np.random.default_rng(0).dirichlet(np.full(CLASSES, 0.5), 20_000)
"""Label shares of a Dirichlet split, from which all partitions draw."""

CONTRAST = 1.5
"""Standard deviation of the logarithms of claimed shares."""

NEAR = 10.0
"""Concentration of claimed shares that vary little around those of all clients."""

TARGETS_OF_A_PERSON = 2

ROUNDS = 2

LABEL_EFFECT = 2.0
"""How much a claim about records depends on their label, in standard deviations."""


@final
@dataclass(frozen=True, slots=True)
class Drawn:
    """One synthetic audit.

    Args:
        fits: row 0 is the true pairing.
        gains: the mean gain of each attack over a guess; 0 = there is no guess.

    """

    fits: Float[np.ndarray, "pairings attacks"]
    gains: Float[np.ndarray, " attacks"]

    @property
    def has_small_p(self) -> bool:
        """Whether an attack has a p-value that is small enough for "leaks"."""
        return bool(adjusted_p_values(self.fits).min() <= VERDICT_LEVEL)

    @property
    def leaks(self) -> bool:
        """Whether an attack with such a p-value also gains on the guess."""
        return bool(((adjusted_p_values(self.fits) <= VERDICT_LEVEL) & (self.gains > 0)).any())


def draw_audit(cell: AuditCell, seed: Seed) -> Drawn:
    """Draw the claims and truths of an audit."""
    return DRAWERS[cell.kind](cell, seed)


def draw_noise(
    cell: AuditCell, generator: np.random.Generator, shape: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    """Return correlated normal noise of variance 1, of shape (attacks, runs, *shape).

    The first axis of `shape` is that of the clients of a run, who share a part of it.
    """
    own = _draw_run_noise(cell, generator, (cell.attacks, cell.runs, *shape))
    common = _draw_run_noise(cell, generator, (1, cell.runs, *shape))
    return cell.correlation**0.5 * common + (1 - cell.correlation) ** 0.5 * own


def _draw_run_noise(
    cell: AuditCell, generator: np.random.Generator, shape: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    shared = generator.standard_normal((*shape[:2], 1, *shape[3:]))
    return cell.between**0.5 * shared + (1 - cell.between) ** 0.5 * generator.standard_normal(
        shape
    )


def _draw_shares(cell: AuditCell, seed: Seed) -> Drawn:
    """Draw claims about label shares; all know the population of their run."""
    generator, targets = seed.numpy(), cell.runs * cell.clients
    tilt = cell.between**0.5 * generator.standard_normal((cell.runs, 1, CLASSES))
    truths = SHARES[generator.integers(0, len(SHARES), (1 + PARTITIONS, targets))]
    if cell.between:
        truths *= np.repeat(np.exp(tilt), cell.clients, axis=1).reshape(targets, CLASSES)
        truths /= truths.sum(-1, keepdims=True)
    claims = cell.truth * truths[0] + (1 - cell.truth) * _draw_rest(cell, generator, tilt)
    guess = np.abs(truths[0] - 1 / CLASSES).sum(-1)
    gains = (guess - np.abs(claims - truths[0]).sum(-1)).mean(1)
    return Drawn(redrawn_share_fits(claims, truths), gains)


def _draw_rest(
    cell: AuditCell, generator: np.random.Generator, tilt: Float[np.ndarray, "runs 1 classes"]
) -> Float[np.ndarray, "attacks targets classes"]:
    """Draw the part of each claim that does not depend on the truth."""
    targets = cell.runs * cell.clients
    if cell.rest == "another client":
        return SHARES[generator.integers(0, len(SHARES), (cell.attacks, targets))]
    if cell.rest == "near the population":
        return generator.dirichlet(np.full(CLASSES, NEAR), (cell.attacks, targets))
    rest = np.exp(CONTRAST * draw_noise(cell, generator, (cell.clients, CLASSES)) + tilt)
    rest = rest.reshape(cell.attacks, targets, CLASSES)
    shares: Float[np.ndarray, "attacks targets classes"] = rest / rest.sum(-1, keepdims=True)
    return shares


def _draw_people(cell: AuditCell, seed: Seed) -> Drawn:
    """Draw rankings of users, in which half of the variance is a person's own in all runs."""
    generator = seed.numpy()
    people, runs, targets = cell.clients, cell.runs, TARGETS_OF_A_PERSON
    of_person = generator.standard_normal((cell.attacks, 1, people, 1, people))
    noise = draw_noise(cell, generator, (people, targets, people))
    scores = (of_person + noise).reshape(cell.attacks, -1, people)
    numbers = np.tile(np.repeat(np.arange(people), targets), runs)
    run = np.repeat(np.arange(runs), people * targets)
    fits = identity_fits(scores, numbers, run, np.arange(people))
    groups = group_by_runs(numbers, run, people)
    re_paired = re_pair_units(fits, groups, range(people), seed.child("pairings"))
    return Drawn(re_paired.fits, np.zeros(cell.attacks))


def _draw_linkage(cell: AuditCell, seed: Seed) -> Drawn:
    """Draw evidence from features of updates, in which all updates of a round are alike."""
    generator, targets = seed.numpy(), cell.clients * ROUNDS
    features = draw_noise(cell, generator, (targets, 3))
    of_round = generator.standard_normal((cell.attacks, cell.runs, 1, ROUNDS, 3))
    features += np.repeat(of_round, cell.clients, axis=2).reshape(features.shape)
    rounds = np.tile(np.arange(ROUNDS), cell.clients)
    senders = np.repeat(np.arange(cell.clients), ROUNDS)
    distances = ((features[..., :, None, :] - features[..., None, :, :]) ** 2).sum(-1)
    distances[..., rounds[:, None] == rounds] = np.nan  # one sends once in a round
    pairings = re_pair_runs([rounds] * cell.runs, seed.child("pairings"))
    fits = [
        [linkage_fits(pair_fits(-table), senders, of_run) for table in distances[:, number]]
        for number, of_run in enumerate(pairings)
    ]
    return Drawn(np.sum(fits, axis=0).T, np.zeros(cell.attacks))


def _draw_records(cell: AuditCell, seed: Seed) -> Drawn:
    """Draw scores of records that depend on their labels, which differ between clients."""
    generator, clients = seed.numpy(), cell.clients
    members, others = 3, 10
    targets = np.tile(np.arange(clients), cell.attacks)
    owners = np.append(np.repeat(np.arange(clients), members), np.full(others, NON_MEMBER))
    labels = [_draw_labels(generator, clients, members, others) for _ in range(cell.runs)]
    noise = draw_noise(cell, generator, (len(owners), clients))
    fits = []
    pairings = re_pair_runs(labels, seed.child("pairings"))
    for number, of_run in enumerate(pairings):
        effects = LABEL_EFFECT * generator.standard_normal((cell.attacks, CLASSES, clients))
        scores = noise[:, number] + effects[:, labels[number]]
        ranks = record_ranks(scores.swapaxes(1, 2).reshape(-1, len(owners)))
        fit = membership_fits(ranks, targets, owners[of_run])
        fits.append(fit.reshape(len(fit), cell.attacks, clients).mean(2))
    return Drawn(np.sum(fits, axis=0), np.zeros(cell.attacks))


def _draw_labels(
    generator: np.random.Generator, clients: int, members: int, others: int
) -> np.ndarray:
    shares = SHARES[generator.integers(0, len(SHARES), clients)]
    held = [generator.choice(CLASSES, members, p=one) for one in shares]
    return np.concatenate([*held, generator.integers(0, CLASSES, others)])


def _draw_shift(cell: AuditCell, seed: Seed) -> Drawn:
    """Draw evidence of shifts, of which the clients of a run share a part."""
    generator, alternatives = seed.numpy(), CONTROLS[cell.runs] + 1
    noise = draw_noise(cell, generator, (cell.clients, alternatives))
    peaks = noise.reshape(cell.attacks, -1, alternatives)
    runs = np.repeat(np.arange(cell.runs), cell.clients)
    choices = re_drawn_runs([alternatives] * cell.runs, seed.child("pairings"))
    return Drawn(flipped_fits(peaks, runs, choices), np.zeros(cell.attacks))


DRAWERS: Mapping[Kind, Callable[[AuditCell, Seed], Drawn]] = {
    "shares": _draw_shares,
    "people": _draw_people,
    "linkage": _draw_linkage,
    "records": _draw_records,
    "shift": _draw_shift,
}
