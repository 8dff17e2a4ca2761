"""The results in the annex: verdict, effect, guess, gain with interval, margin and p-value."""

from collections import defaultdict
from collections.abc import Sequence
from math import inf

from overheard.drawing.sections import SectionBlock
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import IntervalEstimate, SummaryRow, VerdictRow
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, Measure, format_number
from overheard.plans.registries import question_of_findings, score_measure
from overheard.report.evidence.annex_epsilon import broken_claims_blocks
from overheard.report.evidence.annex_section import (
    AnnexSection,
    limited_table,
    observer_words,
    question_words,
    target_words,
)
from overheard.report.verdict_sentences import badge
from overheard.statistics.estimate import Estimate
from overheard.statistics.judgement import VERDICT_LEVEL

MAX_SENTENCES = 40
"""Most sentences on results; further results are in the table alone."""

WHAT_A_RESULT_IS = (
    "A result answers one question, for one group of observers, in one arm. An arm is one "
    "variant of the federation, with its own defenses. What was not asked and not tested is "
    "under “Tests”."
)

MAY_BE_NO_GAIN = (
    "Its size is unsure, because its interval contains 0: it is shown that the claims fit "
    "their own targets better than others, but not that the gain is above 0."
)

LABELS_KNOWN = (
    "Where members and non-members have different labels, labels alone tell something. The "
    "guess then knows the labels, and the gain is what the attack adds to them."
)

UNCHECKED = (
    "For some runs the ground truth is unknown: claims about them could not be checked, which "
    "does not show that nothing leaks."
)


def summary_section(findings: FindingsDocument) -> AnnexSection:
    """Return how many results say what, and by arm what leaks and how sure that is."""
    verdicts = findings.verdicts
    leaks = [one for one in verdicts if one.verdict == "leaks"]
    counted = [
        ("say that something leaks", leaks),
        (
            "show that a leak is below the margin, or that there is nothing to read",
            _with(verdicts, "no leak above margin", "nothing to read"),
        ),
        (
            "are open (inconclusive, or not enough to judge)",
            _with(verdicts, "inconclusive", "not enough to judge"),
        ),
        ("could not be measured, because no attack could run", _with(verdicts, "unmeasured")),
        (
            "could not be checked, because the ground truth is unknown",
            _with(verdicts, "unchecked"),
        ),
    ]
    numbers = "; ".join(f"{len(found)} {words}" for words, found in counted if found)
    first = (
        f"Of {len(verdicts)} results, {numbers}. {WHAT_A_RESULT_IS}"
        if verdicts
        else "The audit has no results."
    )
    by_arm = defaultdict[str, list[str]](list)
    for one in leaks[:MAX_SENTENCES]:
        by_arm[make_printable(one.arm)].append(_leak_sentences(findings, one))
    blocks = [
        SectionBlock(f"What leaks in the arm “{arm}”", tuple(found))
        for arm, found in by_arm.items()
    ]
    blocks += broken_claims_blocks(findings)
    return AnnexSection("In short", (SectionBlock("", (first,)), *blocks))


def results_section(findings: FindingsDocument) -> AnnexSection:
    """Return a table with a row for each verdict, and a sentence on each but the leaks."""
    verdicts = findings.verdicts
    rows = [_row(findings, verdict) for verdict in verdicts]
    table = limited_table(
        "Results",
        (
            "Arm and observers",
            "Question",
            "Verdict",
            "Best attack; guessing",
            "Gain over guessing (95 % interval)",
            "Margin; p-value",
        ),
        rows,
    )
    reading = (
        "Guessing never sees the run. The gain is how much better than guessing the best "
        "attack is; its 95 % interval allows for the choice of the attack. The margin is the "
        "smallest gain that matters. The p-value is the probability of claims that fit this "
        "well by chance. "
        f"“Leaks” needs a p-value of {VERDICT_LEVEL:g} or less and a gain above 0: where "
        f"nothing leaks, this happens with a probability of at most {VERDICT_LEVEL:g}.",
        *([LABELS_KNOWN] if any(one.shared_gains for one in verdicts) else []),
        *([] if all(run.has_truth for run in findings.arms) else [UNCHECKED]),
    )
    others = [one for one in verdicts if one.verdict != "leaks"]
    blocks = [SectionBlock("", reading, (table,))]
    if others:
        sentences = map(result_sentence, others[:MAX_SENTENCES])
        blocks.append(SectionBlock("Results other than leaks, in words", tuple(sentences)))
    return AnnexSection("Results", tuple(blocks))


def result_sentence(verdict: VerdictRow) -> str:
    """Return the verdict with the report's sentence."""
    sentence = make_printable(verdict.sentence)
    return f"Arm “{make_printable(verdict.arm)}”: {badge_of(verdict)}. {sentence}"


def _leak_sentences(findings: FindingsDocument, verdict: VerdictRow) -> str:
    """Return what leaks, the gain beside the margin, and whether the gain may be 0."""
    measure = score_measure(
        verdict.question, verdict.score or question_of_findings(verdict.question).headline
    )
    gain = _gain(measure, verdict.gain)
    sentence = make_printable(verdict.sentence)
    if gain == NO_NUMBER or verdict.gain is None:
        return sentence
    shared = _shared_gain(verdict, judged_row(findings, verdict))
    below = " This is below the margin." if verdict.is_below_margin else ""
    low = verdict.gain.low
    doubt = f" {MAY_BE_NO_GAIN}" if low is not None and low <= 0 else ""
    return f"{sentence} Gain over {_guessing(shared)}: {gain}.{below}{doubt}"


def _shared_gain(verdict: VerdictRow, row: SummaryRow | None) -> float:
    """Return what an attack gains although it tells no target from another."""
    return 0.0 if row is None else verdict.shared_gains.get(row.attack) or 0.0


def _guessing(shared_gain: float) -> str:
    return "guessing from labels alone" if shared_gain else "guessing"


def badge_of(verdict: VerdictRow) -> str:
    """Return the verdict in the words of the report."""
    return badge(
        verdict.verdict,
        is_below_margin=verdict.is_below_margin,
        least_gain=None if verdict.gain is None else verdict.gain.low,
    )


def judged_row(findings: FindingsDocument, verdict: VerdictRow) -> SummaryRow | None:
    """Return the row of the strongest attack in the judged score; None if there is none.

    The strongest attack has the largest gain, over the most rounds that it observed. What it
    gains without telling targets apart does not count.
    """
    score = _score_of(verdict)
    rows = [one for one in rows_of(findings, verdict) if one.score == score]
    most = max((len(one.rounds) for one in rows), default=0)
    return max(
        (one for one in rows if len(one.rounds) == most),
        key=lambda one: _gain_for_order(one) - _shared_gain(verdict, one),
        default=None,
    )


def rows_of(findings: FindingsDocument, verdict: VerdictRow) -> Sequence[SummaryRow]:
    """Return the summary rows of a verdict's arm, observers, question and kind of target."""
    place = (verdict.arm, frozenset(verdict.observers), verdict.question, verdict.about)
    return [
        one
        for one in findings.summary
        if (one.arm, frozenset(one.observers), one.question, one.about) == place
    ]


def _with(verdicts: Sequence[VerdictRow], *names: str) -> Sequence[VerdictRow]:
    return [one for one in verdicts if one.verdict in names]


def _score_of(verdict: VerdictRow) -> str:
    return verdict.score or question_of_findings(verdict.question).headline


def _gain_for_order(row: SummaryRow) -> float:
    return -inf if row.gain is None or row.gain.mean is None else row.gain.mean


def _row(findings: FindingsDocument, verdict: VerdictRow) -> tuple[str, ...]:
    score = _score_of(verdict)
    measure = score_measure(verdict.question, score)
    return (
        f"{make_printable(verdict.arm)}. {observer_words(verdict.observers)}",
        f"{question_words(verdict.question)}, about {_target(verdict)}",
        badge_of(verdict),
        _effect(measure, verdict, judged_row(findings, verdict)),
        _gain(measure, verdict.gain),
        _margin_and_p(verdict),
    )


def _target(verdict: VerdictRow) -> str:
    return target_words(verdict.about, verdict.observers)


def _effect(measure: Measure, verdict: VerdictRow, row: SummaryRow | None) -> str:
    if row is None:
        return NO_NUMBER
    shared, guess = _shared_gain(verdict, row), row.best_guess
    if guess is not None:
        guess += -shared if row.better == "lower" else shared
    return (
        f"{make_printable(measure.title)}: {measure.format(row.value.mean)}; "
        f"{_guessing(shared)}: {measure.format(guess)}"
    )


def _gain(measure: Measure, gain: IntervalEstimate | None) -> str:
    if gain is None or gain.mean is None:
        return NO_NUMBER
    interval = measure.format_gain_interval(Estimate(gain.mean, gain.low, gain.high))
    shown = measure.format(gain.mean)
    return shown if interval == NO_NUMBER else f"{shown} ({interval})"


def _margin_and_p(verdict: VerdictRow) -> str:
    measures = {score: score_measure(verdict.question, score) for score in verdict.margins}
    margins = " and ".join(
        measures[score].format(margin)
        + (f" ({make_printable(measures[score].title)})" if len(measures) > 1 else "")
        for score, margin in verdict.margins.items()
    )
    p = "" if verdict.p_value is None else f"p = {format_number(verdict.p_value)}"
    return "; ".join(filter(None, (f"margin {margins}" if margins else "", p))) or NO_NUMBER
