"""Reasons, found without the ground truth, why intervals from virtual clients may not hold."""

from math import ceil, inf, log, sqrt

from jaxtyping import Float
from torch import Tensor

NEIGHBOUR_SHARE = 0.25
"""Fraction of the virtual clients, nearest in imbalance, with which a client is compared."""

FEWEST_NEIGHBOURS = 60
"""Fewest of them, so that their mean and spread are known."""

LARGEST_NOISE = 6.0
"""Largest mean excess of the median singular value, in standard deviations."""

LARGEST_MISFIT = 1.0
"""Largest mean misfit of the auxiliary examples with very many clients."""

MISFIT_OF_SINGLE_CLIENT = 2.2
"""What the limit allows in addition for a single client; it falls with the root of their
number, as chance does."""

LARGEST_VARIETY = 1.5
"""The same excess that is the largest with very many clients, if virtual ones repeat their
examples; for fewer clients, the limit is as much larger as that of the misfit."""

LARGEST_REPETITION = 2.0
"""How often a virtual client may train on each of its examples, on average, before that."""

LARGEST_SHIFT = 16.0
"""Largest `input_shift`. On tuning seeds, clean images with few auxiliary examples reached 9,
a distorted table never less than 26."""

TINY = 1e-6

NOISY = "the updates carry noise that virtual ones lack, so a defense may be unknown"

TOO_FEW = (
    "there are few auxiliary examples, and the updates are more varied than those of virtual "
    "clients, which repeat them"
)

POORLY_EXPLAINED = (
    "the auxiliary examples explain the updates worse than they explain those of virtual "
    "clients, so they may differ in kind from the clients' examples"
)

OTHER_INPUTS = (
    "the updates use the inputs of the model in other proportions than those of virtual "
    "clients, so the auxiliary examples may differ in kind from the clients' examples"
)

FALSE_DOUBTS = 0.01
"""The part of honest clients whose size may be doubted, were they like virtual ones."""

SMALLEST_FACTOR = 2.0
"""A reported size that is wrong by no more than this factor is not doubted. Real clients differ
from virtual ones: on tuning seeds, sizes of honest ones seemed up to 1.95 times as large."""

OTHER_SIZE = (
    "the lengths of the client's updates, and how well class gradients explain them, speak for "
    "another number of examples than the client reports"
)


def is_size_doubted(gap: float, residuals: Float[Tensor, " virtual"]) -> bool:
    """Return whether a client reports another size than its updates speak for.

    A size is doubted if both differ by more than `SMALLEST_FACTOR`, and by more than for all
    but `FALSE_DOUBTS` of the virtual clients (a conformal quantile). With fewer than 99 of
    them, there is no such quantile, and no size is doubted.

    Args:
        gap: natural logarithm of the reported size, less that of the size that a regression
            reads from the updates alone.
        residuals: true minus estimated logarithms of virtual clients that the regression was
            not fitted to.

    """
    rank = ceil((1 - FALSE_DOUBTS) * (len(residuals) + 1))
    ordered: list[float] = [*residuals.abs().sort().values.tolist(), inf]
    largest = max(log(SMALLEST_FACTOR), ordered[min(rank, len(ordered)) - 1])
    return abs(gap) > largest


def find_doubt(
    virtual: Float[Tensor, "clients rounds three"],
    real: Float[Tensor, "targets rounds three"],
    virtual_imbalances: Float[Tensor, " clients"],
    imbalances: Float[Tensor, " targets"],
    shift: float,
    repetition: float,
) -> str | None:
    """Compare the readings of `UnexplainedUpdate` of real clients with those of virtual ones.

    Each reading is standardised by the virtual clients of similar imbalance, as imbalanced
    clients have simpler updates. The means over targets and rounds are tested:

    - *variety*: the median singular value is too large, and virtual clients repeat their
      examples. An update from many different examples has more directions, too. So the limit
      is lower than that of noise, and noise is not named as the reason.
    - *noise*: the median singular value is far too large, and virtual clients do not repeat
      their examples.
    - *misfit*: the unexplained parts of the first matrix and of the whole update, added, are
      too large. Half of a median singular value that is too small is added: then the virtual
      clients' updates are the noisy ones.
    - *shift*: the inputs are used in other proportions (`input_shift`), as if another
      instrument had recorded them, or in other units.

    The limits were chosen on tuning seeds; docs/label-shares.md tells how often the check
    speaks on others.

    Args:
        virtual: readings of the virtual clients.
        real: readings of the targets, all finite.
        virtual_imbalances: estimated imbalance of each virtual client.
        imbalances: estimated imbalance of each target.
        shift: the `input_shift` of the same clients.
        repetition: how often a virtual client trains on each of its examples, on average over
            examples and clients; altered copies count as the same example.

    Returns:
        The first that holds of `TOO_FEW`, `NOISY`, `POORLY_EXPLAINED` and `OTHER_INPUTS`, or
        None.

    """
    if not len(real):
        return None
    deviations = _standardise(virtual, real, virtual_imbalances, imbalances)
    first, whole, middle = deviations.mean((0, 1)).tolist()
    allowed = MISFIT_OF_SINGLE_CLIENT / sqrt(len(real))
    if repetition > LARGEST_REPETITION and middle > LARGEST_VARIETY + allowed:
        return TOO_FEW
    if middle > LARGEST_NOISE:
        return NOISY
    misfit = first + whole - min(middle, 0.0) / 2
    if misfit > LARGEST_MISFIT + allowed:
        return POORLY_EXPLAINED
    return OTHER_INPUTS if shift > LARGEST_SHIFT else None


def _standardise(
    virtual: Float[Tensor, "clients rounds three"],
    real: Float[Tensor, "targets rounds three"],
    virtual_imbalances: Float[Tensor, " clients"],
    imbalances: Float[Tensor, " targets"],
) -> Float[Tensor, "targets rounds three"]:
    wanted = max(FEWEST_NEIGHBOURS, round(NEIGHBOUR_SHARE * len(virtual)))
    distances = (imbalances[:, None] - virtual_imbalances).abs()
    nearest = distances.topk(min(wanted, len(virtual)), largest=False).indices
    alike = virtual.double()[nearest]  # (targets, neighbours, rounds, three)
    spread = alike.std(1, correction=0) + TINY
    standardised: Tensor = (real.double() - alike.mean(1)) / spread
    return standardised
