"""Judges an audit: its results by arm and threat, with the best attack first, and verdicts."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite

from overheard.auditing.summary import summarise
from overheard.core.failures import describe_internal_error
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, Finding, Refusal
from overheard.findings.lost_replies import doubt_by_lost_replies
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import (
    ArmResult,
    AttackResult,
    ThreatResult,
    attack_labels,
)
from overheard.findings.threat_verdict import TargetKind, ThreatVerdict
from overheard.plans.registries import questions
from overheard.statistics.estimate import Estimate, are_below, estimate_strongest
from overheard.statistics.judgement import VERDICT_LEVEL, judge
from overheard.statistics.permutation_test import RePairedFits, adjusted_p_values

BOOTSTRAP_SEED = Seed(0)
"""Seed of the bootstrap for intervals, and of random pairings."""


def with_verdicts(audit: Audit) -> Audit:
    """Return the audit with its results by arm, which follow from its findings and refusals."""
    return replace(audit, arm_results=_arm_results(audit))


def _arm_results(audit: Audit) -> tuple[ArmResult, ...]:
    """Return the audit's arms in its order, each with the results of every threat."""
    findings: dict[_Threat, list[Finding]] = defaultdict(list)
    refusals: dict[_Threat, list[Refusal]] = defaultdict(list)
    for finding in audit.findings:
        findings[_threat_of(finding)].append(finding)
    for refusal in audit.refusals:
        refusals[_threat_of(refusal)].append(refusal)
    threats = list(dict.fromkeys([*findings, *refusals]))
    runs = {
        name: [run for run in audit.arms if run.arm == name]
        for name in dict.fromkeys(threat.arm for threat in threats)
    }
    order = list(dict.fromkeys(map(_threat_key, threats)))  # the same in every arm
    threat_results = [
        _threat_result(
            threat,
            findings.get(threat, ()),
            refusals.get(threat, ()),
            partial(
                judge_attacks,
                about=threat.about,
                runs=runs[threat.arm],
                stated_margins=audit.margins,
                seed=BOOTSTRAP_SEED.child("pairings"),
            ),
            _doubt(audit, runs[threat.arm], threat.observers),
        )
        for threat in sorted(threats, key=lambda threat: order.index(_threat_key(threat)))
    ]
    return tuple(
        ArmResult(
            name,
            tuple(run for run in audit.arms if run.arm == name and not run.is_control),
            tuple(
                threat_result for threat_result in threat_results if threat_result.arm == name
            ),
        )
        for name in dict.fromkeys(run.arm for run in audit.arms)
    )


def _doubt(audit: Audit, runs: Sequence[ArmRun], observers: tuple[Party, ...]) -> str:
    """Return why the recording does not show that nothing leaks to these observers."""
    if audit.recording is None:
        return ""
    lost = [one for run in runs for one in run.lost_replies]
    return audit.recording.doubt(observers) or doubt_by_lost_replies(lost, observers)


@dataclass(frozen=True, slots=True)
class _Threat:
    arm: str
    observers: tuple[Party, ...]
    question: str
    about: TargetKind


def _threat_key(threat: _Threat) -> tuple[tuple[Party, ...], str, TargetKind]:
    return threat.observers, threat.question, threat.about


def _threat_of(found: Finding | Refusal) -> _Threat:
    cell = found.cell
    return _Threat(cell.arm, cell.observers, cell.question, found.target_kind)


def _threat_result(
    threat: _Threat,
    findings: Sequence[Finding],
    refusals: Sequence[Refusal],
    judge: Callable[[Sequence[AttackResult]], ThreatVerdict],
    doubt: str,
) -> ThreatResult:
    """Return the result of a threat.

    Args:
        threat: the threat.
        findings: its findings.
        refusals: its refusals.
        judge: judges the results of its attacks.
        doubt: why the recording does not show that nothing leaks; "" = it may.

    """
    rows, why_no_rows = _attempt_rows(findings, threat.question)
    cells = [*(one.cell for one in findings), *(one.cell for one in refusals)]
    labels = attack_labels(cells)
    attack_results = [
        _attack_result(
            attack,
            labels[attack],
            [row for row in rows if row.attack == attack],
            [finding for finding in findings if finding.cell.attack == attack],
            threat.question,
        )
        for attack in dict.fromkeys(row.attack for row in rows)
    ]
    # A shift question has no headline score unless a control was run.
    judged = sorted(
        (
            attack_result
            for attack_result in attack_results
            if attack_result.headline in attack_result.rows_by_score
        ),
        key=_sort_key,
    )
    unchecked = _unchecked_claims(findings)
    judgement = ThreatVerdict("unchecked" if unchecked else "unmeasured")
    if judged:
        judgement = _attempt_verdict(judge, judged, threat.question)
    failures = [why for one in refusals if one.kind == "failed" for why in one.missing]
    why_withheld = judgement.withheld or why_no_rows or _name_failures(failures) or doubt
    judgement = judgement.withhold(why_withheld)
    # What claims gain by labels alone makes no attack the best.
    judged.sort(key=lambda one: _sort_key(one, judgement.shared_gains.get(one.attack, 0.0)))
    return ThreatResult(
        threat.arm,
        threat.observers,
        threat.question,
        threat.about,
        tuple(judged),
        tuple(refusals),
        rows,
        judgement,
        unchecked,
        labels,
        tuple(dict.fromkeys(finding.cell.attack for finding in findings)),
    )


def _attempt_rows(
    findings: Sequence[Finding], question: str
) -> tuple[tuple[ScoreRow, ...], str]:
    """Return the summary rows and "", or none and why Overheard failed to make them."""
    try:
        return summarise(findings, BOOTSTRAP_SEED), ""
    except Exception as error:
        return (), describe_internal_error(f"the summary of {question}", error)


def _attempt_verdict(
    judge: Callable[[Sequence[AttackResult]], ThreatVerdict],
    judged: Sequence[AttackResult],
    question: str,
) -> ThreatVerdict:
    """Return the verdict; "not enough to judge" if Overheard fails to judge."""
    try:
        return judge(judged)
    except Exception as error:
        why = describe_internal_error(f"the test of {question}", error)
        return ThreatVerdict("not enough to judge", why=why, withheld=why)


def _name_failures(failures: Sequence[str]) -> str:
    """Return the first failure with the number of all; "" if there is none."""
    if not failures:
        return ""
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return f"{failures[0]}{more}"


def _unchecked_claims(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return each attack's unchecked claims over the most rounds."""
    unchecked = [finding for finding in findings if not finding.is_checked]
    longest = dict[str, tuple[int, ...]]()
    for finding in unchecked:
        attack, rounds = finding.cell.attack, finding.cell.rounds
        previous = longest.get(attack, ())
        longest[attack] = max(previous, rounds, key=lambda numbers: (len(numbers), numbers))
    return tuple(one for one in unchecked if one.cell.rounds == longest[one.cell.attack])


def _attack_result(
    attack: str,
    label: str,
    rows: Sequence[ScoreRow],
    findings: Sequence[Finding],
    question: str,
) -> AttackResult:
    headline = questions()[question].headline
    longest = max((row.rounds for row in rows), key=lambda rounds: (len(rounds), rounds))
    return AttackResult(
        attack,
        label,
        any(finding.cell.is_adaptive for finding in findings),
        headline,
        {row.score: row for row in rows if row.rounds == longest},
        {
            row.rounds[0]: row
            for row in sorted(rows, key=lambda row: row.rounds)
            if row.score == headline and len(row.rounds) == 1
        },
        tuple(finding for finding in findings if finding.cell.rounds == longest),
    )


def _sort_key(attack_result: AttackResult, shared_gain: float = 0.0) -> float:
    """Return a sort key: smaller is a stronger attack; undefined scores sort last."""
    mean = attack_result.headline_row.value.mean
    if not isfinite(mean):
        return inf
    return shared_gain + (mean if attack_result.headline_row.better == "lower" else -mean)


LEAST_SHARED = 1e-9
"""Smaller gains are rounding errors."""

NO_GUESS = "there is no guess to compare with"


def judge_attacks(
    attack_results: Sequence[AttackResult],
    about: TargetKind,
    runs: Sequence[ArmRun],
    stated_margins: Mapping[str, float],
    seed: Seed,
) -> ThreatVerdict:
    """Judge all attacks of one threat on one question in one arm.

    The test compares claims with their own targets, and with what might as well have been the
    truth: see `Question.re_paired_fits`. The gain is that over an uninformed guess, less what
    claims gain that tell no target from another. `statistics.permutation_test.judge` says what
    follows from both.

    Args:
        attack_results: one or more, the best first.
        about: what the targets are.
        runs: the runs of the arm, with controls.
        stated_margins: the margins that the plan states.
        seed: the seed of random pairings.

    """
    row = attack_results[0].headline_row
    question = questions()[row.question]
    margins = question.margins_for(about, stated_margins)
    findings = [finding for result in attack_results for finding in result.findings]
    fits = question.re_paired_fits(findings, runs, seed)
    gains = [_gain(result, row.score) for result in attack_results]
    known = [gain for gain in gains if gain is not None]
    if len(known) < len(gains):
        return ThreatVerdict("not enough to judge", margins=margins, why=NO_GUESS)
    common = fits.common_gains or (0.0,) * len(gains)
    own = [
        _less(_cut(gain, _largest_gain(result.rows_by_score[row.score])), shared)
        for result, gain, shared in zip(attack_results, known, common, strict=True)
    ]
    p_values = _p_values(fits, len(own))
    is_below = _are_all_below(attack_results, margins, {row.score: own})
    verdict = judge(
        p_values,
        [gain.mean for gain in own],
        smallest_p=fits.smallest_p_value,
        is_readable=_is_readable(row, margins.get(row.score)),
        is_below_margin=is_below,
    )
    leaks = verdict == "leaks"
    tried = [place for place, gain in enumerate(own) if gain.mean > 0 or not leaks]
    strongest = min(tried, key=p_values.__getitem__)
    has_test = not fits.why_none
    return ThreatVerdict(
        verdict,
        attack_results[strongest].attack if has_test else "",
        p_values[strongest] if has_test else None,
        fits.smallest_p_value if has_test else None,
        estimate_strongest(own),
        margins,
        is_below,
        _why_too_few(fits) if verdict == "not enough to judge" else "",
        {
            result.attack: shared
            for result, shared in zip(attack_results, common, strict=True)
            if abs(shared) > LEAST_SHARED
        },
    )


def _p_values(fits: RePairedFits, attacks: int) -> list[float]:
    if fits.why_none:
        return [1.0] * attacks
    p_values: list[float] = adjusted_p_values(fits.fits).tolist()
    return p_values


def _gain(result: AttackResult, score: str) -> Estimate | None:
    row = result.rows_by_score.get(score)
    return None if row is None else row.gain


def _less(gain: Estimate, shared: float) -> Estimate:
    low, high = (None if end is None else end - shared for end in (gain.low, gain.high))
    return replace(gain, mean=gain.mean - shared, low=low, high=high)


def _cut(gain: Estimate, most: float | None) -> Estimate:
    """Return the gain; its interval ends where a perfect claim does, as Student's may not."""
    if gain.high is None or most is None:
        return gain
    return replace(gain, high=max(gain.mean, min(gain.high, most)))


def _largest_gain(row: ScoreRow) -> float | None:
    """Return what a perfect claim would gain; scores end at 0 or at 1. None = no guess."""
    if row.best_uninformed is None:
        return None
    return abs((0.0 if row.better == "lower" else 1.0) - row.best_uninformed)


def _are_all_below(
    attack_results: Sequence[AttackResult],
    margins: Mapping[str, float],
    known: Mapping[str, Sequence[Estimate]],
) -> bool:
    """Return whether the gains of all attacks are below the margins, in every score with one.

    A score that was not measured is not below.
    """
    for score, margin in margins.items():
        gains: Sequence[Estimate | None] = known.get(score) or [
            _gain(result, score) for result in attack_results
        ]
        measured = [gain for gain in gains if gain is not None]
        if len(measured) < len(gains) or not are_below(measured, margin):
            return False
    return bool(margins)


def _is_readable(row: ScoreRow, margin: float | None) -> bool:
    """Return whether a perfect claim would gain the margin."""
    most = _largest_gain(row)
    return margin is None or most is None or most >= margin


def _why_too_few(fits: RePairedFits) -> str:
    return fits.why_none or (
        f"with so few targets and runs, no p-value can be below {fits.smallest_p_value:.2g}; "
        f"{VERDICT_LEVEL:g} is needed"
    )
