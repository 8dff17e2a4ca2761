"""Sentences on the limitations of an audit's results."""

from overheard.findings.audit import Audit
from overheard.findings.names import make_printable
from overheard.report.verdict_sentences import false_leak_sentences


def limitation_sentences(audit: Audit) -> tuple[str, ...]:
    """Return the limitations of the results, one per sentence."""
    updates = sum(run.answers for run in audit.arms)
    missing = sum(run.missing for run in audit.arms)
    unattacked = [
        make_printable(arm.name) for arm in audit.arm_results if not arm.threat_results
    ]
    seeds = len({run.seed for run in audit.arms})
    unchecked = not all(run.has_truth for run in audit.arms)
    return (
        *(
            [
                "No claim was checked, since the ground truth is unknown: claims are shown "
                "beside uninformed guesses and may be wrong."
            ]
            if unchecked
            else []
        ),
        "Some attacks could not run: something that they need was missing, or they failed. Not "
        "measured does not mean that there is no leak."
        if audit.refusals
        else "No planned attack had to be left out.",
        *(f"No attack ran on the arm {name}." for name in unattacked),
        *(
            ["There was one run per arm: another run may give other results."]
            if seeds == 1 and not unchecked
            else []
        ),
        *(
            [f"{missing} of {missing + updates} updates of clients are missing."]
            if missing
            else []
        ),
        "A stronger attack than those tried may reveal more."
        if unchecked
        else "Of several attacks the best is shown. Tests and intervals allow for this choice. "
        "A stronger attack than those tried may reveal more.",
        *false_leak_sentences(audit.arm_results),
        "An audit cannot prove that there is no risk.",
    )
