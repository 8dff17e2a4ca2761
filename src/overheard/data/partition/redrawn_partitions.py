"""What clients would hold if the same split were drawn anew."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.data_partition import (
    AuxiliarySize,
    SplitSettings,
    add_canaries,
    reserve_examples,
    split_among_clients,
    users_of_clients,
)
from overheard.data.partition.data_timeline import DataTimeline, draw_timeline
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.natural_draws import draw_first_chunks
from overheard.data.partition.schedule import Schedule

MAX_ATTEMPTS = 20
"""Permutations of users that are tried until each has enough examples for the schedule."""

Counts = tuple[tuple[Int[Tensor, " classes"], ...], ...]
"""Label counts of a partition, by round and then by client."""


def redraw_label_counts(
    dataset: Dataset,
    split_settings: SplitSettings,
    partitions: int,
    *,
    clients: int,
    auxiliary: AuxiliarySize,
    schedule: Schedule,
    seed: Seed,
    known_users: KnownUserSettings | None = None,
    candidates: CandidateSettings | None = None,
) -> tuple[tuple[Int[Tensor, "partitions classes"], ...], ...]:
    """Return the clients' label counts in partitions drawn anew, by round and then by client.

    Clients have the same sizes, the attacker has the same auxiliary examples, and canaries stay
    where they are: only what the split draws is drawn again. If each client stands for one
    user, users are permuted instead, each with all examples. The permutation of a number is the
    same under any seed, so that a user of several runs is exchanged for the same one in all.
    If a user has too few examples for the schedule, another permutation takes its place.

    Args:
        dataset: as in `draw_partition`, like all arguments that are not explained here.
        split_settings: the rule, which must not state the shares of each client.
        partitions: number of partitions.
        clients: the number of clients.
        auxiliary: the number of auxiliary examples.
        schedule: when clients replace their examples.
        seed: the seed of the partition that is drawn anew.
        known_users: what the attacker knows of the users behind the clients.
        candidates: the number of candidate records.

    Raises:
        PlanError: if the examples are too few for most partitions.

    """
    reserved = reserve_examples(
        dataset, split_settings, clients, auxiliary, seed, known_users, candidates
    )
    dataset, free = reserved.dataset, reserved.free

    def split(split_seed: Seed | None = None) -> tuple[Rows, ...]:
        return split_among_clients(dataset, split_settings, clients, free, seed, split_seed)

    def counts_of(number: int) -> Counts:
        draws = seed.child("redrawn", number)
        return counts_after(split(draws), draws)

    def counts_after(first: tuple[Rows, ...], draws: Seed) -> Counts:
        rows, shares = draw_first_chunks(dataset, users, first, free, schedule, draws)
        if reserved.canaries is not None:
            rows = add_canaries(rows, reserved.canaries)
        timeline = draw_timeline(dataset, users, rows, free, schedule, draws, shares)
        return _label_counts(timeline, dataset.task.classes)

    users = users_of_clients(dataset, split_settings)
    if users is None:
        drawn = _try_draws(counts_of, partitions)
    else:
        exchange = partial(_exchange_users, users, split(), free)
        drawn = [_try_seeds(number, exchange, counts_after) for number in range(partitions)]
    return _stack_by_client(drawn)


def _try_draws(draw: Callable[[int], Counts], count: int) -> list[Counts]:
    """Return this many draws that succeed, out of twice as many.

    The pool may be too small for a draw. It was not for the actual partition.
    """
    drawn = list[Counts]()
    for number in range(2 * count):
        try:
            drawn.append(draw(number))
        except PlanError:
            if number + 1 - len(drawn) > count:
                raise
        if len(drawn) == count:
            break
    return drawn


def _try_seeds(
    number: int,
    exchange: Callable[[Seed], tuple[Rows, ...]],
    counts_after: Callable[[tuple[Rows, ...], Seed], Counts],
) -> Counts:
    """Return the counts of the first permutation whose users have enough examples."""
    for attempt in range(MAX_ATTEMPTS):
        seed = Seed(number).child("redrawn", attempt) if attempt else Seed(number)
        try:
            return counts_after(exchange(seed), seed)
        except PlanError:
            if attempt == MAX_ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _exchange_users(
    users: Rows, client_rows: tuple[Rows, ...], free: Bool[Tensor, " examples"], seed: Seed
) -> tuple[Rows, ...]:
    """Return rows of other users for each client: as many, or all that the user has."""
    present = torch.from_numpy(np.unique(users[free].numpy()))
    order = torch.randperm(len(present), generator=seed.child("users").generator())
    exchanged = dict(zip(present.tolist(), present[order].tolist(), strict=True))
    chosen = []
    for rows in client_rows:
        user = exchanged[int(users[rows[0]])]
        own = ((users == user) & free).nonzero().flatten()
        generator = seed.child("rows", user).generator()
        chosen.append(own[torch.randperm(len(own), generator=generator)[: len(rows)]])
    return tuple(chosen)


def _stack_by_client(
    drawn: Sequence[Counts],
) -> tuple[tuple[Int[Tensor, "partitions classes"], ...], ...]:
    """Stack the counts of all partitions; rounds with equal counts share their tensors."""
    stacked = dict[tuple[int, ...], Int[Tensor, "partitions classes"]]()
    by_round = []
    for in_round in zip(*drawn, strict=True):
        by_client = list(zip(*in_round, strict=True))
        keys = [tuple(map(id, counts)) for counts in by_client]
        for key, counts in zip(keys, by_client, strict=True):
            if key not in stacked:
                stacked[key] = torch.stack(counts)
        by_round.append(tuple(stacked[key] for key in keys))
    return tuple(by_round)


def _label_counts(timeline: DataTimeline, classes: int) -> Counts:
    """Return the label counts by round and then by client; equal rows share a tensor."""
    counts = dict[int, Int[Tensor, " classes"]]()
    for rows in (rows for in_round in timeline.rows for rows in in_round):
        if id(rows) not in counts:
            counts[id(rows)] = timeline.pool.labels[rows].bincount(minlength=classes)
    return tuple(tuple(counts[id(rows)] for rows in in_round) for in_round in timeline.rows)
