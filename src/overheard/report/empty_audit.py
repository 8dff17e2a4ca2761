"""Refuses an audit in which no attack could be asked anything."""

from collections.abc import Sequence

from overheard.core.errors import PlanError
from overheard.findings.finding import Audit, Refusal
from overheard.findings.names import make_printable

MAX_REASONS = 5
"""Most reasons that are listed; of more their number is given."""


def refuse_empty_audit(audit: Audit) -> None:
    """Check that at least one attack made a claim; otherwise nothing was measured.

    Raises:
        PlanError: if none did; it says what the attacks lacked and what to change.

    """
    if audit.findings:
        return
    if not audit.refusals:
        raise PlanError(
            "nothing was measured: no client is left to ask about. Clients that observe are no "
            'targets: remove some from threats.observers, or set about = "cohort"'
        )
    raise PlanError(
        "nothing was measured: no attack could be asked. They lacked:\n"
        + "\n".join(_reasons(audit.refusals))
        + "\nGrant in threats.knows what they need, observe other parties, or choose other "
        "attacks: `overheard list attacks` says what each needs."
    )


def _reasons(refusals: Sequence[Refusal]) -> list[str]:
    lines = dict.fromkeys(
        f"  {make_printable(one.cell.label or one.cell.attack)}: "
        + "; ".join(map(make_printable, one.missing))
        for one in refusals
        if not one.cell.is_control
    )
    listed = list(lines)
    more = len(listed) - MAX_REASONS
    return [*listed[:MAX_REASONS], f"  and {more} more"] if more > 0 else listed
