"""Natural draws: label counts that vary by chance around the shares of a client."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.dataset import Dataset
from overheard.data.partition.schedule import Schedule
from overheard.data.partition.stratified_sample import draw_stratified


def draw_counts(
    shares: Float[Tensor, " strata"], size: int, seed: Seed
) -> Int[Tensor, " strata"]:
    """Draw the count of each stratum among `size` examples: one multinomial draw.

    Args:
        shares: 0 or more each, not all 0; they are scaled to sum to 1.
        size: the number of examples.
        seed: the seed of the draw.

    """
    exact = shares.double()
    probabilities = (exact / exact.sum()).numpy()
    return torch.from_numpy(seed.numpy().multinomial(size, probabilities))


def draw_rows(
    strata: Int[Tensor, " examples"],
    counts: Int[Tensor, "clients strata"],
    classes: int,
    seed: Seed,
) -> tuple[Rows, ...]:
    """Draw rows for natural counts, see `draw_stratified`.

    Raises:
        PlanError: if a stratum has too few examples. The counts vary by chance, so they may
            need more of a label than exact ones do.

    """
    try:
        return draw_stratified(strata, counts, classes, seed)
    except PlanError as error:
        raise PlanError(
            f"{error}; label counts vary by chance here: data.exchanges = 'exact' keeps them"
        ) from error


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
