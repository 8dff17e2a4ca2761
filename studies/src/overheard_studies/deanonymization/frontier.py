"""The precision of the attackers against the utility of the model, by arm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.line_charts import Axis, TradeoffSeries, frontier_chart, frontier_legend
from overheard.drawing.point_names import NamedPoint
from overheard.findings.names import make_printable
from overheard.findings.number_format import format_number

ADAPTIVE_SUFFIX = "_adaptive"
"""Suffix of the names of attackers that know the defense."""


@final
@dataclass(frozen=True, slots=True)
class TradeOffPoint:
    """The result of one attacker on one arm.

    Args:
        arm: name of the arm.
        precision: average precision, 0..1.
        utility: utility of the model; 1 = as without defenses.

    """

    arm: str
    precision: float
    utility: float


def frontier_figure(title: str, points: Mapping[str, Sequence[TradeOffPoint]]) -> ReportFigure:
    """Draw the results of every attacker on all arms; undominated arms are labelled.

    Args:
        title: title of the figure.
        points: results by attacker. An adaptive attacker has the name of a non-adaptive one
            with the suffix `ADAPTIVE_SUFFIX`, and shares its panel.

    """
    every = [point for results in points.values() for point in results]
    best = undominated_arms(every)
    most = max(p.precision for p in every)
    x_axis = Axis("average precision per user, %", 0.0, 108 * most, is_less_better=True)
    low, high = min(0.95, *(p.utility for p in every)), max(1.0, *(p.utility for p in every))
    margin = 0.1 * (high - low)
    y_axis = Axis("utility, %", 100 * (low - margin), 100 * (high + margin))
    groups: dict[str, list[TradeoffSeries]] = {}
    for name, results in points.items():
        is_adaptive = name.endswith(ADAPTIVE_SUFFIX)
        named = [
            NamedPoint(
                point.arm if point.arm in best and point == _strongest(points, point) else "",
                100 * point.precision,
                100 * point.utility,
            )
            for point in results
        ]
        group = groups.setdefault(name.removesuffix(ADAPTIVE_SUFFIX), [])
        group.append(TradeoffSeries(int(is_adaptive), is_adaptive, named))
    return ReportFigure(
        title,
        "Points further left leak less; points further up have higher utility. Against the "
        "strongest attacker on each arm, these arms are not dominated: "
        f"{', '.join(map(make_printable, best))}. Their labels are at the results of that "
        "attacker.",
        frontier_legend(
            ["does not know the defense", "adapts to the defense"],
            [TradeoffSeries(0, False, []), TradeoffSeries(1, True, [])],
            False,
            f"Legend: {title}",
        ),
        tuple(
            Panel(name, frontier_chart(trades, None, x_axis, y_axis, f"{title}, {name}"))
            for name, trades in groups.items()
        ),
        ReportTable(
            title,
            ("Arm", "Attacker", "Average precision", "Utility", "Not dominated"),
            tuple(
                (
                    make_printable(point.arm),
                    name.replace("_", " "),
                    format_number(point.precision),
                    format_number(point.utility),
                    "yes" if point.arm in best else "no",
                )
                for name, results in points.items()
                for point in results
            ),
            2,
        ),
        True,
    )


def undominated_arms(points: Sequence[TradeOffPoint]) -> tuple[str, ...]:
    """Return the arms that no other arm dominates, under the strongest attacker on each."""
    strongest: dict[str, TradeOffPoint] = {}
    for point in points:
        previous = strongest.get(point.arm)
        if previous is None or point.precision > previous.precision:
            strongest[point.arm] = point
    return tuple(
        arm
        for arm, point in strongest.items()
        if not any(_dominates(other, point) for other in strongest.values())
    )


def _dominates(other: TradeOffPoint, point: TradeOffPoint) -> bool:
    no_worse = other.precision <= point.precision and other.utility >= point.utility
    return no_worse and (other.precision < point.precision or other.utility > point.utility)


def _strongest(
    points: Mapping[str, Sequence[TradeOffPoint]], chosen: TradeOffPoint
) -> TradeOffPoint:
    same_arm = [
        point for results in points.values() for point in results if point.arm == chosen.arm
    ]
    return max(same_arm, key=lambda point: point.precision)
