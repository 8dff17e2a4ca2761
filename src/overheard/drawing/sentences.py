"""Parts of sentences on figures that several questions need."""

from dataclasses import dataclass
from typing import final

from overheard.findings.by_target import by_target
from overheard.findings.exposures import Exposure
from overheard.findings.figures import NO_FIGURE, SPACE, Measure
from overheard.findings.names import called
from overheard.findings.row import Row


@final
@dataclass(frozen=True, slots=True)
class Statement:
    """What is read, and how a sentence says that it is, or how badly.

    Args:
        what: is read, such as "each client's label shares".
        well: what the observers do, with the figure: "reads ... to within 3 points".
        badly: how the best attack does where it tells nothing: "off by 3 points".

    """

    what: str
    well: str
    badly: str


def bracketed_interval(row: Row, told: Measure, beside: str = "") -> str:
    """The 95 % interval of a row in brackets, and what else stands there; "" for neither."""
    span = told.span(row.value)
    said = "" if span == NO_FIGURE else f"95{SPACE}% interval {span}"
    words = f"{said}{beside}".removeprefix("; ")
    return f" ({words})" if words else ""


def best_target_words(
    exposure: Exposure, row: Row, told: Measure, preposition: str = ""
) -> tuple[str, ...]:
    """The target that the best attack reads best; nothing where there is one target alone.

    Args:
        exposure: of which an attack got something.
        row: the figure by which the best attack is told.
        told: how that is told.
        preposition: before the figure, with a space behind.

    """
    readings = by_target(exposure.cases[0], row.score)
    if len(readings) < 2:
        return ()
    sign = 1 if row.better == "lower" else -1
    best = min(readings, key=lambda target: sign * readings[target].value)
    value, blind = told.tell(readings[best].value), readings[best].blind
    guess = "" if blind is None else f" (guessing: {told.tell(blind)})"
    chance = (
        ""
        if exposure.verdict == "leaks"
        else f"; among {len(readings)} clients some come out well by chance"
    )
    whom = called(best, exposure.observers)
    return (f"Read best: {whom}, {preposition}{value}{guess}{chance}.",)
