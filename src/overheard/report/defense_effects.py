"""Sentences on what the defenses of each arm change, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from overheard.findings.costs import arm_costs
from overheard.findings.names import make_printable
from overheard.findings.number_format import format_number, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, ThreatResult, find_undefended_arm
from overheard.plans.registries import row_measure
from overheard.report.page_registry import pages_of

Comparison = Literal["too few", "no clear difference", "reads more", "reads less"]
"""too few: an interval is missing; no clear difference: the intervals overlap; reads more, or
reads less: they do not overlap, and the second score leaks more, or less."""


def compare_rows(before: ScoreRow, after: ScoreRow) -> Comparison:
    """Compare two rows of one score; only intervals that do not overlap count as different."""
    old, new = before.value, after.value
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return "too few"
    rose, fell = new.low > old.high, new.high < old.low
    if not rose and not fell:
        return "no clear difference"
    return "reads more" if rose == (after.better == "higher") else "reads less"


@dataclass(frozen=True, slots=True)
class DefenseEffects:
    """Sentences on one arm's defenses.

    Args:
        arm: name of the arm.
        cost: in accuracy of the final model, bytes and time.
        effects: one sentence per threat, compared with the arm without defenses.

    """

    arm: str
    cost: str
    effects: tuple[str, ...]


def describe_defense_effects(arm_results: Sequence[ArmResult]) -> tuple[DefenseEffects, ...]:
    """Describe what each arm's defenses change for the best attack, and what they cost.

    Empty unless there are arms with defenses and one without.
    """
    bare = find_undefended_arm(arm_results)
    if bare is None:
        return ()
    undefended = {threat_result.title: threat_result for threat_result in bare.threat_results}
    return tuple(
        DefenseEffects(
            make_printable(arm.name),
            ", ".join([accuracy_cost(arm, bare), *_overheads(arm, bare)]),
            tuple(
                f"{threat_result.title} · "
                f"{_effect_sentence(threat_result, undefended.get(threat_result.title))}"
                for threat_result in arm.threat_results
            ),
        )
        for arm in arm_results
        if not arm.is_undefended
    )


def accuracy_cost(arm: ArmResult, bare: ArmResult) -> str:
    """Return what an arm costs in accuracy of the final model, or in its other utility."""
    if arm.accuracy is None or bare.accuracy is None:
        return f"{arm.utility} cost not measured"
    cost = 100 * (bare.accuracy - arm.accuracy)
    change = f"{format_percent(bare.accuracy)} without, {format_percent(arm.accuracy)} with"
    # The last digit shown is a tenth of a point.
    if cost < 0.05:
        return f"costs no {arm.utility} ({change})"
    return f"costs {format_number(cost)} percentage points of {arm.utility} ({change})"


def utility_words(arm: ArmResult) -> str:
    """Return how well the final model does its task, as what it does; "" = not measured.

    Such as "is 83 % accurate" or "explains 40 % of the variance".
    """
    if arm.accuracy is None:
        return ""
    share = format_percent(arm.accuracy)
    match arm.utility:
        case "accuracy":
            return f"is {share} accurate"
        case "label accuracy":
            return f"gets {share} of the labels right"
        case "explained variance":
            return f"explains {share} of the variance"
        case "probability of the next token":
            return f"gives each next token a probability of {share}, as a geometric mean"


def _overheads(arm: ArmResult, bare: ArmResult) -> list[str]:
    """Return bytes and time as multiples of those without defenses, where measured."""
    defended, undefended = arm_costs(arm), arm_costs(bare)
    pairs = (
        (defended.total_bytes, undefended.total_bytes, "sends {} times as many bytes"),
        (defended.wall_seconds, undefended.wall_seconds, "takes {} times as long"),
    )
    return [
        words.format(format_number(with_defense / without))
        for with_defense, without, words in pairs
        if with_defense is not None and without
    ]


def effect_words(after: ThreatResult, before: ThreatResult) -> str:
    """Return what a defense does to the best attack on a threat that was measured in both."""
    old, new = before.attack_results[0].headline_row, after.attack_results[0].headline_row
    return _comparison_words(compare_rows(old, new), after.verdict == "leaks")


def _effect_sentence(after: ThreatResult, before: ThreatResult | None) -> str:
    if before is None or not before.attack_results:
        return "cannot be compared, since it was not measured without defenses."
    if not after.attack_results:
        why = "no attack could run"
        if after.judgement.withheld:
            why = make_printable(after.judgement.withheld)
        elif after.attacks_run:
            why = pages_of(after.question).unmeasured_reason()
        return f"not measured, since {why}; this does not show protection."
    old, new = before.attack_results[0].headline_row, after.attack_results[0].headline_row
    measure = row_measure(new)
    figures = (
        f"{measure.title[0].lower()}{measure.title[1:]} "
        f"{measure.format(old.value.mean)} without, {measure.format(new.value.mean)} with"
    )
    return f"{effect_words(after, before)} ({figures})."


def _comparison_words(comparison: Comparison, still_leaks: bool) -> str:
    match comparison:
        case "too few":
            return "too few results to say whether it helps"
        case "no clear difference":
            return "no clear difference: the intervals overlap"
        case "reads more":
            return "increases the leak"
        case "reads less":
            return "reduces the leak but does not stop it" if still_leaks else "helps"
