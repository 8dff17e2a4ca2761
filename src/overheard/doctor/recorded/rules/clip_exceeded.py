"""Updates that are longer than the clip to which the noise is calibrated."""

from math import inf, isnan, sqrt
from typing import final

from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    Hidden,
    RunEvidence,
    RunRule,
    StatedMechanism,
)
from overheard.doctor.recorded.noise import (
    FALSE_ALARM,
    NoisySample,
    noise_samples,
    update_samples,
)

ROUNDING = 1e-3
"""How much a norm may exceed the clip by rounding, as a share."""


@final
class ClipExceeded(RunRule):
    """A client's update, or the mean of the round, is longer than the clip and its noise."""

    name = "clip-exceeded"
    severity = "critical"
    title = "updates are longer than the clip to which the noise is calibrated"
    mend = (
        "Clip the whole update to the stated norm before the noise is added, and after every "
        "other change of it."
    )
    reference = (
        'JAX Privacy, "Sharp edges" (McKenna and McMahan 2026), sensitivity alignment; clips '
        "of raw weights: KanishJebaMathewM/Truxify #3844"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare the norm of each update with the clip, or with clip and noise."""
        bounded = [one for one in run.mechanisms if one.mechanism.unit == "client"]
        if not bounded or not run.is_recorded:
            return None
        faults, hidden = list[Fault](), list[str]()
        for one in bounded:
            samples = _clipped_samples(run, one)
            if isinstance(samples, str):
                hidden.append(f"{one.name}: {samples}")
                continue
            long = [
                sample
                for sample in samples
                if not sample.norm <= _longest(one, sample, len(samples))  # or not a number
            ]
            if long:
                worst = max(long, key=_length)
                faults.append(
                    Fault(
                        f"{len(long)} of {len(samples)} messages are longer than the clip "
                        f"{one.mechanism.clip:g} allows.",
                        f"{one.name}: {worst.name}",
                        f"L2 norm {worst.norm:.4g}; clip and noise together reach "
                        f"{_longest(one, worst, len(samples)):.4g}",
                    )
                )
        return tuple(faults) if faults or not hidden else Hidden("; ".join(hidden))


def _length(sample: NoisySample) -> float:
    """Return the norm of an update; infinite if it is not a number."""
    return inf if isnan(sample.norm) else sample.norm


def _clipped_samples(run: RunEvidence, one: StatedMechanism) -> tuple[NoisySample, ...] | str:
    """Return what should be no longer than the clip, with the noise that is in it."""
    if "Adaptive" in one.name:
        return "its clip changes from round to round"
    match one.mechanism.noised_at, one.mechanism.bounded_at:
        case "client", _:
            return noise_samples(run, one)
        case "server", "client":
            return update_samples(run) or "no single update is recorded"
        case _:
            return "the server clips after the updates that were recorded"


def _longest(one: StatedMechanism, sample: NoisySample, tests: int) -> float:
    """Return the longest norm that clip and noise explain, but for a false alarm."""
    longest = one.mechanism.clip * (1 + ROUNDING)
    if sample.deviation == 0:
        return longest
    from scipy.stats import chi2

    noise = sample.deviation * sqrt(float(chi2.isf(FALSE_ALARM / tests, sample.size)))
    return longest + noise
