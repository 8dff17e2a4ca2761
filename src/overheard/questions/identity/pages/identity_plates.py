"""The figures of how well users are recognised: by pairs, by lists of names, user by user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from overheard.drawing.line_charts import Axis, ChartLine, histogram_chart, lines_chart
from overheard.drawing.pair_plates import (
    MOST_ATTACKS,
    NOTE,
    RATES,
    TOLD_RATES,
    MoreColumns,
    PairCurve,
    curve_names,
    pairs_plate,
    percent_cells,
    plate_title,
)
from overheard.drawing.plates import Panel, Plate
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.figures import NO_FIGURE
from overheard.findings.names import shown
from overheard.questions.identity.statistics.curves import identified_at, named_within
from overheard.questions.identity.statistics.ranking import Ranking, by_user, matches, rankings

LENGTHS = 50
"""Names on the longest list that is drawn."""

TOLD_LENGTHS = (1, 5, 10)

_TOLD_STRANGERS = [100 * rate for rate in TOLD_RATES[1:]]


@final
@dataclass(frozen=True, slots=True)
class _Drawn:
    """One attack with what it said of all targets, run by run."""

    curve: PairCurve
    ranked: tuple[Ranking, ...]

    @property
    def precisions(self) -> Float[np.ndarray, " users"]:
        return np.array(list(by_user(self.ranked).values()))


def identity_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """A figure for each group of observers, arm by arm."""
    return tuple(
        _plate(exposure, drawn)
        for arm in every
        for exposure in arm.exposures
        if (drawn := _drawn(exposure))
    )


def _drawn(exposure: Exposure) -> list[_Drawn]:
    """The best attacks of which there are pairs of both kinds."""
    held = []
    for case in exposure.cases:
        ranked = rankings(one for one in case.findings if not one.cell.is_control)
        pairs = tuple(run for run in map(matches, ranked) if run.has_both)
        if pairs:
            held.append(_Drawn(PairCurve(case.label, pairs), ranked))
    return held[:MOST_ATTACKS]


def _plate(exposure: Exposure, drawn: Sequence[_Drawn]) -> Plate:
    curves, where = [one.curve for one in drawn], plate_title(exposure)
    best = curve_names(curves)[0]
    panels = (
        _lists(drawn, where),
        _histogram(drawn[0], best, where),
        *_strangers(drawn, where),
    )
    note = f"{NOTE} The histogram shows the best attack alone."
    return pairs_plate(exposure, curves, note, panels, _columns(drawn))


def _lists(drawn: Sequence[_Drawn], where: str) -> Panel:
    users = len(drawn[0].ranked[0].users)
    lengths = range(1, min(users, LENGTHS) + 1)
    x = [float(length) for length in lengths]
    lines = [
        ChartLine(place, x, (100 * named_within(one.ranked, lengths)).tolist())
        for place, one in enumerate(drawn)
    ]
    blind = ChartLine(0, x, [100 * length / users for length in lengths])
    across = Axis("names on the list", 1.0, max(2.0, x[-1]))
    up = Axis("true user on the list, %", 0.0, 103.0)
    chart = lines_chart(lines, blind, across, up, f"Right among the first named: {where}")
    return Panel("Right among the first so many named", chart)


def _histogram(best: _Drawn, name: str, where: str) -> Panel:
    chance = float(np.concatenate([run.chances() for run in best.ranked]).mean())
    across = Axis("average precision, %", 0.0, 100.0)
    chart = histogram_chart(
        (100 * best.precisions).tolist(), 100 * chance, across, f"Average precision: {where}"
    )
    return Panel(f"User by user: {shown(name)}", chart)


def _strangers(drawn: Sequence[_Drawn], where: str) -> list[Panel]:
    percents = (100 * RATES[::2]).tolist()
    lines = [
        ChartLine(place, percents, (100 * rates).tolist())
        for place, one in enumerate(drawn)
        if (rates := identified_at(one.ranked, percents)) is not None
    ]
    if not lines:
        return []
    up = Axis("known users named right, %", 0.0, 103.0)
    across = Axis("strangers taken for a known user, %", 0.0, 100.0)
    blind = ChartLine(0, percents, [rate / len(drawn[0].ranked[0].users) for rate in percents])
    label = f"Known users named right among strangers: {where}"
    return [Panel("With users it does not know", lines_chart(lines, blind, across, up, label))]


def _columns(drawn: Sequence[_Drawn]) -> MoreColumns:
    return MoreColumns(
        (
            *(f"Right among {length}" for length in TOLD_LENGTHS),
            *("A tenth of users below", "Half below", "A tenth above"),
            *(f"Right at {percent:g} % strangers" for percent in _TOLD_STRANGERS),
        ),
        tuple(map(_line, drawn)),
    )


def _line(one: _Drawn) -> tuple[str, ...]:
    rates = identified_at(one.ranked, _TOLD_STRANGERS)
    return (
        *percent_cells(named_within(one.ranked, TOLD_LENGTHS)),
        *percent_cells(np.quantile(one.precisions, (0.1, 0.5, 0.9))),
        *((NO_FIGURE,) * len(_TOLD_STRANGERS) if rates is None else percent_cells(rates)),
    )
