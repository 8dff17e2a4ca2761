"""The verdicts of a policy on findings; it loads nothing that an audit needs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import final

from overheard.core.errors import PlanError
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import IntervalEstimate, RunRow
from overheard.findings.html import html_table
from overheard.gate.epsilons import epsilon_verdicts
from overheard.gate.judged_threats import threat_verdicts
from overheard.gate.leaks import leak_verdicts
from overheard.gate.policy import RECORDING_RULE, CostRule, Policy, PolicyException
from overheard.gate.sums import sum_verdicts
from overheard.gate.verdict import (
    Acceptance,
    Limit,
    OverlapStatus,
    RuleVerdict,
    Status,
    judge_interval,
    overall_status,
)
from overheard.statistics.estimate import FEWEST_RUNS

STATUS_ORDER: tuple[Status, ...] = ("fail", "inconclusive", "excepted", "excused", "pass")
"""All statuses, from the worst to the best."""

NOTHING_CHECKED = (
    "Nothing could be checked: the recording has no ground truth (truth.json), so no rule on "
    "leaks can pass or fail. Add it, as docs/transcript-format.md says, and audit anew."
)
"""What a check says of an audit without ground truth."""


@final
@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdicts of a policy on an audit.

    Args:
        title: the title of the audit.
        verdicts: the verdicts of all rules, in the order of the policy.
        notes: caveats on the verdicts.

    """

    title: str
    verdicts: tuple[RuleVerdict, ...]
    notes: tuple[str, ...]

    @property
    def status(self) -> Status:
        """Fail, inconclusive or pass: see `overall_status`."""
        return overall_status(self.verdicts)

    @property
    def summary(self) -> str:
        """The overall status and counts, such as "fail: 1 fail, 3 pass"."""
        statuses = [verdict.status for verdict in self.verdicts]
        counts = [f"{statuses.count(one)} {one}" for one in STATUS_ORDER if one in statuses]
        return f"{self.status}: {', '.join(counts)}"

    def _repr_html_(self) -> str:
        rows = [
            (one.status, one.rule, one.subject, one.score, one.figure_text, one.limit, one.why)
            for one in self.verdicts
        ]
        headers = (
            *("status", "rule", "subject", "score"),
            *("value (95 % interval)", "limit", "reason"),
        )
        return html_table(f"{self.title}: {self.summary}", headers, rows, " ".join(self.notes))


def judge_findings(
    policy: Policy, now: FindingsDocument, before: FindingsDocument | None, today: date
) -> CheckResult:
    """Return the verdicts of a policy; see `gate.check.check`."""
    if before is not None and not policy.needs_earlier_findings:
        raise PlanError(
            "earlier findings are given, but no rule uses them: set grows_at_most in a rule "
            "of [[leaks]], or remove --against"
        )
    on_threats = threat_verdicts(policy.verdicts, now, policy.straddles)
    leaks = (
        leak_verdicts(rule, now, before, rule.straddles or policy.straddles)
        for rule in policy.leaks
    )
    epsilons = (epsilon_verdicts(rule, now) for rule in policy.epsilons)
    costs = (
        cost_verdicts(rule, now, rule.straddles or policy.straddles) for rule in policy.costs
    )
    sums = (sum_verdicts(rule, now) for rule in policy.sums)
    recordings = recording_verdicts(now) if policy.recording_incomplete else ()
    groups = (on_threats, *leaks, *epsilons, *costs, *sums, recordings)
    verdicts = (verdict for group in groups for verdict in group)
    judged = apply_exceptions(verdicts, policy.exceptions, today)
    return CheckResult(now.title, judged.verdicts, (*_notes(now, before), *judged.notes))


def _notes(now: FindingsDocument, before: FindingsDocument | None) -> tuple[str, ...]:
    notes = []
    planned = [run for run in now.arms if not run.is_control]
    if planned and not any(run.has_truth for run in planned):
        notes.append(NOTHING_CHECKED)
    if any(row.value.basis == "these runs" or row.seeds == 1 for row in now.summary):
        notes.append(
            f"Intervals from fewer than {FEWEST_RUNS} runs cover the clients of these runs, "
            "not other runs."
        )
    if before is not None and before.subject != now.subject:
        notes.append(
            f"The earlier findings describe another subject. Earlier: {before.subject}. "
            f"Now: {now.subject}."
        )
    return tuple(notes)


def recording_verdicts(now: FindingsDocument) -> tuple[RuleVerdict, ...]:
    """Return one verdict per recorded arm: it fails if a message that arrived is not recorded.

    Findings of simulated runs have none, as a simulation records all that is sent.
    """
    return tuple(
        RuleVerdict(
            RECORDING_RULE,
            "unrecorded messages",
            run.arm,
            "fail" if run.unrecorded else "pass",
            "0 unrecorded messages",
            None,
            _describe_unrecorded(run),
            arm=run.arm,
        )
        for run in now.arms
        if now.is_recorded and not run.is_control
    )


def _describe_unrecorded(run: RunRow) -> str:
    """Return how many messages are not recorded, whose, and why; "" if all are."""
    if not run.unrecorded:
        return ""
    lost = [one for one in run.lost_replies if one.is_unrecorded]
    parties = list(dict.fromkeys(one.party for one in lost))
    more = f" and {len(parties) - 3} more" if len(parties) > 3 else ""
    by = f" of {', '.join(parties[:3])}{more}: {lost[0].reason}" if lost else ""
    return f"{run.unrecorded} arrived and not recorded{by}"


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


SOON = 30
"""Days before the end of an exception from which on a note tells of it."""

SCORE = "exception"
"""The score of the verdict on an expired exception."""


@final
@dataclass(frozen=True, slots=True)
class ExceptedVerdicts:
    """Verdicts after exceptions were applied.

    Args:
        verdicts: the verdicts, with one more for each expired exception.
        notes: exceptions that expire soon, and exceptions that nothing needs.

    """

    verdicts: tuple[RuleVerdict, ...]
    notes: tuple[str, ...]


def apply_exceptions(
    verdicts: Iterable[RuleVerdict], exceptions: Sequence[PolicyException], today: date
) -> ExceptedVerdicts:
    """Apply exceptions to the verdicts that do not pass.

    An exception holds through its last day. After that it changes no verdict and fails.

    Args:
        verdicts: the verdicts of all rules.
        exceptions: the exceptions of the policy; of several that match, the first one counts.
        today: the day of the check.

    """
    valid = [one for one in exceptions if one.expires >= today]
    used = set[int]()
    judged = []
    for verdict in verdicts:
        matching = [number for number, one in enumerate(valid) if _covers(one, verdict)]
        if verdict.status in ("fail", "inconclusive") and matching:
            used.update(matching)
            judged.append(_accept(verdict, valid[matching[0]]))
        else:
            judged.append(verdict)
    expired = (
        _expired(number, one) for number, one in enumerate(exceptions, 1) if one.expires < today
    )
    notes = [
        note
        for number, one in enumerate(valid)
        for note in _notes_on(one, (one.expires - today).days, is_used=number in used)
    ]
    return ExceptedVerdicts((*judged, *expired), tuple(notes))


def _covers(exception: PolicyException, verdict: RuleVerdict) -> bool:
    observers = None if verdict.observers is None else set(verdict.observers)
    return (
        exception.rule == verdict.rule
        and (exception.arms is None or verdict.arm in exception.arms)
        and (exception.observers is None or observers == set(exception.observers))
        and (exception.attacks is None or verdict.attack in exception.attacks)
    )


def _accept(verdict: RuleVerdict, exception: PolicyException) -> RuleVerdict:
    accepted = f"{verdict.status}, accepted until {exception.expires}: {exception.reason}"
    return replace(
        verdict,
        status="excepted",
        why=f"{accepted}; {verdict.why}" if verdict.why else accepted,
        acceptance=Acceptance(verdict.status, exception.reason, exception.expires),
    )


def _expired(number: int, exception: PolicyException) -> RuleVerdict:
    why = (
        f"the exception has expired: renew it or remove it; its reason was: {exception.reason}"
    )
    limit = f"until {exception.expires}"
    return RuleVerdict(exception.rule, SCORE, f"exception {number}", "fail", limit, None, why)


def _notes_on(exception: PolicyException, days: int, *, is_used: bool) -> Iterable[str]:
    name = f"The exception for “{exception.rule}” until {exception.expires}"
    if not is_used:
        yield f"{name} is not needed: remove it."
    elif days <= SOON:
        left = "today" if days == 0 else f"in {days} day{'' if days == 1 else 's'}"
        yield f"{name} expires {left}."
