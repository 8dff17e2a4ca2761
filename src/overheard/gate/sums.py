"""The verdicts of a rule on what the sums of secure aggregation reveal."""

from collections.abc import Sequence
from dataclasses import replace

from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import IntervalEstimate, SumsRow
from overheard.gate.policy import SumRule
from overheard.gate.verdict import Limit, RuleVerdict

NO_SUMS = (
    "the server reads no sums over cohorts here, or one of them names no client, or they "
    "were too many to judge: name the arms with secure aggregation in `arms`"
)


def sum_verdicts(rule: SumRule, now: FindingsDocument) -> tuple[RuleVerdict, ...]:
    """Return one verdict per arm that the rule applies to; at least one.

    The value of a resolution is that of the client that sums reveal most of, as the mean over
    the runs of an arm, with the range over these runs. The value of a smallest group is its
    lower bound in the run where that is smallest, and its range ends at the smallest group that
    was found in any run.
    """
    runs = [run for run in now.arms if not run.is_control]
    with_sums = [run.arm for run in runs if run.sums is not None]
    arms = rule.arms or tuple(dict.fromkeys(with_sums)) or ("no arm",)
    return tuple(
        _verdict(rule, arm, [run.sums for run in runs if run.arm == arm]) for arm in arms
    )


def _verdict(rule: SumRule, arm: str, runs: Sequence[SumsRow | None]) -> RuleVerdict:
    known = [run for run in runs if run is not None]
    score, limit = sum_limit(rule)
    verdict = RuleVerdict(rule.name, score, arm, "inconclusive", limit.text, arm=arm)
    if not known or len(known) < len(runs):
        return replace(verdict, why=NO_SUMS)
    if limit.side == "at most":
        values = [run.largest_resolution for run in known]
        mean = sum(values) / len(values)
        figure = IntervalEstimate(mean=mean, low=min(values), high=max(values))
        is_kept = max(values) <= limit.value
        return replace(verdict, status="pass" if is_kept else "fail", figure=figure)
    low = min(run.group_at_least for run in known)
    high = min(run.group_at_most for run in known)
    verdict = replace(verdict, figure=IntervalEstimate(mean=low, low=low, high=high))
    if low >= limit.value:
        return replace(verdict, status="pass")
    if high < limit.value:
        return replace(verdict, status="fail", why=f"a weighted sum of {high} clients follows")
    return replace(
        verdict, why=f"no smaller group than {low} can be separated, and {high} can for certain"
    )


def sum_limit(rule: SumRule) -> tuple[str, Limit]:
    """Return the limited quantity of a rule, and its limit."""
    if rule.resolution_at_most is not None:
        return "resolution", Limit("at most", rule.resolution_at_most)
    assert rule.smallest_group_at_least is not None, "a rule has one limit"
    return "smallest group", Limit("at least", rule.smallest_group_at_least)
