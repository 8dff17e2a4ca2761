"""The figures of shares that nobody could hold against the truth, beside a guess."""

from collections.abc import Sequence

import numpy as np

from overheard.drawing.charts import shares_chart
from overheard.drawing.claims import DRAWN, UNCHECKED
from overheard.drawing.coverage import LEVEL
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.figures import digits
from overheard.findings.finding import Finding
from overheard.findings.names import called, shown
from overheard.findings.unchecked import claiming, claims_of, told_guess
from overheard.questions.label_shares.pages.shares_plates import bounds_of


def claims_plates(every: Sequence[Arm], class_names: Sequence[str]) -> tuple[Plate, ...]:
    """Claimed shares of each client beside a guess, one figure an attack."""
    return tuple(
        _plate(exposure, attack, class_names)
        for arm in every
        for exposure in arm.exposures
        for attack in claiming(exposure)
    )


def _plate(exposure: Exposure, attack: str, class_names: Sequence[str]) -> Plate:
    held = claims_of(exposure, attack)
    drawn = _furthest(held)
    guess = told_guess(held[0])
    bars = (0.0,) * len(class_names) if guess is None else guess[1]
    top = max(max(*bars, *one.claimed, *(one.high or ())) for one in drawn)
    where = f"{shown(exposure.arm)} · {exposure.title} · {shown(exposure.labels[attack])}"
    names = {one.target: called(one.target, exposure.observers) for one in drawn}
    bar = "" if guess is None else f"Bar: what one would guess ({shown(guess[0])}). "
    bounded = any(one.low is not None for one in drawn)
    line = f" Line: its {LEVEL} interval." if bounded else ""
    more = (
        f" Drawn are the {len(drawn)} of {len(held)} clients that lie furthest from it; all "
        "others are in findings.csv."
        if len(drawn) < len(held)
        else ""
    )
    return Plate(
        where,
        f"{UNCHECKED}. {bar}Dot: what the observer infers.{line}{more}",
        None,
        tuple(
            Panel(
                names[one.target],
                shares_chart(
                    class_names,
                    bars,
                    one.claimed,
                    bounds_of(one),
                    top,
                    f"Guessed and inferred shares of {names[one.target]}: {where}",
                ),
            )
            for one in drawn
        ),
        Table(
            f"Inferred share of each class in % (bounds of the {LEVEL} interval): {where}",
            ("Client", *map(shown, class_names)),
            (
                *(
                    (f"a guess: {shown(name)}", *(digits(100 * one) for one in numbers))
                    for name, numbers in held[0].blind.items()
                ),
                *((names[one.target], *_cells(one)) for one in drawn),
            ),
            1,
        ),
        True,
    )


def _cells(finding: Finding) -> list[str]:
    bounds = bounds_of(finding)
    if bounds is None:
        return [digits(100 * share) for share in finding.claimed]
    return [
        f"{digits(100 * share)} ({digits(100 * low)} to {digits(100 * high)})"
        for share, low, high in zip(finding.claimed, bounds.low, bounds.high, strict=True)
    ]


def _furthest(findings: Sequence[Finding]) -> Sequence[Finding]:
    guess = told_guess(findings[0])
    if len(findings) <= DRAWN or guess is None:
        return findings[:DRAWN]
    far = np.abs(np.array([one.claimed for one in findings]) - np.array(guess[1])).sum(1)
    chosen = np.sort(np.argsort(-far, kind="stable")[:DRAWN])
    return [findings[place] for place in chosen]
