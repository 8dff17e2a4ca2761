"""Re-identification from the metadata that accompany updates in clear text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log, log1p
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.linkage.known_metadata import (
    KnownMetadata,
    read_shadow_metadata,
    simulate_metadata,
)
from overheard.linkage.known_updates import UpdateSource
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.metadata_features import list_senders, read_metadata
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.gaussian_users import fit_gaussian_users


@final
@dataclass(frozen=True, slots=True)
class Metadata(LearnsFromUpdates, Attack[Identity]):
    """Uses the number of examples, the loss and other metrics sent in clear text; no weights.

    - The number of examples is compared with the size of each user's prior, up to one common
      factor that is inferred from the observed sizes (`fit_size_ratio`).
    - The loss and other metrics, minus the mean of the round, are compared with those of known
      users in the same run. Each user is a Gaussian with a shrunken mean; the variances are
      estimated from known users only (`estimators.gaussian_users`).

    Scores are log-likelihood ratios against the population. They are summed as if the numbers
    were independent, so an example count and the training time that depends on it count twice.
    Over the rounds of a sender, only variation between rounds averages out; a repeated size
    adds no information. If all clients have equal sizes and losses carry no information, all
    users have the same score.

    Args:
        updates: the source of the numbers of known users: "shadow" devices of the run, or
            "simulated" clients that the attacker trains from broadcasts on each user's prior
            examples; their only metric is the loss.
        order: whether the position of a reply in its round is read. It is informative if a
            transcript keeps the order of arrival. In a simulation, clients reply in the order
            of their numbers.
        pieces: number of chunks of each simulated prior. Their differences estimate how far
            private examples may be from prior ones.
        most_rounds: maximum number of simulated rounds.

    """

    updates: UpdateSource = "simulated"
    order: bool = False
    pieces: Positive = 2
    most_rounds: Positive = 8

    name: ClassVar[str] = "metadata"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = "Overheard; likelihood of the metadata of an update"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Rank the known users for every target.

        Raises:
            NeedsError: if metadata in clear text, numbers to compare them with, or a readable
                update of a target are missing.

        """
        known_users = KnownUsers.of(knowledge)
        users = tuple(known_users.prior_examples)
        metadata = read_metadata(
            view, list_senders(view, known_users.shadow_devices), with_order=self.order
        )
        if metadata.is_empty():
            raise NeedsError(f"{self.name} needs example counts or metrics sent in clear text")
        sizes = metadata.log_sizes[metadata.log_sizes.isfinite()]
        size_ratio = fit_size_ratio(
            torch.tensor(
                [log1p(len(prior)) for prior in known_users.prior_examples.values()],
                dtype=torch.float64,
            ),
            sizes.tolist(),
        )
        known = self._known_numbers(view, knowledge)
        gaussian_users = fit_gaussian_users(
            known.values, known.users, known.clients, len(users)
        )
        numbers = metadata.select_columns(known.names)
        size_evidence = cache(size_ratio.log_likelihood_ratios)
        claims = {}
        for target, rows in metadata.rows_by_sender(targets).items():
            scores = gaussian_users.log_likelihood_ratios(numbers[rows])
            size = metadata.log_sizes[rows].nanmean()
            if bool(size.isfinite()):
                scores = scores + size_evidence(float(size))
            claims[target] = Identity(users, scores)
        return claims

    def _known_numbers(self, view: View, knowledge: Knowledge) -> KnownMetadata:
        if self.updates == "shadow":
            return read_shadow_metadata(view, knowledge, with_order=self.order)
        return simulate_metadata(
            view, knowledge, chunks=self.pieces, max_rounds=self.most_rounds
        )


LOG_RATIO_DEVIATION = 1.0
"""Prior standard deviation of the logarithm of the ratio of private to prior size."""

LOG_SIZE_DEVIATIONS = (0.005, 0.02, 0.08, 0.3, 1.0)
"""Standard deviations of a user's log size around the common ratio; a priori equally likely."""


@final
@dataclass(frozen=True, slots=True)
class SizeRatioPosterior:
    """Posterior over the ratio between private and prior sizes, given the observed sizes.

    Model: a user u of prior size n_u sends log n = log n_u + log ratio + deviation * noise,
    with normal noise. If one half of each user's records is prior, the ratio is 1 and the
    deviation almost 0. The attacker does not know this, but can infer it from observed sizes.

    Args:
        log_prior_sizes: log(1 + prior examples) of each known user.
        log_ratios: logarithm of the ratio of each hypothesis.
        deviations: deviation of each hypothesis.
        log_weights: log-probability of each hypothesis.

    """

    log_prior_sizes: Float[Tensor, " users"]
    log_ratios: Float[Tensor, " hypotheses"]
    deviations: Float[Tensor, " hypotheses"]
    log_weights: Float[Tensor, " hypotheses"]

    def log_likelihood_ratios(self, size: float) -> Float[Tensor, " users"]:
        """Return each user's log-likelihood ratio of a size against an average known user."""
        by_user = (self._log_densities(size) + self.log_weights).logsumexp(1)
        return by_user - by_user.logsumexp(0) + log(len(by_user))

    def _log_densities(self, size: float) -> Float[Tensor, "users hypotheses"]:
        standardised = (
            size - self.log_prior_sizes[:, None] - self.log_ratios
        ) / self.deviations
        return -standardised.square() / 2 - self.deviations.log()


def fit_size_ratio(
    log_prior_sizes: Float[Tensor, " users"], log_sizes: Sequence[float]
) -> SizeRatioPosterior:
    """Weigh every ratio and deviation by the likelihood of the observed sizes.

    Each distinct size counts once, as that of a known user: a sender under a new pseudonym adds
    no information.

    Args:
        log_prior_sizes: log(1 + prior examples) of each known user.
        log_sizes: log(1 + examples) of updates of any sender.

    """
    grids = [
        torch.arange(
            -3 * LOG_RATIO_DEVIATION, 3 * LOG_RATIO_DEVIATION, width, dtype=torch.float64
        )
        for width in LOG_SIZE_DEVIATIONS
    ]
    factors = torch.cat(grids)
    widths = torch.cat(
        [
            torch.full_like(grid, width)
            for grid, width in zip(grids, LOG_SIZE_DEVIATIONS, strict=True)
        ]
    )
    # A small deviation needs a finer grid of ratios, so each of its hypotheses weighs less.
    log_weights = widths.log() - (factors / LOG_RATIO_DEVIATION).square() / 2
    ratio = SizeRatioPosterior(log_prior_sizes, factors, widths, log_weights)
    for size in sorted(set(log_sizes)):
        log_weights = log_weights + ratio._log_densities(size).logsumexp(0)
    return SizeRatioPosterior(
        log_prior_sizes, factors, widths, log_weights - log_weights.logsumexp(0)
    )
