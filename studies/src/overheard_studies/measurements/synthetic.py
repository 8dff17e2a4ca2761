"""Synthetic claims, truths and figures, and whether verdicts and intervals are right."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Literal, final

import numpy as np
from jaxtyping import Float

from overheard.core.seeds import Seed
from overheard.questions.identity.question import identity_fits
from overheard.questions.label_shares.statistics.re_paired_shares import redrawn_share_fits
from overheard.questions.membership.statistics.re_paired_owners import (
    NON_MEMBER,
    membership_fits,
    record_ranks,
)
from overheard.questions.same_sender.statistics.re_paired_senders import linkage_fits, pair_fits
from overheard.questions.shift.question import flipped_fits
from overheard.statistics.estimate import FEWEST_RUNS, are_below, estimate_strongest
from overheard.statistics.judgement import VERDICT_LEVEL
from overheard.statistics.permutation_test import (
    adjusted_p_values,
    group_by_runs,
    re_drawn_runs,
    re_pair_runs,
    re_pair_units,
)
from overheard.statistics.run_means import estimate_mean

Kind = Literal["shares", "people", "linkage", "records", "shift"]
"""What is claimed. shares: label shares, compared with partitions drawn anew; people: users who
recur in all runs; linkage: senders of targets, within rounds; records: owners of records within
labels, where claims read the labels; shift: the run of a seed with a shift, among controls."""

Rest = Literal["contrasts", "another client", "near the population"]
"""The part of a claim about label shares that does not depend on the truth. contrasts:
correlated between attacks and within runs, and far from even; another client: the shares of
another client, drawn for each attack; near the population: shares that vary little around those
of all clients."""

RUNS = (1, 2, 3, 5, 10)

CLIENTS = (5, 20)

AUDITS = 2000
"""Audits of a cell: of 2.5 %, 50 are expected, with a standard deviation of 7."""

MOST_IN_A_CELL = 76
"""Most p-values in a cell that are small enough for "leaks". An exact test exceeds it in one of
3,600 cells, and a test with 5 % in 99 of 100."""

MOST_TOGETHER = 0.027
"""Largest share of small p-values in all cells of the grid together."""

LEAST_COVERAGE = 0.93
"""Smallest share of 95 % intervals that cover."""

LEAST_GAINING = 0.5
"""With this part of the truth, claims err less than a guess, whatever the rest of them is."""

CONTROLS = {1: 39, 2: 6, 3: 3, 5: 2, 10: 1}
"""Natural controls of a seed with a shift, by the number of seeds: enough to judge."""


@final
@dataclass(frozen=True, slots=True)
class AuditCell:
    """The settings of synthetic audits.

    Args:
        kind: what is claimed.
        runs: number of runs.
        clients: number of clients or users in a run.
        attacks: number of attacks.
        correlation: correlation of the claims of two attacks.
        between: share of the claims' variance that the clients of a run have in common.
        truth: weight of the truth in a claim; 0 = claims have nothing to do with it.
        rest: what the rest of a claim is; see `Rest`.

    """

    kind: Kind
    runs: int
    clients: int
    attacks: int
    correlation: float
    between: float
    truth: float = 0.0
    rest: Rest = "contrasts"

    @property
    def claims_gain(self) -> bool:
        """Whether claims that know this part of the truth err less than a guess."""
        return self.rest == "near the population" or self.truth >= LEAST_GAINING

    @property
    def key(self) -> str:
        """The name of the cell in the file of results."""
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items())


def share_cells() -> Iterator[AuditCell]:
    """Yield the 140 cells of label shares that differ: one attack has no correlation."""
    for runs, clients, between in product(RUNS, CLIENTS, (0.0, 0.3)):
        yield AuditCell("shares", runs, clients, 1, 0.0, between)
        for attacks, correlation in product((4, 12), (0.0, 0.5, 0.9)):
            yield AuditCell("shares", runs, clients, attacks, correlation, between)


def other_cells() -> Iterator[AuditCell]:
    """Yield the 40 cells of the other questions."""
    kinds: tuple[Kind, ...] = ("people", "linkage", "records", "shift")
    for kind, runs, clients in product(kinds, RUNS, CLIENTS):
        yield AuditCell(kind, runs, clients, 2, 0.5, 0.3)


def power_cells() -> Iterator[AuditCell]:
    """Yield cells in which claims know a part of the truth."""
    rests: tuple[Rest, ...] = ("near the population", "another client", "contrasts")
    for (clients, truth), rest in product(((5, 0.5), (10, 0.2)), rests):
        for correlation in (0.0, 0.5, 0.9) if rest == "contrasts" else (0.0,):
            yield AuditCell("shares", 1, clients, 4, correlation, 0.0, truth, rest)


def null_cells() -> tuple[AuditCell, ...]:
    """Return all cells in which claims have nothing to do with the truth."""
    return (*other_cells(), *share_cells())


CLASSES = 10

PARTITIONS = 199
"""Partitions drawn anew in an audit of label shares."""

SHARES = np.random.default_rng(0).dirichlet(np.full(CLASSES, 0.5), 20_000)
"""Label shares of a Dirichlet split, from which all partitions draw."""

CONTRAST = 1.5
"""Standard deviation of the logarithms of claimed shares."""

NEAR = 10.0
"""Concentration of claimed shares that vary little around those of all clients."""

TARGETS_PER_USER = 2

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
    noise: np.ndarray = cell.correlation**0.5 * common + (1 - cell.correlation) ** 0.5 * own
    return noise


def _draw_run_noise(
    cell: AuditCell, generator: np.random.Generator, shape: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    shared = generator.standard_normal((*shape[:2], 1, *shape[3:]))
    own = generator.standard_normal(shape)
    noise: np.ndarray = cell.between**0.5 * shared + (1 - cell.between) ** 0.5 * own
    return noise


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


def _draw_users(cell: AuditCell, seed: Seed) -> Drawn:
    """Draw rankings of users, in which half of the variance is a user's own in all runs."""
    generator = seed.numpy()
    clients, runs, targets = cell.clients, cell.runs, TARGETS_PER_USER
    of_user = generator.standard_normal((cell.attacks, 1, clients, 1, clients))
    noise = draw_noise(cell, generator, (clients, targets, clients))
    scores = (of_user + noise).reshape(cell.attacks, -1, clients)
    numbers = np.tile(np.repeat(np.arange(clients), targets), runs)
    run = np.repeat(np.arange(runs), clients * targets)
    fits = np.stack([identity_fits(one, numbers, run, np.arange(clients)) for one in scores])
    groups = group_by_runs(numbers, run, clients)
    re_paired = re_pair_units(fits, groups, range(clients), seed.child("pairings"))
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
    "people": _draw_users,
    "linkage": _draw_linkage,
    "records": _draw_records,
    "shift": _draw_shift,
}


MEAN_ERROR = 0.02
"""Mean distance to 1 of the figures called "near 1"."""

AGREEMENT = 0.1
"""Share of the variance of hits that clients of a run have in common."""


@final
@dataclass(frozen=True, slots=True)
class Covered:
    """Whether the intervals of one audit cover.

    Args:
        one: whether the first attack's interval covers its true mean.
        best: whether the interval of the strongest attack covers the largest true mean.
        is_wrongly_below: whether all upper ends are below the largest true mean.

    """

    one: bool
    best: bool
    is_wrongly_below: bool


def draw_gains(cell: AuditCell, seed: Seed) -> Covered:
    """Draw normal gains of all attacks, with a true mean of 0 over runs.

    With fewer than 5 runs the intervals are to cover the means of these runs.
    """
    generator, apart = seed.numpy(), replace(cell, between=0.0)
    of_run = draw_noise(apart, generator, (1,))
    of_client = draw_noise(apart, generator, (cell.clients,))
    gains = cell.between**0.5 * of_run + (1 - cell.between) ** 0.5 * of_client
    true = (
        np.zeros(cell.attacks)
        if cell.runs >= FEWEST_RUNS
        else cell.between**0.5 * of_run.mean((1, 2))
    )
    run = np.repeat(np.arange(cell.runs), cell.clients)
    estimates = [estimate_mean(one.ravel(), run) for one in gains]
    one, best = estimates[0], estimate_strongest(estimates)
    return Covered(
        _contains(one.low, one.high, float(true[0])),
        _contains(best.low, best.high, float(true.max())),
        are_below(estimates, float(true.max())),
    )


def _contains(low: float | None, high: float | None, value: float) -> bool:
    assert low is not None
    assert high is not None
    return low <= value <= high


@final
@dataclass(frozen=True, slots=True)
class FigureCell:
    """Settings of synthetic figures that are not normal.

    Args:
        figures: their distribution; see `FIGURES`.
        runs: number of runs.
        clients: number of clients of a run.

    """

    figures: str
    runs: int
    clients: int

    @property
    def key(self) -> str:
        """The name of the cell in the file of results."""
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items())


def figure_cells() -> Iterator[FigureCell]:
    """Yield all cells of figures that are not normal."""
    for figures, runs, clients in product(FIGURES, (1, 3, 5, 10), CLIENTS):
        yield FigureCell(figures, runs, clients)


def draw_figures(cell: FigureCell, seed: Seed) -> bool:
    """Draw the figures of clients; return whether their interval covers the true mean."""
    drawn = FIGURES[cell.figures](seed.numpy(), cell.runs, cell.clients)
    run = np.repeat(np.arange(cell.runs), cell.clients)
    estimate = estimate_mean(drawn.values.ravel(), run)
    true = drawn.mean if cell.runs >= FEWEST_RUNS else float(drawn.means_of_runs.mean())
    return _contains(estimate.low, estimate.high, true)


@final
@dataclass(frozen=True, slots=True)
class _Figures:
    """Figures of clients with the true mean of each run, and of all runs."""

    values: Float[np.ndarray, "runs clients"]
    means_of_runs: Float[np.ndarray, " runs"]
    mean: float


def _draw_hits(
    generator: np.random.Generator, runs: int, clients: int, mean: float
) -> _Figures:
    """Draw 0 or 1, with chances of the run that differ from the mean."""
    size = 1 / AGREEMENT - 1
    chances = generator.beta(mean * size, (1 - mean) * size, runs)
    hits = generator.random((runs, clients)) < chances[:, None]
    return _Figures(hits.astype(np.float64), chances, mean)


def _draw_skewed(generator: np.random.Generator, runs: int, clients: int) -> _Figures:
    """Draw lognormal figures, of which runs have three tenths of the variance of logarithms."""
    of_run = generator.normal(0, 0.3**0.5, runs)
    values = np.exp(of_run[:, None] + generator.normal(0, 0.7**0.5, (runs, clients)))
    return _Figures(values, np.exp(of_run + 0.35), float(np.exp(0.5)))


def _draw_near_one(generator: np.random.Generator, runs: int, clients: int) -> _Figures:
    """Draw figures such as an AUC, whose distances to 1 are exponential."""
    of_run = MEAN_ERROR * generator.gamma(4, 1 / 4, runs)
    values = 1 - of_run[:, None] * generator.exponential(1, (runs, clients))
    return _Figures(values, 1 - of_run, 1 - MEAN_ERROR)


FIGURES: Mapping[str, Callable[[np.random.Generator, int, int], _Figures]] = {
    "skewed": _draw_skewed,
    "near 1": _draw_near_one,
    "hits 50 %": lambda generator, runs, clients: _draw_hits(generator, runs, clients, 0.5),
    "hits 90 %": lambda generator, runs, clients: _draw_hits(generator, runs, clients, 0.9),
    "hits 98 %": lambda generator, runs, clients: _draw_hits(generator, runs, clients, 0.98),
}
"""The distributions. skewed: lognormal; near 1: 1 less an exponential of mean 0.02, with runs
that differ; hits: 0 or 1, with chances that differ between runs."""
