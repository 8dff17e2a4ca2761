"""The examples that each client holds in each round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.parties import Party, client
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.distortion import distort
from overheard.data.draws import apportion, draw_counts, draw_rows, draw_stratified
from overheard.data.partition.schedule import DataShift, Draws, Schedule

SAME_SHARE = 1e-9
"""Label shares that differ by less are equal: they differ only by rounding."""


@dataclass(frozen=True, slots=True)
class DataTimeline:
    """The examples that each client holds in each round.

    Args:
        pool: the examples to which `rows` refer: the training part. If clients hold distorted
            examples: the undistorted examples that any client holds, then the distorted ones.
        rows: rows of the pool, by round and then by client.
        shifts: by client, the rounds in which its data distribution changes, in order; the
            first round of a drift. Clients without a change have no entry.
        drawn_from: the label shares that each client's examples are drawn from, by round and
            then by client; None = counts are exact, and nothing is drawn.

    """

    pool: Examples
    rows: tuple[tuple[Rows, ...], ...]
    shifts: Mapping[Party, tuple[int, ...]]
    drawn_from: tuple[tuple[Float[Tensor, " classes"], ...], ...] | None = None


def draw_timeline(
    dataset: Dataset,
    users: Int[Tensor, " examples"] | None,
    first: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    schedule: Schedule,
    seed: Seed,
    shares: tuple[Float[Tensor, " classes"], ...] | None = None,
) -> DataTimeline:
    """Draw the rows that each client holds in each round, by this schedule.

    No training example is ever held by two clients. A drift (`over` above 1) cuts old and new
    examples into stratified parts: every part has its share of each label, give or take one
    example. So label shares change evenly, and shares that do not shift stay constant.

    Args:
        dataset: the data set whose training part clients hold.
        users: the users of the training part, if each client stands for one user; else None.
        first: the rows that each client holds in round 0.
        free: marks the training examples that no attacker holds.
        schedule: when clients replace their examples.
        seed: determines all draws.
        shares: the label shares that natural draws start from, by client; None = those of the
            examples that each client holds in round 0.

    Raises:
        PlanError: if too few examples are left, or a shift does not fit the data set.

    """
    _check_shifts(schedule, len(first), dataset.task, users)
    exchanges_by_round = schedule.by_round(seed)
    state = _PartitionState(dataset, users, first, free, schedule.draws, shares)
    rounds, drawn_from = [first], [state.current_shares]
    for number, due in enumerate(exchanges_by_round[1:], 1):
        clients = [
            client_number
            for client_number, holding in enumerate(state.current_holdings)
            if client_number in due.starting or (due.is_refresh and not holding.upcoming)
        ]
        state.advance_drifts()
        exchanges = [
            state.plan_exchange(client_number, due.starting.get(client_number), due.seed)
            for client_number in clients
        ]
        if exchanges:
            state.exchange_examples(exchanges, number, due.seed)
        rounds.append(tuple(holding.rows for holding in state.current_holdings))
        drawn_from.append(state.current_shares)
    timeline = state.to_timeline(rounds, seed.child("looks"))
    if schedule.draws == "exact" or not schedule.has_exchanges:
        return timeline
    return replace(timeline, drawn_from=tuple(drawn_from))


@dataclass(frozen=True, slots=True)
class _Holding:
    """The rows of a client now and in the remaining rounds of a drift, and their distortion.

    Args:
        rows: the rows that it holds.
        shares: the label shares that they are drawn from.
        upcoming: the rows, and then the shares, of each remaining round of a drift.
        distortion_level: how far its inputs are distorted, 0..1.

    """

    rows: Rows
    shares: Float[Tensor, " classes"]
    upcoming: tuple[tuple[Rows, Float[Tensor, " classes"]], ...] = ()
    distortion_level: float = 0.0

    @property
    def final_shares(self) -> Float[Tensor, " classes"]:
        """The label shares that new examples are drawn from, once a drift is over."""
        return self.upcoming[-1][1] if self.upcoming else self.shares


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A client's replacement of its examples.

    Args:
        client: its number.
        old_shares: the share of each stratum that it would get without a shift.
        shares: the share of each stratum that it gets.
        duration: the number of rounds.
        distortion_level: how far the inputs are distorted, 0..1.

    """

    client: int
    old_shares: Float[Tensor, " strata"]
    shares: Float[Tensor, " strata"]
    duration: int
    distortion_level: float


@dataclass(frozen=True, slots=True)
class _DistortedCopies:
    """Rows of examples of which a client holds distorted copies."""

    client: int
    distortion_level: float
    rows: Rows


@final
class _PartitionState:
    """The rows that clients hold, updated round by round, and the rows never held so far."""

    def __init__(
        self,
        dataset: Dataset,
        users: Int[Tensor, " examples"] | None,
        first: tuple[Rows, ...],
        free: Bool[Tensor, " examples"],
        draws: Draws,
        shares: tuple[Float[Tensor, " classes"], ...] | None,
    ) -> None:
        self._dataset = dataset
        self._draws = draws
        self._classes = dataset.task.classes
        labels, held_rows = dataset.train.labels, torch.cat(first)
        # The stratum of each row: its label or, if clients are users, user * classes + label.
        self._strata = labels if users is None else users * self._classes + labels
        self._unused = free.clone()
        self._unused[held_rows] = False
        self._seen_users = torch.zeros(
            int(self._strata.max()) // self._classes + 1, dtype=torch.bool
        )
        self._seen_users[self._strata[held_rows] // self._classes] = True
        self.current_holdings = tuple(
            _Holding(rows, self._label_shares(rows) if shares is None else shares[number])
            for number, rows in enumerate(first)
        )
        self._copies = list[_DistortedCopies]()
        self._shifts = dict[Party, tuple[int, ...]]()

    @property
    def current_shares(self) -> tuple[Float[Tensor, " classes"], ...]:
        """The label shares that each client's examples are drawn from."""
        return tuple(holding.shares for holding in self.current_holdings)

    def advance_drifts(self) -> None:
        """Advance every drift by one round."""
        self.current_holdings = tuple(
            _Holding(*holding.upcoming[0], holding.upcoming[1:], holding.distortion_level)
            if holding.upcoming
            else holding
            for holding in self.current_holdings
        )

    def plan_exchange(self, number: int, shift: DataShift | None, seed: Seed) -> _Exchange:
        """Return the exchange of a client: by its shift or, without one, of the same kind."""
        holding = self.current_holdings[number]
        old_shares = shares = self._strata_shares(holding)
        level, duration = holding.distortion_level, 1
        if shift is not None:
            duration = shift.over
            level = level if shift.distortion is None else shift.distortion
            if shift.new_user:
                shares = self._shares_of_new_user(holding.rows, number, seed)
            shares = _shifted_shares(shares, shift, self._classes)
        return _Exchange(number, old_shares, shares, duration, level)

    def exchange_examples(
        self, exchanges: Sequence[_Exchange], number: int, seed: Seed
    ) -> None:
        """Carry out these exchanges with examples that nobody has held so far."""
        holdings = list(self.current_holdings)
        counts, is_shift = list[Int[Tensor, " strata"]](), list[bool]()
        for exchange in exchanges:
            shares, size = exchange.shares, len(holdings[exchange.client].rows)
            if self._draws == "natural":
                own_seed = seed.child("counts", exchange.client)
                counts.append(draw_counts(shares, size, own_seed))
                is_same = torch.allclose(shares, exchange.old_shares, rtol=0, atol=SAME_SHARE)
            else:
                counts.append(apportion(shares, size))
                is_same = torch.equal(apportion(exchange.old_shares, size), counts[-1])
            level = holdings[exchange.client].distortion_level
            is_shift.append(not is_same or level != exchange.distortion_level)
        unused = self._unused.nonzero().flatten()
        draw = draw_stratified if self._draws == "exact" else draw_rows
        positions = draw(self._strata[unused], torch.stack(counts), self._classes, seed)
        for exchange, is_other, chosen in zip(exchanges, is_shift, positions, strict=True):
            fresh = unused[chosen]
            self._unused[fresh] = False
            if exchange.distortion_level:
                fresh = self._add_copies(
                    _DistortedCopies(exchange.client, exchange.distortion_level, fresh)
                )
            if is_other:
                party = client(exchange.client)
                self._shifts[party] = (*self._shifts.get(party, ()), number)
            old = _shuffle(holdings[exchange.client].rows, seed.child("going", exchange.client))
            label_shares = exchange.shares.reshape(-1, self._classes).sum(0)
            steps = tuple(
                zip(
                    self._rows_by_step(old, fresh, exchange.duration),
                    _shares_by_step(
                        holdings[exchange.client].shares, label_shares, exchange.duration
                    ),
                    strict=True,
                )
            )
            holdings[exchange.client] = _Holding(
                *steps[0], steps[1:], exchange.distortion_level
            )
        self.current_holdings = tuple(holdings)

    def to_timeline(self, rounds: Sequence[tuple[Rows, ...]], seed: Seed) -> DataTimeline:
        """Return the held rows of all rounds, as rows of one pool."""
        train = self._dataset.train
        if not self._copies:
            return DataTimeline(train, tuple(rounds), self._shifts)
        all_rows = {id(rows): rows for round_rows in rounds for rows in round_rows}
        # Examples that nobody holds undistorted are left out, to save memory.
        is_kept = torch.zeros(len(self._strata), dtype=torch.bool)
        is_kept[torch.cat(list(all_rows.values()))] = True
        is_kept[len(train) :] = True
        new_rows = is_kept.cumsum(0) - 1
        renumbered = {name: new_rows[rows] for name, rows in all_rows.items()}
        is_plain = is_kept[: len(train)]
        distorted_copies = _distorted_examples(train, self._dataset.task, self._copies, seed)
        pool = concatenate_examples((train.take(is_plain), distorted_copies))
        pool_rows = tuple(
            tuple(renumbered[id(rows)] for rows in round_rows) for round_rows in rounds
        )
        return DataTimeline(pool, pool_rows, self._shifts)

    def _label_shares(self, rows: Rows) -> Float[Tensor, " classes"]:
        """Return the label shares of these rows."""
        counts = (self._strata[rows] % self._classes).bincount(minlength=self._classes)
        return counts.double() / len(rows)

    def _strata_shares(self, holding: _Holding) -> Float[Tensor, " strata"]:
        """Return the shares that a client's next examples have, unless its data shift."""
        if self._draws == "exact":
            strata = len(self._seen_users) * self._classes
            return self._strata[holding.rows].bincount(minlength=strata).double() / len(
                holding.rows
            )
        by_user = torch.zeros(len(self._seen_users), self._classes, dtype=torch.float64)
        # If clients are users, the first row is its user's; else all rows are of user 0.
        by_user[int(self._strata[holding.rows[0]]) // self._classes] = holding.final_shares
        return by_user.flatten()  # (strata)

    def _shares_of_new_user(
        self, old_rows: Rows, number: int, seed: Seed
    ) -> Float[Tensor, " strata"]:
        """Return the shares of what is left of a random new user with enough examples."""
        unused_strata = self._strata[: len(self._unused)][self._unused]
        strata = len(self._seen_users) * self._classes
        by_user = unused_strata.bincount(minlength=strata).reshape(-1, self._classes)
        candidates = ((by_user.sum(1) >= len(old_rows)) & ~self._seen_users).nonzero().flatten()
        if not len(candidates):
            raise PlanError(
                f"client {number} shifts to a user whom no client has been, but none of these "
                f"users has {len(old_rows)} examples: take fewer or smaller clients"
            )
        index = torch.randint(
            len(candidates), (), generator=seed.child("user", number).generator()
        )
        user = int(candidates[index])
        self._seen_users[user] = True
        shares = torch.zeros(by_user.shape, dtype=torch.float64)
        shares[user] = by_user[user].double() / by_user[user].sum()
        return shares.flatten()  # (strata)

    def _add_copies(self, copies: _DistortedCopies) -> Rows:
        """Register distorted copies, and return their row numbers, after all existing ones."""
        start = len(self._strata)
        self._copies.append(copies)
        self._strata = torch.cat([self._strata, self._strata[copies.rows]])
        return torch.arange(start, len(self._strata))

    def _rows_by_step(self, old: Rows, fresh: Rows, duration: int) -> tuple[Rows, ...]:
        """Return the rows held in each round of an exchange."""
        old_parts, new_parts = (self._stratified_parts(rows, duration) for rows in (old, fresh))
        drift_rounds = (
            torch.cat([*new_parts[:step], *old_parts[step:]]) for step in range(1, duration)
        )
        return (*drift_rounds, fresh)

    def _stratified_parts(self, rows: Rows, count: int) -> tuple[Rows, ...]:
        """Cut rows into stratified parts, each stratum in the order of its rows."""
        ordered = rows[self._strata[rows].argsort(stable=True)]
        return tuple(ordered[part::count] for part in range(count))


def _shifted_shares(
    before: Float[Tensor, " strata"], shift: DataShift, classes: int
) -> Float[Tensor, " strata"]:
    """Return the share of each stratum after a shift."""
    by_user = before.reshape(-1, classes)  # (users, classes)
    if (shares := shift.shares_after) is not None:
        # If clients are users, all examples of a client are in its user's row.
        by_user = (by_user.sum(1, keepdim=True) > 0) * shares
    if (factors := shift.factors) is not None:
        by_user = by_user * factors
        if not bool(by_user.any()):
            raise PlanError(
                f"{shift.description}: the weights of all labels that the client holds are 0: "
                "raise one of them"
            )
    return by_user.flatten() / by_user.sum()


def _shares_by_step(
    before: Float[Tensor, " classes"], after: Float[Tensor, " classes"], duration: int
) -> tuple[Float[Tensor, " classes"], ...]:
    """Return the label shares behind the rows held in each round of an exchange."""
    ends = (step / duration for step in range(1, duration + 1))
    return tuple((1 - end) * before + end * after for end in ends)


def _shuffle(rows: Rows, seed: Seed) -> Rows:
    return rows[torch.randperm(len(rows), generator=seed.generator())]


def _distorted_examples(
    train: Examples, task: Task, copies: Sequence[_DistortedCopies], seed: Seed
) -> Examples:
    """Return the distorted copies, in order; each client has its own distortion."""
    copy_index = torch.cat([torch.full((len(item.rows),), n) for n, item in enumerate(copies)])
    originals = train.take(torch.cat([item.rows for item in copies]))
    inputs = torch.empty_like(originals.inputs)
    for number, distortion_level in dict.fromkeys(
        (item.client, item.distortion_level) for item in copies
    ):
        matches = [
            n
            for n, item in enumerate(copies)
            if (item.client, item.distortion_level) == (number, distortion_level)
        ]
        is_match = torch.isin(copy_index, torch.tensor(matches))
        result = distort(
            originals.take(is_match), task, distortion_level, seed.child("client", number)
        )
        inputs[is_match] = result.inputs
    return replace(originals, inputs=inputs)


def _check_shifts(
    schedule: Schedule, clients: int, task: Task, users: Int[Tensor, " examples"] | None
) -> None:
    """Refuse shifts that do not fit the data set or the split."""
    for shift in schedule.shifts:
        if shift.client >= clients:
            raise PlanError(
                f"client {shift.client} shifts, but there are {clients} clients, numbered from "
                "0: choose one of them"
            )
        for name, numbers in (("shares", shift.shares), ("weights", shift.weights)):
            if numbers is not None and len(numbers) != task.classes:
                raise PlanError(
                    f"a shift has {len(numbers)} {name}, but the task has {task.classes} "
                    "labels: give one per label"
                )
        if shift.distortion and task.vocabulary is not None:
            raise PlanError(
                f"client {shift.client} shifts by distortion, which works only for images and "
                "columns of numbers, but the data set has texts: shift by shares or weights"
            )
        if shift.new_user and users is None:
            raise PlanError(
                f"client {shift.client} shifts to a new user, but its split does not keep "
                "users: use a split that does, such as by_user"
            )
