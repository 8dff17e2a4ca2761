"""Judges whether the claims of a threat have anything to do with their targets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from overheard.core.seeds import Seed
from overheard.findings.finding import ArmRun
from overheard.findings.re_paired_fits import RePairedFits
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import AttackResult
from overheard.findings.threat_verdict import TargetKind, ThreatVerdict
from overheard.plans.registries import questions
from overheard.statistics.estimate import Estimate
from overheard.statistics.judgement import VERDICT_LEVEL, judge
from overheard.statistics.max_t import adjusted_p_values
from overheard.statistics.selection import are_below, estimate_strongest

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
    claims gain that tell no target from another. `statistics.judgement.judge` says what follows
    from both.

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
    if row.blind is None:
        return None
    return abs((0.0 if row.better == "lower" else 1.0) - row.blind)


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
