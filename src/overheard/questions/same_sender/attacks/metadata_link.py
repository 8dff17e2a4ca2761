"""Which updates are of one sender, from what travels in clear beside the weights alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, log1p
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.told_beside import crowd_of, told_beside
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.estimators.heard_apart import same_sender

RECOUNT = 0.05
"""The chance that one sender says another number of examples than in another round."""

WILDEST = 4.0
"""Standard deviations beyond which a number counts as no further off."""


@final
@dataclass(frozen=True, slots=True)
class MetadataLink(Attack[SameSender]):
    """Reads no weight: takes two updates that say the same of themselves for one sender's.

    The score of two updates of different rounds is the logarithm of how much likelier what they
    tell is of one sender than of two, as if the numbers were independent:

    - numbers of examples: with f the share of a number among all updates heard and q the chance
      of a recount, (1 - q + q f) / f where two are equal, else q. Where all are alike, f = 1.
    - every metric, less the mean of its round and over its spread: two standard normal numbers
      of correlation rho against 0. One that nobody tells, or that all tell alike, is left out.

    Of senders with several updates it is the mean over pairs. A target is compared with every
    sender heard that sent nothing in a round of the target's: others are another, and trivially
    so. Nothing is known of users, so how much of a number lasts is set, not learned.

    Args:
        lasting: rho: share of the variance of a metric, between the updates of a round, that
            stays with the sender.
        order: whether the place of a reply in its round is read: see `metadata`.

    """

    lasting: float = 0.5
    order: bool = False

    name: ClassVar[str] = "metadata_link"
    answers: ClassVar = SameSender
    needs: ClassVar = frozenset({UPDATES})
    source: ClassVar[str] = "ours; a likelihood ratio of what two updates say of themselves"

    def __post_init__(self) -> None:
        """Refuse a share that is none."""
        if not 0 <= self.lasting < 1:
            raise ValueError(f"lasting is a share from 0 to below 1, got {self.lasting}")

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, SameSender]:
        """Compare every target with all others heard.

        Raises:
            NeedsError: if nothing is told in clear, nobody else was heard in other rounds, or
                no update of a target can be read.

        """
        crowd = crowd_of(view, knowledge.people.devices)
        told = told_beside(view, crowd, order=self.order)
        if told.is_silent():
            raise NeedsError(f"{self.name} needs example counts or metrics told in clear")
        places = {who: place for place, who in enumerate(crowd)}
        senders = torch.tensor([places[who] for who in told.senders])
        return {
            target: same_sender(
                self.name,
                crowd,
                senders,
                told.rounds,
                mine,
                self._sizes(told.sizes, mine) + self._numbers(told.numbers, mine),
            )
            for target, mine in told.rows(targets).items()
        }

    def _sizes(
        self, sizes: Float[Tensor, " updates"], mine: Int[Tensor, " own"]
    ) -> Float[Tensor, "own updates"]:
        """The evidence of the numbers of examples; 0 where one of two is hidden."""
        known = sizes.isfinite()
        alike = sizes == sizes[mine][:, None]  # (own, updates)
        often = alike.sum(1, keepdim=True).double() / known.sum()
        same = ((1 - RECOUNT) / often + RECOUNT).log()
        evidence = torch.where(alike, same, log(RECOUNT))
        return torch.where(known & known[mine][:, None], evidence, 0.0)

    def _numbers(
        self, numbers: Float[Tensor, "updates numbers"], mine: Int[Tensor, " own"]
    ) -> Float[Tensor, "own updates"]:
        """The evidence of all metrics; 0 for one that one of two does not tell."""
        there = numbers.isfinite()
        variance = torch.where(there, numbers, 0.0).square().sum(0) / there.sum(0)
        scaled = (numbers / variance.sqrt()).clamp(-WILDEST, WILDEST)
        rho = self.lasting
        ours = scaled[mine][:, None]  # (own, 1, numbers)
        off = rho**2 * (ours.square() + scaled.square()) - 2 * rho * ours * scaled
        evidence = -log1p(-(rho**2)) / 2 - off / (2 * (1 - rho**2))
        return torch.where(evidence.isfinite(), evidence, 0.0).sum(2)
