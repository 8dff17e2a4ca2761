"""What each kind of rule asks for, and what to do if it does not pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, final

from overheard.gate.epsilons import epsilon_limit_text
from overheard.gate.policy import (
    CostRule,
    EpsilonRule,
    LeakRule,
    PolicyRule,
    RecordingRule,
    SumRule,
    VerdictRule,
)
from overheard.gate.rule_figure import limit_text
from overheard.gate.sums import sum_limit
from overheard.gate.verdict import format_number

RuleKind = Literal["verdicts", "leaks", "epsilons", "costs", "sums", "recordings"]
"""The table of a policy that a rule stands in; the rule on recordings needs no table."""


@final
@dataclass(frozen=True, slots=True)
class RuleHelp:
    """An explanation of a kind of rule.

    Args:
        asks: what such a rule asks for, in one sentence.
        remedy: what to do if it does not pass.

    """

    asks: str
    remedy: str


HELP: Mapping[RuleKind, RuleHelp] = {
    "verdicts": RuleHelp(
        "The verdicts of the audit must not be that something leaks.",
        "If it fails, an attack does significantly better than a guess: open report.html at "
        "this arm and question, and choose a stronger defense. If it is inconclusive, audit "
        "more clients or seeds; a recording is one run, so record one with more clients or "
        "rounds. If it is unchecked, add the ground truth (truth.json).",
    ),
    "leaks": RuleHelp(
        "No attack may do better than the limit, judged by its whole 95 % interval.",
        "If it fails, compare the arms in report.html and choose a stronger defense. If it is "
        "inconclusive, the interval contains the limit or nothing was measured: audit more "
        "clients or seeds, or state what may be refused. A recording is one run, so record one "
        "with more clients or rounds.",
    ),
    "epsilons": RuleHelp(
        "The claimed and the proven epsilon of a mechanism must keep the limit.",
        "If it fails, mend the settings of the mechanism or the claim: the reason names the "
        "flaw. If it is inconclusive, add membership attacks or canaries to the plan.",
    ),
    "costs": RuleHelp(
        "Accuracy, bytes or seconds of an arm must keep the limit in every run.",
        "If it fails, the defense costs too much: change its settings. If it is inconclusive, "
        "audit more seeds.",
    ),
    "sums": RuleHelp(
        "Sums of secure aggregation must not separate single clients or small groups.",
        "If it fails, let the same clients always take part together, or run fewer rounds. If "
        "it is inconclusive, the limit lies between what is proven and what was found, or the "
        "arm has no sums.",
    ),
    "recordings": RuleHelp(
        "Every message that arrived in a recorded run must be in the recording.",
        "If it fails, a reply arrived that could not be recorded, so no attack was tried on "
        "it. `overheard show RECORDING` lists each with its reason. Mend the cause and record "
        "again, or accept it with an exception for the rule recording_incomplete.",
    ),
}


def rule_kind(rule: PolicyRule) -> RuleKind:
    """Return the table of a policy that the rule stands in."""
    match rule:
        case VerdictRule():
            return "verdicts"
        case LeakRule():
            return "leaks"
        case EpsilonRule():
            return "epsilons"
        case CostRule():
            return "costs"
        case SumRule():
            return "sums"
        case RecordingRule():
            return "recordings"


def describe_rule(rule: PolicyRule) -> str:
    """Return what a rule limits, such as "membership: membership_auc no better than 0.6"."""
    match rule:
        case VerdictRule():
            what = f"{rule.question or 'every question'}: no leak"
        case LeakRule():
            what = f"{rule.question}: {rule.score} {limit_text(rule)}"
        case EpsilonRule():
            what = f"epsilon: {epsilon_limit_text(rule)}"
        case CostRule():
            what = _describe_cost(rule)
        case SumRule():
            score, limit = sum_limit(rule)
            what = f"sums: {score} {limit.text}"
        case RecordingRule():
            return "recordings: every message that arrived is recorded"
    arms = f", in {'; '.join(rule.arms)}" if rule.arms else ""
    observers = () if isinstance(rule, CostRule | SumRule) else rule.observers or ()
    by = f", by {' and '.join(observers)}" if observers else ""
    return f"{what}{arms}{by}"


def _describe_cost(rule: CostRule) -> str:
    if rule.accuracy_at_least is not None:
        return f"accuracy at least {format_number(rule.accuracy_at_least)}"
    if rule.bytes_at_most is not None:
        return f"bytes at most {format_number(rule.bytes_at_most)}"
    return f"seconds at most {format_number(rule.seconds_at_most or 0.0)}"
