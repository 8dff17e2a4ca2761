"""The ROC figure of pair matching: true and false positive rates at every threshold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from overheard.drawing.charts import legend_chart
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.findings.names import make_printable, shorten_attack_names
from overheard.findings.number_format import format_number
from overheard.findings.threat_results import ThreatResult
from overheard.statistics.roc import ScoredPairs, true_positive_rates_at

MAX_ATTACKS = 6
"""Most attacks in one figure: the best ones."""

FALSE_POSITIVE_RATES = np.linspace(0, 1, 101)
"""False positive rates at which curves are drawn."""

TABLE_RATES = (0.001, 0.01, 0.1)
"""False positive rates in the table."""

CURVES_NOTE = "Each line is one attack; a higher line means a stronger attack."

_FALSE_POSITIVE_AXIS = Axis("false positive rate, %", 0.0, 100.0)


@final
@dataclass(frozen=True, slots=True)
class NamedRocCurve:
    """The scores of matching and non-matching pairs under one attack.

    Args:
        label: the attack's label in reports.
        pairs: for each run, the scores of true and false pairs.

    """

    label: str
    pairs: tuple[ScoredPairs, ...]


@final
@dataclass(frozen=True, slots=True)
class ExtraColumns:
    """Further columns of the table, with one line per attack."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def pair_figure(
    threat_result: ThreatResult,
    drawn: Sequence[NamedRocCurve],
    note: str = CURVES_NOTE,
    panels: Sequence[Panel] = (),
    more: ExtraColumns | None = None,
) -> ReportFigure:
    """Return the ROC figure of pair matching, with one line per attack.

    Args:
        threat_result: the threat that the attacks belong to.
        drawn: the curves of the attacks, one or more.
        note: text above the figure.
        panels: further drawings with the same colours.
        more: further columns of the table; None = none.

    """
    where = figure_title(threat_result)
    left = len(threat_result.attack_results) - len(drawn)
    return ReportFigure(
        where,
        f"{note} The tables list {left} more." if left else note,
        legend_chart(curve_names(drawn), True, f"Legend: {where}"),
        (Panel("ROC curve of pair matching", _curves(drawn, where)), *panels),
        _table(drawn, more, where),
        True,
    )


def figure_title(threat_result: ThreatResult) -> str:
    """Return the title of a threat's figure."""
    return f"{make_printable(threat_result.arm)} · {threat_result.title}"


def curve_names(drawn: Sequence[NamedRocCurve]) -> list[str]:
    """Return short names of the attacks, in their order."""
    names = shorten_attack_names([one.label for one in drawn])
    return [names[one.label] for one in drawn]


def percent_cells(shares: Float[np.ndarray, " figures"]) -> tuple[str, ...]:
    """Write shares of 1 as table cells in percent."""
    return tuple(format_number(100 * share) for share in shares.tolist())


def _curves(drawn: Sequence[NamedRocCurve], where: str) -> Markup:
    lines = [
        ChartLine(
            place,
            (100 * FALSE_POSITIVE_RATES).tolist(),
            (100 * true_positive_rates_at(one.pairs, FALSE_POSITIVE_RATES)).tolist(),
            one.label,
        )
        for place, one in enumerate(drawn)
    ]
    diagonal = ChartLine(0, (0.0, 100.0), (0.0, 100.0))
    y_axis = Axis("true positive rate, %", 0.0, 103.0)
    return lines_chart(
        lines, diagonal, _FALSE_POSITIVE_AXIS, y_axis, f"ROC curve of pair matching: {where}"
    )


def _table(
    drawn: Sequence[NamedRocCurve], more: ExtraColumns | None, where: str
) -> ReportTable:
    heads = tuple(f"TPR at {100 * rate:g} % FPR" for rate in TABLE_RATES)
    lines = [
        (
            make_printable(one.label),
            *percent_cells(true_positive_rates_at(one.pairs, np.array(TABLE_RATES))),
        )
        for one in drawn
    ]
    if more is not None:
        heads = (*heads, *more.headers)
        lines = [(*line, *cells) for line, cells in zip(lines, more.rows, strict=True)]
    return ReportTable(
        f"Values of the figure, in %: {where}", ("Attack", *heads), tuple(lines), 1
    )
