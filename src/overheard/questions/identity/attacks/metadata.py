"""Who sent an update, from what travels in clear beside the weights alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log1p
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.prior_losses import KnownNumbers, told_by_shadows, told_when_simulated
from overheard.linkage.prior_updates import Source
from overheard.linkage.told_beside import crowd_of, told_beside
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.estimators.size_ratio import learn_size_ratio
from overheard.questions.identity.estimators.users_apart import learn_users_apart


@final
@dataclass(frozen=True, slots=True)
class Metadata(LearnsFromUpdates, Attack[Identity]):
    """Reads no weight: the number of examples, the loss and whatever else is told in clear.

    - The number of examples, against that of each user's prior, up to one factor for all that
      the sizes heard tell by themselves (`estimators.size_ratio`).
    - The loss and any other metric, less the mean of the round, against those of known users in
      the same run: each user a Gaussian, its mean drawn in towards that of all, the variances
      learned from known users alone (`estimators.users_apart`).

    Scores are log-likelihood ratios against anybody, added up as if numbers were independent:
    an example count and the seconds that go with it count twice. Over the rounds of a sender
    only what differs from round to round averages out; a size told again tells nothing new.
    Where all hold as many, and losses tell nobody apart, every user has the same score.

    Args:
        updates: whose numbers tell users apart: "shadow" devices of the run, or "simulated",
            trained from broadcasts on each prior; the latter knows of no metric but the loss.
        order: whether the place of a reply in its round is read. It tells something where a
            transcript keeps the order of arrival; a simulation has clients answer in the order
            of their numbers.
        pieces: of each prior, where simulated: how far apart they are tells how far private
            examples may be from prior ones.
        most_rounds: that are simulated.

    """

    updates: Source = "simulated"
    order: bool = False
    pieces: int = 2
    most_rounds: int = 8

    name: ClassVar[str] = "metadata"
    answers: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = "ours; a likelihood of what an update says of itself"

    def __post_init__(self) -> None:
        """Refuse pieces and rounds that are none."""
        if self.pieces < 1 or self.most_rounds < 1:
            raise ValueError("pieces and most_rounds must be 1 or more")

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """Rank the known users for every target.

        Raises:
            NeedsError: if nothing is told in clear, there is nothing to compare it with, or no
                update of a target can be read.

        """
        people = knowledge.people
        users = tuple(people.priors)
        told = told_beside(view, crowd_of(view, people.devices), order=self.order)
        if told.is_silent():
            raise NeedsError(f"{self.name} needs example counts or metrics told in clear")
        sizes = told.sizes[told.sizes.isfinite()]
        ratio = learn_size_ratio(
            torch.tensor([log1p(len(p)) for p in people.priors.values()], dtype=torch.float64),
            sizes.tolist(),
        )
        known = self._known(view, knowledge)
        apart = learn_users_apart(known.numbers, known.users, known.devices, len(users))
        numbers = told.named(known.names)
        of_size = cache(ratio.evidence)
        claims = {}
        for target, rows in told.rows(targets).items():
            scores = apart.evidence(numbers[rows])
            own = told.sizes[rows].nanmean()
            if bool(own.isfinite()):
                scores = scores + of_size(float(own))
            claims[target] = Identity(users, scores)
        return claims

    def _known(self, view: View, knowledge: Knowledge) -> KnownNumbers:
        if self.updates == "shadow":
            return told_by_shadows(view, knowledge, order=self.order)
        return told_when_simulated(
            view, knowledge, pieces=self.pieces, most_rounds=self.most_rounds
        )
