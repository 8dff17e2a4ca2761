"""Known users as the classes of a classifier of updates, and its answers as claims."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.linkage.prior_updates import KnownUpdates
from overheard.questions.identity.claim import Identity

UNHEARD = -1e6
"""The score of a user of whom no update is known: below whatever is said of the others, and
the same for all targets."""


@final
@dataclass(frozen=True, slots=True)
class UserClasses:
    """Which users a classifier tells apart.

    Class i is the i-th of the users who may be named and of whom an update is known; the class
    after them, where there are holdout users, is theirs: someone unseen.

    Args:
        users: all who may be named.
        heard: which of them are classes, in order.
        labels: the class of each known update.
        is_open: whether there is a class of the unseen.

    """

    users: tuple[str, ...]
    heard: Int[Tensor, " heard"]
    labels: Int[Tensor, " updates"]
    is_open: bool

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.heard) + self.is_open

    def identity(
        self, scores: Float[Tensor, " classes"], unseen: float | None = None
    ) -> Identity:
        """The claim that these scores of the classes make; that of the unseen is left out."""
        every = scores.new_full((len(self.users),), UNHEARD)
        every[self.heard] = scores[: len(self.heard)].clamp(min=UNHEARD)
        return Identity(self.users, every, unseen)


def classes_of(known: KnownUpdates, teller: str) -> UserClasses:
    """The classes that these updates make.

    Args:
        known: of whom.
        teller: the attack, for the refusal.

    Raises:
        NeedsError: if an update is known of fewer than two users who may be named.

    """
    names = known.people.clamp(max=known.named)
    heard = [user for user in range(known.named) if bool((names == user).any())]
    if len(heard) < 2:
        raise NeedsError(
            f"{teller} needs updates of two users or more whom it may name, and has them of "
            f"{[known.names[user] for user in heard]}: let shadow devices be asked more often, "
            "or train known users (updates = 'simulated')"
        )
    is_open = bool((names == known.named).any())
    places = torch.full((known.named + 1,), len(heard))
    places[torch.tensor(heard)] = torch.arange(len(heard))
    return UserClasses(known.names[: known.named], torch.tensor(heard), places[names], is_open)
