"""The epsilon of one round, stated as that of the run."""

from typing import final

from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    RunEvidence,
    RunRule,
    StatedMechanism,
    round_down,
)

CLOSE = 0.1
"""How far a stated epsilon may be from that of a round, as a share: accountants differ."""


@final
class EpsilonOfOneRound(RunRule):
    """The stated epsilon of the run is about that of a single round, and it has several."""

    name = "epsilon-of-one-round"
    severity = "critical"
    title = "the epsilon of one round is stated for the run"
    mend = "Keep one accountant over all rounds, and state what it says after the last one."
    reference = (
        "flwrlabs/flower examples/opacus: a new PrivacyEngine in every message; "
        "google-research/federated #18"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare each epsilon that is stated for the run with that of a round."""
        stated = [
            one
            for one in run.mechanisms
            if one.mechanism.stated is not None
            and one.mechanism.stated_for == "run"
            and one.accounted.recomputed is not None
        ]
        if not stated:
            return None
        return tuple(_fault(one) for one in stated if is_of_one_round(one))


def is_of_one_round(one: StatedMechanism) -> bool:
    """Return whether an epsilon stated for the run is too small for it, and that of a round."""
    stated, found = one.mechanism.stated, one.accounted.recomputed
    if stated is None or found is None or one.accounted.claim != "false":
        return False
    return abs(stated - found.one_round) <= CLOSE * found.one_round


def _fault(one: StatedMechanism) -> Fault:
    found, run = one.accounted.recomputed, one.accounted.run
    assert found is not None, "without it nothing is compared"
    return Fault(
        f"Epsilon {one.mechanism.stated:g} is stated for the run: it is that of one round "
        f"({found.one_round:.2f}). None below {round_down(found.lower)} is true for "
        f"{run.rounds_text}.",
        one.name,
        f"{one.mechanism.steps:,} noise draws a round, {run.rounds_text}, noise multiplier "
        f"{one.mechanism.noise_multiplier:g}, delta {one.mechanism.delta:g}",
    )
