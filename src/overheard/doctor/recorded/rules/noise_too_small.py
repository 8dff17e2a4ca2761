"""Less noise in updates or models than is stated."""

from collections.abc import Sequence
from typing import final

from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule
from overheard.doctor.recorded.noise import QUARTILE, NoisySample, examine_noise, has_too_little


@final
class NoiseTooSmall(RunRule):
    """Updates, or the server's means, contain less noise than their mechanism states."""

    name = "noise-too-small"
    severity = "critical"
    title = "less noise than stated"
    mend = (
        "Add noise of multiplier times clip to what is sent, after clipping and once for each "
        "release, and check that nothing removes or scales it down later."
    )
    reference = (
        'JAX Privacy, "Sharp edges" (McKenna and McMahan 2026), sensitivity alignment; the '
        "test: Anderson 1955 (Proc. AMS 6), see docs/doctor.md"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare the noise in each update or model with the stated deviation."""
        return examine_noise(run, _find_low)


def _find_low(name: str, samples: Sequence[NoisySample]) -> Fault | str | None:
    low = [
        sample
        for sample in samples
        if has_too_little(sample.values, sample.deviation, len(samples))
    ]
    if not low:
        return None
    worst = min(low, key=lambda one: one.measured_deviation / one.deviation)
    return Fault(
        f"At most {worst.measured_deviation / worst.deviation:.0%} of the stated noise is in "
        f"what was recorded ({len(low)} of {len(samples)} messages).",
        f"{name}: {worst.name}",
        f"half of the numbers lie within {QUARTILE * worst.measured_deviation:.3g} of zero, as "
        f"noise of deviation {worst.measured_deviation:.3g} has it; "
        f"{worst.deviation:.3g} is stated, at least",
    )
