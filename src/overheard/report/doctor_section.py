"""What the doctor says of differential privacy, on the page and in the annex."""

from collections.abc import Iterable, Iterator, Sequence

from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.findings.audit import Audit
from overheard.findings.names import make_printable
from overheard.findings.privacy.epsilon_rows import CriticismRow

READING = (
    "Critical: what is released does not satisfy the claim. Theoretical: the claim fails only "
    "against a largely theoretical attacker. Negligible: it becomes weaker by a bounded, small "
    "amount (McKenna and McMahan 2026). Rules look at what a run states and, if it was "
    "recorded, at its messages."
)


def criticism_rows(audit: Audit) -> Iterator[CriticismRow]:
    """Yield what the doctor says of each arm, once for all of its runs."""
    found = dict.fromkeys(
        (run.arm, one) for run in audit.arms if not run.is_control for one in run.criticisms
    )
    yield from (CriticismRow.of(one, {"arm": arm}) for arm, one in found)


def alarm_sentences(rows: Iterable[CriticismRow]) -> tuple[str, ...]:
    """Return a sentence on each critical fault, each once."""
    return tuple(
        dict.fromkeys(
            make_printable(
                f"Arm “{one.arm}”: {one.title}. {one.what} To mend it: {one.mend}"
                if one.what
                else f"Arm “{one.arm}”: {one.title}. To mend it: {one.mend}"
            )
            for one in rows
            if one.severity == "critical"
        )
    )


def doctor_blocks(rows: Sequence[CriticismRow]) -> tuple[SectionBlock, ...]:
    """Return a table of all faults; () if there is none."""
    if not rows:
        return ()
    table = ReportTable(
        "Faults in the differential privacy of arms",
        ("Arm", "Severity", "Fault", "Where", "Evidence", "Reference"),
        tuple(
            tuple(
                map(
                    make_printable,
                    (
                        one.arm,
                        one.severity,
                        f"{one.title} ({one.id})",
                        one.where,
                        f"{one.what} {one.evidence}".strip(),
                        one.reference,
                    ),
                )
            )
            for one in rows
        ),
        6,
    )
    return (SectionBlock("Is the differential privacy right?", (READING,), (table,)),)
