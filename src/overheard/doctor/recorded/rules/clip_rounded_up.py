"""Updates that exceed the clip by the rounding of floating-point numbers."""

from typing import final

from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule
from overheard.doctor.recorded.noise import update_samples
from overheard.doctor.recorded.rules.clip_exceeded import ROUNDING

EXACT = 1e-9
"""How much of a norm is the rounding of our own sum, as a share."""


@final
class ClipRoundedUp(RunRule):
    """Clipping in floating-point numbers leaves norms a hair above the clip.

    It can be seen where clients clip and the server adds the noise: behind noise at the client,
    nobody sees the norm before it.
    """

    name = "clip-rounded-up"
    severity = "negligible"
    title = "updates exceed the clip by the rounding of numbers"
    mend = (
        "Nothing, if a bounded, tiny increase of epsilon is acceptable. Else clip to a "
        "slightly smaller norm than the one that the noise is calibrated to."
    )
    reference = (
        'JAX Privacy, "Common Pitfalls in DP Training" (McKenna and McMahan 2026), '
        "finite-precision numerical error"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare the norm of each clipped update with the clip."""
        clipped = [
            one
            for one in run.mechanisms
            if one.mechanism.unit == "client"
            and (one.mechanism.noised_at, one.mechanism.bounded_at) == ("server", "client")
            and "Adaptive" not in one.name
        ]
        if not clipped or not run.is_recorded:
            return None
        samples = update_samples(run)
        faults = list[Fault]()
        for one in clipped:
            clip = one.mechanism.clip
            above = [x for x in samples if EXACT < x.norm / clip - 1 <= ROUNDING]
            if above:
                worst = max(above, key=lambda sample: sample.norm)
                excess = worst.norm / clip - 1
                faults.append(
                    Fault(
                        f"{len(above)} of {len(samples)} updates exceed the clip {clip:g} by "
                        f"{excess:.1e} of it at most.",
                        f"{one.name}: {worst.name}",
                        f"L2 norm {worst.norm:.10g}",
                    )
                )
        return tuple(faults)
