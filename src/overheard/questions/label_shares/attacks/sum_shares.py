"""Label shares of single clients, from sums over cohorts that vary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch

from overheard.core.attack import Attack, TrainingSource
from overheard.core.claims import Interval
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPES, SUMS, VIRTUAL_CLIENTS
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.simplex import normalize_to_shares
from overheard.participation.observed_sums import ObservedSums, find_sums
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.sum_posterior import (
    SharesPosterior,
    draw_shares,
)
from overheard.questions.label_shares.estimators.sum_response import (
    SumReadings,
    fit_response,
)
from overheard.simulation.client_sizes import size_range
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.simulation import Simulation, read_deltas, run_simulation

LAST_LAYER = LastLayerChange()

MOST_NUMBERS = 6_000
"""Clients times labels above which the attack is refused: its matrix has the square of it."""

MOST_SCALE = 10.0
"""Factor of the variance from which on sums do not fit what virtual clients show."""

MOST_DRIFT = 0.08
"""Variance of a client's shares over the rounds, of that of clients with one label each, from
which on intervals are doubted."""

MOST_UNEXPLAINED = 1.0
"""Extra variance, as a factor of that of the sums, from which on a drift is doubted if constant
shares would need it. Where all clients changed their labels at once, 90 % intervals held .63 to
.91 of the time. Of these six federations, five needed as much; of those that changed slowly or
not at all, none did (seeds 900 to 903)."""

LARGEST_P = 0.05
"""Largest p-value of the evidence among exchanges of cohorts at which cohorts are believed."""

TREND_P = 0.001
"""Largest p-value at which who takes part follows a trend."""

AVAILABILITY_TREND = (
    "who takes part follows a trend over the rounds, which looks like a difference of clients"
)

FEW_SUMS = "there are fewer sums than clients, where intervals were measured to be too narrow"
"""Of 20 clients with one or two labels each, 90 % intervals held .41 to .43 of the time after
10 rounds, and .91 to .92 after 20 (seeds 1 to 3)."""

MOST_WRONG_SUMS = 0.15
"""Share of sums that fit their cohorts badly from which on intervals are doubted. Where updates
say little of shares, fewer stand out than have wrong cohorts."""

LARGEST_SIZE_RATIO = 5.0
"""Largest over smallest hidden size up to which clients may be weighted equally. Of sums of
virtual clients with log-normal sizes, 90 % intervals contained 86 % or more of true shares at
a deviation of the logarithm of 0.4, that of log-uniform sizes over a factor of 4, but down to
78 % at 0.8, that of a factor of 16 (seeds 900 to 902)."""

HIDDEN_SIZES = (
    "the numbers of examples of clients are hidden and may differ, while all clients are "
    "weighted equally: set the sizes of virtual clients in the plan if you know their range"
)

ENDS = (0.05, 0.95)
"""The quantiles of the intervals, whose level is `INTERVAL_LEVEL`."""

ROUNDING = 0.5
"""Examples by which intervals are widened: a share is a whole number of examples. A client that
hides how many it has may be the smallest that is plausible."""


@final
@dataclass(frozen=True, slots=True)
class SumShares(Attack[LabelShares]):
    """Estimates the label shares of single clients from sums over cohorts that vary.

    It reads no single update. Behind secure aggregation each round gives the sum of a cohort;
    other cohorts in other rounds give further equations about the same clients. Where single
    updates can be read, each is a sum of one client.

    Virtual clients train from each broadcast. A linear model of their last layer's change gives
    how a sum responds to the shares of its clients, and the noise: how clients of equal shares
    differ, how alike one client deviates in all rounds, and the error of the fit. The posterior
    has one Dirichlet prior for all clients. Its mean and concentration and the size of the
    noise are fitted to the sums, so that unknown noise of the server, new records or wrong
    cohorts widen intervals (`estimators.sum_posterior`).

    The share of a client is the median of its posterior, and its interval has the quantiles of
    5 and 95 %. It is about the mean shares over the rounds in which the client took part. They
    are constant, or a random walk around that mean if the sums speak for it; other changes from
    round to round count as noise. If shares drift far, the sums fit virtual clients badly,
    there are fewer sums than clients, or numbers of examples are hidden and may differ, the
    claim says that its intervals are not trusted.

    Args:
        most_rounds: at most this many rounds are used, evenly spaced.
        sweeps: draws of each of 16 chains.

    """

    most_rounds: Positive = 100
    sweeps: Positive = 90

    name: ClassVar[str] = "sum_shares"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({SUMS, BROADCASTS, AUXILIARY, MODEL, RECIPES, VIRTUAL_CLIENTS})
    source: ClassVar[str] = (
        "Overheard; sums as equations about clients from Kerkouche et al. 2023 (PROLIN, arXiv "
        "2303.03908, section 4), virtual clients from Ma et al. 2025 (arXiv 2504.21436)"
    )
    quick_settings: ClassVar = {"sweeps": 10}
    is_label_equivariant: ClassVar[bool] = False

    def training_source(self) -> TrainingSource:
        """Return which parties' updates it learns from."""
        return "virtual clients"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, with intervals.

        Raises:
            NeedsError: if the sums separate no client, or there are too many clients, or too
                few auxiliary examples.

        """
        if COHORT in targets:
            raise NeedsError(f'{self.name} needs single clients as targets: about = "clients"')
        sums = find_sums(view, self.most_rounds)
        if sums is None or not set(targets) <= set(sums.clients):
            raise NeedsError(f"{self.name} needs {SUMS.description}")
        sums.check_separable(self.name)
        _refuse_too_many_numbers(sums, knowledge.classes)
        if sums.sizes is not None:
            sizes = (min(sums.sizes), max(sums.sizes))
            knowledge = replace(knowledge, prior=replace(knowledge.prior, sizes=sizes))
        rounds = tuple(dict.fromkeys(sums.rounds))
        simulation = run_simulation(view, knowledge, rounds, [LAST_LAYER], is_alone=True)
        read = read_deltas(view, knowledge, sums.rounds, sums.deltas, LAST_LAYER)
        readings = _readings(sums, rounds, simulation, read)
        if not np.isfinite(readings.sums).all():
            raise NeedsError(f"{self.name} needs sums whose last layer is finite")
        generator = seed.child("posterior").numpy()
        posterior = draw_shares(
            fit_response(readings), knowledge.classes, self.sweeps, generator
        )
        is_joint = bool(((sums.weights > 0).sum(axis=1) > 1).any())
        likely_sizes = size_range(view, knowledge.prior)
        doubt = find_doubt(posterior, len(sums.rounds))
        if is_joint and doubt is None:
            doubt = doubt_weights(sums, likely_sizes) or doubt_count(sums)
        place = {party: number for number, party in enumerate(sums.clients)}
        return {
            target: _claim(
                posterior.draws[:, place[target]],
                likely_sizes[0] if sums.sizes is None else sums.sizes[place[target]],
                doubt,
                is_from_sums=is_joint,
            )
            for target in targets
        }


def find_doubt(posterior: SharesPosterior, sums: int) -> str | None:
    """Return why the intervals cannot be trusted; None = no reason was found.

    Args:
        posterior: of the shares.
        sums: number of sums that were read.

    """
    if posterior.exchange_p is not None and posterior.exchange_p > LARGEST_P:
        return (
            "the sums fit their cohorts no better than those of neighbouring rounds: clients "
            "are alike, or who took part is not what it seems"
        )
    if posterior.wrong > MOST_WRONG_SUMS * sums:
        return f"{posterior.wrong} of {sums} sums do not fit their cohorts, and were left out"
    is_erratic = posterior.drift > 0 and posterior.unexplained >= MOST_UNEXPLAINED
    if posterior.drift > MOST_DRIFT or is_erratic:
        return (
            "shares of clients change so much over the rounds that intervals of their means "
            "were measured to be too narrow"
        )
    if posterior.scale > MOST_SCALE:
        return f"the sums vary {posterior.scale:.0f} times as much as virtual clients explain"
    return None


def doubt_weights(sums: ObservedSums, sizes: tuple[int, int]) -> str | None:
    """Return why the weights of clients in sums mislead; None = no reason was found.

    Args:
        sums: the sums.
        sizes: the smallest and the largest number of examples that a client may have.

    """
    if sums.trend_p() < TREND_P:
        return AVAILABILITY_TREND
    if sums.sizes is None and sizes[1] > LARGEST_SIZE_RATIO * sizes[0]:
        return HIDDEN_SIZES
    return None


def doubt_count(sums: ObservedSums) -> str | None:
    """Return why so few sums mislead; None = there are as many as clients, or more."""
    return FEW_SUMS if len(sums.rounds) < len(sums.clients) else None


def _refuse_too_many_numbers(sums: ObservedSums, classes: int) -> None:
    clients = len(sums.clients)
    if clients * classes > MOST_NUMBERS:
        raise NeedsError(
            f"sum_shares needs at most {MOST_NUMBERS:,} clients times labels, got {clients:,} "
            f"x {classes:,}"
        )


def _readings(
    sums: ObservedSums, rounds: Sequence[int], simulation: Simulation, read: torch.Tensor
) -> SumReadings:
    virtual = simulation.readings[LAST_LAYER].double().flatten(2).numpy(force=True)
    place = {number: index for index, number in enumerate(rounds)}
    return SumReadings(
        virtual,
        simulation.shares.numpy(force=True),
        simulation.halves.numpy(force=True),
        read.double().flatten(1).numpy(force=True),
        np.array([place[number] for number in sums.rounds]),
        sums.weights,
    )


def _claim(
    draws: np.ndarray, size: int, doubt: str | None, *, is_from_sums: bool
) -> LabelShares:
    """Return the claim of one client of this size from its draws, (draws, classes)."""
    slack = ROUNDING / size
    low, high = np.quantile(draws, ENDS, axis=0)
    median = normalize_to_shares(torch.from_numpy(np.median(draws, axis=0)))
    return LabelShares(
        median.float(),
        bounds=Interval(
            tuple((low - slack).clip(0).tolist()), tuple((high + slack).clip(max=1).tolist())
        ),
        reason_for_doubt=doubt,
        is_from_sums=is_from_sums,
    )
