"""Balanced training pairs for a matching network."""

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.linkage.matcher import TrainingPairs


def draw_update_pairs(
    users: Int[Tensor, " updates"], count: int, seed: Seed, attack: str
) -> TrainingPairs:
    """Draw pairs of updates, alternately from the same user and from two users.

    Users are drawn first, uniformly, and then their updates.

    Args:
        users: index of each update's user.
        count: number of pairs.
        seed: seed of the draws.
        attack: name of the attack, for the error message.

    Raises:
        NeedsError: if no user has two updates, or all updates are of one user.

    """
    rows = _rows_of(users)
    with_two = [user for user, user_rows in enumerate(rows) if len(user_rows) > 1]
    if not with_two or len(rows) < 2:
        raise NeedsError(
            f"{attack} needs two updates or more of one known user, and some of another, as "
            "training pairs: let it observe two rounds or more"
        )
    generator = seed.numpy()
    left, right = [], []
    for number in range(count):
        if number % 2 == 0:
            user_rows = rows[with_two[generator.integers(len(with_two))]]
            pair = generator.choice(len(user_rows), 2, replace=False)
            left.append(user_rows[pair[0]])
            right.append(user_rows[pair[1]])
        else:
            first, second = generator.choice(len(rows), 2, replace=False)
            left.append(rows[first][generator.integers(len(rows[first]))])
            right.append(rows[second][generator.integers(len(rows[second]))])
    return TrainingPairs(torch.tensor(left), torch.tensor(right), torch.arange(count) % 2 == 0)


def draw_embedding_pairs(
    users: Int[Tensor, " updates"], count: int, seed: Seed, attack: str
) -> TrainingPairs:
    """Draw pairs of an update and a user's embedding, alternately matching and not matching.

    Args:
        users: row of each update's user in the embeddings.
        count: number of pairs.
        seed: seed of the draws.
        attack: name of the attack, for the error message.

    Raises:
        NeedsError: if all updates are of one user.

    """
    rows = _rows_of(users)
    if len(rows) < 2:
        raise NeedsError(
            f"{attack} needs updates of two users or more with known embeddings to learn from: "
            "raise data.people.holdout, or set learn_from = 'everyone'"
        )
    generator = seed.numpy()
    left, right = [], []
    for number in range(count):
        first, second = generator.choice(len(rows), 2, replace=False)
        user_rows = rows[first]
        left.append(user_rows[generator.integers(len(user_rows))])
        right.append(int(users[rows[first if number % 2 == 0 else second][0]]))
    return TrainingPairs(torch.tensor(left), torch.tensor(right), torch.arange(count) % 2 == 0)


def _rows_of(users: Int[Tensor, " updates"]) -> list[list[int]]:
    """List the rows of each user that has any."""
    rows: dict[int, list[int]] = {}
    for row, user in enumerate(users.tolist()):
        rows.setdefault(user, []).append(row)
    return [rows[user] for user in sorted(rows)]
