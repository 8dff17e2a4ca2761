"""A policy made of the findings of a reference run: no later run may be worse."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor, isinf
from pathlib import Path
from typing import final

import tomli_w
from pydantic import ValidationError

from overheard.core.errors import FindingsError
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import SummaryRow, VerdictRow
from overheard.findings.machine_formats import MAX_LENGTH
from overheard.findings.names import shorten
from overheard.findings.privacy.epsilon_rows import EpsilonRow
from overheard.gate.judged_threats import PASSING, UNTESTED
from overheard.gate.policy import (
    RECORDING_RULE,
    CostRule,
    EpsilonRule,
    LeakRule,
    Policy,
    PolicyRule,
    RecordingRule,
    VerdictRule,
)
from overheard.gate.rule_help import rule_kind
from overheard.gate.rule_matches import match_rule
from overheard.gate.verdict import format_estimate, format_number

ACCURACY_TOLERANCE = 0.02
"""How much accuracy may be lost, unless a tolerance is given."""

FEWEST_TESTED = 2
"""Fewest runs of an arm that limit its accuracy, in the reference and in a later run."""

DIGITS = 6
"""Digits of a limit after the point; limits are rounded outwards."""

NOTHING_TO_KEEP = (
    "nothing could be checked in this reference, so it makes no policy: put the ground truth "
    "(truth.json) beside its transcript and audit anew, or write rules in [[verdicts]] "
    "yourself and name their file with --policy"
)
"""What is wrong with a reference whose verdicts rest on no test."""

NAME_LENGTH = 90
"""Longest name of a rule before a number that makes it unique."""


@final
@dataclass(frozen=True, slots=True)
class ReferencePolicy:
    """A policy made of findings, with the reasons of its limits.

    Args:
        policy: the rules.
        origin: sentences on the findings and on what the policy asks for.
        reasons: the findings behind each rule, by the rule's name.
        warnings: sentences on rules that cannot fail, and on threats without a rule.

    """

    policy: Policy
    origin: tuple[str, ...]
    reasons: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def policy_like(
    reference: FindingsDocument, path: Path, tolerance: float | None = None
) -> ReferencePolicy:
    """Return a policy that the reference keeps, and that a clearly worse run breaks.

    Only a reference that lacks messages breaks it: see `RecordingRule`. The policy never turns
    that rule off, as clients could then hide from every later audit; a warning says so.

    A threat that does not leak in the reference must not leak. Attacks must gain no more than
    the best attack of the reference did, by the upper end of its 95 % interval and the
    tolerance. Guaranteed epsilons must not grow, and claims that hold must hold. Accuracy must
    not fall below the worst of several runs. A limit within an interval counts as kept, so that
    another seed alone hardly ever breaks one.

    Args:
        reference: the findings of the reference run.
        path: their file, for messages.
        tolerance: how much worse a score or an accuracy may be, in its own unit. None = the
            margin below which the reference itself reports no leak, and 0.02 of accuracy.

    Raises:
        FindingsError: if no verdict rests on a test, or if there is nothing to limit.

    """
    if reference.verdicts and all(row.verdict in UNTESTED for row in reference.verdicts):
        raise FindingsError(f"{path}: {NOTHING_TO_KEEP}")
    maker = _PolicyMaker(reference, tolerance)
    try:
        verdicts = tuple(maker.verdict_rules())
        leaks = tuple(maker.leak_rules())
        epsilons = tuple(maker.epsilon_rules())
        costs = tuple(maker.cost_rules())
        policy = Policy(verdicts=verdicts, leaks=leaks, epsilons=epsilons, costs=costs)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise FindingsError(
            f"{path}: these findings make no policy ({shorten(problem, 300)}): audit again"
        ) from error
    stated = (
        "the margins of its verdicts, and 0.02 of accuracy"
        if tolerance is None
        else f"{tolerance:g} in the unit of each score"
    )
    origin = (
        f"Made from {path.name}: {shorten(reference.title, NAME_LENGTH)}.",
        "Limits are the ends of the 95 % intervals of these findings, with a tolerance.",
        f"The tolerance is {stated}.",
        "A rule fails only if a run is clearly worse. Edit limits and names as you like.",
    )
    return ReferencePolicy(policy, origin, maker.reasons, tuple(maker.warnings()))


def reference_note(reference: FindingsDocument, now: FindingsDocument) -> str:
    """Return a sentence on a reference with another subject; "" for the same one."""
    if reference.subject == now.subject:
        return ""
    return (
        f"The reference describes another subject. Reference: {reference.subject}. "
        f"Now: {now.subject}."
    )


@final
class _PolicyMaker:
    """Makes rules of findings, and keeps the reason of each."""

    def __init__(self, reference: FindingsDocument, tolerance: float | None) -> None:
        self._reference = reference
        self._tolerance = tolerance
        self.reasons = dict[str, str]()
        self._unfailing = list[str]()

    def warnings(self) -> Iterator[str]:
        """Yield sentences on what the rules cannot tell; call it after the rules are made."""
        if self._unfailing:
            yield (
                f"{len(self._unfailing)} of the rules on gains cannot fail, as even a perfect "
                "attack keeps the limit. Set gain_at_most to what you accept, or make the "
                f"policy of an audit that leaks less: {'; '.join(self._unfailing)}."
            )
        lacking = sum(run.unrecorded for run in self._reference.arms)
        if lacking and self._reference.is_recorded:
            yield (
                f"The reference itself fails the rule {RECORDING_RULE}: {lacking} of its "
                "messages arrived and were not recorded. Record a reference that lacks none. "
                "To accept such messages in every later run, set recording_incomplete = false."
            )
        unchecked = [row for row in self._reference.verdicts if _is_unchecked(row)]
        if unchecked:
            names = "; ".join(map(_threat_name, unchecked))
            yield f"Without a rule, as the reference has no ground truth for it: {names}."

    def verdict_rules(self) -> Iterator[VerdictRule]:
        """Yield a rule for each threat that does not leak in the reference.

        A threat without ground truth has none: nobody knows whether it leaks.
        """
        for row in self._reference.verdicts:
            if row.verdict == "leaks" or _is_unchecked(row):
                continue
            yield VerdictRule(
                name=self._name(f"no leak: {_threat_name(row)}", f"verdict: {row.verdict}"),
                question=row.question,
                arms=(row.arm,),
                observers=row.observers,
                about=row.about,
                straddles=None if row.verdict in PASSING else "pass",
            )

    def leak_rules(self) -> Iterator[LeakRule]:
        """Yield a limit for each threat, on the score that its verdict judges."""
        for row in self._reference.verdicts:
            for score in (row.score,) if row.score else tuple(row.margins):
                rule = self._leak_rule(row, score)
                if rule is not None:
                    yield rule

    def _leak_rule(self, threat: VerdictRow, score: str) -> LeakRule | None:
        scope = LeakRule(
            name="scope",
            question=threat.question,
            score=score,
            arms=(threat.arm,),
            observers=threat.observers,
            about=threat.about,
            gain_at_most=0.0,
        )
        matches = match_rule(scope, self._reference)
        known = [row for row in matches.rows if _upper_gain(row) is not None]
        if not known:
            return None
        is_complete = len(known) == len(matches.rows)
        best = max(known, key=lambda row: (_upper_gain(row) or 0.0, _mean_gain(row)))
        tolerance = self._tolerance
        if tolerance is None:
            tolerance = threat.margins.get(score, 0.0)
        limit = max(0.0, (_upper_gain(best) or 0.0) + tolerance)
        attacks = tuple(dict.fromkeys(row.attack for row in known))
        gain = _gain_text(best)
        reason = f"gain {gain} by {best.attack}; tolerance {format_number(tolerance)}"
        most = max((row.largest_gain for row in known if row.largest_gain), default=None)
        if most is not None and limit >= most:
            limit = most
            reason += (
                f". This rule cannot fail: a perfect attack gains {format_number(most)}. "
                "Set gain_at_most to what you accept"
            )
        name = self._name(f"gain: {_threat_name(threat)}, {score}", reason)
        if limit == most:
            self._unfailing.append(name)
        return scope.model_copy(
            update={
                "name": name,
                "attacks": None if is_complete else attacks,
                "must_be_measured": attacks if is_complete else (),
                "gain_at_most": _rounded_up(limit),
                "may_be_refused": tuple(
                    dict.fromkeys(place.attack for place in matches.refusals)
                ),
                "straddles": "pass",
            }
        )

    def epsilon_rules(self) -> Iterator[EpsilonRule]:
        """Yield limits for each mechanism and observers with a guarantee or a claim."""
        groups: dict[tuple[str, str, tuple[str, ...]], list[EpsilonRow]] = {}
        for row in self._reference.epsilon:
            key = (row.arm, row.mechanism, tuple(sorted(row.observers)))
            groups.setdefault(key, []).append(row)
        for (arm, mechanism, observers), rows in groups.items():
            place = ", ".join((arm, mechanism, " and ".join(observers) or "models only"))
            guaranteed = [row.guaranteed_epsilon for row in rows]
            known = [value for value in guaranteed if value is not None and not isinf(value)]
            if len(known) == len(rows):
                reason = f"guaranteed epsilon {format_number(max(known))}"
                yield EpsilonRule(
                    name=self._name(f"guarantee: {place}", reason),
                    arms=(arm,),
                    observers=observers,
                    mechanisms=(mechanism,),
                    guaranteed_at_most=_rounded_up(max(known)),
                )
            if all(row.verdict == "holds" for row in rows):
                yield EpsilonRule(
                    name=self._name(f"claim: {place}", "no attack refutes the claim"),
                    arms=(arm,),
                    observers=observers,
                    mechanisms=(mechanism,),
                    claims_hold=True,
                )

    def cost_rules(self) -> Iterator[CostRule]:
        """Yield a limit on the accuracy of each arm that was tested in two or more runs.

        One run shows no variation: another seed alone could break its limit.
        """
        tolerance = ACCURACY_TOLERANCE if self._tolerance is None else self._tolerance
        by_arm: dict[str, list[float | None]] = {}
        for run in self._reference.arms:
            if not run.is_control:
                by_arm.setdefault(run.arm, []).append(run.last_accuracy)
        for arm, values in by_arm.items():
            known = [value for value in values if value is not None]
            if len(known) < max(len(values), FEWEST_TESTED):
                continue
            reason = f"accuracy {format_number(min(known))} in the worst run"
            yield CostRule(
                name=self._name(f"accuracy: {arm}", reason),
                arms=(arm,),
                accuracy_at_least=_rounded_down(max(0.0, min(known) - tolerance)),
                seeds_at_least=FEWEST_TESTED,
                straddles="pass",
            )

    def _name(self, wanted: str, reason: str) -> str:
        """Return a unique name of a rule, and keep the reason of its limit."""
        short = shorten(wanted, NAME_LENGTH)
        name, number = short, 1
        while name in self.reasons:
            number += 1
            name = f"{short} ({number})"
        self.reasons[name] = reason
        return name


def _threat_name(row: VerdictRow) -> str:
    return ", ".join((row.question, row.arm, " and ".join(row.observers), row.about))


def _is_unchecked(row: VerdictRow) -> bool:
    return row.verdict == "unchecked"


def _upper_gain(row: SummaryRow) -> float | None:
    """Return the upper end of the gain, at most what a perfect claim would gain."""
    if row.gain is None or row.gain.low is None or row.gain.high is None:
        return None
    most = row.largest_gain
    return row.gain.high if most is None else max(_mean_gain(row), min(row.gain.high, most))


def _mean_gain(row: SummaryRow) -> float:
    return 0.0 if row.gain is None or row.gain.mean is None else row.gain.mean


def _gain_text(row: SummaryRow) -> str:
    if row.gain is None:
        return ""
    return format_estimate(row.gain.model_copy(update={"high": _upper_gain(row)}))


def _rounded_up(value: float) -> float:
    # The division may move a rounded value to the wrong side.
    return max(value, ceil(value * 10.0**DIGITS) / 10.0**DIGITS)


def _rounded_down(value: float) -> float:
    return min(value, floor(value * 10.0**DIGITS) / 10.0**DIGITS)


def policy_text(made: ReferencePolicy) -> str:
    """Return the TOML of the policy; `read_policy` reads the same policy from it.

    The findings behind each limit are comments.
    """
    sentences = (*made.origin, *made.warnings)
    head = "".join(f"# {shorten(sentence, MAX_LENGTH)}\n" for sentence in sentences)
    rules = "".join(
        part
        for rule in made.policy.rules
        # The rule on recordings is no table, but a key of the policy.
        if not isinstance(rule, RecordingRule)
        for part in _rule(rule, made.reasons[rule.name])
    )
    is_whole = str(made.policy.recording_incomplete).lower()
    keys = f'straddles = "{made.policy.straddles}"\n{RECORDING_RULE} = {is_whole}\n'
    return f"{head}\n{keys}{rules}"


def _rule(rule: PolicyRule, reason: str) -> Iterator[str]:
    yield f"\n[[{rule_kind(rule)}]]\n"
    yield f"# Reference: {shorten(reason, MAX_LENGTH)}.\n"
    # Settings at their defaults are left out.
    yield tomli_w.dumps(rule.model_dump(exclude_defaults=True, mode="json"))
