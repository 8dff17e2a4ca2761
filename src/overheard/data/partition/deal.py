"""Deals a data set out: to clients round by round, to the attacker and to the test."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import Party, client
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.core.truth import NO_MEMBERS
from overheard.data.apportion import apportion
from overheard.data.contents import content_keys
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import (
    Candidates,
    CandidateSet,
    ask_about,
    mislabelled,
    put_in,
)
from overheard.data.partition.draw import check_supply, draw
from overheard.data.partition.exchanges import Holdings, holdings
from overheard.data.partition.people import People
from overheard.data.partition.priors import Parted, part_users
from overheard.data.partition.schedule import Schedule
from overheard.data.partition.who import Who, exchanged, who_is_known

_HELD_ONCE = WeakTensorKeyDictionary()
"""The marks of `_held_once`, by the inputs of the training part and then of the test."""


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """How many labelled examples the attacker has; neither number = none.

    Args:
        per_class: so many of every label.
        total: so many in all, in the label shares of the training part.

    """

    per_class: int | None = None
    total: int | None = None

    def __post_init__(self) -> None:
        """Refuse two numbers at once."""
        if self.per_class is not None and self.total is not None:
            raise PlanError("auxiliary: give per_class or total, not both")
        if (self.per_class or 0) < 0 or (self.total or 0) < 0:
            raise PlanError("auxiliary: per_class and total must be 0 or more")


@dataclass(frozen=True, slots=True)
class SharedOut:
    """How examples are shared out among the clients.

    Args:
        split: who holds what in round 0.
        sizes: the smallest and the largest client; each size between is equally likely.

    """

    split: Split
    sizes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Deal:
    """Who holds which examples.

    Args:
        pool: the training part of the data set or, where clients hold some of it distorted,
            what they ever hold as it is, and the distorted examples.
        rows: rows of the pool, by round and then by client.
        auxiliary: the attacker's; no row of them, and no copy of one, is a client's.
        test: held out from all.
        shifts: by client, the rounds from which on what it holds is of another kind.
        who: who takes part and what is known of them, with the rows that shadow devices hold;
            None where nobody asked for it.
        background: public examples of nobody who takes part; None = there are none.
        candidates: records of which an attacker asks whether somebody trains on them.
        members: by client, the places of those that it holds from the first round on.
        canary_odds: where a die dealt each candidate to a client or to nobody, how many a
            client gets for one that goes nowhere, on average; None = no die did.

    """

    pool: Examples
    rows: tuple[tuple[Rows, ...], ...]
    auxiliary: Examples
    test: Examples
    shifts: Mapping[Party, tuple[int, ...]]
    who: Who | None = None
    background: Examples | None = None
    candidates: Examples | None = None
    members: Mapping[Party, tuple[int, ...]] = field(default_factory=lambda: NO_MEMBERS)
    canary_odds: float | None = None

    def held(self, client: int, number: int) -> Examples:
        """What a client holds in a round."""
        return self.pool.take(self.rows[number][client])


def deal(
    dataset: Dataset,
    shared_out: SharedOut | None,
    *,
    clients: int,
    auxiliary: Auxiliary,
    test: int | None,
    schedule: Schedule,
    seed: Seed,
    people: People | None = None,
    is_exchanged: bool = False,
    background: int | None = None,
    candidates: Candidates | None = None,
) -> Deal:
    """Deal out a data set; no example of the training part goes to two hands, ever.

    The attacker is served first, from examples whose content the training and the test part
    hold once only; then the clients' first examples are split, and whatever is exchanged
    later comes from what nobody has held so far. Of a record that the attacker has an example
    of no client holds any other. Canaries are drawn right after the attacker is served, so they
    are the same whatever clients hold beside them.

    Args:
        dataset: what is dealt.
        shared_out: how; None = clients hold no more than their canaries.
        clients: how many.
        auxiliary: what the attacker gets.
        test: how many test examples are used, a random choice; None = all.
        schedule: when clients exchange their examples.
        seed: the same seed, the same deal.
        people: what an attacker has of single users, whom clients stand for; None = nothing.
        is_exchanged: whether the clients' first examples are dealt anew among them by chance.
        background: public examples at most: of those that the data set has or, where it has
            none, of users who take no part; None = all that the data set has.
        candidates: how many records an attacker asks about; None = none.

    Raises:
        PlanError: if the data set is too small for it.

    """
    _check_sizes(shared_out, clients)
    known = _auxiliary_rows(dataset, auxiliary, seed.child("auxiliary"))
    free = absent = _untouched(dataset, known)
    parted = None
    if people is not None:
        parted = part_users(dataset, free, people, seed.child("people"))
        free = parted.private.clone()
        _refuse_unmatched(dataset, parted, people, shared_out)
    asked = None
    if candidates is not None and candidates.are_canaries:
        draws = seed.child("canaries")
        asked = _canaries(dataset, candidates, clients, free, people, draws)
        if candidates.canaries == "mislabelled":
            dataset = _relabelled(dataset, asked.rows, draws)
        free = absent = free & _untouched(dataset, asked.rows)
    held = _first_held(dataset, shared_out, clients, free, seed)
    who = None
    if people is not None and parted is not None:
        who = who_is_known(dataset, parted, held, people, seed.child("who"))
        # Of others who take no part nothing is known: all that they have may be public.
        absent = absent & ~who.kept_out
    draws = seed.child("background")
    public = _background_rows(dataset, absent, held, background, draws)
    free[public] = False
    if is_exchanged:
        held = exchanged(held, seed.child("exchanged"))
    if asked is not None:
        held = _with_canaries(held, asked)
    elif candidates is not None:
        asked = _asked_about(dataset, candidates, held, free, seed.child("candidates"))
        free[asked.rows] = False
    users = dataset.users if shared_out is not None and shared_out.split.keeps_users else None
    course = holdings(dataset, users, held, free, schedule, seed.child("exchanges"))
    devices = _shadow_devices(dataset, who, course)
    return Deal(
        course.pool,
        tuple((*rows, *devices) for rows in course.rows),
        dataset.train.take(known),
        _test(dataset.test, test, seed.child("test")),
        course.shifts,
        who,
        _public(dataset, public, background, draws),
        None if asked is None else dataset.train.take(asked.rows),
        {client(number): own for number, own in enumerate(asked.members)} if asked else {},
        None if candidates is None else candidates.canary_odds,
    )


def _check_sizes(shared_out: SharedOut | None, clients: int) -> None:
    smallest, largest = (0, 0) if shared_out is None else shared_out.sizes
    if clients < 1 or (shared_out is not None and not 1 <= smallest <= largest):
        raise PlanError(
            "a deal needs 1 client or more of 1 example or more, smallest first, got "
            f"{clients} of sizes {(smallest, largest)}"
        )


def _canaries(
    dataset: Dataset,
    candidates: Candidates,
    clients: int,
    free: Bool[Tensor, " examples"],
    people: People | None,
    seed: Seed,
) -> CandidateSet:
    """Draw canaries from what nobody has, and put them into clients."""
    if people is not None:
        raise PlanError(
            "candidates: a canary is nobody's, and people ask who somebody is: leave out "
            "canaries or people"
        )
    return put_in(candidates, clients, free, _held_once(dataset), seed, dataset.records)


def _first_held(
    dataset: Dataset,
    shared_out: SharedOut | None,
    clients: int,
    free: Bool[Tensor, " examples"],
    seed: Seed,
) -> tuple[Rows, ...]:
    """What each client holds in round 0, canaries apart."""
    if shared_out is None:
        return (torch.zeros(0, dtype=torch.long),) * clients
    rest, (smallest, largest) = free.nonzero().flatten(), shared_out.sizes
    die = seed.child("sizes").generator()
    size = torch.randint(smallest, largest + 1, (clients,), generator=die)
    labels, users = dataset.train.labels[rest], dataset.users
    first = shared_out.split.assign(
        labels,
        None if users is None else users[rest],
        size,
        dataset.task.classes,
        seed.child("split"),
    )
    return tuple(rest[rows] for rows in first)


def _asked_about(
    dataset: Dataset,
    candidates: Candidates,
    held: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    seed: Seed,
) -> CandidateSet:
    """Draw the records in question from what clients hold and from what nobody has."""
    return ask_about(candidates, held, free, _held_once(dataset), seed, dataset.records)


def _with_canaries(held: tuple[Rows, ...], asked: CandidateSet) -> tuple[Rows, ...]:
    """What each client holds, and the canaries that were put into it."""
    return tuple(
        torch.cat([rows, asked.rows[list(own)]])
        for rows, own in zip(held, asked.members, strict=True)
    )


def _shadow_devices(dataset: Dataset, who: Who | None, course: Holdings) -> tuple[Rows, ...]:
    """What shadow devices hold."""
    devices = who.devices if who is not None else ()
    if devices and course.pool is not dataset.train:
        raise PlanError(
            "people: shadow devices are not for runs in which inputs are distorted: leave out "
            "shadow_devices or the shift by distortion"
        )
    return devices


def _auxiliary_rows(dataset: Dataset, auxiliary: Auxiliary, seed: Seed) -> Rows:
    labels, classes = dataset.train.labels, dataset.task.classes
    if auxiliary.per_class is not None:
        counts = torch.full((classes,), auxiliary.per_class)
    elif auxiliary.total is not None:
        counts = apportion(labels.bincount(minlength=classes).double(), auxiliary.total)
    else:
        counts = torch.zeros(classes, dtype=torch.long)
    if not int(counts.sum()):
        return torch.zeros(0, dtype=torch.long)
    unique = _held_once(dataset).nonzero().flatten()
    there = labels[unique].bincount(minlength=classes)
    check_supply(there, counts, classes)
    (drawn,) = draw(labels[unique], counts[None], classes, seed)
    return unique[drawn]


def _untouched(dataset: Dataset, known: Rows) -> Bool[Tensor, " examples"]:
    """Mark the examples of all records of which the attacker has none."""
    free = torch.ones(len(dataset.train), dtype=torch.bool)
    free[known] = False
    if dataset.records is not None:
        free &= ~torch.isin(dataset.records, dataset.records[known])
    return free


def _relabelled(dataset: Dataset, rows: Rows, seed: Seed) -> Dataset:
    """The same data set with a wrong label in each of these rows of the training part."""
    train = dataset.train
    labels = mislabelled(train.labels, rows, dataset.task.classes, seed.child("labels"))
    return replace(dataset, train=replace(train, labels=labels))


def _refuse_unmatched(
    dataset: Dataset, parted: Parted, people: People, shared_out: SharedOut | None
) -> None:
    """Label-matched users are so no longer where clients hold a part of them by chance."""
    size = 0 if shared_out is None else shared_out.sizes[0]
    if people.per_label is None or dataset.users is None:
        return
    each = int(dataset.users[parted.private].bincount().max())
    if size < each:
        raise PlanError(
            f"people: label-matched users have {each} private examples each: let examples be "
            f"{each} or more, or lower per_label"
        )


def _held_once(dataset: Dataset) -> Bool[Tensor, " examples"]:
    """Mark the training examples of whose content there is no copy, in the test neither.

    Remembered as long as the data set lives, since many federations may be dealt from one: to
    look takes 0.1 s for the 70,000 images of MNIST.
    """
    train, test = dataset.train.inputs, dataset.test.inputs
    if train not in _HELD_ONCE:
        _HELD_ONCE[train] = WeakTensorKeyDictionary()
    known = _HELD_ONCE[train]
    if test not in known:
        keys = torch.cat([content_keys(train), content_keys(test)])
        _, place, copies = np.unique(keys.numpy(), return_inverse=True, return_counts=True)
        once: Bool[np.ndarray, " keys"] = copies[place] == 1
        known[test] = torch.from_numpy(once[: len(train)])
    marks: Bool[Tensor, " examples"] = known[test]
    return marks


def _background_rows(
    dataset: Dataset,
    absent: Bool[Tensor, " examples"],
    held: tuple[Rows, ...],
    wanted: int | None,
    seed: Seed,
) -> Rows:
    """Rows of users who take no part, where the data set has no public examples of its own."""
    if dataset.background is not None or wanted is None:
        return torch.zeros(0, dtype=torch.long)
    if dataset.users is None:
        raise PlanError(
            "background: the data set has no public examples and names no users, some of whom "
            "could take no part: leave background out"
        )
    busy = dataset.users[torch.cat(held)]
    rest = (absent & ~torch.isin(dataset.users, busy)).nonzero().flatten()
    if len(rest) < wanted:
        raise PlanError(
            f"background: {wanted} public examples are wanted, and users who take no part have "
            f"{len(rest)}: ask for fewer, or take fewer clients"
        )
    return rest[torch.randperm(len(rest), generator=seed.generator())[:wanted]]


def _public(dataset: Dataset, rows: Rows, wanted: int | None, seed: Seed) -> Examples | None:
    """The public examples, if there are any."""
    if dataset.background is not None:
        return _some_of(dataset.background, wanted, seed)
    return dataset.train.take(rows) if len(rows) else None


def _test(examples: Examples, wanted: int | None, seed: Seed) -> Examples:
    if wanted is not None and not 1 <= wanted <= len(examples):
        raise PlanError(f"test: {wanted} of the {len(examples)} test examples: take 1 to all")
    return _some_of(examples, wanted, seed)


def _some_of(examples: Examples, wanted: int | None, seed: Seed) -> Examples:
    if wanted is None or wanted >= len(examples):
        return examples
    return examples.take(torch.randperm(len(examples), generator=seed.generator())[:wanted])
