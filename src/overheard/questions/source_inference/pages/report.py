"""The report's text and table on which client holds a record."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.score_tables import (
    ScoreCell,
    ScoreColumn,
    ScoreTable,
    guess_value,
    score_tables,
)
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, bracketed_interval
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.number_format import SPACE, format_number, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult
from overheard.questions.source_inference.measures import MEASURES
from overheard.questions.source_inference.scorer import BY_LABEL, BY_SIZE, UNIFORM

ACCURACY, TOP3, LOG_LOSS = "source_accuracy", "source_top3", "source_log_loss"
CALIBRATION, NOBODY = "source_calibration_error", "nobody_error"

PSEUDONYM = "anon/"
"""The beginning of a name that a sender has for one round."""

SECTION = "question-source_inference"
"""The anchor of the section."""


@final
@dataclass(frozen=True)
class SourceInferencePages(QuestionPages):
    """How often the client that holds a record is named, beside guesses and other rules."""

    name = "source_inference"
    plain_question = "Which client, such as a hospital, holds a given record"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State the share of records with the right client."""
        value = self.question.measure(row.score).format(row.value.mean)
        what = "which client holds a record"
        right = f"right for {value} of records"
        return Statement(what, f"infers {what}, {right}", right)

    def intro(self) -> str:
        """Explain the share of records."""
        return (
            "For clients that hold records: of the records that one of the clients holds, the "
            "share for which the attack names this client."
        )

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe the guesses, the probabilities, and what pseudonyms leave."""
        attack_result = threat_result.attack_results[0]
        return (
            *_guess_sentences(attack_result),
            *_probability_sentences(attack_result),
            *_pseudonym_sentences(attack_result),
        )

    def describe_claim(self, finding: Finding) -> str:
        """State how many records are claimed to be of some client."""
        width = len(finding.targets) + 1
        nobody = finding.claimed.numbers[width - 1 :: width]
        held = sum(probability < 0.5 for probability in nobody)
        return f"{held} of {len(nobody)} records claimed to be of one of the clients"

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Return a table of all scores, beside what each guess reaches."""
        tables = score_tables(arm_results, (_TABLE,))
        if not tables:
            return ()
        title = "Which client holds a record"
        return (Section(SECTION, title, title, (SectionBlock("", _NOTES, tables),)),)

    def terms(self) -> tuple[Term, ...]:
        """Explain the main score and its guesses."""
        return (
            Term(
                MEASURES[ACCURACY].title,
                "The share of the records that a client holds for which the attack gives this "
                f"client the highest probability (score {ACCURACY}). Clients that share the "
                "highest one count in part.",
            ),
            Term(
                "Label frequency",
                "A guess that knows how many examples of each label each client holds, and "
                "names the client with the most examples of the record's label. Where clients "
                "differ in their labels, it is right far more often than a random client, and "
                "recognises no record.",
            ),
            Term(
                MEASURES[CALIBRATION].title,
                "The mean difference between the highest probability that an attack gives and "
                "how often it is right, over ten groups of records with similar probabilities. "
                "With few records it is above 0 by chance.",
            ),
        )


_NOTES = (
    "Records of no client are among those asked about, but not in the share that is right. "
    "The guesses: any client is as likely as another; the largest client, by the number of "
    "examples that its updates state; label frequency, by the true number of examples of the "
    "record's label. The last one uses the truth, and an attack need not beat it.",
)


def _guess_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    row = attack_result.headline_row
    guesses = {**row.uninformed, **row.references}
    words = {
        UNIFORM: "naming any client",
        BY_SIZE: "naming the client that states the most examples",
        BY_LABEL: "naming the client with the most examples of the record's label",
    }
    beside = [
        f"{words[name]}, {format_percent(value)}"
        for name, value in guesses.items()
        if name in words
    ]
    top3 = attack_result.rows_by_score.get(TOP3)
    among = (
        ""
        if top3 is None
        else f" The right client is among the first three for {format_percent(top3.value.mean)}"
        f"{bracketed_interval(top3, MEASURES[TOP3])} (guessing: "
        f"{format_percent(top3.best_uninformed)})."
    )
    return (
        f"The right client is named for {format_percent(row.value.mean)} of the records of the "
        f"clients{bracketed_interval(row, MEASURES[ACCURACY])}. Guesses beside it: "
        f"{'; '.join(beside)}.{among}",
    )


def _probability_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    rows = attack_result.rows_by_score
    nobody = rows.get(NOBODY)
    outside = (
        ""
        if nobody is None
        else " The squared error of the probability that no client holds a record is "
        f"{format_number(nobody.value.mean)} (even odds: "
        f"{format_number(nobody.best_uninformed)})."
    )
    return (
        "The highest probability of a record and how often it is right differ by "
        f"{format_percent(rows[CALIBRATION].value.mean)} on average; the log loss is "
        f"{format_number(rows[LOG_LOSS].value.mean)} (any client: "
        f"{format_number(rows[LOG_LOSS].uninformed.get(UNIFORM))}).{outside}",
    )


def _pseudonym_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    """Say what is named if senders have a new name in each round."""
    targets = [party for one in attack_result.findings for party in one.targets]
    if not any(party.startswith(PSEUDONYM) for party in targets):
        return ()
    return (
        "Senders have a new name in each round, so the attack names an update and not a "
        "client: it tells which records one and the same client holds. Who that client is "
        "takes something else, such as a single record whose holder is known.",
    )


def _named(guess: str) -> Callable[[ScoreCell], str]:
    """Return the text of a cell with what a guess reaches."""

    def text(cell: ScoreCell) -> str:
        values = {**cell.row.uninformed, **cell.row.references}
        return cell.measure.format(values.get(guess))

    return text


def _column(
    score: str, header: str = "", cell: Callable[[ScoreCell], str] | None = None
) -> ScoreColumn:
    if cell is None:
        return ScoreColumn(score, MEASURES[score], header)
    return ScoreColumn(score, MEASURES[score], header, cell)


_TABLE = ScoreTable(
    "Which client holds a record",
    (
        _column(ACCURACY),
        _column(ACCURACY, "Any client", _named(UNIFORM)),
        _column(ACCURACY, "The largest client", _named(BY_SIZE)),
        _column(ACCURACY, "Label frequency", _named(BY_LABEL)),
        _column(TOP3),
        _column(TOP3, f"Guessing three{SPACE}clients", guess_value),
        _column(LOG_LOSS),
        _column(LOG_LOSS, "Log loss of any client", _named(UNIFORM)),
        _column(CALIBRATION),
        _column(NOBODY),
        _column(NOBODY, "Even odds", guess_value),
    ),
)
