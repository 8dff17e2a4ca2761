"""Phrases about results that several questions use."""

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
    """The phrases of a headline sentence.

    Args:
        what: the inferred quantity, such as "each client's label shares".
        well: predicate for a leak, with the result: "infers ... to within 3 points".
        badly: the result of the best attack if there is no leak: "off by 3 points".

    """

    what: str
    well: str
    badly: str


def bracketed_interval(row: Row, told: Measure, beside: str = "") -> str:
    """Return a row's 95 % interval and further text in brackets; "" if there is neither."""
    span = told.span(row.value)
    interval = "" if span == NO_FIGURE else f"95{SPACE}% interval {span}"
    words = f"{interval}{beside}".removeprefix("; ")
    return f" ({words})" if words else ""


def best_target_words(
    exposure: Exposure, row: Row, told: Measure, preposition: str = ""
) -> tuple[str, ...]:
    """Name the target on which the best attack does best; nothing for a single target.

    Args:
        exposure: a threat with results.
        row: the result of the best attack.
        told: how its score is written.
        preposition: before the value, with a trailing space.

    """
    results = by_target(exposure.cases[0], row.score)
    if len(results) < 2:
        return ()
    sign = 1 if row.better == "lower" else -1
    best = min(results, key=lambda target: sign * results[target].value)
    value, blind = told.tell(results[best].value), results[best].blind
    guess = "" if blind is None else f" (guessing: {told.tell(blind)})"
    chance = (
        ""
        if exposure.verdict == "leaks"
        else f"; among {len(results)} clients, some score well by chance"
    )
    name = called(best, exposure.observers)
    return (f"Best result: {name}, {preposition}{value}{guess}{chance}.",)
