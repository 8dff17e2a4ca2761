"""Known users as classes of an update classifier, and its outputs as claims."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.linkage.known_updates import KnownUpdates
from overheard.questions.identity.claim import Identity

NO_UPDATE_SCORE = -1e6
"""The score of a user without known updates: below all other scores, equal for all targets."""


@final
@dataclass(frozen=True, slots=True)
class UserClasses:
    """The classes of a classifier of updates.

    Class i is the i-th candidate user with a known update. If there are holdout users, one more
    class stands for them: an unknown user.

    Args:
        users: all candidate users.
        class_users: the index in `users` of the user of each class.
        labels: the class of each known update.
        has_unknown_class: whether there is a class for unknown users.

    """

    users: tuple[str, ...]
    class_users: Int[Tensor, " classes"]
    labels: Int[Tensor, " updates"]
    has_unknown_class: bool

    @property
    def count(self) -> int:
        """Return the number of classes."""
        return len(self.class_users) + self.has_unknown_class

    def build_claim(
        self, scores: Float[Tensor, " classes"], unseen: float | None = None
    ) -> Identity:
        """Turn scores of the classes into a claim, without that of unknown users."""
        user_scores = scores.new_full((len(self.users),), NO_UPDATE_SCORE)
        user_scores[self.class_users] = scores[: len(self.class_users)].clamp(
            min=NO_UPDATE_SCORE
        )
        return Identity(self.users, user_scores, unseen)


def build_user_classes(known: KnownUpdates, attack: str) -> UserClasses:
    """Return the classes of these updates.

    Args:
        known: the known updates.
        attack: the name of the attack, for the error message.

    Raises:
        NeedsError: if fewer than two candidate users have a known update.

    """
    names = known.users.clamp(max=known.candidate_count)
    class_users = [user for user in range(known.candidate_count) if bool((names == user).any())]
    if len(class_users) < 2:
        raise NeedsError(
            f"{attack} needs updates of two or more candidate users, and has them of "
            f"{[known.names[user] for user in class_users]}: sample shadow devices in more "
            "rounds, or simulate known users (updates = 'simulated')"
        )
    is_open = bool((names == known.candidate_count).any())
    class_of_user = torch.full((known.candidate_count + 1,), len(class_users))
    class_of_user[torch.tensor(class_users)] = torch.arange(len(class_users))
    return UserClasses(
        known.names[: known.candidate_count],
        torch.tensor(class_users),
        class_of_user[names],
        is_open,
    )
