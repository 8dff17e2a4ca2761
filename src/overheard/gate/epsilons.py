"""Checks claimed and measured values of epsilon against a rule."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import final

from overheard.core.mechanism import MEANINGLESS_EPSILON, UNITS
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import IntervalEstimate
from overheard.findings.privacy.epsilon_rows import EpsilonRow, EpsilonVerdict
from overheard.gate.policy import EpsilonRule
from overheard.gate.rule_matches import applies_to, describe_missing
from overheard.gate.verdict import Limit, RuleVerdict, Status, format_number

SCORE = "epsilon"

STATUSES: dict[EpsilonVerdict, Status] = {
    "holds": "pass",
    "violated": "fail",
    "contradicted": "inconclusive",
    "estimate": "inconclusive",
    "false": "fail",
    "not confirmed": "inconclusive",
    "flawed": "fail",
    "outside guarantee": "fail",
    "not tested": "inconclusive",
    "refused": "inconclusive",
    "not exchangeable": "inconclusive",
    "unchecked": "inconclusive",
    "unaccounted": "inconclusive",
}
"""The status of each verdict of the findings under a `claims_hold` rule."""

REASONS: dict[EpsilonVerdict, str] = {
    "holds": "",
    "violated": "attacks prove a larger epsilon than is claimed",
    "contradicted": "attacks prove a larger epsilon than is claimed, if records are "
    "independent: use canaries",
    "estimate": "attacks on canaries find a larger epsilon than is claimed, but how they are "
    "counted was changed after the canaries were drawn: use the plan that drew them",
    "false": "the claimed epsilon is below the smallest one that can be true for its settings",
    "not confirmed": "the claimed epsilon is below an upper bound of that of its settings, and "
    "may be true",
    "flawed": "the mechanism guarantees nothing to any observer",
    "outside guarantee": "the mechanism guarantees nothing to these observers, who read "
    "updates "
    "before noise is added",
    "not tested": "no membership attack by these observers: add data.candidates and such "
    "attacks",
    "refused": "no membership attack by these observers could run",
    "not exchangeable": "members and non-members may not be exchangeable: use canaries",
    "unchecked": "the ground truth on membership is unknown",
    "unaccounted": "no upper bound of epsilon is known",
}

UNMEASURED = (
    "no membership attack by these observers ran, or members and non-members are not "
    "exchangeable"
)
"""Why nothing is proven if the verdict concerns only the claim."""


def epsilon_verdicts(rule: EpsilonRule, now: FindingsDocument) -> tuple[RuleVerdict, ...]:
    """Return one verdict per mechanism and observers that the rule applies to; at least one.

    A rule that names no arm applies to arms with a mechanism, since every audit has an arm
    without defenses. Other arms are excused; if all are, the rule is inconclusive.

    A named arm without a mechanism never passes. It fails a rule on guarantees, since it has
    none: a pipeline that tolerates inconclusive rules must notice a removed defense. Under
    other rules it is inconclusive, since nothing was claimed.
    """
    judge = _EpsilonJudge(rule, _critical_faults(now))
    rows = [
        row
        for row in dict.fromkeys(now.epsilon)
        if _applies_to(rule, row.arm, row.observers)
        and (rule.mechanisms is None or row.mechanism in rule.mechanisms)
    ]
    return (*map(judge.judge_row, rows), *judge.missing_rows(now))


def _critical_faults(now: FindingsDocument) -> Mapping[str, str]:
    """Return, by arm, which critical faults the doctor found."""
    found = defaultdict[str, dict[str, None]](dict)
    for one in now.doctor:
        if one.severity == "critical":
            found[one.arm][f"{one.title} ({one.id})"] = None
    return {arm: "; ".join(titles) for arm, titles in found.items()}


def epsilon_limit_text(rule: EpsilonRule) -> str:
    """Describe a rule's limit, such as "guaranteed at most 8"."""
    if rule.guaranteed_at_most is not None:
        return Limit("at most", rule.guaranteed_at_most, "guaranteed ").text
    if rule.proven_at_most is not None:
        return Limit("at most", rule.proven_at_most, "proven ").text
    return "claims hold"


def _applies_to(rule: EpsilonRule, arm: str, observers: tuple[str, ...]) -> bool:
    """Return whether the rule applies to this arm and these observers.

    Readers of the global models only must be named explicitly: no attack of theirs is ever
    measured, and their epsilon never exceeds that of the server, which has its own row.
    """
    is_included = rule.observers is not None or len(observers) > 0
    return is_included and applies_to(rule, arm, observers)


_ObserverGroups = dict[str, list[tuple[str, ...]]]
"""The groups of observers with a row in the findings of an arm, by mechanism."""


@final
@dataclass(frozen=True, slots=True)
class _EpsilonJudge:
    """Judges the findings by one rule."""

    rule: EpsilonRule
    faults: Mapping[str, str]
    """By arm, the critical faults that the doctor found."""

    def judge_row(self, row: EpsilonRow) -> RuleVerdict:
        """Judge one mechanism with respect to some observers."""
        verdict = replace(
            self._inconclusive(
                "; ".join((row.arm, row.mechanism, _observer_names(row.observers)))
            ),
            arm=row.arm,
            observers=row.observers,
        )
        if self.rule.guaranteed_at_most is not None:
            return _judge_guarantee(verdict, row, self.rule.guaranteed_at_most)
        if self.rule.proven_at_most is not None:
            return _judge_proof(verdict, row, self.rule.proven_at_most)
        if found := self.faults.get(row.arm):
            return replace(verdict, status="fail", why=f"critical faults: {found}")
        return _judge_claim(verdict, row)

    def missing_rows(self, now: FindingsDocument) -> Iterable[RuleVerdict]:
        """Yield verdicts on arms, mechanisms and observers that the findings lack."""
        by_arm = defaultdict[str, _ObserverGroups](_ObserverGroups)
        for row in now.epsilon:
            by_arm[row.arm].setdefault(row.mechanism, []).append(row.observers)
        arms = dict.fromkeys(now.arm_names)
        for arm in self.rule.arms or arms:
            if arm not in arms:
                yield self._missing(arm, arm, describe_missing("arm", "arms", arms))
            else:
                yield from self._missing_in(arm, by_arm.get(arm, {}))
        if self.rule.arms is None:
            mechanisms = dict.fromkeys(row.mechanism for row in now.epsilon)
            for wanted in self.rule.mechanisms or (() if mechanisms else ("every arm",)):
                if wanted not in mechanisms:
                    yield self._inconclusive(
                        wanted, describe_missing("mechanism", "mechanisms", mechanisms)
                    )

    def _missing_in(self, arm: str, by_mechanism: _ObserverGroups) -> Iterable[RuleVerdict]:
        wanted = self.rule.mechanisms or tuple(by_mechanism)
        is_named = self.rule.arms is not None
        if not by_mechanism or not (is_named or by_mechanism.keys() & set(wanted)):
            yield self._no_mechanism(arm)
            return
        for mechanism in wanted:
            groups = by_mechanism.get(mechanism, [])
            if not groups and is_named:
                why = describe_missing("mechanism", "mechanisms of this arm", by_mechanism)
                yield self._missing(arm, f"{arm}; {mechanism}", why)
            elif groups and not any(_applies_to(self.rule, arm, group) for group in groups):
                why = describe_missing(
                    "observers", "observers of this mechanism", map(_observer_names, groups)
                )
                yield self._missing(arm, f"{arm}; {mechanism}", why)

    def _no_mechanism(self, arm: str) -> RuleVerdict:
        if self.rule.arms is None:
            verdict = self._missing(
                arm, arm, "the arm has no such mechanism, and the rule names no arm"
            )
            return replace(verdict, status="excused")
        if self.rule.guaranteed_at_most is not None:
            why = "nothing is guaranteed: the arm has no mechanism"
            return replace(self._missing(arm, arm, why), status="fail")
        why = "the arm has no mechanism, so there is no claim to check"
        return self._missing(arm, arm, why)

    def _missing(self, arm: str, what: str, why: str) -> RuleVerdict:
        return replace(self._inconclusive(what, why), arm=arm)

    def _inconclusive(self, what: str, why: str = "") -> RuleVerdict:
        return RuleVerdict(
            self.rule.name,
            SCORE,
            what,
            "inconclusive",
            epsilon_limit_text(self.rule),
            None,
            why,
        )


def _judge_guarantee(verdict: RuleVerdict, row: EpsilonRow, limit: float) -> RuleVerdict:
    figure = row.guaranteed_epsilon
    if figure is None:
        return replace(verdict, why=_reason(row))
    if isinf(figure):
        is_broken = STATUSES[row.verdict] == "fail"
        why = _reason(row) if is_broken else "its settings give no finite epsilon"
        return replace(verdict, status="fail", why=f"nothing is guaranteed: {why}")
    about = f"for {UNITS[row.unit]}, at delta {row.delta:g}{_of_rounds(row)}"
    return replace(
        verdict, status=_status(figure, limit), figure=_exact_bounds(figure), why=about
    )


def _judge_proof(verdict: RuleVerdict, row: EpsilonRow, limit: float) -> RuleVerdict:
    if row.measured is None:
        is_told = row.verdict in {"not tested", "refused", "not exchangeable", "unchecked"}
        return replace(verdict, why=REASONS[row.verdict] if is_told else UNMEASURED)
    figure = row.measured.at_least
    by = f"by {row.measured.attack}"
    return replace(verdict, status=_status(figure, limit), figure=_exact_bounds(figure), why=by)


def _judge_claim(verdict: RuleVerdict, row: EpsilonRow) -> RuleVerdict:
    figure = None if row.measured is None else _exact_bounds(row.measured.at_least)
    why = _reason(row)
    if row.verdict == "holds":
        is_hollow = row.ceiling is None or row.ceiling > MEANINGLESS_EPSILON
        most = "infinity" if row.ceiling is None else format_number(row.ceiling)
        hollow = ", which is too large to protect" if is_hollow else ""
        why = f"compared with {most}{hollow}{_of_rounds(row)}"
    return replace(verdict, status=STATUSES[row.verdict], figure=figure, why=why)


def _reason(row: EpsilonRow) -> str:
    """Return why a row does not hold, with the flaw of the mechanism or what is in doubt."""
    why = f"{REASONS[row.verdict]}: {row.reason}" if row.reason else REASONS[row.verdict]
    return why if row.rounds_text in why else f"{why}{_of_rounds(row)}"


def _of_rounds(row: EpsilonRow) -> str:
    return f"; {row.rounds_text}" if row.rounds_text else ""


def _status(figure: float, limit: float) -> Status:
    return "pass" if figure <= limit else "fail"


def _exact_bounds(figure: float) -> IntervalEstimate:
    return IntervalEstimate(mean=figure, low=None, high=None)


def _observer_names(observers: Sequence[str]) -> str:
    return " and ".join(observers) or "readers of the global models only"
