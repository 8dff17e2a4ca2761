"""Checks the costs of arms against a rule, by the range over the runs of each arm."""

from collections.abc import Sequence
from dataclasses import replace

from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import IntervalEstimate, RunRow
from overheard.gate.policy import CostRule
from overheard.gate.verdict import Limit, OverlapStatus, RuleVerdict, judge_interval


def cost_verdicts(
    rule: CostRule, now: FindingsDocument, on_overlap: OverlapStatus
) -> tuple[RuleVerdict, ...]:
    """Return one verdict per arm that the rule applies to; at least one.

    The value is the mean over an arm's runs, and its interval is the range over these runs. It
    says nothing of other runs.

    Args:
        rule: the rule.
        now: the findings to judge.
        on_overlap: the status if some runs keep the limit and some do not.

    """
    planned = [run for run in now.arms if not run.is_control]
    arms = rule.arms or tuple(dict.fromkeys(run.arm for run in planned)) or ("no arm",)
    return tuple(
        _verdict(rule, arm, [run for run in planned if run.arm == arm], on_overlap)
        for arm in arms
    )


def _verdict(
    rule: CostRule, arm: str, runs: Sequence[RunRow], on_overlap: OverlapStatus
) -> RuleVerdict:
    score, limit = _limit(rule)
    values = [_cost(rule, run) for run in runs]
    known = [value for value in values if value is not None]
    inconclusive = RuleVerdict(rule.name, score, arm, "inconclusive", limit.text, arm=arm)
    if not runs:
        return replace(inconclusive, why="no such arm was run")
    if rule.accuracy_at_least is not None and runs[0].utility != "accuracy":
        return replace(inconclusive, why=f"the runs measured {runs[0].utility}, not accuracy")
    if len(known) < len(runs):
        missing = len(runs) - len(known)
        return replace(inconclusive, why=f"not measured in {missing} of {len(runs)} runs")
    figure = IntervalEstimate(mean=sum(known) / len(known), low=min(known), high=max(known))
    if len(known) < rule.seeds_at_least:
        few = f"too few runs: {len(known)}, the rule requires {rule.seeds_at_least}"
        return replace(inconclusive, figure=figure, why=few)
    status, why = judge_interval(figure, limit, on_overlap)
    return replace(inconclusive, status=status, figure=figure, why=why)


def _limit(rule: CostRule) -> tuple[str, Limit]:
    if rule.accuracy_at_least is not None:
        return "accuracy", Limit("at least", rule.accuracy_at_least)
    if rule.bytes_at_most is not None:
        return "bytes", Limit("at most", rule.bytes_at_most)
    assert rule.seconds_at_most is not None, "a rule has one limit"
    return "seconds", Limit("at most", rule.seconds_at_most)


def _cost(rule: CostRule, run: RunRow) -> float | None:
    if rule.accuracy_at_least is not None:
        return run.last_accuracy
    if rule.bytes_at_most is not None:
        return None if run.bytes is None else float(run.bytes.up + run.bytes.down)
    return None if run.seconds is None else run.seconds.wall
