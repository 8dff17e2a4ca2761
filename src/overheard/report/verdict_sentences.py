"""Words and sentences on the verdicts of a report."""

from collections.abc import Iterable, Sequence

from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sentences import Statement
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, SPACE, format_number
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.findings.threat_verdict import ThreatVerdict, Verdict
from overheard.statistics.judgement import VERDICT_LEVEL

BADGES: dict[Verdict, str] = {
    "leaks": "Leaks",
    "no leak above margin": "No leak above the margin",
    "inconclusive": "Inconclusive",
    "nothing to read": "Nothing to read",
    "not enough to judge": "Not enough to judge",
    "unchecked": "Claimed, not checked",
    "unmeasured": "Not measured",
}

ALMOST_EXACT = 0.9
"""The share of what guessing leaves open from which on an attack is called almost exact."""

RELATED = (
    "These claims are related to their targets, but a guess does as well or better. This is "
    "not called a leak, although a better attack could use it."
)
"""What a small p-value means where claims gain nothing."""


def badge(verdict: Verdict, *, is_below_margin: bool, least_gain: float | None) -> str:
    """Return the verdict in a few words.

    Args:
        verdict: the verdict.
        is_below_margin: whether the gains of all attacks are shown to be below the margins.
        least_gain: lower end of the interval of the gain over a guess; None = unknown.

    """
    if verdict != "leaks":
        return BADGES[verdict]
    if is_below_margin:
        return "Leaks, below the margin"
    return "Leaks" if is_size_settled(least_gain) else "Leaks, size unsure"


def is_size_settled(least_gain: float | None) -> bool:
    """Return whether a gain over a guess with this lower end is surely above 0."""
    return least_gain is not None and least_gain > 0


def badge_of(judgement: ThreatVerdict) -> str:
    """Return a judgement in a few words."""
    return badge(
        judgement.verdict,
        is_below_margin=judgement.is_below_margin,
        least_gain=judgement.least_gain,
    )


def open_to_learn(threat_result: ThreatResult) -> float | None:
    """Return what a perfect claim would gain over guessing, in the unit of the main score.

    None if no attack was scored, there is no guess, or it leaves nothing open.
    """
    if not threat_result.attack_results:
        return None
    row = threat_result.attack_results[0].headline_row
    if row.best_uninformed is None:
        return None
    guess = row.best_uninformed
    left = (guess if row.better == "lower" else 1.0 - guess) - threat_result.shared_gain
    return left if left > 0 else None


def learned_share(threat_result: ThreatResult) -> float | None:
    """Return how much of what guessing leaves open the strongest attack learns, at most 1.

    None if there is no guess, or if it leaves nothing open.
    """
    gain, left = threat_result.judgement.gain, open_to_learn(threat_result)
    return None if gain is None or left is None else min(1.0, gain.mean / left)


def is_almost_exact(threat_result: ThreatResult) -> bool:
    """Return whether an attack is nearly right, but too few results rule out chance."""
    judgement, share = threat_result.judgement, learned_share(threat_result)
    is_open = judgement.verdict == "inconclusive" and judgement.p_value is not None
    return is_open and share is not None and share >= ALMOST_EXACT


def chance_words(threat_result: ThreatResult) -> str:
    """Return why an almost exact claim is no leak: "5 clients cannot rule out chance"."""
    judgement, row = threat_result.judgement, threat_result.attack_results[0].headline_row
    count, unit = row.targets, "client"
    if threat_result.target_kind == "cohort":
        count, unit = row.seeds, "run"
    plural = "" if count == 1 else "s"
    return (
        f"{count} {unit}{plural} cannot rule out chance (p = "
        f"{format_number(judgement.p_value)}, needed {VERDICT_LEVEL:g})"
    )


def lead_phrase(threat_result: ThreatResult, reading: Statement) -> str:
    """Return what the observers did or did not do, to follow their name."""
    judgement, best = threat_result.judgement, f"the best attack is {reading.failure}"
    if is_almost_exact(threat_result):
        return (
            f"reads {reading.topic} almost exactly, but {chance_words(threat_result)}; {best}"
        )
    match judgement.verdict:
        case "leaks":
            return reading.success
        case "no leak above margin":
            return f"gains less than the margin over guessing {reading.topic}: {best}"
        case "nothing to read":
            return (
                f"could gain no more than the margin over guessing {reading.topic}, even by a "
                f"perfect claim: {best}"
            )
        case "not enough to judge":
            why = make_printable(judgement.why)
            return f"cannot be judged on {reading.topic}: {why}; {best}"
        case _:
            return (
                f"was shown neither to learn {reading.topic} nor to gain less than the margin: "
                f"{best}"
            )


def evidence_sentences(threat_result: ThreatResult, pages: QuestionPages) -> tuple[str, ...]:
    """Return what the verdict rests on: the test, and the gain beside the margin."""
    judgement = threat_result.judgement
    return (
        *_p_value_sentences(threat_result),
        *_gain_sentences(judgement, threat_result, pages),
    )


def margin_text(judgement: ThreatVerdict, pages: QuestionPages) -> str:
    """Return the margins in the units of their scores; a dash if there are none."""
    return (
        " and ".join(
            pages.question.measure(score).format(margin)
            for score, margin in judgement.margins.items()
        )
        or NO_NUMBER
    )


def false_leak_sentences(arm_results: Sequence[ArmResult]) -> tuple[str, ...]:
    """Return how many verdicts rest on a test, and how many are expected to be wrong."""
    count = sum(judgement.is_tested for judgement in _judgements(arm_results))
    if not count:
        return ()
    expected = count * VERDICT_LEVEL
    often = (
        f"about {format_number(expected)} of them"
        if expected >= 1
        else f"one of them in {1 / expected:.0f} such audits"
    )
    return (
        f"{count} {'verdict rests' if count == 1 else 'verdicts rest'} on a test. If nothing "
        f"leaked anywhere, {often} would say “leaks” by chance: each does so in at most "
        f"{1000 * VERDICT_LEVEL:.0f} of 1,000 audits.",
    )


def guess_words(threat_result: ThreatResult, pages: QuestionPages) -> str:
    """Return what guessing achieves beside the best attack; "" if there is no guess.

    If the members among candidate records have other labels than non-members, then labels alone
    gain something, and tell nobody from anybody. The guess is then one that knows the labels.
    """
    row, shared = threat_result.attack_results[0].headline_row, threat_result.shared_gain
    if row.best_uninformed is None:
        return ""
    sign = -1 if row.better == "lower" else 1
    value = pages.question.measure(row.score).format(row.best_uninformed + sign * shared)
    what = "guessing from labels alone" if shared else "guessing"
    return f"{what}: {pages.guess_statement(value)}"


def _judgements(arm_results: Sequence[ArmResult]) -> Iterable[ThreatVerdict]:
    return (
        threat_result.judgement for arm in arm_results for threat_result in arm.threat_results
    )


def _p_value_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    judgement, count = threat_result.judgement, len(threat_result.attack_results)
    if not judgement.is_tested or judgement.p_value is None:
        return ()
    attack = make_printable(threat_result.labels[judgement.attack])
    adjusted = "" if count == 1 else f", adjusted for {count} attacks"
    return (
        f"Test of the claims against what might as well be true: p = "
        f"{format_number(judgement.p_value)} ({attack}{adjusted}). A leak needs "
        f"{VERDICT_LEVEL:g} or less; the smallest possible is "
        f"{format_number(judgement.smallest_p_value)}.",
        *([RELATED] if judgement.is_related_without_gain else []),
    )


def _gain_sentences(
    judgement: ThreatVerdict, threat_result: ThreatResult, pages: QuestionPages
) -> tuple[str, ...]:
    gain = judgement.gain
    if gain is None:
        return ()
    guess = "guessing from labels alone" if threat_result.shared_gain else "guessing"
    headline = threat_result.attack_results[0].headline
    measure = pages.question.measure(headline)
    span = measure.format_gain_interval(gain)
    interval = "" if span == NO_NUMBER else f", 95{SPACE}% interval {span}"
    margin = margin_text(judgement, pages)
    beside = "" if margin == NO_NUMBER else f"; the margin is {margin}"
    title = f"{measure.title[:1].lower()}{measure.title[1:]}"
    return (
        f"Gain of the strongest attack over {guess} ({title}): "
        f"{measure.format(gain.mean)}{interval}{beside}.",
    )
