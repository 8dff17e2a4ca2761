"""What a client that trains with Opacus states of its DP-SGD, by one line of its app.

It needs neither Opacus nor Flower: it reads public attributes of Opacus's objects.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from torch.utils.data import RandomSampler, SequentialSampler

from overheard.core.accounting.composed_steps import NoisySteps, StepSampling
from overheard.core.accounting.stated_steps import (
    OTHER_SAMPLING,
    SAMPLINGS,
    write_steps,
)


class OpacusAccountant(Protocol):
    """An accountant of Opacus: its history has noise multiplier, rate and number of steps."""

    history: Sequence[tuple[float, float, int]]

    def mechanism(self) -> str:
        """Return the name of the accountant, such as "prv"."""
        ...


class OpacusEngine(Protocol):
    """The privacy engine of Opacus."""

    accountant: OpacusAccountant


class OpacusOptimizer(Protocol):
    """The optimizer of Opacus that clips and adds noise."""

    max_grad_norm: float


_told: WeakKeyDictionary[OpacusAccountant, int] = WeakKeyDictionary()
"""Number of steps that were stated of each accountant."""


def record_dp(
    engine: OpacusEngine,
    optimizer: OpacusOptimizer,
    data_loader: object,
    *,
    steps_before: int = 0,
) -> dict[str, float]:
    """Return the metrics that state the steps of DP-SGD since the last message.

    Call it after training, and send the metrics with the reply. Recorders store them with the
    message, and an audit computes the epsilon of each client over all of its messages:

        reply["dp"] = ConfigRecord(record_dp(privacy_engine, optimizer, train_loader))

    An engine that is made anew for each message works as well as one that lasts: only steps
    that no earlier call stated are stated. The server reads these settings. It does not read
    the data, but what it is told is not verified.

    Args:
        engine: the privacy engine.
        optimizer: the optimizer that `make_private` returned.
        data_loader: the data loader that `make_private` returned.
        steps_before: the number of steps in the history of the accountant before this message,
            if its state was loaded in another process than the one that stated them.

    """
    accountant = engine.accountant
    history = [(float(noise), float(rate), int(n)) for noise, rate, n in accountant.history]
    total = sum(steps for _, _, steps in history)
    skipped = max(_told.get(accountant, 0), steps_before)
    # An accountant that has fewer steps than it had was reset.
    skipped = 0 if skipped > total else skipped
    _told[accountant] = total
    number = _sampling(data_loader)
    # What another sampling is, the number says; its steps only need to be valid.
    sampling = SAMPLINGS.get(number, "none")
    steps = list(_without_first(history, skipped, sampling))
    return write_steps(steps, number, float(optimizer.max_grad_norm), accountant.mechanism())


def _without_first(
    history: Sequence[tuple[float, float, int]], skipped: int, sampling: StepSampling
) -> Iterator[NoisySteps]:
    for noise, rate, steps in history:
        left = max(steps - skipped, 0)
        skipped -= steps - left
        if left:
            yield NoisySteps(noise, sampling, min(rate, 1.0), left)


def _sampling(data_loader: object) -> int:
    """Return how a data loader samples records, as `stated_steps.SAMPLINGS` numbers it.

    Opacus's own data loader has a rate, and so have its samplers, also where batches are split
    to save memory. A plain one with a shuffled or fixed order has each record once an epoch.
    """
    batches = getattr(data_loader, "batch_sampler", None)
    sampler = getattr(batches, "sampler", None)
    if any(getattr(one, "sample_rate", None) for one in (data_loader, batches, sampler)):
        return 1
    is_shuffled = isinstance(sampler, RandomSampler) and not sampler.replacement
    return 2 if is_shuffled or isinstance(sampler, SequentialSampler) else OTHER_SAMPLING
