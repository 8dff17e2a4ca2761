"""The partition of a data set: to clients round by round, to the attacker and to the test."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import Party, client
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Settings
from overheard.core.split import Rows, Split
from overheard.data.apportion import apportion
from overheard.data.content_hash import content_hashes
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import (
    CandidateSet,
    CandidateSettings,
    assign_canaries,
    draw_candidates,
    mislabel,
)
from overheard.data.partition.class_settings import refuse_classes_in_settings
from overheard.data.partition.data_timeline import DataTimeline, draw_timeline
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.natural_draws import draw_first_chunks
from overheard.data.partition.participants import (
    Participants,
    identify_participants,
    permute_examples,
)
from overheard.data.partition.prior_private_split import PriorPrivateSplit, split_prior_private
from overheard.data.partition.schedule import Schedule
from overheard.data.partition.stratified_sample import check_availability, draw_stratified

_UNIQUE_MASKS = WeakTensorKeyDictionary()
"""Results of `unique_mask`, by the inputs of the training part and then of the test part."""


@dataclass(frozen=True, slots=True)
class AuxiliarySize(Settings):
    """The number of labelled auxiliary examples; none if neither number is given.

    Args:
        per_class: examples of each label.
        total: examples in all, with the label shares of the training part.

    """

    per_class: NotNegative | None = None
    total: NotNegative | None = None

    def check_together(self) -> None:
        """Refuse both numbers at once."""
        if self.per_class is not None and self.total is not None:
            raise PlanError("auxiliary: give per_class or total, not both")


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


@dataclass(frozen=True, slots=True)
class DataPartition:
    """The examples of clients, attacker and test set.

    Args:
        pool: the training part of the data set. If clients hold distorted examples: the
            undistorted examples that any client holds, then the distorted ones.
        rows: rows of the pool, by round and then by client.
        auxiliary: examples of the attacker; no client holds one of them, or a copy of one.
        test: examples that neither clients nor attacker hold.
        shifts: by client, the rounds in which its data distribution changes.
        participants: the users behind the clients and what the attacker knows of them; None =
            not requested.
        background: public examples of users who take no part; None = there are none.
        candidates: candidate records for membership inference.
        members: by client, the positions in `candidates` of those that it holds from round 0.
        canary_odds: with canaries, the expected number per client for each held-out one; None
            = candidates are no canaries.
        drawn_from: the label shares that each client's examples are drawn from, by round and
            then by client; None = label counts are exact.

    """

    pool: Examples
    rows: tuple[tuple[Rows, ...], ...]
    auxiliary: Examples
    test: Examples
    shifts: Mapping[Party, tuple[int, ...]]
    participants: Participants | None = None
    background: Examples | None = None
    candidates: Examples | None = None
    members: Mapping[Party, tuple[int, ...]] = field(default_factory=dict)
    canary_odds: float | None = None
    drawn_from: tuple[tuple[Float[Tensor, " classes"], ...], ...] | None = None

    def client_examples(self, client: int, number: int) -> Examples:
        """Return the examples that a client holds in a round."""
        return self.pool.take(self.rows[number][client])


def draw_partition(
    dataset: Dataset,
    split_settings: SplitSettings | None,
    *,
    clients: int,
    auxiliary: AuxiliarySize,
    test: int | None,
    schedule: Schedule,
    seed: Seed,
    known_users: KnownUserSettings | None = None,
    is_permuted: bool = False,
    background: int | None = None,
    candidates: CandidateSettings | None = None,
) -> DataPartition:
    """Partition a data set; no training example is ever held by two parties.

    Steps, in this order:

    1. Auxiliary examples are drawn from content that the training and the test part have only
       once. If the attacker holds any example of a record, no client holds another one.
    2. Canaries are drawn, so that they do not depend on the clients' other examples.
    3. The split partitions examples among clients. If clients replace examples naturally, those
       of round 0 are drawn anew from the label shares that the split gave them. A client that
       is a user keeps its random choice of the user's examples.
    4. When clients replace examples later, they draw ones that no client has held before.

    Args:
        dataset: to be partitioned.
        split_settings: the rule; None = clients hold only their canaries.
        clients: the number of clients.
        auxiliary: the number of auxiliary examples.
        test: the number of test examples, drawn at random; None = all.
        schedule: when clients replace their examples.
        seed: determines the partition.
        known_users: what the attacker knows of the users behind the clients; None = nothing.
        is_permuted: whether the first examples of clients are permuted among them.
        background: the largest number of public examples: from those of the data set or, if
            it has none, from users who take no part. None = all that the data set has.
        candidates: the number of candidate records; None = none.

    Raises:
        PlanError: if the data set is too small.

    """
    _check_sizes(split_settings, clients)
    split = None if split_settings is None else split_settings.split
    refuse_classes_in_settings(
        dataset.task, split, auxiliary.per_class, schedule, known_users, candidates
    )
    reserved = reserve_examples(
        dataset, split_settings, clients, auxiliary, seed, known_users, candidates
    )
    dataset, free, unused = reserved.dataset, reserved.free.clone(), reserved.unused
    auxiliary_rows, user_split = reserved.auxiliary_rows, reserved.user_split
    candidate_set = reserved.canaries
    client_rows = split_among_clients(dataset, split_settings, clients, free, seed)
    users = users_of_clients(dataset, split_settings)
    client_rows, shares = draw_first_chunks(dataset, users, client_rows, free, schedule, seed)
    participants = _identify_participants(dataset, user_split, client_rows, known_users, seed)
    if participants is not None:
        # Examples of holdout users are not public; those of all other absent users may be.
        unused = unused & ~participants.is_holdout
    public_seed = seed.child("background")
    background_rows = _background_rows(dataset, unused, client_rows, background, public_seed)
    free[background_rows] = False
    if is_permuted:
        client_rows = permute_examples(client_rows, seed.child("exchanged"))
    if candidate_set is not None:
        client_rows = add_canaries(client_rows, candidate_set)
    elif candidates is not None:
        candidate_set = _draw_candidates(dataset, candidates, client_rows, free, seed)
    draw_seed = seed.child("exchanges")
    timeline = draw_timeline(dataset, users, client_rows, free, schedule, draw_seed, shares)
    shadow_rows = _shadow_devices(dataset, participants, timeline)
    return DataPartition(
        timeline.pool,
        tuple((*rows, *shadow_rows) for rows in timeline.rows),
        dataset.train.take(auxiliary_rows),
        _test_examples(dataset.test, test, seed.child("test")),
        timeline.shifts,
        participants,
        _background_examples(dataset, background_rows, background, public_seed),
        None if candidate_set is None else dataset.train.take(candidate_set.rows),
        _members_by_client(candidate_set),
        None if candidates is None else candidates.canary_odds,
        timeline.drawn_from,
    )


@dataclass(frozen=True, slots=True)
class ReservedExamples:
    """What is drawn before the split.

    Args:
        dataset: the data set; mislabelled canaries have their wrong labels.
        auxiliary_rows: rows of the attacker's examples.
        free: marks the rows that the split may assign.
        unused: marks the rows that neither attacker nor canaries use.
        user_split: the prior and private examples of users; None = nothing is known of users.
        canaries: the canaries; None = there are none.

    """

    dataset: Dataset
    auxiliary_rows: Rows
    free: Bool[Tensor, " examples"]
    unused: Bool[Tensor, " examples"]
    user_split: PriorPrivateSplit | None
    canaries: CandidateSet | None


def reserve_examples(
    dataset: Dataset,
    split_settings: SplitSettings | None,
    clients: int,
    auxiliary: AuxiliarySize,
    seed: Seed,
    known_users: KnownUserSettings | None,
    candidates: CandidateSettings | None,
) -> ReservedExamples:
    """Draw auxiliary examples, the prior examples of users, and canaries."""
    auxiliary_rows = _auxiliary_rows(dataset, auxiliary, seed.child("auxiliary"))
    free = unused = _unused_mask(dataset, auxiliary_rows)
    user_split = None
    if known_users is not None:
        user_split = split_prior_private(dataset, free, known_users, seed.child("people"))
        free = user_split.private.clone()
        _check_label_matching(dataset, user_split, known_users, split_settings)
    canaries = None
    if candidates is not None and candidates.are_canaries:
        canaries, dataset = _assign_canaries(
            dataset, candidates, clients, free, known_users, seed.child("canaries")
        )
        free = unused = free & _unused_mask(dataset, canaries.rows)
    return ReservedExamples(dataset, auxiliary_rows, free, unused, user_split, canaries)


def _identify_participants(
    dataset: Dataset,
    user_split: PriorPrivateSplit | None,
    client_rows: tuple[Rows, ...],
    known_users: KnownUserSettings | None,
    seed: Seed,
) -> Participants | None:
    """Return who takes part if clients represent users."""
    if known_users is None or user_split is None:
        return None
    return identify_participants(
        dataset, user_split, client_rows, known_users, seed.child("who")
    )


def _check_sizes(split_settings: SplitSettings | None, clients: int) -> None:
    smallest, largest = (0, 0) if split_settings is None else split_settings.sizes
    if clients < 1 or (split_settings is not None and not 1 <= smallest <= largest):
        raise PlanError(
            "data: a partition needs 1 client or more and sizes of 1 example or more, smallest "
            f"first, got {clients} clients of sizes {(smallest, largest)}"
        )


def _assign_canaries(
    dataset: Dataset,
    candidates: CandidateSettings,
    clients: int,
    free: Bool[Tensor, " examples"],
    known_users: KnownUserSettings | None,
    seed: Seed,
) -> tuple[CandidateSet, Dataset]:
    """Draw canaries from unused examples, and assign them to clients.

    Also return the data set, in which mislabelled canaries have their wrong labels.
    """
    if known_users is not None:
        raise PlanError(
            "candidates: a canary belongs to no user, so canaries and data.people cannot be "
            "combined: leave out canaries or people"
        )
    canaries = assign_canaries(
        candidates, clients, free, unique_mask(dataset), seed, dataset.records
    )
    if candidates.canaries == "mislabelled":
        dataset = _relabel(dataset, canaries.rows, seed)
    return canaries, dataset


def _members_by_client(candidate_set: CandidateSet | None) -> dict[Party, tuple[int, ...]]:
    """Return which candidate records each client holds."""
    members = () if candidate_set is None else candidate_set.members
    return {client(number): places for number, places in enumerate(members)}


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


def _draw_candidates(
    dataset: Dataset,
    candidates: CandidateSettings,
    client_rows: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    seed: Seed,
) -> CandidateSet:
    """Draw candidate records from the clients' examples and from free ones.

    They are not `free` afterwards.
    """
    draw_seed, is_unique = seed.child("candidates"), unique_mask(dataset)
    candidate_set = draw_candidates(
        candidates, client_rows, free, is_unique, draw_seed, dataset.records
    )
    free[candidate_set.rows] = False
    return candidate_set


def add_canaries(
    client_rows: tuple[Rows, ...], candidate_set: CandidateSet
) -> tuple[Rows, ...]:
    """Append to the rows of each client the canaries that it got."""
    return tuple(
        torch.cat([rows, candidate_set.rows[list(places)]])
        for rows, places in zip(client_rows, candidate_set.members, strict=True)
    )


def _shadow_devices(
    dataset: Dataset, participants: Participants | None, timeline: DataTimeline
) -> tuple[Rows, ...]:
    """Return the rows that each shadow device holds."""
    shadow_rows = participants.shadow_rows if participants is not None else ()
    if shadow_rows and timeline.pool is not dataset.train:
        raise PlanError(
            "people: shadow devices cannot be combined with distorted inputs: leave out "
            "shadow_devices or the shift by distortion"
        )
    return shadow_rows


def _auxiliary_rows(dataset: Dataset, auxiliary: AuxiliarySize, seed: Seed) -> Rows:
    labels, classes = dataset.train.labels, dataset.task.classes
    if auxiliary.per_class is not None:
        counts = torch.full((classes,), auxiliary.per_class)
    elif auxiliary.total is not None:
        counts = apportion(labels.bincount(minlength=classes).double(), auxiliary.total)
    else:
        counts = torch.zeros(classes, dtype=torch.long)
    if not int(counts.sum()):
        return torch.zeros(0, dtype=torch.long)
    unique = unique_mask(dataset).nonzero().flatten()
    available = labels[unique].bincount(minlength=classes)
    copies = len(labels) - len(unique)
    hint = (
        f"{copies} of {len(labels)} examples have the same inputs as another, and none of them "
        "can be auxiliary: remove copies, or "
        if copies
        else ""
    )
    check_availability(available, counts, classes, hint)
    (positions,) = draw_stratified(labels[unique], counts[None], classes, seed)
    return unique[positions]


def _unused_mask(dataset: Dataset, rows: Rows) -> Bool[Tensor, " examples"]:
    """Mark the examples of all records from which none of these rows was cut."""
    is_unused = torch.ones(len(dataset.train), dtype=torch.bool)
    is_unused[rows] = False
    if dataset.records is not None:
        is_unused &= ~torch.isin(dataset.records, dataset.records[rows])
    return is_unused


def _relabel(dataset: Dataset, rows: Rows, seed: Seed) -> Dataset:
    """Replace the labels of these rows of the training part by wrong ones."""
    train = dataset.train
    labels = mislabel(train.labels, rows, dataset.task.classes, seed.child("labels"))
    return replace(dataset, train=replace(train, labels=labels))


def _check_label_matching(
    dataset: Dataset,
    user_split: PriorPrivateSplit,
    known_users: KnownUserSettings,
    split_settings: SplitSettings | None,
) -> None:
    """Refuse clients that would hold a random part of a label-matched user's examples."""
    smallest = 0 if split_settings is None else split_settings.sizes[0]
    if known_users.per_label is None or dataset.users is None:
        return
    private_count = int(dataset.users[user_split.private].bincount().max())
    if smallest < private_count:
        raise PlanError(
            f"people: label-matched users have {private_count} private examples each: set "
            f"data.examples to {private_count} or more, or lower per_label"
        )


def unique_mask(dataset: Dataset) -> Bool[Tensor, " examples"]:
    """Mark the training examples whose content occurs once in training and test part.

    The result is cached for as long as the data set exists, since many partitions may be drawn
    from it. Computing it takes 0.1 s for the 70,000 images of MNIST.
    """
    train, test = dataset.train.inputs, dataset.test.inputs
    if train not in _UNIQUE_MASKS:
        _UNIQUE_MASKS[train] = WeakTensorKeyDictionary()
    masks = _UNIQUE_MASKS[train]
    if test not in masks:
        hashes = torch.cat([content_hashes(train), content_hashes(test)])
        _, key_index, copies = np.unique(
            hashes.numpy(), return_inverse=True, return_counts=True
        )
        is_unique: Bool[np.ndarray, " hashes"] = copies[key_index] == 1
        masks[test] = torch.from_numpy(is_unique[: len(train)])
    mask: Bool[Tensor, " examples"] = masks[test]
    return mask


def _background_rows(
    dataset: Dataset,
    unused: Bool[Tensor, " examples"],
    client_rows: tuple[Rows, ...],
    count: int | None,
    seed: Seed,
) -> Rows:
    """Draw rows of users who take no part, if the data set has no public examples."""
    if dataset.background is not None or count is None:
        return torch.zeros(0, dtype=torch.long)
    if dataset.users is None:
        raise PlanError(
            "background: the data set has no public examples, and names no users from whom "
            "they could be drawn: leave background out"
        )
    present = dataset.users[torch.cat(client_rows)]
    available = (unused & ~torch.isin(dataset.users, present)).nonzero().flatten()
    if len(available) < count:
        raise PlanError(
            f"background: {count} public examples are needed, but users who take no part have "
            f"{len(available)}: lower background, or take fewer clients"
        )
    return available[torch.randperm(len(available), generator=seed.generator())[:count]]


def _background_examples(
    dataset: Dataset, rows: Rows, count: int | None, seed: Seed
) -> Examples | None:
    """Return the public examples, or None if there are none."""
    if dataset.background is not None:
        return _sample_examples(dataset.background, count, seed)
    return dataset.train.take(rows) if len(rows) else None


def _test_examples(examples: Examples, count: int | None, seed: Seed) -> Examples:
    if count is not None and not 1 <= count <= len(examples):
        raise PlanError(
            f"test: {count} is not in 1 to {len(examples)}, the number of test examples: "
            "change it"
        )
    return _sample_examples(examples, count, seed)


def _sample_examples(examples: Examples, count: int | None, seed: Seed) -> Examples:
    if count is None or count >= len(examples):
        return examples
    return examples.take(torch.randperm(len(examples), generator=seed.generator())[:count])
