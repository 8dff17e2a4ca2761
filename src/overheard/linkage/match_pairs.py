"""Balanced pairs of known vectors, for a network that learns to match."""

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.linkage.matcher import Pairs


def update_pairs(people: Int[Tensor, " updates"], count: int, seed: Seed, teller: str) -> Pairs:
    """Draw pairs of updates: in turn two of one person, and one each of two persons.

    Persons are drawn first, all alike, and then their updates.

    Args:
        people: whose each update is.
        count: of pairs.
        seed: of what is drawn.
        teller: the attack, for the refusal.

    Raises:
        NeedsError: if no person has two updates, or all are of one.

    """
    rows = _rows_of(people)
    several = [person for person, own in enumerate(rows) if len(own) > 1]
    if not several or len(rows) < 2:
        raise NeedsError(
            f"{teller} needs two updates or more of one known user, and some of another, to "
            "learn what a match is: let it hear two rounds or more"
        )
    draw = seed.numpy()
    left, right = [], []
    for number in range(count):
        if number % 2 == 0:
            own = rows[several[draw.integers(len(several))]]
            pair = draw.choice(len(own), 2, replace=False)
            left.append(own[pair[0]])
            right.append(own[pair[1]])
        else:
            first, second = draw.choice(len(rows), 2, replace=False)
            left.append(rows[first][draw.integers(len(rows[first]))])
            right.append(rows[second][draw.integers(len(rows[second]))])
    return Pairs(torch.tensor(left), torch.tensor(right), torch.arange(count) % 2 == 0)


def embedding_pairs(
    people: Int[Tensor, " updates"], count: int, seed: Seed, teller: str
) -> Pairs:
    """Draw pairs of an update and a person: in turn its own, and another.

    Args:
        people: whose each update is, as a row of the embeddings of people.
        count: of pairs.
        seed: of what is drawn.
        teller: the attack, for the refusal.

    Raises:
        NeedsError: if all updates are of one person.

    """
    rows = _rows_of(people)
    if len(rows) < 2:
        raise NeedsError(
            f"{teller} needs updates of two persons or more whose embeddings it has, to learn "
            "from: raise data.people.holdout, or set learn_from = 'everyone'"
        )
    draw = seed.numpy()
    left, right = [], []
    for number in range(count):
        first, second = draw.choice(len(rows), 2, replace=False)
        own = rows[first]
        left.append(own[draw.integers(len(own))])
        right.append(int(people[rows[first if number % 2 == 0 else second][0]]))
    return Pairs(torch.tensor(left), torch.tensor(right), torch.arange(count) % 2 == 0)


def _rows_of(people: Int[Tensor, " updates"]) -> list[list[int]]:
    """The rows of each person of whom there are any."""
    rows: dict[int, list[int]] = {}
    for row, person in enumerate(people.tolist()):
        rows.setdefault(person, []).append(row)
    return [rows[person] for person in sorted(rows)]
