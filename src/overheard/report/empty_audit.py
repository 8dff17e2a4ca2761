"""Attacks that could not be asked anything, and the refusal of an audit without any other."""

from collections.abc import Sequence

from overheard.core.errors import PlanError
from overheard.findings.audit import Audit
from overheard.findings.finding import Refusal
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
        "nothing was measured: no attack could be asked. What was missing:\n"
        + "\n".join(_reasons(audit.refusals))
        + "\nGrant in threats.knows what they need, observe other parties, or choose other "
        "attacks: `overheard list attacks` says what each needs."
    )


def unmeasured_attacks(audit: Audit) -> tuple[str, ...]:
    """Return a line for each attack that made no claim in any arm, with the reasons."""
    answered = {one.cell.attack for one in audit.findings}
    never = [one for one in audit.refusals if one.cell.attack not in answered]
    return tuple(f"Not measured: {line.strip()}" for line in _reasons(never))


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
