"""A split drawn anew, in which some clients keep their examples."""

from collections.abc import Iterable, Mapping

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.dataset import Dataset
from overheard.data.draws import draw_stratified
from overheard.data.partition.first_round import SplitSettings, split_by_sizes

MAX_ATTEMPTS = 100
"""Draws of the split, until labels can be renumbered so that kept ones are as they are."""


def split_again(
    dataset: Dataset,
    split_settings: SplitSettings,
    client_sizes: Int[Tensor, " clients"],
    free: Bool[Tensor, " examples"],
    fixed: Mapping[int, Rows],
    seed: Seed,
) -> tuple[Rows, ...]:
    """Return the rows of each client: the kept ones, and new ones of the rest for the others.

    The draw of the others is conditional on the kept rows. It is exact while the pool has
    enough examples of each label. If examples run short, the order in which clients get theirs
    matters, and the draw is an approximation. `iid` with `balanced = false` takes
    the shares of the rest instead of those of the whole pool.

    Args:
        dataset: its training part is partitioned.
        split_settings: the rule.
        client_sizes: the number of examples of each client, kept ones included.
        free: marks the rows that clients may hold.
        fixed: by number of the client, the rows that it keeps.
        seed: the seed of the new draw.

    Raises:
        PlanError: if the rest has too few examples.

    """
    if not fixed:
        return split_by_sizes(dataset, split_settings, client_sizes, free, seed)
    others = [number for number in range(len(client_sizes)) if number not in fixed]
    rest = without_rows(free, fixed.values())
    drawn: tuple[Rows, ...] = ()
    if others and split_settings.split.draws_labels_in_turn:
        counts = _draw_label_counts(dataset, split_settings, client_sizes, free, fixed, seed)[
            others
        ]
        positions = rest.nonzero().flatten()
        labels, classes = dataset.train.labels[positions], dataset.task.classes
        drawn = tuple(
            positions[rows]
            for rows in draw_stratified(labels, counts, classes, seed.child("rest"))
        )
    elif others:
        drawn = split_by_sizes(dataset, split_settings, client_sizes[others], rest, seed)
    rows_of = dict(fixed) | dict(zip(others, drawn, strict=True))
    return tuple(rows_of[number] for number in range(len(client_sizes)))


def without_rows(
    free: Bool[Tensor, " examples"], taken: Iterable[Rows]
) -> Bool[Tensor, " examples"]:
    """Return a copy of the mask in which these rows are not free."""
    rest = free.clone()
    for rows in taken:
        rest[rows] = False
    return rest


def _draw_label_counts(
    dataset: Dataset,
    split_settings: SplitSettings,
    client_sizes: Int[Tensor, " clients"],
    free: Bool[Tensor, " examples"],
    fixed: Mapping[int, Rows],
    seed: Seed,
) -> Int[Tensor, "clients classes"]:
    """Return label counts of a whole split that gives the kept counts to those who keep them.

    Every numbering of the labels is equally likely. So a split whose labels can be renumbered
    to match what is kept is as likely as any other split that matches.
    """
    labels, classes = dataset.train.labels, dataset.task.classes
    numbers = list(fixed)
    held = torch.stack([labels[rows].bincount(minlength=classes) for rows in fixed.values()])
    for attempt in range(MAX_ATTEMPTS):
        own = seed.child("attempt", attempt)
        rows = split_by_sizes(dataset, split_settings, client_sizes, free, own)
        counts = torch.stack([labels[one].bincount(minlength=classes) for one in rows])
        order = _matching_labels(counts[numbers], held, own.child("labels"))
        if order is not None:
            return counts[:, order]
    raise PlanError("no split gives the clients that keep their examples the labels they hold")


def _matching_labels(
    drawn: Int[Tensor, "fixed classes"], held: Int[Tensor, "fixed classes"], seed: Seed
) -> Int[Tensor, " classes"] | None:
    """Return a random order of the drawn labels that makes their counts the held ones.

    None: there is no such order.
    """
    shuffled = torch.randperm(drawn.shape[1], generator=seed.generator())
    order = shuffled[_sorted_columns(drawn[:, shuffled])]
    places = _sorted_columns(held)
    if not torch.equal(drawn[:, order], held[:, places]):
        return None
    matching = torch.empty_like(order)
    matching[places] = order
    return matching


def _sorted_columns(table: Int[Tensor, "rows columns"]) -> Int[Tensor, " columns"]:
    """Return the order that sorts the columns; equal ones stay in their order."""
    order = torch.arange(table.shape[1])
    for row in table.flip(0):
        order = order[row[order].argsort(stable=True)]
    return order
