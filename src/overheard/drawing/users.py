"""Sentences, tables and the section shared by all questions about users."""

from collections.abc import Sequence

from overheard.drawing.figures import ReportFigure, ReportTable
from overheard.drawing.score_tables import ScoreColumn, control_value
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import bracketed_interval
from overheard.findings.controlled_findings import PAIR_MEASURES
from overheard.findings.names import name_observers, name_other_clients
from overheard.findings.number_format import Measure, format_percent
from overheard.findings.score_row import CONTROL_NAME
from overheard.findings.threat_results import AttackResult, ThreatResult

MATCHING_AUC, EQUAL_ERROR_RATE = "matching_auc", "equal_error_rate"

CONTROL_HEADER = "In the control"

PAIRS_TITLE = "Pair matching"

PAIR_COLUMNS = tuple(
    column
    for score in (MATCHING_AUC, EQUAL_ERROR_RATE)
    for column in (
        ScoreColumn(score, PAIR_MEASURES[score]),
        ScoreColumn(score, PAIR_MEASURES[score], CONTROL_HEADER, control_value),
    )
)
"""The scores of pair matching, in the run and in the control."""

PAIRS_TERM = Term(
    "Pair matching, equal error rate",
    "An attack scores pairs of targets, or of target and user. Reported are the share of cases "
    "in which a true pair scores higher than a false one (score matching_auc), and the error "
    "rate at the threshold where false positives and false negatives are equally frequent.",
)

INTERVALS_TERM = Term(
    "Intervals over users",
    "The updates of one user are correlated, so a user counts as one unit, with all of their "
    "targets. From five runs on, the units are runs.",
)

UNMEASURED_REASON = "no user known to the attacker took part"

_NOTE = (
    "Every result is compared with a permutation control: the same attack on the same "
    "federation, but with the examples permuted among all clients."
)


def user_section(
    tables: Sequence[ReportTable], figures: Sequence[ReportFigure]
) -> tuple[Section, ...]:
    """Return the section that all questions about users share; none without tables."""
    if not tables:
        return ()
    blocks = [
        SectionBlock(paragraphs=(_NOTE,)),
        SectionBlock("Compared with guessing and with the control", tables=tuple(tables)),
    ]
    if figures:
        heading = "By threshold, candidate list and user"
        blocks.append(SectionBlock(heading, figures=tuple(figures), panel_width=280))
    return (Section("users", "Users and their re-identification", "Users", tuple(blocks)),)


def unmeasured_user_sentence(threat_result: ThreatResult) -> str:
    """Return the sentence for attacks that ran without any known user among their targets."""
    whom = (
        name_other_clients(threat_result.observers)
        if threat_result.target_kind == "cohort"
        else "each client"
    )
    return (
        f"How well {name_observers(threat_result.observers)} can identify the users behind "
        f"{whom} was not measured: no known user took part, or only control runs "
        "could be attacked."
    )


def pair_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    """State the equal error rate of the attack's pair matching."""
    row = attack_result.rows_by_score.get(EQUAL_ERROR_RATE)
    if row is None:
        return ()
    return (
        f"The equal error rate of its pair matching is {format_percent(row.value.mean)}"
        f"{bracketed_interval(row, PAIR_MEASURES[EQUAL_ERROR_RATE])}; that of guessing is "
        f"{format_percent(row.best_uninformed)}.",
    )


def control_sentence(attack_result: AttackResult, told: Measure) -> str:
    """State the result of the same attack in the control.

    Args:
        attack_result: the attack's result.
        told: how its headline score is written.

    """
    if CONTROL_NAME not in attack_result.headline_row.references:
        return "There was no permutation control."
    return (
        "In the permutation control, with examples permuted among all clients, the same score "
        f"is {told.format(attack_result.headline_row.references[CONTROL_NAME])}."
    )
