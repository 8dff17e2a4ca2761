"""A claim with no noise, or with noise for a clip that nobody enforces."""

from typing import final

from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule


@final
class NoNoiseOrClip(RunRule):
    """A mechanism that states an epsilon, and guarantees nothing to anybody."""

    name = "no-noise-or-clip"
    severity = "critical"
    title = "an epsilon is stated without noise, or without clipping"
    mend = "Clip what each unit adds, and add noise that suits the clip."
    reference = (
        "raptor7197/caamas #36; Dwork and Roth 2014, section 3.5: noise suits a sensitivity"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Look at each mechanism that states an epsilon."""
        stated = [one for one in run.mechanisms if one.mechanism.stated is not None]
        if not stated:
            return None
        return tuple(
            Fault(
                f"Epsilon {one.mechanism.stated:g} is stated, and {one.mechanism.flaw}.",
                one.name,
                f"noise multiplier {one.mechanism.noise_multiplier:g}, clip enforced by "
                f"{one.mechanism.bounded_at or 'nobody'}",
            )
            for one in stated
            if one.mechanism.flaw
        )
