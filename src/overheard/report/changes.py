"""Tells in plain sentences what the defenses of each arm change, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from overheard.findings.comparison import Comparison, compared
from overheard.findings.costs import costs_of
from overheard.findings.exposures import Arm, Exposure, bare_arm
from overheard.findings.figures import digits, percent
from overheard.findings.names import shown
from overheard.plans.kinds import measure_of
from overheard.report.question_pages import pages_of


@dataclass(frozen=True, slots=True)
class Change:
    """One arm's defenses in words.

    Args:
        arm: its name.
        cost: in accuracy of the final model, in bytes and in time.
        effects: on each group of observers, against the arm without defenses.

    """

    arm: str
    cost: str
    effects: tuple[str, ...]


def changes(every: Sequence[Arm]) -> tuple[Change, ...]:
    """What each arm's defenses changed for the best attack, and what they cost.

    Empty where no arm is without defenses, or all are: there is nothing to compare.
    """
    bare = bare_arm(every)
    if bare is None:
        return ()
    before = {held.title: held for held in bare.exposures}
    return tuple(
        Change(
            shown(arm.name),
            ", ".join([_cost(arm, bare), *_spent(arm, bare)]),
            tuple(
                f"{held.title} · {_effect(held, before.get(held.title))}"
                for held in arm.exposures
            ),
        )
        for arm in every
        if not arm.is_bare
    )


def _cost(arm: Arm, bare: Arm) -> str:
    if arm.accuracy is None or bare.accuracy is None:
        return "cost in accuracy not measured"
    cost = 100 * (bare.accuracy - arm.accuracy)
    change = f"{percent(bare.accuracy)} without, {percent(arm.accuracy)} with"
    # A tenth of a point is the last digit shown.
    if cost < 0.05:
        return f"costs no accuracy ({change})"
    return f"costs {digits(cost)} points of accuracy ({change})"


def _spent(arm: Arm, bare: Arm) -> list[str]:
    """Bytes and time as so many times those without defenses, where they were measured."""
    own, before = costs_of(arm), costs_of(bare)
    pairs = ((own.sent, before.sent, "sends {} times as much"),
             (own.wall, before.wall, "takes {} times as long"))  # fmt: skip
    return [
        words.format(digits(with_them / without))
        for with_them, without, words in pairs
        if with_them is not None and without
    ]


def _effect(after: Exposure, before: Exposure | None) -> str:
    if before is None or not before.cases:
        return "nothing to compare with, since it was not measured without defenses."
    if not after.cases:
        why = "no attack could run"
        if after.rows:
            why = pages_of(after.question).why_unmeasured()
        return f"not measured, since {why}; that is no proof of protection."
    old, new = before.cases[0].row, after.cases[0].row
    told = measure_of(new)
    figures = (
        f"{told.title[0].lower()}{told.title[1:]} {told.tell(old.value.mean)} without, "
        f"{told.tell(new.value.mean)} with"
    )
    return f"{_said(compared(old, new), after.verdict == 'leaks')} ({figures})."


def _said(comparison: Comparison, still_leaks: bool) -> str:
    match comparison:
        case "too few":
            return "too few answers to say whether it helps"
        case "no clear difference":
            return "no clear difference, the intervals overlap"
        case "reads more":
            return "makes reading easier"
        case "reads less":
            return "helps, yet does not stop the leak" if still_leaks else "helps"
