"""Choice of the examples that are held out for the test."""

from pathlib import Path

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.draws import apportion

HOLDOUT_SHARE = 0.2
"""Share of the examples that is held out if a data set has no test part."""

FEWEST_OF_USER = 3
"""The fewest examples of a user of which a fifth is an example, rounded."""


def hold_out_stratified(
    strata: Int[Tensor, " examples"], held_out: int, seed: Seed
) -> Bool[Tensor, " examples"]:
    """Mark `held_out` random examples, in proportion from each stratum, such as a label."""
    sizes = strata.bincount()
    quota = apportion(sizes.double(), held_out)
    order = torch.randperm(len(strata), generator=seed.generator())
    return _mark_first(strata[order], quota)[order.argsort()]


def hold_out_fifth(
    labels: Int[Tensor, " examples"],
    users: Int[Tensor, " examples"] | None,
    seed: Seed,
    path: Path,
) -> Bool[Tensor, " examples"]:
    """Mark a random fifth of the examples of a file, in proportion from each label.

    With users, it is a fifth of each user's examples, rounded, and in proportion from each
    label as far as that goes. So users with equally many examples keep equally many: how many
    they keep says nothing of who they are. The examples of users with one or two are held out
    by label alone. One example of each label is held out last, so that a label with two or more
    keeps one, unless nearly all examples of a user are such.

    Raises:
        DataError: if there are too few examples to hold any out.

    """
    held_out = round(HOLDOUT_SHARE * len(labels))
    if not held_out:
        raise DataError(
            f"{path} has {len(labels)} examples, too few to hold out a test set: give 3 or more"
        )
    is_held_out = hold_out_stratified(labels, held_out, seed.child("held out"))
    if users is None:
        return is_held_out
    sizes = users.bincount()
    by_label = users[is_held_out].bincount(minlength=len(sizes))
    quota = torch.where(sizes < FEWEST_OF_USER, by_label, _fifths(sizes))
    order = torch.randperm(len(users), generator=seed.child("of users").generator())
    # Those that were chosen by label come first.
    order = order[(~is_held_out[order]).long().argsort(stable=True)]
    one_each = torch.ones(int(labels.max()) + 1, dtype=torch.long)
    is_last_of_label = _mark_first(labels[order].flip(0), one_each).flip(0)
    order = order[is_last_of_label.long().argsort(stable=True)]
    return _mark_first(users[order], quota)[order.argsort()]


def hold_out_of_users(users: Int[Tensor, " examples"], seed: Seed) -> Bool[Tensor, " examples"]:
    """Mark a random fifth of each user's examples, rounded."""
    order = torch.randperm(len(users), generator=seed.generator())
    return _mark_first(users[order], _fifths(users.bincount()))[order.argsort()]


def hold_out_latest(
    users: Int[Tensor, " examples"], time: Shaped[Tensor, " examples"]
) -> Bool[Tensor, " examples"]:
    """Mark the latest fifth of each user's examples, rounded down."""
    order = time.argsort(descending=True, stable=True)
    quota = (users.bincount() * HOLDOUT_SHARE).floor().long()
    return _mark_first(users[order], quota)[order.argsort()]


def _fifths(sizes: Int[Tensor, " users"]) -> Int[Tensor, " users"]:
    """Return a fifth of each size, rounded."""
    return (sizes * HOLDOUT_SHARE).round().long()


def _mark_first(
    strata: Int[Tensor, " examples"], quota: Int[Tensor, " strata"]
) -> Bool[Tensor, " examples"]:
    """Mark the first `quota[s]` examples of each stratum s."""
    order = strata.argsort(stable=True)
    sizes = strata.bincount(minlength=len(quota))
    starts = sizes.cumsum(0) - sizes
    rank = torch.empty_like(strata)
    rank[order] = torch.arange(len(strata)) - starts[strata[order]]
    return rank < quota[strata]
