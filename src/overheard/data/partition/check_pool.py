"""A check that a pool of examples can be partitioned."""

from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import PlanError


def check_pool(
    labels: Int[Tensor, " examples"], sizes: Int[Tensor, " clients"], classes: int
) -> None:
    """Refuse client sizes below 1, and sizes that sum to more than the pool.

    Raises:
        PlanError: if a size is below 1, or the pool is too small.
        ValueError: if a label is out of range.

    """
    if not len(sizes) or int(sizes.min()) < 1:
        raise PlanError(f"each client needs 1 example or more, got sizes {sizes.tolist()}")
    if int(sizes.sum()) > len(labels):
        raise PlanError(
            f"{len(sizes)} clients want {int(sizes.sum())} examples and {len(labels)} are "
            "left: take fewer or smaller clients, or fewer auxiliary examples"
        )
    if int(labels.min()) < 0 or int(labels.max()) >= classes:
        raise ValueError(f"labels must lie between 0 and {classes - 1}")
