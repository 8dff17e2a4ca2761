"""The figure of how well pairs are told apart at every threshold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from overheard.drawing.charts import legend_chart
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import Exposure
from overheard.findings.figures import digits
from overheard.findings.names import shown, told_apart
from overheard.statistics.matching import Matches, hits_at

MOST_ATTACKS = 6
"""Attacks drawn for one group of observers: the best."""

RATES = np.linspace(0, 1, 101)
"""Shares of false alarms at which curves are drawn."""

TOLD_RATES = (0.001, 0.01, 0.1)
"""Those at which the table tells them."""

NOTE = "Each line is one attack: the further up, the more is recognised."

_FALSE_ALARMS = Axis("false alarms, %", 0.0, 100.0)


@final
@dataclass(frozen=True, slots=True)
class PairCurve:
    """One attack with the pairs that it compared, run by run.

    Args:
        label: what readers see of the attack.
        pairs: of each run, true and false ones.

    """

    label: str
    pairs: tuple[Matches, ...]


@final
@dataclass(frozen=True, slots=True)
class MoreColumns:
    """Columns that stand behind those on pairs, with a line an attack."""

    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def pairs_plate(
    exposure: Exposure,
    drawn: Sequence[PairCurve],
    note: str = NOTE,
    panels: Sequence[Panel] = (),
    more: MoreColumns | None = None,
) -> Plate:
    """The share of true pairs that pass, by that of false ones, a line an attack.

    Args:
        exposure: of which these attacks are a part.
        drawn: the attacks, one or more.
        note: what to see.
        panels: more drawings with the same colours.
        more: what the table says of these; None = nothing.

    """
    where = plate_title(exposure)
    left = len(exposure.cases) - len(drawn)
    return Plate(
        where,
        f"{note} {left} more are in the tables." if left else note,
        legend_chart(curve_names(drawn), True, f"Legend: {where}"),
        (Panel("Pairs told apart, by threshold", _curves(drawn, where)), *panels),
        _table(drawn, more, where),
        True,
    )


def plate_title(exposure: Exposure) -> str:
    """What the figure of an exposure is called."""
    return f"{shown(exposure.arm)} · {exposure.title}"


def curve_names(drawn: Sequence[PairCurve]) -> list[str]:
    """Short names of the attacks, in their order."""
    names = told_apart([one.label for one in drawn])
    return [names[one.label] for one in drawn]


def percent_cells(shares: Float[np.ndarray, " figures"]) -> tuple[str, ...]:
    """Shares of 1 as cells of a table in percent."""
    return tuple(digits(100 * share) for share in shares.tolist())


def _curves(drawn: Sequence[PairCurve], where: str) -> Markup:
    lines = [
        ChartLine(place, (100 * RATES).tolist(), (100 * hits_at(one.pairs, RATES)).tolist())
        for place, one in enumerate(drawn)
    ]
    diagonal = ChartLine(0, (0.0, 100.0), (0.0, 100.0))
    up = Axis("true pairs that pass, %", 0.0, 103.0)
    return lines_chart(lines, diagonal, _FALSE_ALARMS, up, f"Pairs told apart: {where}")


def _table(drawn: Sequence[PairCurve], more: MoreColumns | None, where: str) -> Table:
    heads = tuple(f"True pairs at {100 * rate:g} % false alarms" for rate in TOLD_RATES)
    lines = [
        (shown(one.label), *percent_cells(hits_at(one.pairs, np.array(TOLD_RATES))))
        for one in drawn
    ]
    if more is not None:
        heads = (*heads, *more.heads)
        lines = [(*line, *cells) for line, cells in zip(lines, more.lines, strict=True)]
    return Table(f"What the lines show, in %: {where}", ("Attack", *heads), tuple(lines), 1)
