"""The same noise in several rounds or clients."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import final

from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule
from overheard.doctor.recorded.noise import (
    QUARTILE,
    NoisySample,
    examine_noise,
    has_too_little,
)

MAX_PAIRS = 1000
"""Most pairs of messages that are compared: those nearest to each other in the run."""


@final
class NoiseRepeats(RunRule):
    """Two messages contain the same noise, so their difference has none.

    The difference of two updates with noise of their own has at least the noise of the later
    one, whatever was trained, so the same test as for a single update holds.
    """

    name = "noise-repeats"
    severity = "critical"
    title = "the same noise in several rounds or clients"
    mend = (
        "Draw the noise anew for each release: set no seed in a client, a message or a round, "
        "or draw noise from a generator of its own that nobody seeds."
    )
    reference = (
        'JAX Privacy, "Sharp edges" (McKenna and McMahan 2026), randomness; seeds such as '
        "torch.manual_seed in client_fn"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare the noise in differences of messages with that of one of them."""
        return examine_noise(run, _find_equal)


def _find_equal(name: str, samples: Sequence[NoisySample]) -> Fault | str | None:
    # A message with too little noise by itself says nothing of its difference.
    kept = [
        sample
        for sample in samples
        if not has_too_little(sample.values, sample.deviation, len(samples))
    ]
    pairs = _near_pairs(kept)
    if not pairs:
        return "there are no two messages with noise to compare"
    equal = list(_equal(pairs))
    return _fault(name, equal, len(pairs)) if equal else None


def _near_pairs(samples: Sequence[NoisySample]) -> list[tuple[NoisySample, NoisySample]]:
    """Return pairs of messages, those of one round and of one sender first."""
    pairs = sorted(
        combinations(samples, 2),
        key=lambda pair: (
            abs(pair[0].round - pair[1].round) + (pair[0].sender != pair[1].sender)
        ),
    )
    return pairs[:MAX_PAIRS]


def _equal(
    pairs: Sequence[tuple[NoisySample, NoisySample]],
) -> Iterator[tuple[NoisySample, NoisySample]]:
    for one, other in pairs:
        least = min(one.deviation, other.deviation)
        if has_too_little(one.values - other.values, least, len(pairs)):
            yield one, other


def _fault(name: str, equal: Sequence[tuple[NoisySample, NoisySample]], total: int) -> Fault:
    one, other = equal[0]
    left = float((one.values - other.values).abs().median()) / QUARTILE
    return Fault(
        f"{len(equal)} of {total} pairs of messages have the same noise: it cancels in their "
        "difference, and who reads both reads what it should hide.",
        f"{name}: {one.name}, and {other.name}",
        f"their difference has noise of deviation {left:.3g} at most; two draws of the stated "
        f"{one.deviation:.3g} leave {2**0.5 * one.deviation:.3g} or more",
    )
