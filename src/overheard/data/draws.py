"""Draws of examples: how many of each label, and which, disjoint between clients."""

from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows

ROUNDING_TOLERANCE = 1e-9
"""A float64 number of examples closer than this to a whole number counts as that number."""

EXACT_HINT = "set data.exchanges = 'exact', as label counts vary by chance here, or "


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


def apportion(weights: Float[Tensor, " parts"], total: int) -> Int[Tensor, " parts"]:
    """Divide `total` into whole numbers by these weights: the method of largest remainders.

    Each part gets its exact share, rounded down or up. Among equal remainders the first wins.

    >>> apportion(torch.tensor([0.5, 0.3, 0.2]), 9).tolist()
    [4, 3, 2]

    Raises:
        ValueError: if a weight is negative or all are 0.

    """
    return torch.from_numpy(apportion_array(weights.double().numpy(), total))


def apportion_array(
    weights: Float[np.ndarray, " parts"], total: int
) -> Int[np.ndarray, " parts"]:
    """Divide `total` as `apportion` does; a third of the time that torch takes for few parts.

    Raises:
        ValueError: if a weight is negative or all are 0.

    """
    whole = float(weights.sum())
    if not (weights >= 0).all() or not 0 < whole < float("inf"):
        raise ValueError(f"weights must be 0 or more and not all 0, got {weights.tolist()}")
    exact = weights / whole * total
    # Shares such as 0.1 * 30 miss a whole number only by rounding, so they count as it.
    nearest = exact.round()
    exact = np.where(np.abs(exact - nearest) < ROUNDING_TOLERANCE, nearest, exact)
    floor = np.floor(exact)
    left = total - int(floor.sum())
    if left:
        floor[np.argsort(floor - exact, kind="stable")[:left]] += 1
    return floor.astype(np.int64)


def draw_counts(
    shares: Float[Tensor, " strata"], size: int, seed: Seed
) -> Int[Tensor, " strata"]:
    """Draw the count of each stratum among `size` examples: one multinomial draw.

    Args:
        shares: 0 or more each, not all 0; they are scaled to sum to 1.
        size: the number of examples.
        seed: the seed of the draw.

    """
    exact = shares.double()
    probabilities = (exact / exact.sum()).numpy()
    return torch.from_numpy(seed.numpy().multinomial(size, probabilities))


def draw_rows(
    strata: Int[Tensor, " examples"],
    counts: Int[Tensor, "clients strata"],
    classes: int,
    seed: Seed,
) -> tuple[Rows, ...]:
    """Draw rows for natural counts, see `draw_stratified`.

    Raises:
        ScarceLabelError: if a stratum has too few examples. The counts vary by chance, so they
            may need more of a label than exact ones do.

    """
    try:
        return draw_stratified(strata, counts, classes, seed)
    except ScarceLabelError as error:
        raise ScarceLabelError(
            error.label, error.user, error.needed, error.left, EXACT_HINT
        ) from error


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
