"""A sensitivity of LocalDpMod that its clip does not allow."""

from typing import final

from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule


@final
class SensitivityBelowClip(RunRule):
    """Noise for a smaller sensitivity than that of an update of the clip's length.

    One update that is left out changes what is sent by up to the clip, and one that is replaced
    by up to two.
    """

    name = "sensitivity-below-clip"
    severity = "critical"
    title = "the noise is for a smaller sensitivity than the clip allows"
    mend = (
        "Set the sensitivity to the clip (a unit is added or removed) or to two clips (it is "
        "replaced)."
    )
    reference = (
        "Flower's LocalDpMod takes any sensitivity, unrelated to clipping_norm; JAX Privacy, "
        '"Sharp edges" (2026), sensitivity alignment'
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare the two settings wherever both are stated."""
        found = [
            (one, sensitivity, clip)
            for one in run.mechanisms
            if (sensitivity := one.number("sensitivity")) is not None
            and (clip := one.number("clipping_norm")) is not None
        ]
        if not found:
            return None
        return tuple(
            Fault(
                f"The noise is for a sensitivity of {sensitivity:g}, and an update may be as "
                f"long as the clip, {clip:g}.",
                one.name,
                f"sensitivity = {sensitivity:g}, clipping_norm = {clip:g}",
            )
            for one, sensitivity, clip in found
            if sensitivity < clip * (1 - 1e-6)
        )
