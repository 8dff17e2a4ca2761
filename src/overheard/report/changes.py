"""Sentences on what the defenses of each arm change, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from overheard.findings.comparison import Comparison, compared
from overheard.findings.costs import costs_of
from overheard.findings.exposures import Arm, Exposure, bare_arm
from overheard.findings.figures import digits, percent
from overheard.findings.names import shown
from overheard.plans.registries import row_measure
from overheard.report.question_pages import pages_of


@dataclass(frozen=True, slots=True)
class Change:
    """Sentences on one arm's defenses.

    Args:
        arm: name of the arm.
        cost: in accuracy of the final model, bytes and time.
        effects: one sentence per threat, compared with the arm without defenses.

    """

    arm: str
    cost: str
    effects: tuple[str, ...]


def changes(every: Sequence[Arm]) -> tuple[Change, ...]:
    """Describe what each arm's defenses change for the best attack, and what they cost.

    Empty unless there are arms with defenses and one without.
    """
    bare = bare_arm(every)
    if bare is None:
        return ()
    undefended = {exposure.title: exposure for exposure in bare.exposures}
    return tuple(
        Change(
            shown(arm.name),
            ", ".join([_cost(arm, bare), *_spent(arm, bare)]),
            tuple(
                f"{exposure.title} · {_effect(exposure, undefended.get(exposure.title))}"
                for exposure in arm.exposures
            ),
        )
        for arm in every
        if not arm.is_bare
    )


def _cost(arm: Arm, bare: Arm) -> str:
    if arm.accuracy is None or bare.accuracy is None:
        return "accuracy cost not measured"
    cost = 100 * (bare.accuracy - arm.accuracy)
    change = f"{percent(bare.accuracy)} without, {percent(arm.accuracy)} with"
    # The last digit shown is a tenth of a point.
    if cost < 0.05:
        return f"costs no accuracy ({change})"
    return f"costs {digits(cost)} percentage points of accuracy ({change})"


def _spent(arm: Arm, bare: Arm) -> list[str]:
    """Return bytes and time as multiples of those without defenses, where measured."""
    defended, undefended = costs_of(arm), costs_of(bare)
    pairs = ((defended.sent, undefended.sent, "sends {} times as many bytes"),
             (defended.wall, undefended.wall, "takes {} times as long"))  # fmt: skip
    return [
        words.format(digits(with_defense / without))
        for with_defense, without, words in pairs
        if with_defense is not None and without
    ]


def _effect(after: Exposure, before: Exposure | None) -> str:
    if before is None or not before.cases:
        return "cannot be compared, since it was not measured without defenses."
    if not after.cases:
        why = "no attack could run"
        if after.rows:
            why = pages_of(after.question).why_unmeasured()
        return f"not measured, since {why}; this does not show protection."
    old, new = before.cases[0].row, after.cases[0].row
    measure = row_measure(new)
    figures = (
        f"{measure.title[0].lower()}{measure.title[1:]} "
        f"{measure.tell(old.value.mean)} without, {measure.tell(new.value.mean)} with"
    )
    return f"{_said(compared(old, new), after.verdict == 'leaks')} ({figures})."


def _said(comparison: Comparison, still_leaks: bool) -> str:
    match comparison:
        case "too few":
            return "too few results to say whether it helps"
        case "no clear difference":
            return "no clear difference: the intervals overlap"
        case "reads more":
            return "increases the leak"
        case "reads less":
            return "reduces the leak but does not stop it" if still_leaks else "helps"
