"""Who holds which examples in each round, exchange by exchange."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import Party, client
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.core.task import Task
from overheard.data.apportion import apportion
from overheard.data.dataset import Dataset
from overheard.data.distortion import distorted
from overheard.data.partition.composition import shares_of, weights_of
from overheard.data.partition.draw import draw
from overheard.data.partition.schedule import DataShift, Schedule


@dataclass(frozen=True, slots=True)
class Holdings:
    """What each client holds in each round.

    Args:
        pool: what `rows` are rows of: the training part or, where some examples are held
            distorted, what any client ever holds of it as it is, and then the distorted ones.
        rows: by round and then by client.
        shifts: by client, the rounds from which on what it holds is of another kind, in
            order; of a drift the first. Who holds one kind throughout has no entry.

    """

    pool: Examples
    rows: tuple[tuple[Rows, ...], ...]
    shifts: Mapping[Party, tuple[int, ...]]


def holdings(
    dataset: Dataset,
    users: Int[Tensor, " examples"] | None,
    first: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    schedule: Schedule,
    seed: Seed,
) -> Holdings:
    """Let clients exchange what they hold; no example of the training part goes to two hands.

    A drift (`over` above 1) cuts what the client holds and what it gets into parts alike: of
    each label every part has its share, give or take one example. So a composition moves
    evenly, and one that does not shift stands still in every round.

    Args:
        dataset: whose training part is held.
        users: of the training part, where each client stands for one user; else None.
        first: what each client holds in round 0.
        free: the training examples that no attacker has.
        schedule: who exchanges when.
        seed: the same seed, the same holdings.

    Raises:
        PlanError: if too few examples are left, or a shift does not fit the data set.

    """
    _refuse_misfits(schedule, len(first), dataset.task, users)
    table = _Table(dataset, users, first, free)
    rounds = [first]
    for number in range(1, schedule.rounds):
        starting, draws = schedule.starting(number), seed.child("round", number)
        due = [
            who
            for who, hand in enumerate(table.hands)
            if who in starting or (schedule.refreshes(number) and not hand.coming)
        ]
        table.move_on()
        orders = [table.order(who, starting.get(who), draws) for who in due]
        if orders:
            table.serve(orders, number, draws)
        rounds.append(tuple(hand.rows for hand in table.hands))
    return table.holdings(rounds, seed.child("looks"))


@dataclass(frozen=True, slots=True)
class _Hand:
    """What a client holds, what in the rounds of a drift to come, and how distorted it is."""

    rows: Rows
    coming: tuple[Rows, ...] = ()
    look: float = 0.0


@dataclass(frozen=True, slots=True)
class _Order:
    """What a client gets in exchange: how much of each kind, in how many rounds, how seen."""

    client: int
    counts: Int[Tensor, " kinds"]
    over: int
    look: float
    is_shift: bool


@dataclass(frozen=True, slots=True)
class _Copies:
    """Examples that a client holds distorted, and under which rows."""

    client: int
    look: float
    of: Rows


@final
class _Table:
    """Keeps, from round to round, who holds what and what nobody has held."""

    def __init__(
        self,
        dataset: Dataset,
        users: Int[Tensor, " examples"] | None,
        first: tuple[Rows, ...],
        free: Bool[Tensor, " examples"],
    ) -> None:
        self.hands = tuple(_Hand(rows) for rows in first)
        self._dataset = dataset
        self._classes = dataset.task.classes
        labels, held = dataset.train.labels, torch.cat(first)
        # By row: the label or, where clients are users, user * classes + label.
        self._kinds = labels if users is None else users * self._classes + labels
        self._untouched = free.clone()
        self._untouched[held] = False
        self._met = torch.zeros(int(self._kinds.max()) // self._classes + 1, dtype=torch.bool)
        self._met[self._kinds[held] // self._classes] = True
        self._copies = list[_Copies]()
        self._shifts = dict[Party, tuple[int, ...]]()

    def move_on(self) -> None:
        """Go one round further in every drift."""
        self.hands = tuple(
            _Hand(hand.coming[0], hand.coming[1:], hand.look) if hand.coming else hand
            for hand in self.hands
        )

    def order(self, who: int, shift: DataShift | None, seed: Seed) -> _Order:
        """What a client is to get, by its shift or, where there is none, as it has."""
        hand, kinds = self.hands[who], len(self._met) * self._classes
        there = self._kinds[hand.rows].bincount(minlength=kinds)
        if shift is None:
            return _Order(who, there, 1, hand.look, is_shift=False)
        before = there
        if shift.new_user:
            left = self._kinds[: len(self._untouched)][self._untouched]
            before = self._of_stranger(left.bincount(minlength=kinds), hand.rows, who, seed)
        counts = _shifted(before, len(hand.rows), shift, self._classes)
        look = hand.look if shift.distortion is None else shift.distortion
        is_shift = look != hand.look or not torch.equal(there, counts)
        return _Order(who, counts, shift.over, look, is_shift)

    def serve(self, orders: Sequence[_Order], number: int, seed: Seed) -> None:
        """Give to each what it is to get, out of what nobody has held."""
        rest = self._untouched.nonzero().flatten()
        counts = torch.stack([order.counts for order in orders])
        drawn = draw(self._kinds[rest], counts, self._classes, seed)
        hands = list(self.hands)
        for order, places in zip(orders, drawn, strict=True):
            fresh = rest[places]
            self._untouched[fresh] = False
            if order.look:
                fresh = self._copied(_Copies(order.client, order.look, fresh))
            if order.is_shift:
                who = client(order.client)
                self._shifts[who] = (*self._shifts.get(who, ()), number)
            old = _shuffled(hands[order.client].rows, seed.child("going", order.client))
            steps = self._steps(old, fresh, order.over)
            hands[order.client] = _Hand(steps[0], steps[1:], order.look)
        self.hands = tuple(hands)

    def holdings(self, rounds: Sequence[tuple[Rows, ...]], seed: Seed) -> Holdings:
        """What was held, in rows of one pool."""
        train = self._dataset.train
        if not self._copies:
            return Holdings(train, tuple(rounds), self._shifts)
        different = {id(rows): rows for held in rounds for rows in held}
        # What nobody holds as it is stays out: every run with a look has a pool of its own.
        kept = torch.zeros(len(self._kinds), dtype=torch.bool)
        kept[torch.cat(list(different.values()))] = True
        kept[len(train) :] = True
        place = kept.cumsum(0) - 1
        moved = {name: place[rows] for name, rows in different.items()}
        plain = kept[: len(train)]
        looks = _looks(train, self._dataset.task, self._copies, seed)
        pool = Examples(
            torch.cat([train.inputs[plain], looks.inputs]),
            torch.cat([train.labels[plain], looks.labels]),
        )
        placed = tuple(tuple(moved[id(rows)] for rows in held) for held in rounds)
        return Holdings(pool, placed, self._shifts)

    def _of_stranger(
        self, left: Int[Tensor, " kinds"], held: Rows, who: int, seed: Seed
    ) -> Int[Tensor, " kinds"]:
        """What is left of a user whom no client has been, and who has enough."""
        by_user = left.reshape(-1, self._classes)  # (users, classes)
        fitting = ((by_user.sum(1) >= len(held)) & ~self._met).nonzero().flatten()
        if not len(fitting):
            raise PlanError(
                f"client {who} is to become a user whom no client has been, and none of these "
                f"has {len(held)} examples: take fewer or smaller clients"
            )
        chance = torch.randint(len(fitting), (), generator=seed.child("user", who).generator())
        user = int(fitting[chance])
        self._met[user] = True
        alone = torch.zeros_like(by_user)
        alone[user] = by_user[user]
        return alone.flatten()  # (kinds)

    def _copied(self, copies: _Copies) -> Rows:
        """Rows for distorted copies, after all that there are."""
        start = len(self._kinds)
        self._copies.append(copies)
        self._kinds = torch.cat([self._kinds, self._kinds[copies.of]])
        return torch.arange(start, len(self._kinds))

    def _steps(self, old: Rows, fresh: Rows, over: int) -> tuple[Rows, ...]:
        """What is held in each round of an exchange."""
        going, coming = (self._parts(rows, over) for rows in (old, fresh))
        between = (torch.cat([*coming[:step], *going[step:]]) for step in range(1, over))
        return (*between, fresh)

    def _parts(self, rows: Rows, count: int) -> tuple[Rows, ...]:
        """Cut rows into parts with like shares of each kind, each kind by its rows' order."""
        ordered = rows[self._kinds[rows].argsort(stable=True)]
        return tuple(ordered[part::count] for part in range(count))


def _shifted(
    before: Int[Tensor, " kinds"], size: int, shift: DataShift, classes: int
) -> Int[Tensor, " kinds"]:
    """How many examples of each kind make up `size` of them after a shift."""
    by_user = before.double().reshape(-1, classes)  # (users, classes)
    place = f"the shift of client {shift.client} in round {shift.round}"
    if shift.shares is not None:
        # Where clients are users, all that a client holds lies in that user's row.
        is_held = by_user.sum(1, keepdim=True) > 0
        by_user = is_held * shares_of(shift.shares, place)
    if shift.weights is not None:
        by_user = by_user * weights_of(shift.weights, place)
        if not bool(by_user.any()):
            raise PlanError(f"{place}: the weights leave nothing of what the client holds")
    return apportion(by_user.flatten(), size)


def _shuffled(rows: Rows, seed: Seed) -> Rows:
    return rows[torch.randperm(len(rows), generator=seed.generator())]


def _looks(train: Examples, task: Task, copies: Sequence[_Copies], seed: Seed) -> Examples:
    """The distorted copies, in their order: each client sees by one instrument of its own."""
    which = torch.cat([torch.full((len(one.of),), n) for n, one in enumerate(copies)])
    plain = train.take(torch.cat([one.of for one in copies]))
    inputs = torch.empty_like(plain.inputs)
    for who, look in dict.fromkeys((one.client, one.look) for one in copies):
        own = [n for n, one in enumerate(copies) if (one.client, one.look) == (who, look)]
        here = torch.isin(which, torch.tensor(own))
        seen = distorted(plain.take(here), task, look, seed.child("client", who))
        inputs[here] = seen.inputs
    return Examples(inputs, plain.labels)


def _refuse_misfits(
    schedule: Schedule, clients: int, task: Task, users: Int[Tensor, " examples"] | None
) -> None:
    """Refuse the shifts that this data set or this split cannot have."""
    for shift in schedule.shifts:
        if shift.client >= clients:
            raise PlanError(f"client {shift.client} shifts, but there are {clients} clients")
        for told, numbers in (("shares", shift.shares), ("weights", shift.weights)):
            if numbers is not None and len(numbers) != task.classes:
                raise PlanError(
                    f"a shift to {len(numbers)} {told}, but the task has {task.classes} labels"
                )
        if shift.distortion and task.vocabulary is not None:
            raise PlanError(
                f"client {shift.client} shifts by distortion, which is for images and columns "
                "of numbers: the data set has texts; shift them by shares or weights"
            )
        if shift.new_user and users is None:
            raise PlanError(
                f"client {shift.client} shifts to a new user, but clients are no users: take a "
                "split that goes by users, such as by_user"
            )
