"""What an audit knows of its recording: what its check proves, and who reads what of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, final

from overheard.consistency.proof import RecordingProof
from overheard.core.parties import Party
from overheard.findings.names import name_observers

Reads = Literal["updates", "means", "neither"]
"""What attackers read. updates: updates or aggregates, as stored; means: the changes of the
global model, which follow from broadcasts; neither: single models or envelopes alone."""


@final
@dataclass(frozen=True, slots=True)
class AuditedRecording:
    """What an audit knows of its recording.

    Args:
        proof: what its messages prove; None = Overheard failed to check them.
        reads: by observers, what they read.
        failure: why Overheard failed to check it; "" = it did not.

    """

    proof: RecordingProof | None
    reads: Mapping[tuple[Party, ...], Reads] = field(default_factory=dict)
    failure: str = ""

    def refusal(self, observers: tuple[Party, ...]) -> str:
        """Return why attacks by these observers are refused, as a clause; "" if they are not.

        Broadcasts stay what they are, however replies are to be read.
        """
        proof = self.proof
        if proof is None or not proof.is_refused or self._read(observers) != "updates":
            return ""
        mend = f"; to mend this: {proof.mend}" if proof.mend else ""
        return f"{_as_clause(proof.finding)}{mend}"

    def doubt(self, observers: tuple[Party, ...]) -> str:
        """Return why it must not be said that nothing leaks to observers; "" if it may be."""
        reads = self._read(observers)
        if reads == "neither":
            return ""
        if self.proof is None:
            return self.failure
        return "" if self.proof.allows_no_leak(reads) else _as_clause(self.proof.finding)

    @property
    def is_proved(self) -> bool:
        """Whether the recording is what it is taken for, and nothing in it is odd."""
        proof = self.proof
        return proof is not None and proof.outcome == "follows" and not proof.faults

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that a reader should know of the check, and which verdicts it rules out."""
        refused = [name_observers(one) for one in self.reads if self.refusal(one)]
        doubted = [
            name_observers(one)
            for one in self.reads
            if self.doubt(one) and not self.refusal(one)
        ]
        return (
            *((f"{self.failure}.",) if self.proof is None else self.proof.sentences),
            *([f"Attacks by {'; by '.join(refused)} are refused."] if refused else []),
            *(
                [
                    f"About attacks by {'; by '.join(doubted)} it is not said that nothing "
                    "leaks, as that is not shown."
                ]
                if doubted
                else []
            ),
        )

    def _read(self, observers: tuple[Party, ...]) -> Reads:
        return self.reads.get(observers, "updates")


def _as_clause(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}".removesuffix(".")
