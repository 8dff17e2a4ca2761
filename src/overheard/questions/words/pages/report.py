"""The report pages on the words that clients used."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from overheard.drawing.charts import legend_chart
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.drawing.pair_figures import CURVES_NOTE, MAX_ATTACKS, figure_title
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.score_tables import (
    ScoreCell,
    ScoreColumn,
    ScoreTable,
    guess_value,
    score_tables,
)
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, best_target_sentences
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.names import (
    make_printable,
    name_observers,
    name_targets,
    shorten_attack_names,
)
from overheard.findings.number_format import NO_NUMBER, format_number
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult
from overheard.questions.words.measures import MEASURES
from overheard.questions.words.statistics.other_clients import OTHER_CLIENTS

MOST_EXAMPLES = 5
"""Words that are given as examples."""


RARE, NAMED, ALL = "rare_word_precision", "rare_words_named", "word_precision"

OTHERS_HEADER = "Against other clients"

_NOTE = (
    "Every claim is also held against the words of the other clients of its run. What it gains "
    "there says nothing of its client: clients of one federation share some words."
)


def other_clients_value(cell: ScoreCell) -> str:
    """Return the score that claims have if held against other clients' words."""
    return cell.measure.format(cell.row.references.get(OTHER_CLIENTS))


TABLE = ScoreTable(
    "Words of clients",
    (
        ScoreColumn(RARE, MEASURES[RARE]),
        ScoreColumn(RARE, MEASURES[RARE], "Guessing", guess_value),
        ScoreColumn(RARE, MEASURES[RARE], OTHERS_HEADER, other_clients_value),
        ScoreColumn(NAMED, MEASURES[NAMED]),
        ScoreColumn(NAMED, MEASURES[NAMED], "Guessing", guess_value),
        ScoreColumn(ALL, MEASURES[ALL]),
        ScoreColumn(ALL, MEASURES[ALL], "Guessing", guess_value),
    ),
)


@final
@dataclass(frozen=True)
class WordsPages(QuestionPages):
    """Report pages on words: precision compared with guessing and with other clients."""

    name = "words"
    plain_question = "Which rare words a client wrote, such as names or illnesses"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State the average precision over rare words."""
        value = self.question.measure(row.score).format(row.value.mean)
        return Statement(
            f"which rare words are in {whose} texts",
            f"infers which rare words are in {whose} texts, with an average precision of "
            f"{value}",
            f"an average precision of {value}",
        )

    def intro(self) -> str:
        """Explain the reported score."""
        return (
            "For words: how well a list of rare words, the most suspected first, has the words "
            "of the client before all others; a perfect list has 100."
        )

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """State how many listed words are correct, with examples, and the best target."""
        attack_result = threat_result.attack_results[0]
        row = attack_result.headline_row
        return (
            *_named_sentences(threat_result),
            *_other_sentences(row),
            *best_target_sentences(threat_result, row, self.question.measure(row.score)),
            *example_sentences(threat_result),
        )

    def describe_claim(self, finding: Finding) -> str:
        """Name the first words of a claim."""
        return first_words(finding)

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Show the table of scores, and how far down the lists are correct."""
        tables = word_tables(arm_results)
        if not tables:
            return ()
        blocks = [SectionBlock(paragraphs=(_NOTE,), tables=tables)]
        figures = word_figures(arm_results)
        if figures:
            blocks.append(SectionBlock("By length of the list", figures=figures))
        return (Section("words", "Words of clients", "Words", tuple(blocks)),)

    def terms(self) -> tuple[Term, ...]:
        """Define the scores."""
        return (
            Term(
                "Average precision over rare words",
                "Rare words are all but the tenth of the vocabulary that public text uses "
                "most. A claim ranks them. The score is the mean, over the words that the "
                "client used, of the share of used words down to that rank (score "
                f"{RARE}). A list in random order has about the share of used words.",
            ),
        )


def word_tables(arm_results: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Return one table per group of observers."""
    return score_tables(arm_results, (TABLE,))


def _named_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    row = threat_result.attack_results[0].rows_by_score.get(NAMED)
    if row is None:
        return ()
    measure, observers = MEASURES[NAMED], name_observers(threat_result.observers)
    return (
        f"Of the first 100 rare words that {observers} can list for a client, or of as many "
        f"as the client used, {measure.format(row.value.mean)} are correct; "
        f"guessing: {measure.format(row.best_uninformed)}.",
    )


def _other_sentences(row: ScoreRow) -> tuple[str, ...]:
    if OTHER_CLIENTS not in row.references:
        return ()
    value = MEASURES[RARE].format(row.references[OTHER_CLIENTS])
    return (f"Held against the words of other clients, the same claims have {value}.",)


def example_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Return a sentence with the first words that are named correctly for one client.

    It is the client with most correct words among those listed. Words are only quoted if the
    claims of a threat reveal something.
    """
    findings = [
        finding
        for finding in threat_result.attack_results[0].findings
        if finding.claimed.candidates and sum(finding.true_numbers) > 0
    ]
    if threat_result.verdict != "leaks" or not findings:
        return ()
    best = max(findings, key=lambda finding: sum(finding.true_numbers))
    correct = [
        word
        for word, is_used in zip(best.claimed.candidates, best.true_numbers, strict=True)
        if is_used > 0
    ]
    return (
        f"For {name_targets(best.targets, threat_result.observers)}, {len(correct)} of the "
        f"{len(best.claimed.candidates)} words that the attack lists are used, such as "
        f"{_quote(correct[:MOST_EXAMPLES])}.",
    )


def first_words(finding: Finding) -> str:
    """Return the first words of a claim, in quotation marks; without any, a dash."""
    words = finding.claimed.candidates
    return _quote(words[:MOST_EXAMPLES]) if words else NO_NUMBER


def _quote(words: Iterable[str]) -> str:
    return ", ".join(f"“{make_printable(word)}”" for word in words)


REPORTED_LENGTHS = (1, 10, 30, 100)
"""Lengths of the list in the table."""

GUESSED = "rare_words_named"


def word_figures(arms: Sequence[ArmResult]) -> tuple[ReportFigure, ...]:
    """Draw a figure for each group of observers, arm by arm."""
    return tuple(
        _threat_figure(threat_result, attacks)
        for arm in arms
        for threat_result in arm.threat_results
        if (attacks := _attacks_with_lists(threat_result))
    )


def share_correct(result: AttackResult) -> Float[np.ndarray, " lengths"]:
    """Return the share of used words among the first 1, 2, ... listed ones, mean over claims.

    Claims that list fewer words than another are continued with their last share.
    """
    lists = [
        np.array(one.true_numbers)
        for one in result.findings
        if one.claimed.candidates and one.true_numbers
    ]
    longest = max((len(one) for one in lists), default=0)
    shares = [np.cumsum(one) / np.arange(1, len(one) + 1) for one in lists]
    padded = [np.pad(one, (0, longest - len(one)), mode="edge") for one in shares]
    means: Float[np.ndarray, " lengths"] = np.mean(padded, axis=0) if padded else np.zeros(0)
    return means


def _attacks_with_lists(threat_result: ThreatResult) -> list[AttackResult]:
    found = [one for one in threat_result.attack_results if len(share_correct(one))]
    return found[:MAX_ATTACKS]


def _threat_figure(
    threat_result: ThreatResult, attacks: Sequence[AttackResult]
) -> ReportFigure:
    where = figure_title(threat_result)
    names = shorten_attack_names([one.label for one in attacks])
    short = [names[one.label] for one in attacks]
    shares = [share_correct(one) for one in attacks]
    lines = [
        ChartLine(
            place, np.arange(1.0, len(one) + 1).tolist(), (100 * one).tolist(), short[place]
        )
        for place, one in enumerate(shares)
    ]
    longest = max(len(one) for one in shares)
    row = attacks[0].rows_by_score.get(GUESSED)
    guess = None if row is None else row.best_uninformed
    uninformed = (
        None
        if guess is None
        else ChartLine(0, (1.0, float(longest)), (100 * guess, 100 * guess))
    )
    chart = lines_chart(
        lines,
        uninformed,
        Axis("words listed", 1.0, max(2.0, float(longest))),
        Axis("used by the client, %", 0.0, 103.0),
        f"Used words among the first listed: {where}",
    )
    return ReportFigure(
        where,
        f"{CURVES_NOTE} Dashes: the best guess, among its first 100 rare words or as many as "
        "the client used.",
        legend_chart(short, guess is not None, f"Legend: {where}"),
        (Panel("Used words among the first rare words listed", chart),),
        _table(attacks, shares, where),
        True,
    )


def _table(
    attacks: Sequence[AttackResult], shares: Sequence[Float[np.ndarray, " lengths"]], where: str
) -> ReportTable:
    return ReportTable(
        f"Used words among the first listed, in %: {where}",
        ("Attack", *(f"First {length}" for length in REPORTED_LENGTHS)),
        tuple(
            (
                make_printable(attack.label),
                *(
                    format_number(100 * float(one[length - 1]))
                    if length <= len(one)
                    else NO_NUMBER
                    for length in REPORTED_LENGTHS
                ),
            )
            for attack, one in zip(attacks, shares, strict=True)
        ),
        1,
    )
