"""Contract tests for splits."""

from collections.abc import Callable, Sequence

import torch

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.testing.require import require, require_part

CLASSES = 4
LABELS = torch.arange(960) % CLASSES
USERS = torch.arange(960) // 4 % 8

SplitFactory = Callable[[int], Split]
"""Returns the split for a number of clients; most splits are the same for every number."""

SIZES = ((4,), (40,), (4, 40), (17, 5, 29), (40,) * 8, (4, 9, 16, 25, 36, 7, 11, 23))


def check_split(split: Split | SplitFactory) -> None:
    """Check that a split satisfies the contract of splits.

    Args:
        split: the split, or a function that returns it for a number of clients.

    Raises:
        AssertionError: naming the violated rule.

    """
    split_of: SplitFactory = (lambda _: split) if isinstance(split, Split) else split
    require_part(split_of(1))
    for place, sizes in enumerate(SIZES):
        assigns_the_sizes_without_overlap(split_of, sizes, Seed(place))
    for check in SPLIT_CHECKS:
        check(split_of)


def assigns_the_sizes_without_overlap(
    split_of: SplitFactory, sizes: Sequence[int], seed: Seed
) -> None:
    """Check that each client gets its number of rows, and no row is assigned twice."""
    rows, name = _assign(split_of, sizes, seed), split_of(len(sizes)).name
    counts = [len(client_rows) for client_rows in rows]
    require(
        counts == list(sizes),
        f"{name} assigns {counts} rows to clients, expected {list(sizes)}",
    )
    together = torch.cat(rows).tolist()
    require(len(set(together)) == len(together), f"{name} assigns a row twice")
    are_in_pool = 0 <= min(together) <= max(together) < len(LABELS)
    require(are_in_pool, f"{name} assigns rows that are not in the pool")


def depends_on_the_seed_alone(split_of: SplitFactory) -> None:
    """Check that the same seed assigns the same rows, and another seed different ones."""
    first, again, other = (_assign(split_of, (20, 30, 25), Seed(n)) for n in (3, 3, 4))
    name = split_of(3).name
    same = all(one.equal(two) for one, two in zip(first, again, strict=True))
    require(same, f"{name}: the same seed assigns different rows")
    is_repeated = any(one.equal(two) for one, two in zip(first, other, strict=True))
    require(not is_repeated, f"{name}: another seed assigns the same rows")


def refuses_a_client_without_examples(split_of: SplitFactory) -> None:
    """Check that a client without examples raises a PlanError."""
    _check_refusal(split_of, (10, 0), "1 example or more")


def refuses_clients_larger_than_the_pool(split_of: SplitFactory) -> None:
    """Check that more rows than the pool has raise a PlanError."""
    if not split_of(2).has_own_sizes:
        _check_refusal(split_of, (500, 500), "want 1000 examples and 960 are left")


def keeps_one_user_per_client(split_of: SplitFactory) -> None:
    """Check that each client has one user, if the split declares so."""
    split = split_of(8)
    if split.has_one_user_per_client:
        for rows in _assign(split_of, (200,) * 8, Seed(1)):
            users = set(USERS[rows].tolist())
            require(
                len(users) == 1,
                f"{split.name} declares `has_one_user_per_client`, but one client has the "
                f"users {users}",
            )


SPLIT_CHECKS: tuple[Callable[[SplitFactory], None], ...] = (
    depends_on_the_seed_alone,
    refuses_a_client_without_examples,
    refuses_clients_larger_than_the_pool,
    keeps_one_user_per_client,
)


def _assign(split_of: SplitFactory, sizes: Sequence[int], seed: Seed) -> tuple[Rows, ...]:
    split = split_of(len(sizes))
    return split.assign(LABELS, USERS, torch.tensor(sizes), CLASSES, seed)


def _check_refusal(split_of: SplitFactory, sizes: Sequence[int], words: str) -> None:
    name = split_of(len(sizes)).name
    try:
        _assign(split_of, sizes, Seed(0))
    except PlanError as error:
        require(words in str(error), f"{name} refuses sizes {sizes}, but not with {words!r}")
    else:
        raise AssertionError(f"{name} accepts sizes {sizes}: raise a PlanError with {words!r}")
