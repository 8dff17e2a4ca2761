"""Figures of the trade-off between leakage and the cost of defenses."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import final

from markupsafe import Markup

from overheard.core.task import Utility
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.line_charts import Axis, TradeoffSeries, frontier_chart, frontier_legend
from overheard.drawing.point_names import NamedPoint
from overheard.findings.costs import arm_costs
from overheard.findings.names import make_printable, shorten_attack_names
from overheard.findings.number_format import (
    BYTE_UNITS,
    format_bytes,
    format_number,
    largest_unit,
)
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import (
    ArmResult,
    find_undefended_arm,
    group_by_threat,
    labels_of_results,
)
from overheard.plans.registries import row_measure


@final
@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One arm under one attack.

    Args:
        arm: name of the arm.
        attack: full name of the attack.
        label: the attack's label in reports.
        is_adaptive: whether the attack adapts to the defenses of the arm.
        row: the attack's result.
        accuracy_retained: accuracy divided by that of the arm without defenses; in tasks
            without classes, another utility.
        bytes_sent: bytes sent in a run, up and down; None = not counted.
        utility: what is retained.

    """

    arm: str
    attack: str
    label: str
    is_adaptive: bool
    row: ScoreRow
    accuracy_retained: float
    bytes_sent: float | None
    utility: Utility = "accuracy"

    @property
    def leakage(self) -> float:
        """The leakage: higher = more; at least that of an uninformed guess."""
        sign = -1.0 if self.row.better == "lower" else 1.0
        value = sign * self.row.value.mean
        return (
            value
            if self.row.best_uninformed is None
            else max(value, sign * self.row.best_uninformed)
        )


def frontier_points(arm_results: Sequence[ArmResult]) -> Mapping[str, Sequence[FrontierPoint]]:
    """Return the points of each threat, by its title, if there are two arms or more.

    There are none without an arm that has no defenses and a measured accuracy.
    """
    bare = find_undefended_arm(arm_results)
    bare_accuracy = bare.accuracy if bare is not None else None
    if bare is None or not bare_accuracy:
        return {}
    tested = {arm.name: (arm, arm.accuracy) for arm in arm_results if arm.accuracy is not None}
    found = {
        title: [
            FrontierPoint(
                arm.name,
                attack_result.attack,
                attack_result.label,
                attack_result.is_adaptive,
                row,
                accuracy / bare_accuracy,
                arm_costs(arm).total_bytes,
                arm.utility,
            )
            for threat_result in threat_results
            if threat_result.arm in tested
            for arm, accuracy in [tested[threat_result.arm]]
            for attack_result in threat_result.attack_results
            for row in [attack_result.headline_row]
            if isfinite(row.value.mean)
        ]
        for title, threat_results in group_by_threat(arm_results).items()
    }
    return {
        title: points for title, points in found.items() if len({one.arm for one in points}) > 1
    }


def strongest_attacks(points: Sequence[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Return, for each arm, the point of the strongest attack on it."""
    return tuple(
        max((one for one in points if one.arm == arm), key=lambda one: one.leakage)
        for arm in dict.fromkeys(one.arm for one in points)
    )


def pareto_front(
    points: Sequence[FrontierPoint], utility: Callable[[FrontierPoint], float]
) -> tuple[FrontierPoint, ...]:
    """Return the points that no other dominates in leakage and utility (the Pareto front)."""
    return tuple(
        one for one in points if not any(_dominates(other, one, utility) for other in points)
    )


def _dominates(
    other: FrontierPoint, one: FrontierPoint, utility: Callable[[FrontierPoint], float]
) -> bool:
    no_worse = other.leakage <= one.leakage and utility(other) >= utility(one)
    return no_worse and (other.leakage < one.leakage or utility(other) > utility(one))


STRONGEST_LABEL = "strongest attack on each arm (bytes sent)"
"""Legend label of the points in the second panel."""

MAX_NAMED_ARMS = 8
"""Arms up to which a chart names all of them; of more, only those that none dominates."""

MIN_AXIS_SPAN = 0.1
"""Smallest span of an axis, on the score's own scale: less would magnify random variation."""


def frontier_figures(arm_results: Sequence[ArmResult]) -> tuple[ReportFigure, ...]:
    """Return a figure for each threat, over all arms.

    An arm is on the Pareto front if no other arm has less leakage under its strongest attack,
    adaptive ones included, at the same or a higher accuracy. With more than `MAX_NAMED_ARMS`
    arms only those are named. A second panel shows the bytes sent, if arms differ in them.
    """
    threats = group_by_threat(arm_results)
    return tuple(
        _figure(title, points, labels_of_results(threats[title]))
        for title, points in frontier_points(arm_results).items()
    )


def _figure(
    title: str, points: Sequence[FrontierPoint], labels: Mapping[str, str]
) -> ReportFigure:
    attacks, utility = list(dict.fromkeys(one.attack for one in points)), points[0].utility
    names = list(shorten_attack_names([labels[attack] for attack in attacks]).values())
    found = strongest_attacks(points)
    best = pareto_front(found, lambda one: one.accuracy_retained)
    named = found if len(found) <= MAX_NAMED_ARMS else best
    series = [
        _accuracy_series(points, named, place, attack) for place, attack in enumerate(attacks)
    ]
    panels = [Panel("", _accuracy_drawing(title, points, series))]
    listed, more = list(series), ""
    if _differ_in_bytes(points):
        sent = _bytes_series(found, len(attacks))
        panels = [
            Panel(f"{utility.capitalize()} retained", panels[0].drawing),
            Panel("Bytes sent", _bytes_drawing(title, points, sent)),
        ]
        listed.append(sent)
        names.append(STRONGEST_LABEL)
        more = " In the second panel, further down means fewer bytes sent in a run."
    side = "right" if points[0].row.better == "lower" else "left"
    return ReportFigure(
        f"Privacy against utility · {title}",
        f"Each point is an arm under one attack: further {side} means less leakage, higher up "
        f"means higher {utility}. A line joins the arms that no other arm dominates under one "
        "attack; it is dashed if the attack adapts to the defenses. Not dominated under the "
        "strongest attack on each arm: "
        f"{'; '.join(make_printable(one.arm) for one in best)}.{more}",
        frontier_legend(
            names, listed, _guess_value(points) is not None, f"Legend: frontier, {title}"
        ),
        tuple(panels),
        _table(title, points, found, best),
        True,
    )


def _accuracy_series(
    points: Sequence[FrontierPoint], named: Sequence[FrontierPoint], place: int, attack: str
) -> TradeoffSeries:
    """Return one attack's points over all arms, by accuracy retained."""
    own = [one for one in points if one.attack == attack]
    return TradeoffSeries(
        place,
        any(one.is_adaptive for one in own),
        [
            NamedPoint(
                one.arm if one in named else "",
                _leakage_value(one),
                100 * one.accuracy_retained,
                f"{one.arm}, {one.label}",
            )
            for one in own
        ],
    )


def _bytes_series(found: Sequence[FrontierPoint], place: int) -> TradeoffSeries:
    """Return the points of the strongest attack on each arm, by bytes sent."""
    _, size = _bytes_unit(found)
    least = pareto_front(found, lambda one: -(one.bytes_sent or 0.0))
    named = found if len(found) <= MAX_NAMED_ARMS else least
    return TradeoffSeries(
        place,
        False,
        [
            NamedPoint(
                one.arm if one in named else "",
                _leakage_value(one),
                (one.bytes_sent or 0.0) / size,
                f"{one.arm}, {one.label}",
            )
            for one in found
        ],
    )


def _accuracy_drawing(
    title: str, points: Sequence[FrontierPoint], trades: Sequence[TradeoffSeries]
) -> Markup:
    kept = [100 * one.accuracy_retained for one in points]
    low, high = min(100.0, *kept), max(100.0, *kept)
    room = max(2.0, 0.12 * (max(kept) - low))
    # Room for the names above the points.
    y_axis = Axis(f"{points[0].utility} retained, %", low - room, high + 1.8 * room)
    label = f"Privacy against utility: {title}"
    return frontier_chart(trades, _guess_value(points), _leakage_axis(points), y_axis, label)


def _bytes_drawing(
    title: str, points: Sequence[FrontierPoint], trade: TradeoffSeries
) -> Markup:
    """Draw the panel of bytes sent."""
    name, _ = _bytes_unit(points)
    most = max(point.y for point in trade.points)
    y_axis = Axis(f"sent in a run, {name}", -0.06 * most, 1.1 * most, is_less_better=True)
    label = f"Privacy against bytes: {title}"
    return frontier_chart([trade], _guess_value(points), _leakage_axis(points), y_axis, label)


def _leakage_axis(points: Sequence[FrontierPoint]) -> Axis:
    """Return the leakage axis."""
    measure, uninformed = row_measure(points[0].row), _guess_value(points)
    ends = [_leakage_value(one) for one in points] + (
        [] if uninformed is None else [uninformed]
    )
    span = max(ends) - min(ends)
    room = max(0.08 * span, (MIN_AXIS_SPAN * measure.factor - span) / 2)
    low, high = max(0.0, min(ends) - room), max(ends) + room
    title = f"{measure.title}{measure.unit and ','}{measure.unit}"
    return Axis(title, low, high, is_less_better=points[0].row.better == "higher")


def _leakage_value(one: FrontierPoint) -> float:
    """Return the leakage in the unit of the axis."""
    return row_measure(one.row).factor * one.row.value.mean


def _guess_value(points: Sequence[FrontierPoint]) -> float | None:
    """Return the score of an uninformed guess in the unit of the axis."""
    row = next((one.row for one in points if one.row.best_uninformed is not None), None)
    if row is None or row.best_uninformed is None:
        return None
    return row_measure(row).factor * row.best_uninformed


def _differ_in_bytes(points: Sequence[FrontierPoint]) -> bool:
    sent = {one.bytes_sent for one in points}
    return None not in sent and len(sent) > 1


def _bytes_unit(points: Sequence[FrontierPoint]) -> tuple[str, float]:
    return largest_unit(max(one.bytes_sent or 0.0 for one in points), BYTE_UNITS)


def _table(
    title: str,
    points: Sequence[FrontierPoint],
    strongest: Collection[FrontierPoint],
    best: Collection[FrontierPoint],
) -> ReportTable:
    """Return the table of all points; arms are compared under the strongest attack on each."""
    measure = row_measure(points[0].row)
    return ReportTable(
        f"{measure.title} against {points[0].utility} retained: {title}",
        (
            "Arm",
            "Attack",
            measure.title,
            "95 % interval",
            "Uninformed guess",
            f"{points[0].utility.capitalize()} retained, %",
            "Sent in a run",
            "Not dominated under its strongest attack",
        ),
        tuple(
            (
                make_printable(one.arm),
                make_printable(one.label),
                measure.format(one.row.value.mean),
                measure.format_interval(one.row.value),
                measure.format(one.row.best_uninformed),
                format_number(100 * one.accuracy_retained),
                format_bytes(one.bytes_sent),
                ("yes" if one in best else "no") if one in strongest else "",
            )
            for one in points
        ),
        2,
    )
