"""What a defense returned, checked against its contract."""

import torch

from overheard.core.defense import Defense
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Aggregate, Update, Weights

_SHOWN = 3
"""Most tensors that a message names."""


def check_returned_update(
    defense: Defense, given: Update | Aggregate, returned: object, hook: str
) -> None:
    """Check that a defense returned a message like the one that it was given.

    Args:
        defense: the defense.
        given: what it was given.
        returned: what it returned.
        hook: name of the hook that returned it.

    Raises:
        PlanError: if it is of another class, has other tensors, or numbers that are not finite.

    """
    what = f"defense {defense.name}: {hook} returned"
    kind = type(given).__name__
    if not isinstance(returned, Update | Aggregate) or type(returned) is not type(given):
        raise PlanError(f"{what} a {type(returned).__name__}; it must return an {kind}")
    before, after = _shapes(given.delta), _shapes(returned.delta)
    if before != after:
        differing = [name for name in before | after if before.get(name) != after.get(name)]
        told = "; ".join(
            f"{name} {after.get(name, 'missing')}, given {before.get(name, 'none')}"
            for name in differing[:_SHOWN]
        )
        raise PlanError(
            f"{what} other tensors than it was given ({told}); it must return an {kind} with "
            "the same names and shapes"
        )
    for name, tensor in returned.delta.items():
        # A finite sum implies finite numbers, and takes a fifth of the time.
        if not (torch.isfinite(tensor.sum()) or torch.isfinite(tensor).all()):
            raise PlanError(f"{what} NaN or infinity in {name}; it must return finite numbers")


def check_returned_examples(defense: Defense, returned: object) -> None:
    """Check that `on_data` of a defense returned examples.

    Raises:
        PlanError: if it did not.

    """
    if not isinstance(returned, Examples):
        raise PlanError(
            f"defense {defense.name}: on_data returned a {type(returned).__name__}; it must "
            "return Examples"
        )


def _shapes(delta: Weights) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in delta.items()}
