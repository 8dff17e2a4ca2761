"""Which figure of a row a rule holds against which limit."""

from dataclasses import dataclass

from overheard.findings.document_rows import Bounds, SummaryRow
from overheard.gate.asked import RuleMatches
from overheard.gate.policy import LeakRule
from overheard.gate.verdict import Limit, Side, number


@dataclass(frozen=True, slots=True)
class HeldFigure:
    """A figure and the limit that it is held against.

    Args:
        figure: with its interval; None = there is none to hold.
        limit: to keep.
        lacking: why there is no figure, where there is none.

    """

    figure: Bounds | None
    limit: Limit
    lacking: str = ""


def held(rule: LeakRule, row: SummaryRow, earlier: RuleMatches | None) -> HeldFigure:
    """What this rule looks at in this row.

    Args:
        rule: what is asked.
        row: of the findings that are judged.
        earlier: what the rule asks for, of the findings before; None = there are none.

    """
    if rule.no_better_than is not None:
        side: Side = "at most" if row.better == "higher" else "at least"
        return HeldFigure(row.value, Limit(side, rule.no_better_than))
    if rule.gain_at_most is not None:
        limit = Limit("at most", rule.gain_at_most, "gain ")
        return HeldFigure(row.gain, limit, "no blind guess stands beside this score")
    assert rule.grows_at_most is not None, "a rule has one limit"
    limit = Limit("at most", rule.grows_at_most, "growth ")
    if earlier is None:
        return HeldFigure(
            None, limit, "nothing to look back at: give earlier findings by --against"
        )
    before = earlier.counterpart(row)
    if before is None:
        return HeldFigure(None, limit, "is new: the earlier findings have no such row")
    if row.gain is None or before.gain is None:
        return HeldFigure(None, limit, "no blind guess stands beside this score")
    return HeldFigure(_growth(row.gain, before.gain), limit)


def asked_of(rule: LeakRule) -> str:
    """The limit as a rule gives it, before a row says which way is better."""
    if rule.no_better_than is not None:
        return f"no better than {number(rule.no_better_than)}"
    if rule.gain_at_most is not None:
        return f"gain at most {number(rule.gain_at_most)}"
    return f"growth at most {number(rule.grows_at_most or 0.0)}"


def _growth(now: Bounds, before: Bounds) -> Bounds:
    """How much the gain grew, from the least to the most that both intervals together allow.

    Wider than a 95 % interval of the difference, which would have to know how far the two
    audits hang together: they may share data, seeds and first weights, or nothing at all.
    """
    return Bounds(
        mean=_less(now.mean, before.mean),
        low=_less(now.low, before.high),
        high=_less(now.high, before.low),
    )


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
