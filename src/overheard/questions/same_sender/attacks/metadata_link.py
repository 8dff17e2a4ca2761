"""Linkage of targets by the unencrypted metadata of their updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, log1p
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge, Lt
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.needs import METADATA
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.metadata_features import list_senders, read_metadata
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.estimators.disjoint_rounds import compare_senders

RECOUNT_PROBABILITY = 0.05
"""Probability that a sender reports different numbers of examples in two rounds."""

LARGEST_DEVIATION = 4.0
"""Standard deviations at which a metric is clipped."""


@final
@dataclass(frozen=True, slots=True)
class MetadataLink(Attack[SameSender]):
    """Links updates with similar metadata, without reading weights.

    The score of two updates of different rounds is the log-likelihood ratio of their metadata:
    one sender against two, with all numbers treated as independent:

    - numbers of examples: let f be the fraction of all observed updates with the same number,
      and q the probability of a different count. The ratio is (1 - q + q f) / f if both numbers
      are equal, else q. If all updates have the same number, f = 1.
    - every metric, centred by its round's mean and divided by its deviation: two standard
      normal numbers with correlation rho against correlation 0. A metric that is never reported
      or always equal is left out.

    The network, which can read no update, compares the bytes of encrypted messages and the
    logarithms of their response times in the same way.

    For senders with several updates, the score is the mean over pairs. A target is compared
    with each sender that sent nothing in the target's rounds; all others trivially differ.
    The attacker knows no users, so the correlation is a setting and not learned.

    Args:
        lasting: rho: fraction of a metric's variance within a round that is constant for the
            sender.
        order: whether the position of a reply in its round is read: see `metadata`.

    """

    lasting: Annotated[float, Ge(0), Lt(1)] = 0.5
    order: bool = False

    name: ClassVar[str] = "metadata_link"
    claim_type: ClassVar = SameSender
    needs: ClassVar = frozenset({METADATA})
    source: ClassVar[str] = "Overheard; a likelihood ratio of the metadata of two updates"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, SameSender]:
        """Compare every target with the other senders.

        Raises:
            NeedsError: if updates have no metadata, a target shares a round with every other
                sender, or no update of a target can be read.

        """
        crowd = list_senders(view, KnownUsers.of(knowledge).shadow_devices)
        metadata = read_metadata(view, crowd, with_order=self.order)
        if metadata.is_empty():
            raise NeedsError(f"{self.name} needs unencrypted example counts or metrics")
        indices = {sender: index for index, sender in enumerate(crowd)}
        senders = torch.tensor([indices[sender] for sender in metadata.senders])
        return {
            target: compare_senders(
                self.name,
                crowd,
                senders,
                metadata.rounds,
                own,
                self._size_evidence(metadata.log_sizes, own)
                + self._metric_evidence(metadata.values, own),
            )
            for target, own in metadata.rows_by_sender(targets).items()
        }

    def _size_evidence(
        self, sizes: Float[Tensor, " updates"], own: Int[Tensor, " own"]
    ) -> Float[Tensor, "own updates"]:
        """Return the evidence of example counts; 0 if either is hidden."""
        known = sizes.isfinite()
        is_equal = sizes == sizes[own][:, None]  # (own, updates)
        frequency = is_equal.sum(1, keepdim=True).double() / known.sum()
        if_equal = ((1 - RECOUNT_PROBABILITY) / frequency + RECOUNT_PROBABILITY).log()
        evidence = torch.where(is_equal, if_equal, log(RECOUNT_PROBABILITY))
        return torch.where(known & known[own][:, None], evidence, 0.0)

    def _metric_evidence(
        self, numbers: Float[Tensor, "updates numbers"], own: Int[Tensor, " own"]
    ) -> Float[Tensor, "own updates"]:
        """Return the evidence of all metrics; 0 for a metric that either does not report."""
        known = numbers.isfinite()
        variance = torch.where(known, numbers, 0.0).square().sum(0) / known.sum(0)
        scaled = (numbers / variance.sqrt()).clamp(-LARGEST_DEVIATION, LARGEST_DEVIATION)
        rho = self.lasting
        mine = scaled[own][:, None]  # (own, 1, numbers)
        exponent = rho**2 * (mine.square() + scaled.square()) - 2 * rho * mine * scaled
        evidence = -log1p(-(rho**2)) / 2 - exponent / (2 * (1 - rho**2))
        return torch.where(evidence.isfinite(), evidence, 0.0).sum(2)
