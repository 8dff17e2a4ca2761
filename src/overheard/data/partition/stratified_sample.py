"""Stratified samples from a pool, disjoint between clients."""

from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows


@final
class ScarceLabelError(PlanError):
    """A label of which there are too few examples.

    Args:
        label: the number of the label.
        user: the number of the user whose examples are too few; None = those of all.
        needed: how many are needed.
        left: how many there are.
        hint: what else helps, before what always does; "" = nothing.

    """

    def __init__(
        self, label: int, user: int | None, needed: int, left: int, hint: str = ""
    ) -> None:
        """Build the message with the numbers of the label and the user."""
        self.label, self.user = label, user
        self.needed, self.left, self.hint = needed, left, hint
        super().__init__(self.message(str(label), str(user)))

    def message(self, label: str, user: str) -> str:
        """Return the message with these names of the label and the user."""
        owner = "" if self.user is None else f" of user {user}"
        return (
            f"{self.needed} examples{owner} with label {label} are needed, but {self.left} are "
            f"left: {self.hint}take fewer or smaller clients, fewer rounds with fresh "
            "examples, fewer auxiliary examples, or a composition with less of that label"
        )


def draw_stratified(
    strata: Int[Tensor, " examples"],
    counts: Int[Tensor, "clients strata"],
    classes: int,
    seed: Seed,
) -> tuple[Rows, ...]:
    """Draw the wanted number of examples of each stratum for each client, without overlap.

    Args:
        strata: the stratum of each example in the pool: its label, or user * classes + label.
        counts: how many examples of each stratum each client gets.
        classes: the number of labels; only for the error.
        seed: determines which examples a client gets, and in what order.

    Returns:
        The rows of each client, in random order.

    Raises:
        ScarceLabelError: if a stratum has too few examples.

    """
    check_availability(strata.bincount(minlength=counts.shape[1]), counts.sum(0), classes)
    order = torch.randperm(len(strata), generator=seed.child("pool").generator())
    by_stratum = order[strata[order].argsort(stable=True)]
    sizes = strata.bincount(minlength=counts.shape[1])
    # Within each stratum, client k takes the rows after those of clients 0 to k - 1.
    starts = (sizes.cumsum(0) - sizes) + counts.cumsum(0) - counts  # (clients, strata)
    drawn = []
    for number, (first, lengths) in enumerate(zip(starts, counts, strict=True)):
        rows = by_stratum[_ranges(first, lengths)]
        shuffle = seed.child("client", number).generator()
        drawn.append(rows[torch.randperm(len(rows), generator=shuffle)])
    return tuple(drawn)


def check_availability(
    available: Int[Tensor, " strata"],
    needed: Int[Tensor, " strata"],
    classes: int,
    hint: str = "",
) -> None:
    """Refuse to draw more examples of a stratum than are available.

    Args:
        available: by stratum, how many there are.
        needed: by stratum, how many are to be drawn.
        classes: the number of labels.
        hint: what else helps.

    Raises:
        ScarceLabelError: if one has too few.

    """
    short = (needed > available).nonzero().flatten()
    if not len(short):
        return
    stratum = int(short[0])
    raise ScarceLabelError(
        stratum % classes,
        stratum // classes if len(available) > classes else None,
        int(needed[stratum]),
        int(available[stratum]),
        hint,
    )


def _ranges(starts: Int[Tensor, " strata"], lengths: Int[Tensor, " strata"]) -> Rows:
    """Concatenate the ranges start, start + 1, ..., start + length - 1."""
    ends = lengths.cumsum(0)
    offsets = (starts - (ends - lengths)).repeat_interleave(lengths)
    return torch.arange(int(lengths.sum())) + offsets
