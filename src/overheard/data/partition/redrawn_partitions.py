"""What clients would hold if the same split were drawn anew."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.content_hash import hash_contents
from overheard.data.dataset import Dataset
from overheard.data.draws import check_availability
from overheard.data.partition.candidates import CandidateSet, CandidateSettings, add_canaries
from overheard.data.partition.data_timeline import DataTimeline, draw_timeline
from overheard.data.partition.first_round import (
    SplitSettings,
    draw_first_chunks,
    split_among_clients,
    users_of_clients,
)
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.label_split import LabelSplit
from overheard.data.partition.reserved_examples import (
    AuxiliarySize,
    ReservedExamples,
    reserve_examples,
)
from overheard.data.partition.schedule import Schedule
from overheard.data.partition.split_again import split_again, without_rows

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
    observing: Collection[int] = (),
    all_seeds: Collection[Seed] = (),
) -> tuple[tuple[Int[Tensor, "partitions classes"], ...], ...]:
    """Return the clients' label counts in partitions drawn anew, by round and then by client.

    Clients have the same sizes, the attacker has the same auxiliary examples, and canaries stay
    where they are: only what the split draws is drawn again. Clients that observe know their
    own examples, so they keep those of round 0, and the others' are drawn from the rest: see
    `split_again`. If examples are replaced later, the counts of observing clients mean nothing.

    If each client stands for one user, users are permuted instead, each with all examples. The
    permutation of a number is the same under any seed, so that a user of several runs is
    exchanged for the same one in all. If a user has too few examples for the schedule, another
    permutation takes its place. Users behind observing clients, in any run, are exchanged for
    nobody.

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
        observing: the numbers of the clients that keep their examples.
        all_seeds: the seeds of the partitions of all runs.

    Raises:
        PlanError: if the examples are too few for most partitions.

    """
    contents = hash_contents(dataset)

    def reserve(own_seed: Seed) -> ReservedExamples:
        return reserve_examples(
            dataset,
            contents,
            clients=clients,
            smallest=split_settings.sizes[0],
            auxiliary=auxiliary,
            seed=own_seed,
            known_users=known_users,
            candidates=candidates,
        )

    reserved = reserve(seed)
    dataset, free = reserved.dataset, reserved.free

    client_rows = split_among_clients(dataset, split_settings, clients, free, seed)
    users = users_of_clients(dataset, split_settings)
    if users is None:
        kept, canaries = frozenset(observing), reserved.canaries
        redraw = _Redraw(
            dataset, split_settings, client_rows, free, schedule, seed, kept, canaries
        )
        return _stack_by_client(_try_draws(redraw.draw(), partitions))
    fixed = set[int]()
    for own_seed in {seed, *all_seeds} if observing else ():
        own_free = reserve(own_seed).free
        rows = split_among_clients(dataset, split_settings, clients, own_free, own_seed)
        fixed |= {int(users[rows[number][0]]) for number in observing}

    def counts_after(first: tuple[Rows, ...], draws: Seed) -> Counts:
        rows, shares = draw_first_chunks(dataset, users, first, free, schedule, draws)
        if reserved.canaries is not None:
            rows = add_canaries(rows, reserved.canaries)
        timeline = draw_timeline(dataset, users, rows, free, schedule, draws, shares)
        return _label_counts(timeline, dataset.task.classes)

    exchange = partial(_exchange_users, users, client_rows, free, fixed)
    drawn = [_try_seeds(number, exchange, counts_after) for number in range(partitions)]
    return _stack_by_client(drawn)


@final
@dataclass(frozen=True, slots=True)
class _Redraw:
    """A partition that is drawn anew.

    Args:
        dataset: the data set; mislabelled canaries have their wrong labels.
        split_settings: the rule.
        client_rows: the rows that the split gave to each client.
        free: marks the rows that clients may hold.
        schedule: when clients replace their examples.
        seed: the seed of the partition.
        observing: the numbers of the clients that keep their examples.
        canaries: the canaries, which stay where they are; None = there are none.

    """

    dataset: Dataset
    split_settings: SplitSettings
    client_rows: tuple[Rows, ...]
    free: Bool[Tensor, " examples"]
    schedule: Schedule
    seed: Seed
    observing: frozenset[int]
    canaries: CandidateSet | None

    def draw(self) -> Callable[[int], Counts]:
        """Return what draws the label counts of the partition of a number."""
        split = self.split_settings.split
        is_in_turn = split.draws_labels_in_turn and bool(self.observing)
        if isinstance(split, LabelSplit) and not self.schedule.has_exchanges and not is_in_turn:
            alone = self._count_draw(split)
            return lambda number: (alone.counts(self._seed(number)),) * self.schedule.rounds
        return lambda number: self._counts_of_rows(self._seed(number))

    def _seed(self, number: int) -> Seed:
        return self.seed.child("redrawn", number)

    def _count_draw(self, split: LabelSplit) -> "_CountDraw":
        labels, classes = self.dataset.train.labels, self.dataset.task.classes
        fixed = {number: self.client_rows[number] for number in self.observing}
        others = [one for one in range(len(self.client_rows)) if one not in fixed]
        nothing = torch.zeros(0, dtype=torch.long)
        rows = tuple(fixed.get(number, nothing) for number in range(len(self.client_rows)))
        if self.canaries is not None:
            rows = add_canaries(rows, self.canaries)
        rest = labels[without_rows(self.free, fixed.values())]
        return _CountDraw(
            split,
            tuple(others),
            torch.tensor([len(self.client_rows[number]) for number in others]),
            rest,
            rest.bincount(minlength=classes),
            torch.stack([labels[own].bincount(minlength=classes) for own in rows]),
        )

    def _counts_of_rows(self, draws: Seed) -> Counts:
        rows, shares = self._first_chunks(draws)
        if self.canaries is not None:
            rows = add_canaries(rows, self.canaries)
        timeline = draw_timeline(
            self.dataset, None, rows, self.free, self.schedule, draws, shares
        )
        return _label_counts(timeline, self.dataset.task.classes)

    def _first_chunks(
        self, draws: Seed
    ) -> tuple[tuple[Rows, ...], tuple[Float[Tensor, " classes"], ...] | None]:
        """Return the rows of round 0, and the label shares that each client draws from."""
        split_rows = split_again(
            self.dataset,
            self.split_settings,
            torch.tensor([len(rows) for rows in self.client_rows]),
            self.free,
            {number: self.client_rows[number] for number in sorted(self.observing)},
            draws,
        )
        if not self.observing:
            return self._chunks_of(split_rows, self.free, draws)
        held, shares = self._chunks_of(self.client_rows, self.free, self.seed)
        others = [number for number in range(len(held)) if number not in self.observing]
        rest = without_rows(self.free, [held[number] for number in self.observing])
        of_others = tuple(split_rows[number] for number in others)
        drawn, drawn_shares = self._chunks_of(of_others, rest, draws)
        rows_of = dict(enumerate(held)) | dict(zip(others, drawn, strict=True))
        rows = tuple(rows_of[number] for number in range(len(held)))
        if shares is None or drawn_shares is None:
            return rows, None
        shares_of = dict(enumerate(shares)) | dict(zip(others, drawn_shares, strict=True))
        return rows, tuple(shares_of[number] for number in range(len(held)))

    def _chunks_of(
        self, client_rows: tuple[Rows, ...], free: Bool[Tensor, " examples"], seed: Seed
    ) -> tuple[tuple[Rows, ...], tuple[Float[Tensor, " classes"], ...] | None]:
        return draw_first_chunks(self.dataset, None, client_rows, free, self.schedule, seed)


@final
@dataclass(frozen=True, slots=True)
class _CountDraw:
    """The label counts of a partition that is drawn anew, without its rows.

    Args:
        split: the rule.
        others: the numbers of the clients that do not keep their examples.
        sizes: their numbers of examples.
        rest: the label of each row that they may hold.
        available: how many of these rows have each label.
        kept: by client, the label counts of the examples and canaries that stay with it.

    """

    split: LabelSplit
    others: tuple[int, ...]
    sizes: Int[Tensor, " others"]
    rest: Int[Tensor, " examples"]
    available: Int[Tensor, " classes"]
    kept: Int[Tensor, "clients classes"]

    def counts(self, draws: Seed) -> tuple[Int[Tensor, " classes"], ...]:
        """Return the label counts of each client."""
        counts, classes = self.kept.clone(), len(self.available)
        if self.others:
            drawn = self.split.draw_label_counts(self.rest, self.sizes, classes, draws)
            check_availability(self.available, drawn.sum(0), classes)
            counts[list(self.others)] += drawn
        return counts.unbind()


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
    users: Rows,
    client_rows: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    fixed: Collection[int],
    seed: Seed,
) -> tuple[Rows, ...]:
    """Return rows of other users for each client: as many, or all that the user has.

    Fixed users are exchanged for nobody.
    """
    present = torch.from_numpy(np.setdiff1d(users[free].numpy(), list(fixed)))
    order = torch.randperm(len(present), generator=seed.child("users").generator())
    exchanged = dict(zip(present.tolist(), present[order].tolist(), strict=True))
    chosen = []
    for rows in client_rows:
        user = exchanged.get(int(users[rows[0]]), int(users[rows[0]]))
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
