"""The figures that set what defenses leave to be read against what they cost."""

from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from overheard.drawing.line_charts import Axis, Trade, frontier_chart, frontier_legend
from overheard.drawing.plates import Panel, Plate, Table
from overheard.drawing.point_names import NamedDot
from overheard.findings.exposures import Arm, by_threat, labels_across
from overheard.findings.figures import BYTES, data_size, digits, largest_unit
from overheard.findings.names import shown, told_apart
from overheard.plans.kinds import measure_of
from overheard.report.frontier import FrontierPoint, standings, strongest, unbeaten

STRONGEST = "the strongest upon each arm (what travels)"
"""What the legend calls the dots of the second panel."""

MOST_NAMES = 8
"""Arms that are named in a chart, whether or not another beats them."""

NARROWEST = 0.1
"""Of a score's own scale an axis shows this much at least: less would make a show of chance."""


def frontier_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """A figure for each question of a group of observers, over all arms.

    An arm is one of the best where no other leaves less to the strongest attack upon it, the
    adaptive ones among them, and has a model worth as much or more. Of more than `MOST_NAMES`
    arms those alone are named at their dots. Beside it stands what travels in a run, where arms
    differ in that.
    """
    threats = by_threat(every)
    return tuple(
        _plate(asked, held, labels_across(threats[asked]))
        for asked, held in standings(every).items()
    )


def _plate(asked: str, held: Sequence[FrontierPoint], labels: Mapping[str, str]) -> Plate:
    attacks = list(dict.fromkeys(one.attack for one in held))
    names = list(told_apart([labels[attack] for attack in attacks]).values())
    found = strongest(held)
    best = unbeaten(found, lambda one: one.kept)
    named = found if len(found) <= MOST_NAMES else best
    worth = [_trade(held, named, place, attack) for place, attack in enumerate(attacks)]
    panels = [Panel("", _worth_drawing(asked, held, worth))]
    listed, beside = list(worth), ""
    if _differ_in_bytes(held):
        sent = _sent_trade(found, len(attacks))
        panels = [
            Panel("What the model is worth", panels[0].drawing),
            Panel("What travels", _sent_drawing(asked, held, sent)),
        ]
        listed.append(sent)
        names.append(STRONGEST)
        beside = " Beside it, further up less travels in a run."
    return Plate(
        f"Privacy against utility · {asked}",
        "Each dot is an arm as one attack found it: further to the left less is read, further "
        "up the model is worth more. A line joins the arms that no other beats both ways, by "
        "one attack; it is dashed where the attack adapts to the defenses. By the strongest on "
        f"each, these stand: {'; '.join(shown(one.arm) for one in best)}.{beside}",
        frontier_legend(names, listed, _blind(held) is not None, f"Legend: frontier, {asked}"),
        tuple(panels),
        _table(asked, held, {one.arm for one in best}),
        False,
    )


def _trade(
    held: Sequence[FrontierPoint], named: Sequence[FrontierPoint], place: int, attack: str
) -> Trade:
    """How one attack fares against every arm, by what the model is worth."""
    points = [one for one in held if one.attack == attack]
    return Trade(
        place,
        any(one.is_adaptive for one in points),
        [
            NamedDot(one.arm if one in named else "", _read(one), 100 * one.kept)
            for one in points
        ],
    )


def _sent_trade(found: Sequence[FrontierPoint], place: int) -> Trade:
    """How the strongest attack on each arm fares, by what travels."""
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
    asked: str, held: Sequence[FrontierPoint], trades: Sequence[Trade]
) -> Markup:
    kept = [100 * one.kept for one in held]
    low, high = min(100.0, *kept), max(100.0, *kept)
    room = max(2.0, 0.12 * (max(kept) - low))
    # Names stand above their dots.
    up = Axis("accuracy kept, %", low - room, high + 1.8 * room)
    label = f"Privacy against utility: {asked}"
    return frontier_chart(trades, _blind(held), _across(held), up, label)


def _sent_drawing(asked: str, held: Sequence[FrontierPoint], trade: Trade) -> Markup:
    """The axis runs backwards: who sends less stands further up."""
    name, _ = _unit(held)
    most = max(point.y for point in trade.points)
    up = Axis(f"sent in a run, {name}", 1.1 * most, -0.06 * most)
    label = f"Privacy against bytes: {asked}"
    return frontier_chart([trade], _blind(held), _across(held), up, label)


def _across(held: Sequence[FrontierPoint]) -> Axis:
    """The axis of what is read; it runs backwards where a lower score reads more."""
    told, blind = measure_of(held[0].row), _blind(held)
    ends = [_read(one) for one in held] + ([] if blind is None else [blind])
    span = max(ends) - min(ends)
    room = max(0.08 * span, (NARROWEST * told.factor - span) / 2)
    low, high = max(0.0, min(ends) - room), max(ends) + room
    title = f"{told.title}{told.unit and ','}{told.unit}"
    if held[0].row.better == "lower":
        return Axis(title, high, low)
    return Axis(title, low, high)


def _read(one: FrontierPoint) -> float:
    """What is read, in the unit of the axis."""
    return measure_of(one.row).factor * one.row.value.mean


def _blind(held: Sequence[FrontierPoint]) -> float | None:
    """What a guesser reads, in the unit of the axis."""
    row = next((one.row for one in held if one.row.blind is not None), None)
    if row is None or row.blind is None:
        return None
    return measure_of(row).factor * row.blind


def _differ_in_bytes(held: Sequence[FrontierPoint]) -> bool:
    sent = {one.sent for one in held}
    return None not in sent and len(sent) > 1


def _unit(held: Sequence[FrontierPoint]) -> tuple[str, float]:
    return largest_unit(max(one.sent or 0.0 for one in held), BYTES)


def _table(asked: str, held: Sequence[FrontierPoint], best: Collection[str]) -> Table:
    told = measure_of(held[0].row)
    return Table(
        f"{told.title} against accuracy kept: {asked}",
        (
            "Arm",
            "Attack",
            told.title,
            "95 % interval",
            "Blind guess",
            "Accuracy kept, %",
            "Sent in a run",
            "Best",
        ),
        tuple(
            (
                shown(one.arm),
                shown(one.label),
                told.tell(one.row.value.mean),
                told.span(one.row.value),
                told.tell(one.row.blind),
                digits(100 * one.kept),
                data_size(one.sent),
                "yes" if one.arm in best else "no",
            )
            for one in held
        ),
        2,
    )
