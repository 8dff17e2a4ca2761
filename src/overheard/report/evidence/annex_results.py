"""The results in the annex: verdict, effect, guess, gain with interval, margin and p-value."""

from collections.abc import Sequence
from math import inf

from overheard.drawing.sections import SectionBlock
from overheard.findings.document_reader import FindingsDocument
from overheard.findings.document_rows import IntervalEstimate, SummaryRow, VerdictRow
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, Measure, format_number
from overheard.plans.registries import questions
from overheard.report.evidence.annex_section import (
    AnnexSection,
    limited_table,
    observer_words,
    question_words,
    score_measure,
    target_words,
)
from overheard.report.verdict_sentences import badge
from overheard.statistics.estimate import Estimate
from overheard.statistics.judgement import VERDICT_LEVEL

MAX_SENTENCES = 40
"""Most sentences on results; further results are in the table alone."""

UNCHECKED = (
    "For some runs the ground truth is unknown: claims about them could not be checked, which "
    "does not show that nothing leaks."
)


def summary_section(findings: FindingsDocument) -> AnnexSection:
    """Return how many results say what, and a sentence on each leak."""
    verdicts = findings.verdicts or ()
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
        ("could not be measured or checked", _with(verdicts, "unmeasured", "unchecked")),
    ]
    numbers = "; ".join(f"{len(found)} {words}" for words, found in counted if found)
    first = (
        f"Of {len(verdicts)} results, {numbers}. A result is one question by one group of "
        "observers in one arm."
        if verdicts
        else "The findings contain no verdicts: they are of an earlier version. Audit again."
    )
    sentences = [result_sentence(one) for one in leaks[:MAX_SENTENCES]]
    return AnnexSection("In short", (SectionBlock("", (first, *sentences)),))


def results_section(findings: FindingsDocument) -> AnnexSection:
    """Return a table with a row for each verdict, and a sentence on each."""
    verdicts = findings.verdicts or ()
    rows = [_row(verdict, judged_row(findings, verdict)) for verdict in verdicts]
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
        "An arm is one variant of the federation, with its own defenses. Guessing never sees "
        "the run. The gain is how much better than guessing the best attack is; its 95 % "
        "interval allows for the choice of the attack. The margin is the smallest gain that "
        "matters. The p-value is the probability of claims that fit this well by chance. "
        f"“Leaks” needs a p-value of {VERDICT_LEVEL:g} or less and a gain above 0: where "
        f"nothing leaks, this happens with a probability of at most {VERDICT_LEVEL:g}.",
        *([] if all(run.has_truth for run in findings.arms) else [UNCHECKED]),
    )
    sentences = tuple(result_sentence(one) for one in verdicts[:MAX_SENTENCES])
    blocks = [SectionBlock("", reading, (table,))]
    if sentences:
        blocks.append(SectionBlock("In words", sentences))
    return AnnexSection("Results", tuple(blocks))


def result_sentence(verdict: VerdictRow) -> str:
    """Return the verdict with the report's sentence, or with its place and reason."""
    text = make_printable(verdict.sentence)
    if not text:
        text = (
            f"{observer_words(verdict.observers)}, about {_target(verdict)}: "
            f"{question_words(verdict.question)}."
        )
        if verdict.why:
            text += f" Reason: {make_printable(verdict.why)}."
    return f"Arm “{make_printable(verdict.arm)}”: {badge_of(verdict)}. {text}"


def badge_of(verdict: VerdictRow) -> str:
    """Return the verdict in the words of the report."""
    return badge(
        verdict.verdict,
        is_below_margin=verdict.is_below_margin,
        least_gain=None if verdict.gain is None else verdict.gain.low,
    )


def judged_row(findings: FindingsDocument, verdict: VerdictRow) -> SummaryRow | None:
    """Return the row of the strongest attack in the judged score; None if there is none.

    The strongest attack has the largest gain, over the most rounds that it observed.
    """
    score = verdict.score or _headline(verdict.question)
    rows = [one for one in rows_of(findings, verdict) if one.score == score]
    most = max((len(one.rounds) for one in rows), default=0)
    return max(
        (one for one in rows if len(one.rounds) == most), key=_gain_for_order, default=None
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


def _headline(question: str) -> str:
    known = questions().get(question)
    return "" if known is None else known.scorer.headline


def _gain_for_order(row: SummaryRow) -> float:
    return -inf if row.gain is None or row.gain.mean is None else row.gain.mean


def _row(verdict: VerdictRow, row: SummaryRow | None) -> tuple[str, ...]:
    score = verdict.score or _headline(verdict.question)
    measure = score_measure(verdict.question, score)
    return (
        f"{make_printable(verdict.arm)}. {observer_words(verdict.observers)}",
        f"{question_words(verdict.question)}, about {_target(verdict)}",
        badge_of(verdict),
        _effect(measure, row),
        _gain(measure, verdict.gain),
        _margin_and_p(verdict),
    )


def _target(verdict: VerdictRow) -> str:
    return target_words(verdict.about, verdict.observers)


def _effect(measure: Measure, row: SummaryRow | None) -> str:
    if row is None:
        return NO_NUMBER
    value, guess = measure.format(row.value.mean), measure.format(row.best_guess)
    return f"{make_printable(measure.title)}: {value}; guessing: {guess}"


def _gain(measure: Measure, gain: IntervalEstimate | None) -> str:
    if gain is None or gain.mean is None:
        return NO_NUMBER
    interval = measure.format_gain_interval(Estimate(gain.mean, gain.low, gain.high))
    shown = measure.format(gain.mean)
    return shown if interval == NO_NUMBER else f"{shown} ({interval})"


def _margin_and_p(verdict: VerdictRow) -> str:
    margins = "; ".join(
        score_measure(verdict.question, score).format(margin)
        for score, margin in verdict.margins.items()
    )
    p = "" if verdict.p_value is None else f"p = {format_number(verdict.p_value)}"
    return "; ".join(filter(None, (f"margin {margins}" if margins else "", p))) or NO_NUMBER
