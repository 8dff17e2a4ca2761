"""Figures of the trade-off between leakage and the cost of defenses."""

from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from overheard.drawing.line_charts import Axis, Trade, frontier_chart, frontier_legend
from overheard.drawing.plates import Panel, Plate, Table
from overheard.drawing.point_names import NamedDot
from overheard.findings.names import make_printable, shorten_attack_names
from overheard.findings.number_format import (
    BYTE_UNITS,
    format_bytes,
    format_number,
    largest_unit,
)
from overheard.findings.threat_results import ArmResult, group_by_threat, labels_of_results
from overheard.plans.registries import row_measure
from overheard.report.frontier import FrontierPoint, standings, strongest, unbeaten

STRONGEST = "strongest attack on each arm (bytes sent)"
"""Legend label of the points in the second panel."""

MOST_NAMES = 8
"""Arms up to which a chart names all of them; of more, only those that none dominates."""

NARROWEST = 0.1
"""Smallest span of an axis, on the score's own scale: less would magnify random variation."""


def frontier_plates(every: Sequence[ArmResult]) -> tuple[Plate, ...]:
    """Return a figure for each threat, over all arms.

    An arm is on the Pareto front if no other arm has less leakage under its strongest attack,
    adaptive ones included, at the same or a higher accuracy. With more than `MOST_NAMES` arms
    only those are named. A second panel shows the bytes sent, if arms differ in them.
    """
    threats = group_by_threat(every)
    return tuple(
        _plate(title, points, labels_of_results(threats[title]))
        for title, points in standings(every).items()
    )


def _plate(title: str, points: Sequence[FrontierPoint], labels: Mapping[str, str]) -> Plate:
    attacks = list(dict.fromkeys(one.attack for one in points))
    names = list(shorten_attack_names([labels[attack] for attack in attacks]).values())
    found = strongest(points)
    best = unbeaten(found, lambda one: one.kept)
    named = found if len(found) <= MOST_NAMES else best
    series = [_trade(points, named, place, attack) for place, attack in enumerate(attacks)]
    panels = [Panel("", _worth_drawing(title, points, series))]
    listed, more = list(series), ""
    if _differ_in_bytes(points):
        sent = _sent_trade(found, len(attacks))
        panels = [
            Panel("Accuracy retained", panels[0].drawing),
            Panel("Bytes sent", _sent_drawing(title, points, sent)),
        ]
        listed.append(sent)
        names.append(STRONGEST)
        more = " In the second panel, higher up means fewer bytes sent in a run."
    return Plate(
        f"Privacy against utility · {title}",
        "Each point is an arm under one attack: further left means less leakage, higher up "
        "means higher accuracy. A line joins the arms that no other arm dominates under one "
        "attack; it is dashed if the attack adapts to the defenses. Not dominated under the "
        f"strongest attack on each arm: {'; '.join(make_printable(one.arm) for one in best)}.{more}",
        frontier_legend(
            names, listed, _blind(points) is not None, f"Legend: frontier, {title}"
        ),
        tuple(panels),
        _table(title, points, {one.arm for one in best}),
        False,
    )


def _trade(
    points: Sequence[FrontierPoint], named: Sequence[FrontierPoint], place: int, attack: str
) -> Trade:
    """Return one attack's points over all arms, by accuracy retained."""
    own = [one for one in points if one.attack == attack]
    return Trade(
        place,
        any(one.is_adaptive for one in own),
        [NamedDot(one.arm if one in named else "", _read(one), 100 * one.kept) for one in own],
    )


def _sent_trade(found: Sequence[FrontierPoint], place: int) -> Trade:
    """Return the points of the strongest attack on each arm, by bytes sent."""
    _, size = _unit(found)
    least = unbeaten(found, lambda one: -(one.sent or 0.0))
    named = found if len(found) <= MOST_NAMES else least
    return Trade(
        place,
        False,
        [
            NamedDot(one.arm if one in named else "", _read(one), (one.sent or 0.0) / size)
            for one in found
        ],
    )


def _worth_drawing(
    title: str, points: Sequence[FrontierPoint], trades: Sequence[Trade]
) -> Markup:
    kept = [100 * one.kept for one in points]
    low, high = min(100.0, *kept), max(100.0, *kept)
    room = max(2.0, 0.12 * (max(kept) - low))
    # Room for the names above the points.
    up = Axis("accuracy retained, %", low - room, high + 1.8 * room)
    label = f"Privacy against utility: {title}"
    return frontier_chart(trades, _blind(points), _across(points), up, label)


def _sent_drawing(title: str, points: Sequence[FrontierPoint], trade: Trade) -> Markup:
    """Draw the panel of bytes sent; the axis is reversed, so fewer bytes are higher up."""
    name, _ = _unit(points)
    most = max(point.y for point in trade.points)
    up = Axis(f"sent in a run, {name}", 1.1 * most, -0.06 * most)
    label = f"Privacy against bytes: {title}"
    return frontier_chart([trade], _blind(points), _across(points), up, label)


def _across(points: Sequence[FrontierPoint]) -> Axis:
    """Return the leakage axis; it is reversed if a lower score means more leakage."""
    measure, blind = row_measure(points[0].row), _blind(points)
    ends = [_read(one) for one in points] + ([] if blind is None else [blind])
    span = max(ends) - min(ends)
    room = max(0.08 * span, (NARROWEST * measure.factor - span) / 2)
    low, high = max(0.0, min(ends) - room), max(ends) + room
    title = f"{measure.title}{measure.unit and ','}{measure.unit}"
    if points[0].row.better == "lower":
        return Axis(title, high, low)
    return Axis(title, low, high)


def _read(one: FrontierPoint) -> float:
    """Return the leakage in the unit of the axis."""
    return row_measure(one.row).factor * one.row.value.mean


def _blind(points: Sequence[FrontierPoint]) -> float | None:
    """Return the score of an uninformed guess in the unit of the axis."""
    row = next((one.row for one in points if one.row.blind is not None), None)
    if row is None or row.blind is None:
        return None
    return row_measure(row).factor * row.blind


def _differ_in_bytes(points: Sequence[FrontierPoint]) -> bool:
    sent = {one.sent for one in points}
    return None not in sent and len(sent) > 1


def _unit(points: Sequence[FrontierPoint]) -> tuple[str, float]:
    return largest_unit(max(one.sent or 0.0 for one in points), BYTE_UNITS)


def _table(title: str, points: Sequence[FrontierPoint], best: Collection[str]) -> Table:
    measure = row_measure(points[0].row)
    return Table(
        f"{measure.title} against accuracy retained: {title}",
        (
            "Arm",
            "Attack",
            measure.title,
            "95 % interval",
            "Uninformed guess",
            "Accuracy retained, %",
            "Sent in a run",
            "Not dominated",
        ),
        tuple(
            (
                make_printable(one.arm),
                make_printable(one.label),
                measure.format(one.row.value.mean),
                measure.format_interval(one.row.value),
                measure.format(one.row.blind),
                format_number(100 * one.kept),
                format_bytes(one.sent),
                "yes" if one.arm in best else "no",
            )
            for one in points
        ),
        2,
    )
