"""Checks the verdicts of the findings against rules, adjusted for their number."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import VerdictRow
from overheard.gate.policy import VerdictRule
from overheard.gate.rule_matches import applies_to, describe_missing
from overheard.gate.verdict import OverlapStatus, RuleVerdict, Status, format_number
from overheard.statistics.judgement import VERDICT_LEVEL, holm_adjusted

LIMIT = "no leak"

PASSING = ("no leak above margin", "nothing to read")
"""The verdicts that keep a rule."""

UNTESTED: Mapping[str, Status] = MappingProxyType(
    {"unchecked": "inconclusive", "unmeasured": "excused"}
)
"""The verdicts without a test, and their status where `straddles` is "pass": none passes."""


def threat_verdicts(
    rules: Sequence[VerdictRule], now: FindingsDocument, on_overlap: OverlapStatus
) -> tuple[RuleVerdict, ...]:
    """Return one verdict for each verdict of the findings that a rule covers.

    P-values are adjusted for the number of tests that all rules cover together (Holm 1979). A
    verdict of a test that is not "leaks" counts as p = 1, as claims that gain nothing over a
    guess may have a small p-value.

    Args:
        rules: the rules.
        now: the findings to judge.
        on_overlap: the status of verdicts that neither pass nor fail, unless a rule says
            otherwise.

    """
    covered = {
        number: row
        for number, row in enumerate(now.verdicts)
        if any(_covers(rule, row) for rule in rules)
    }
    tested = {
        number: row.p_value if row.verdict == "leaks" else 1.0
        for number, row in covered.items()
        if row.p_value is not None
    }
    adjusted = dict(zip(tested, holm_adjusted(list(tested.values())), strict=True))
    return tuple(
        verdict
        for rule in rules
        for verdict in _judge(rule, now, covered, adjusted, rule.straddles or on_overlap)
    )


def _judge(
    rule: VerdictRule,
    now: FindingsDocument,
    covered: Mapping[int, VerdictRow],
    adjusted: Mapping[int, float],
    on_overlap: OverlapStatus,
) -> Iterator[RuleVerdict]:
    found = {number: row for number, row in covered.items() if _covers(rule, row)}
    for number, row in found.items():
        status, why = _status(row, adjusted.get(number), len(adjusted), on_overlap)
        yield RuleVerdict(
            *(rule.name, row.question, _place(row), status, LIMIT, row.gain, why),
            arm=row.arm,
            observers=row.observers,
            attack=row.attack,
        )
    arms_with_verdicts = {row.arm for row in found.values()}
    for arm in rule.arms or now.arm_names or ("every arm",):
        if arm not in arms_with_verdicts:
            why = (
                describe_missing("verdict", "questions", [r.question for r in covered.values()])
                if arm in now.arm_names
                else describe_missing("arm", "arms", now.arm_names)
            )
            score = rule.question or "every question"
            yield RuleVerdict(rule.name, score, arm, "inconclusive", LIMIT, None, why, arm=arm)


def _status(
    row: VerdictRow, adjusted: float | None, tests: int, on_overlap: OverlapStatus
) -> tuple[Status, str]:
    if row.withheld and not (row.verdict == "leaks" and (adjusted or 0.0) <= VERDICT_LEVEL):
        return "inconclusive", f"{row.verdict}: {row.withheld}"
    if row.verdict in PASSING:
        return "pass", row.verdict
    if row.verdict != "leaks" or adjusted is None:
        status = UNTESTED.get(row.verdict, "pass") if on_overlap == "pass" else on_overlap
        return status, row.verdict + (f": {row.why}" if row.why else "")
    among = f"p = {format_number(adjusted)} among {tests} test{'' if tests == 1 else 's'}"
    if adjusted <= VERDICT_LEVEL:
        return "fail", f"leaks: {among}"
    return on_overlap, f"leaks by itself; {among}"


def _covers(rule: VerdictRule, row: VerdictRow) -> bool:
    return (
        applies_to(rule, row.arm, row.observers)
        and rule.question in (None, row.question)
        and rule.about in (None, row.about)
    )


def _place(row: VerdictRow) -> str:
    return "; ".join((row.arm, " and ".join(row.observers), f"about {row.about}"))
