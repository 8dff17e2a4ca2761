"""The figures that set each client's true shares beside the inferred ones."""

from collections.abc import Sequence

import numpy as np

from overheard.core.claims import Interval
from overheard.drawing.charts import shares_chart
from overheard.drawing.claims import DRAWN
from overheard.drawing.coverage import LEVEL
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import Arm, Case, Exposure
from overheard.findings.figures import digits
from overheard.findings.finding import Finding
from overheard.findings.names import called, shown


def shares_plates(every: Sequence[Arm], class_names: Sequence[str]) -> tuple[Plate, ...]:
    """True against claimed shares of each client, for the best attack of each arm."""
    return tuple(
        _shares_plate(exposure, class_names)
        for arm in every
        for exposure in arm.exposures
        if exposure.cases and _are_shares(exposure.cases[0], len(class_names))
    )


def _are_shares(case: Case, classes: int) -> bool:
    return "l1" in case.whole and all(
        len(finding.claimed) == len(finding.true) == classes for finding in case.findings
    )


def _shares_plate(exposure: Exposure, class_names: Sequence[str]) -> Plate:
    case = exposure.cases[0]
    seed = min(finding.cell.seed for finding in case.findings)
    held = [finding for finding in case.findings if finding.cell.seed == seed]
    drawn = _most_different(held)
    top = max(max(*one.true, *one.claimed, *(one.high or ())) for one in drawn)
    bounded = any(bounds_of(finding) is not None for finding in drawn)
    names = {one.target: called(one.target, exposure.observers) for one in drawn}
    where = f"{shown(exposure.arm)} · {exposure.title} · {shown(case.label)}"
    return Plate(
        where,
        f"{_drawing(bounded)}{_left_out(case, len(drawn), len(held), seed)}",
        None,
        tuple(
            Panel(
                names[finding.target],
                shares_chart(
                    class_names,
                    finding.true,
                    finding.claimed,
                    bounds_of(finding),
                    top,
                    f"True and inferred shares of {names[finding.target]}: {where}",
                ),
            )
            for finding in drawn
        ),
        Table(
            f"True → inferred share of each class in %"
            f"{f' (bounds of the {LEVEL} interval)' if bounded else ''}: {where}",
            ("Client", *map(shown, class_names)),
            tuple((names[finding.target], *_cells(finding)) for finding in drawn),
            1,
        ),
        True,
    )


def bounds_of(finding: Finding) -> Interval | None:
    """Between which the attack says that the shares lie; None = it does not say."""
    if finding.low is None or finding.high is None:
        return None
    return Interval(finding.low, finding.high)


def _cells(finding: Finding) -> list[str]:
    cells = [
        f"{digits(100 * true)} → {digits(100 * claimed)}"
        for true, claimed in zip(finding.true, finding.claimed, strict=True)
    ]
    bounds = bounds_of(finding)
    if bounds is None:
        return cells
    return [
        f"{cell} ({digits(100 * low)} to {digits(100 * high)})"
        for cell, low, high in zip(cells, bounds.low, bounds.high, strict=True)
    ]


def _most_different(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Those whose true shares lie furthest from the mean of all, in the order given."""
    if len(findings) <= DRAWN:
        return findings
    true = np.array([finding.true for finding in findings])
    far = np.abs(true - true.mean(0)).sum(1)  # (clients,)
    chosen = np.sort(np.argsort(-far, kind="stable")[:DRAWN])
    return [findings[place] for place in chosen]


def _drawing(bounded: bool) -> str:
    said = "Bar: what the client holds. Dot: what the observer inferred."
    return f"{said} Line: its {LEVEL} interval." if bounded else said


def _left_out(case: Case, drawn: int, held: int, seed: int) -> str:
    said, seeds = "", len({finding.cell.seed for finding in case.findings})
    if drawn < held:
        said += (
            f" Drawn are the {drawn} of {held} clients that differ most from the average; all "
            "others are in findings.csv."
        )
    if seeds > 1:
        said += f" Drawn is the run with seed {seed}, one of {seeds}; all are in findings.csv."
    return said
