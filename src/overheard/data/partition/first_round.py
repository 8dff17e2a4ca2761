"""The examples that clients hold in round 0."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.data.dataset import Dataset
from overheard.data.draws import draw_counts, draw_rows
from overheard.data.partition.schedule import Schedule


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """The rule that partitions examples among clients, and the clients' sizes.

    Args:
        split: determines which client holds which examples in round 0.
        sizes: examples of the smallest and of the largest client; all sizes between are
            equally likely.

    """

    split: Split
    sizes: tuple[int, int]


def users_of_clients(dataset: Dataset, split_settings: SplitSettings | None) -> Rows | None:
    """Return the user of each example if every client holds the data of one user."""
    if split_settings is None or not split_settings.split.has_one_user_per_client:
        return None
    return dataset.users


def split_among_clients(
    dataset: Dataset,
    split_settings: SplitSettings | None,
    clients: int,
    free: Bool[Tensor, " examples"],
    seed: Seed,
    split_seed: Seed | None = None,
) -> tuple[Rows, ...]:
    """Return the rows that each client holds in round 0, without canaries.

    The sizes depend on the seed alone; the split may have another seed.
    """
    if split_settings is None:
        return (torch.zeros(0, dtype=torch.long),) * clients
    client_sizes = draw_sizes(split_settings, clients, seed)
    return split_by_sizes(
        dataset,
        split_settings,
        client_sizes,
        free,
        seed.child("split") if split_seed is None else split_seed,
    )


def draw_sizes(
    split_settings: SplitSettings, clients: int, seed: Seed
) -> Int[Tensor, " clients"]:
    """Return the number of examples of each client."""
    smallest, largest = split_settings.sizes
    generator = seed.child("sizes").generator()
    return torch.randint(smallest, largest + 1, (clients,), generator=generator)


def split_by_sizes(
    dataset: Dataset,
    split_settings: SplitSettings,
    client_sizes: Int[Tensor, " clients"],
    free: Bool[Tensor, " examples"],
    split_seed: Seed,
) -> tuple[Rows, ...]:
    """Return the rows that clients of these sizes get of the free ones."""
    rest = free.nonzero().flatten()
    labels, users = dataset.train.labels[rest], dataset.users
    positions = split_settings.split.assign(
        labels,
        None if users is None else users[rest],
        client_sizes,
        dataset.task.classes,
        split_seed,
    )
    return tuple(rest[rows] for rows in positions)


def draw_first_chunks(
    dataset: Dataset,
    users: Int[Tensor, " examples"] | None,
    client_rows: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    schedule: Schedule,
    seed: Seed,
) -> tuple[tuple[Rows, ...], tuple[Float[Tensor, " classes"], ...] | None]:
    """Return the rows of round 0, and the label shares that each client draws from.

    The rows are drawn anew, as many, if clients replace examples naturally. Clients that are
    users keep those of the split, which are a random choice already. The shares are those of
    the split or, if clients are users, of all examples of the user; None if nothing is drawn.

    Args:
        dataset: the data set whose training part clients hold.
        users: the users of the training part, if each client stands for one user; else None.
        client_rows: the rows that the split gave to each client.
        free: marks the rows that clients may hold.
        schedule: when clients replace examples, and how new ones are drawn.
        seed: the seed of the draws.

    Raises:
        PlanError: if a label has too few examples.

    """
    is_drawn = "natural" in (schedule.draws, schedule.first_draws) and schedule.has_exchanges
    if not is_drawn or not all(map(len, client_rows)):
        return client_rows, None
    sources = client_rows
    if users is not None:
        sources = tuple(
            (free & (users == users[rows[0]])).nonzero().flatten() for rows in client_rows
        )
    labels, classes = dataset.train.labels, dataset.task.classes
    shares = tuple(
        labels[rows].bincount(minlength=classes).double() / len(rows) for rows in sources
    )
    if users is not None or schedule.first_draws == "exact":
        return client_rows, shares
    own_seed = seed.child("first")
    counts = torch.stack(
        [
            draw_counts(own, len(rows), own_seed.child("counts", number))
            for number, (own, rows) in enumerate(zip(shares, client_rows, strict=True))
        ]
    )
    rest = free.nonzero().flatten()
    positions = draw_rows(labels[rest], counts, classes, own_seed.child("rows"))
    return tuple(rest[chosen] for chosen in positions), shares
