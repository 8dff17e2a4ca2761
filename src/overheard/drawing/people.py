"""What the questions about the person behind a target share: words, tables, a section."""

from collections.abc import Sequence

from overheard.drawing.plates import Plate, Table
from overheard.drawing.score_tables import ScoreColumn, in_control
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import bracketed_interval
from overheard.findings.beside_control import PAIR_MEASURES
from overheard.findings.exposures import Case, Exposure
from overheard.findings.figures import Measure, percent
from overheard.findings.names import all_others, together
from overheard.findings.row import CONTROL

AREA, ERROR = "matching_auc", "equal_error_rate"

IN_CONTROL = "In the control"

PAIRS_TITLE = "Pairs told apart by one threshold"

PAIR_COLUMNS = tuple(
    column
    for score in (AREA, ERROR)
    for column in (
        ScoreColumn(score, PAIR_MEASURES[score]),
        ScoreColumn(score, PAIR_MEASURES[score], IN_CONTROL, in_control),
    )
)
"""How well pairs are told apart, beside the control."""

PAIRS_TERM = Term(
    "Pairs told apart, equal error rate",
    "Of 100 pairs of a true match and a false one, in how many the true one has the higher "
    "score (score matching_auc); and the rate of errors at the threshold at which false alarms "
    "and misses are as frequent.",
)

INTERVALS_TERM = Term(
    "Intervals over people",
    "What one person sends clumps, so the bootstrap draws people, each with all that is "
    "theirs.",
)

WHY_UNMEASURED = "nobody known to it took part"

_NOTE = (
    "Beside every figure stands the control: the same attack on the same federation, in which "
    "the examples were dealt anew among all clients, so that nobody is who he seems."
)


def people_section(tables: Sequence[Table], plates: Sequence[Plate]) -> tuple[Section, ...]:
    """The section that all questions about people fill together; none without tables."""
    if not tables:
        return ()
    blocks = [
        SectionBlock(paragraphs=(_NOTE,)),
        SectionBlock("Beside chance, and beside the control", tables=tuple(tables)),
    ]
    if plates:
        heading = "By threshold, by list, user by user"
        blocks.append(SectionBlock(heading, plates=tuple(plates), panel_width=280))
    return (Section("people", "People, and who is recognised", "People", tuple(blocks)),)


def unmeasured_words(exposure: Exposure) -> str:
    """The sentence where attacks ran and nobody was there to be recognised."""
    whom = all_others(exposure.observers) if exposure.about == "cohort" else "each client"
    return (
        f"How well {together(exposure.observers)} can tell who is behind {whom} was not "
        "measured: there is nobody among them whom it knows, or there were only controls."
    )


def pair_words(case: Case) -> tuple[str, ...]:
    """How often an attack is wrong that says yes or no to a pair."""
    row = case.whole.get(ERROR)
    if row is None:
        return ()
    return (
        f"Told to say yes or no to a pair, it is wrong in {percent(row.value.mean)} either way"
        f"{bracketed_interval(row, PAIR_MEASURES[ERROR])}; guessing is in "
        f"{percent(row.blind)}.",
    )


def control_words(case: Case, told: Measure) -> str:
    """What the same attack gets in the control.

    Args:
        case: of the attack.
        told: how its headline is told.

    """
    if CONTROL not in case.row.references:
        return "No control ran beside it, with examples dealt anew among all clients."
    return (
        "Where the clients' examples were dealt anew among all of them, the same figure is "
        f"{told.tell(case.row.references[CONTROL])}."
    )
