"""The batches of clients that train side by side, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.examples import Examples, concatenate_examples
from overheard.core.recipe import Recipe
from overheard.learning.batches import epoch_batches, epoch_order
from overheard.learning.training_job import ClientTask, TrainingGroup


@dataclass(frozen=True, slots=True)
class GroupedClient:
    """A client and the group that it belongs to."""

    group: TrainingGroup
    client: ClientTask


@dataclass(frozen=True, slots=True)
class BatchSchedule:
    """The rows of the pool that each client uses at each step; most steps first.

    Args:
        active: number of clients that still train at each step.
        widths: size of the largest batch at each step.
        rows: rows of the pool; 0 for padding.
        weights: one over the size of the batch, or 1 if gradients are clipped; 0 for padding.
        shares: factor of the loss in the mean of the last epoch; 0 in earlier epochs.

    """

    active: list[int]
    widths: list[int]
    rows: Int[Tensor, "steps clients batch"]
    weights: Float[Tensor, "steps clients batch"]
    shares: Float[Tensor, "steps clients"]


def merge_pools(clients: Sequence[GroupedClient]) -> tuple[Examples, list[Tensor]]:
    """Return one pool of the examples of all clients, and each client's rows of it.

    If groups have different pools, it is the concatenation of the clients' examples.
    """
    pools = {id(client.group.pool): client.group.pool for client in clients}
    rows = [client.client.rows for client in clients]
    if len(pools) == 1:
        return clients[0].group.pool, [client_rows.cpu() for client_rows in rows]
    parts = []
    for client in clients:
        group_pool = client.group.pool
        parts.append(group_pool.take(client.client.rows.to(group_pool.labels.device)))
    pool = concatenate_examples(parts)
    sizes = [len(client_rows) for client_rows in rows]
    return pool, list(torch.split(torch.arange(len(pool)), sizes))


def schedule_batches(
    recipe: Recipe, round: int, clients: Sequence[GroupedClient], rows_of: Sequence[Tensor]
) -> BatchSchedule:
    """Return the batches of clients that are sorted by steps, most first.

    Args:
        recipe: how the clients train.
        round: number of the round.
        clients: the clients.
        rows_of: the rows of the pool of each client.

    """
    if recipe.private_steps is not None:
        return _schedule_private_batches(recipe, round, clients, rows_of)
    steps = max(client.client.steps_in(recipe) for client in clients)
    # No batch is larger than the largest client.
    batch = min(recipe.batch, max(len(client_rows) for client_rows in rows_of))
    rows = torch.zeros(len(clients), steps * batch, dtype=torch.int64)
    filled = torch.zeros(len(clients), steps * batch, dtype=torch.bool)
    last = torch.zeros(len(clients), steps, dtype=torch.float64)
    # As arrays, into whose memory a few numbers are written in a tenth of the time.
    row_array, filled_array, last_array = rows.numpy(), filled.numpy(), last.numpy()
    for rank, (client, client_rows) in enumerate(zip(clients, rows_of, strict=True)):
        size, own_rows = len(client_rows), client_rows.numpy()
        epochs = client.client.epochs_in(recipe)
        stride = recipe.steps(size, 1)
        for epoch in range(epochs):
            order = epoch_order(client.group.seed, round, client.client.name, epoch, size)
            begin = epoch * stride * batch
            row_array[rank, begin : begin + size] = own_rows[order.numpy()]
            filled_array[rank, begin : begin + size] = True
        last_array[rank, stride * (epochs - 1) : stride * epochs] = 1 / size
    filled = filled.view(len(clients), steps, batch)
    counts = filled.sum(2)  # (clients, steps)
    weights = filled / counts.clamp(min=1).unsqueeze(2).double()  # (clients, steps, batch)
    return BatchSchedule(
        (counts > 0).sum(0).tolist(),
        counts.amax(0).tolist(),
        rows.view(len(clients), steps, batch).transpose(0, 1).contiguous(),
        weights.transpose(0, 1).contiguous(),
        (last * counts).T.contiguous(),
    )


def _schedule_private_batches(
    recipe: Recipe, round: int, clients: Sequence[GroupedClient], rows_of: Sequence[Tensor]
) -> BatchSchedule:
    """Return the batches of DP-SGD, whose sizes differ by chance and may be 0."""
    drawn = [
        [
            client_rows[batch]
            for epoch in range(one.client.epochs_in(recipe))
            for batch in epoch_batches(
                recipe, one.group.seed, round, one.client.name, epoch, len(client_rows)
            )
        ]
        for one, client_rows in zip(clients, rows_of, strict=True)
    ]
    steps = max(map(len, drawn))
    width = max(1, *(len(batch) for batches in drawn for batch in batches))
    rows = torch.zeros(steps, len(clients), width, dtype=torch.int64)
    weights = torch.zeros(steps, len(clients), width, dtype=torch.float64)
    shares = torch.zeros(steps, len(clients), dtype=torch.float64)
    for rank, batches in enumerate(drawn):
        for step, batch in enumerate(batches):
            rows[step, rank, : len(batch)] = batch
            weights[step, rank, : len(batch)] = 1
        last = len(batches) - recipe.steps(len(rows_of[rank]), 1)
        shares[last : len(batches), rank] = 1 / len(rows_of[rank])
    return BatchSchedule(
        [sum(len(batches) > step for batches in drawn) for step in range(steps)],
        (weights > 0).sum(2).amax(1).clamp(min=1).tolist(),
        rows,
        weights,
        shares,
    )
