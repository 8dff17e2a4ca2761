"""A client that joins later, and trains without the noise of the others."""

from statistics import median
from typing import final

from overheard.core.messages import MissingReply, Update
from overheard.core.parties import Party
from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule
from overheard.doctor.recorded.noise import NoisySample, update_samples
from overheard.doctor.recorded.rules.accountant_per_round import spent_metrics

QUIET = 0.25
"""The share of the others' noise below which a client is taken to have none."""


@final
class JoinsWithoutPrivacy(RunRule):
    """A client whose first reply comes after round 0 lacks what the others have.

    Engines that are made in round 0 alone are missing in clients that join or restart later.
    """

    name = "joins-without-privacy"
    severity = "critical"
    title = "a client that joins later has no differential privacy"
    mend = (
        "Make the engine when a client trains for the first time, whatever the round is, and "
        "refuse to train without it."
    )
    reference = "NVFlare examples/hello-world/hello-dp makes its engine if current_round == 0"

    def examine(self, run: RunEvidence) -> Examined:
        """Compare the first replies of later clients with those of the others."""
        local = [one for one in run.mechanisms if one.mechanism.noised_at == "client"]
        if not local or not run.is_recorded:
            return None
        asked = _first_rounds(run)
        start = min(asked.values(), default=0)
        late = {party: number for party, number in asked.items() if number > start}
        if not late:
            return None
        noise = _noise_by_place(run)
        faults = [
            fault
            for party, number in late.items()
            for fault in (_fault(run, noise, party, number),)
            if fault is not None
        ]
        return tuple(faults)


def _first_rounds(run: RunEvidence) -> dict[Party, int]:
    first = dict[Party, int]()
    for message in run.messages:
        if isinstance(message.body, Update | MissingReply):
            first.setdefault(message.sender, message.round)
    return first


def _noise_by_place(run: RunEvidence) -> dict[tuple[Party, int], NoisySample]:
    return {(one.sender, one.round): one for one in update_samples(run)}


def _fault(
    run: RunEvidence, noise: dict[tuple[Party, int], NoisySample], party: Party, number: int
) -> Fault | None:
    """Return what a late client lacks in its first round; None = nothing that is seen."""
    bodies = {
        message.sender: message.body
        for message in run.messages
        if message.round == number and isinstance(message.body, Update)
    }
    own, others = bodies.get(party), [one for who, one in bodies.items() if who != party]
    place = f"{party}, round {number}"
    if own is None or not others:
        return None
    reporting = sum(any(spent_metrics(one)) for one in others)
    if reporting == len(others) and not any(spent_metrics(own)):
        return Fault(
            "A client that joins late reports no epsilon, and all others do: it may have "
            "trained without differential privacy.",
            place,
            f"{reporting} of {reporting} other replies of the round report an epsilon",
        )
    measured = {
        who: sample.measured_deviation * (bodies[who].examples or 1)
        for who in bodies
        if (sample := noise.get((who, number))) is not None
    }
    if party in measured and len(measured) > 1:
        usual = median(value for who, value in measured.items() if who != party)
        if measured[party] < QUIET * usual:
            return Fault(
                "A client that joins late sends an update with almost none of the noise that "
                "the others have.",
                place,
                f"its noise is at most {measured[party] / usual:.0%} of the others', by the "
                "middle of its numbers",
            )
    return None
