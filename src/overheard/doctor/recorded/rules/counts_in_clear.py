"""Exact numbers of examples beside a claim for records that are added or removed."""

from typing import final

from overheard.core.messages import Update
from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule


@final
class CountsInClear(RunRule):
    """Replies state how many examples a client has, which an added record changes by one."""

    name = "counts-in-clear"
    severity = "theoretical"
    title = "exact numbers of examples travel in clear"
    mend = (
        "State the claim for a record that is replaced, or say that the number of examples is "
        "public, or send a rounded number."
    )
    reference = (
        'JAX Privacy, "Sharp edges" (McKenna and McMahan 2026), public and private metadata, '
        "neighboring relation"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Look at the counts of replies, if a record that is added or removed is covered."""
        claims = [
            one
            for one in run.mechanisms
            if one.mechanism.noised_at == "client"
            and one.mechanism.unit == "record"
            and one.mechanism.relation == "add-or-remove"
        ]
        if not claims or not run.is_recorded:
            return None
        for message in run.messages:
            if isinstance(message.body, Update) and message.body.examples:
                return (
                    Fault(
                        f"{claims[0].name} covers a record that is added or removed, and "
                        "replies state the exact number of records.",
                        f"{message.sender}, round {message.round}",
                        f"{message.body.examples:,} examples",
                    ),
                )
        return ()
