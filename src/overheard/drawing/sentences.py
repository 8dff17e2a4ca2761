"""Parts of sentences on figures that several questions need."""

from dataclasses import dataclass
from typing import final

from overheard.core.parties import Party
from overheard.findings.exposures import Case, Exposure
from overheard.findings.figures import NO_FIGURE, SPACE, Measure
from overheard.findings.names import called
from overheard.findings.row import Row


@final
@dataclass(frozen=True, slots=True)
class Reading:
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
    case = exposure.cases[0]
    targets = list(
        dict.fromkeys(
            finding.target
            for finding in case.findings
            if any(score.name == row.score for score in finding.scores)
        )
    )
    if len(targets) < 2:
        return ()
    sign = 1 if row.better == "lower" else -1
    readings = {target: _mean_of(case, target, row.score) for target in targets}
    best = min(targets, key=lambda target: sign * readings[target].value)
    value, blind = told.tell(readings[best].value), readings[best].blind
    guess = "" if blind is None else f" (guessing: {told.tell(blind)})"
    chance = (
        ""
        if exposure.verdict == "leaks"
        else f"; among {len(targets)} clients some come out well by chance"
    )
    whom = called(best, exposure.observers)
    return (f"Read best: {whom}, {preposition}{value}{guess}{chance}.",)


@final
@dataclass(frozen=True, slots=True)
class _Mean:
    """One target's figure over its runs, beside the best guess."""

    value: float
    blind: float | None


def _mean_of(case: Case, target: Party, name: str) -> _Mean:
    scores = [
        score
        for finding in case.findings
        if finding.target == target
        for score in finding.scores
        if score.name == name
    ]
    values = [score.value for score in scores]
    blinds = [score.blind for score in scores if score.blind is not None]
    return _Mean(sum(values) / len(values), sum(blinds) / len(blinds) if blinds else None)
