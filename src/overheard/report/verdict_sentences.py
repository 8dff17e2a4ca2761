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

RELATED = (
    "These claims are related to their targets, but a guess does as well or better. This is "
    "not called a leak, although a better attack could use it."
)
"""What a small p-value means where claims gain nothing."""


def badge(judgement: ThreatVerdict) -> str:
    """Return the verdict in a few words."""
    if judgement.verdict == "leaks" and judgement.is_below_margin:
        return "Leaks, below the margin"
    return BADGES[judgement.verdict]


def lead_phrase(judgement: ThreatVerdict, reading: Statement) -> str:
    """Return what the observers did or did not do, to follow their name."""
    best = f"the best attack is {reading.failure}"
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
            return f"cannot be judged on {reading.topic}: {judgement.why}; {best}"
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
    expected = format_number(count * VERDICT_LEVEL)
    return (
        f"{count} {'verdict rests' if count == 1 else 'verdicts rest'} on a test. If nothing "
        f"leaked anywhere, up to {expected} of them would say “leaks” by chance, on average "
        f"({VERDICT_LEVEL:g} each).",
    )


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
        f"Test of the claims against other targets: p = {format_number(judgement.p_value)} "
        f"({attack}{adjusted}). A leak needs {VERDICT_LEVEL:g} or less; the smallest possible "
        f"is {format_number(judgement.smallest_p_value)}.",
        *([RELATED] if judgement.is_related_without_gain else []),
    )


def _gain_sentences(
    judgement: ThreatVerdict, threat_result: ThreatResult, pages: QuestionPages
) -> tuple[str, ...]:
    gain = judgement.gain
    if gain is None:
        return ()
    headline = threat_result.attack_results[0].headline
    measure = pages.question.measure(headline)
    span = measure.format_gain_interval(gain)
    interval = "" if span == NO_NUMBER else f", 95{SPACE}% interval {span}"
    margin = margin_text(judgement, pages)
    beside = "" if margin == NO_NUMBER else f"; the margin is {margin}"
    title = f"{measure.title[:1].lower()}{measure.title[1:]}"
    return (
        f"Gain of the strongest attack over guessing ({title}): "
        f"{measure.format(gain.mean)}{interval}{beside}.",
    )
