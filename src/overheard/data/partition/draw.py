"""Draws disjoint examples of wanted kinds from a pool."""

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows


def draw(
    kinds: Int[Tensor, " examples"],
    counts: Int[Tensor, "clients kinds"],
    classes: int,
    seed: Seed,
) -> tuple[Rows, ...]:
    """Give each client as many examples of each kind as it wants, none to two clients.

    Args:
        kinds: of each example in the pool; a kind is a label, or user * classes + label.
        counts: how many each client wants.
        classes: how many labels there are; only for the message.
        seed: which examples of a kind a client gets, and in what order.

    Raises:
        PlanError: naming the label of which there are too few.

    """
    check_supply(kinds.bincount(minlength=counts.shape[1]), counts.sum(0), classes)
    order = torch.randperm(len(kinds), generator=seed.child("pool").generator())
    by_kind = order[kinds[order].argsort(stable=True)]
    sizes = kinds.bincount(minlength=counts.shape[1])
    # Client k takes, of each kind, what follows on the shares of the clients before it.
    starts = (sizes.cumsum(0) - sizes) + counts.cumsum(0) - counts  # (clients, kinds)
    dealt = []
    for number, (first, wanted) in enumerate(zip(starts, counts, strict=True)):
        rows = by_kind[_ranges(first, wanted)]
        shuffle = seed.child("client", number).generator()
        dealt.append(rows[torch.randperm(len(rows), generator=shuffle)])
    return tuple(dealt)


def check_supply(
    there: Int[Tensor, " kinds"], needed: Int[Tensor, " kinds"], classes: int
) -> None:
    """Refuse to draw more examples of a kind than there are.

    Raises:
        PlanError: naming the label, what is needed and what there is.

    """
    short = (needed > there).nonzero().flatten()
    if not len(short):
        return
    kind = int(short[0])
    owner = f" of user {kind // classes}" if len(there) > classes else ""
    raise PlanError(
        f"{int(needed[kind])} examples{owner} with label {kind % classes} are needed and "
        f"{int(there[kind])} are left: take fewer or smaller clients, fewer rounds with fresh "
        "examples, fewer auxiliary examples, or a composition with less of that label"
    )


def _ranges(starts: Int[Tensor, " kinds"], lengths: Int[Tensor, " kinds"]) -> Rows:
    """The numbers start, start + 1, ... of each range, one range after the other."""
    ends = lengths.cumsum(0)
    offsets = (starts - (ends - lengths)).repeat_interleave(lengths)
    return torch.arange(int(lengths.sum())) + offsets
