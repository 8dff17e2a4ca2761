"""Tells in plain sentences what an audit's figures do not cover."""

from collections.abc import Sequence

from overheard.findings.exposures import Arm
from overheard.findings.finding import Audit
from overheard.findings.names import shown


def limit_words(audit: Audit, every: Sequence[Arm]) -> tuple[str, ...]:
    """What the figures do not cover."""
    count = len(audit.refusals)
    answers = sum(run.answers for run in audit.arms)
    missing = sum(run.missing for run in audit.arms)
    unheard = [shown(arm.name) for arm in every if not arm.exposures]
    seeds = len({run.seed for run in audit.arms})
    unchecked = not all(run.has_truth for run in audit.arms)
    return (
        *(
            [
                "Nothing was checked against the truth, since none is at hand: claims stand "
                "beside what one would guess who heard nothing, and may be wrong."
            ]
            if unchecked
            else []
        ),
        f"{count} {'answer was' if count == 1 else 'answers were'} not measured, since an "
        "attack lacked what it needs. Not measured is not the same as no leak."
        if count
        else "Every attack that the plan names could run.",
        *(f"No attack listened to the arm {name}." for name in unheard),
        *(
            ["There was one run an arm: another may come out differently."]
            if seeds == 1 and not unchecked
            else []
        ),
        *(
            [f"{missing} of {missing + answers} answers of clients never came."]
            if missing
            else []
        ),
        "A stronger attack than those tried may read more."
        if unchecked
        else "The best of several attacks is chosen by these same figures, which flatters it a "
        "little; a stronger attack than those tried may read more.",
        "Tests cannot prove the absence of risk.",
    )
