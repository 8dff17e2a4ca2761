"""Selects the value of a row that a rule limits, and the limit."""

from dataclasses import dataclass

from overheard.findings.document_rows import IntervalEstimate, SummaryRow
from overheard.gate.policy import LeakRule
from overheard.gate.rule_matches import RuleMatches
from overheard.gate.verdict import Limit, Side, format_number

NO_GUESS = "this score has no uninformed guess to compare with"


@dataclass(frozen=True, slots=True)
class RuleFigure:
    """A value and its limit.

    Args:
        figure: the value with its interval; None = there is none.
        limit: the limit of the rule.
        missing_reason: why there is no value.

    """

    figure: IntervalEstimate | None
    limit: Limit
    missing_reason: str = ""


def select_figure(rule: LeakRule, row: SummaryRow, earlier: RuleMatches | None) -> RuleFigure:
    """Select the value of a row that a rule limits.

    Args:
        rule: the rule.
        row: the row of the findings to judge.
        earlier: the earlier findings that the rule applies to; None = there are none.

    """
    if rule.no_better_than is not None:
        side: Side = "at most" if row.better == "higher" else "at least"
        return RuleFigure(row.value, Limit(side, rule.no_better_than))
    if rule.gain_at_most is not None:
        limit = Limit("at most", rule.gain_at_most, "gain ")
        return RuleFigure(row.gain, limit, NO_GUESS)
    assert rule.grows_at_most is not None, "a rule has one limit"
    limit = Limit("at most", rule.grows_at_most, "growth ")
    if earlier is None:
        return RuleFigure(
            None, limit, "no earlier findings to compare with: state them with --against"
        )
    before = earlier.counterpart(row)
    if before is None:
        return RuleFigure(None, limit, "new row: the earlier findings do not have it")
    if row.gain is None or before.gain is None:
        return RuleFigure(None, limit, NO_GUESS)
    return RuleFigure(interval_growth(row.gain, before.gain), limit)


def limit_text(rule: LeakRule) -> str:
    """Describe a rule's limit without the direction, which only a row determines."""
    if rule.no_better_than is not None:
        return f"no better than {format_number(rule.no_better_than)}"
    if rule.gain_at_most is not None:
        return f"gain at most {format_number(rule.gain_at_most)}"
    return f"growth at most {format_number(rule.grows_at_most or 0.0)}"


def interval_growth(now: IntervalEstimate, before: IntervalEstimate) -> IntervalEstimate:
    """Return the growth of a figure, with the range that both intervals together allow.

    This range is wider than a 95 % interval of the difference. That interval would depend on
    the correlation of the two audits, which may share data, seeds and initial weights. Its ends
    move outwards for many rows like those of the interval with the fewest degrees of freedom.
    """
    degrees = [one.degrees for one in (now, before) if one.degrees is not None]
    return IntervalEstimate(
        mean=_subtract(now.mean, before.mean),
        low=_subtract(now.low, before.high),
        high=_subtract(now.high, before.low),
        degrees=min(degrees, default=None),
    )


def _subtract(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
