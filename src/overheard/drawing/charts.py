"""The charts of a report; each is shown with a table of the same values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite
from textwrap import wrap

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overheard.drawing.chart_frame import (
    GUESS_DASHES,
    LINE_HEIGHT,
    ChartFrame,
    draw_intervals,
)
from overheard.drawing.legends import Dashes, LegendEntry, guess_entry, make_legend
from overheard.drawing.svg import (
    ACCENT,
    INK,
    SERIES,
    SOFT,
    inline_svg,
    name_values,
)
from overheard.findings.names import make_printable, shorten, shorten_attack_names
from overheard.findings.number_format import NO_NUMBER, Measure, reference_label
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import AttackResult
from overheard.statistics.estimate import Estimate

MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES: tuple[Dashes, ...] = ("-", "--", "-.", ":")
MAX_NAME_AT_LINE_END = 18
"""Longest name, in characters, that fits beside a chart of arms; longer ones are above."""

NAME_COLUMNS = 60
"""Longest line of a name above a line of a chart, in characters; longer ones are wrapped."""

NAME_LINE = 0.65
"""Height of a line of a name, as a share of `LINE_HEIGHT`."""


@dataclass(frozen=True, slots=True)
class RoundSeries:
    """One line of a chart over rounds.

    Args:
        name: in the legend.
        legend_index: index of the name in the legend, from 0.
        points: the value at each round.
        all_rounds: the value over all rounds together, drawn beside the last round; None =
            none.
        guess: the value of the best uninformed guess at each round; empty = none.

    """

    name: str
    legend_index: int
    points: Mapping[int, Estimate]
    all_rounds: Estimate | None
    guess: Mapping[int, float]


def arms_chart(
    attack_results: Mapping[str, Sequence[AttackResult]], measure: Measure, label: str
) -> Markup:
    """Draw one line per attack, grouped by arm: result, interval and guesses.

    `marks_legend` explains the marks. Names are beside the lines, or above them if one of them
    is too long.
    """
    short = shorten_attack_names(
        [
            attack_result.label
            for results in attack_results.values()
            for attack_result in results
        ]
    )
    is_above = any(len(name) > MAX_NAME_AT_LINE_END for name in short.values())
    left = 16.0 if is_above else 128.0
    wrapped = {
        name: wrap(make_printable(one), NAME_COLUMNS) if is_above else [make_printable(one)]
        for name, one in short.items()
    }
    pitches = {
        name: 2.0 + NAME_LINE * (len(one) - 1) if is_above else 1.0
        for name, one in wrapped.items()
    }
    lines = len(attack_results) + sum(
        pitches[one.label] for results in attack_results.values() for one in results
    )
    width, height, bottom = 400.0, 48.0 + LINE_HEIGHT * lines, 44.0
    edge = -left / (width - left - 12)

    def draw(figure: Figure) -> None:
        axes = ChartFrame(width, height, left, bottom, 12.0, 1.0).axes(figure)
        line, names = 0.0, dict[float, Sequence[str]]()
        for arm, results in attack_results.items():
            heading = shorten(arm, 44) if results else f"{shorten(arm, 30)}: not measured"
            axes.text(
                edge,
                line + 0.1,
                heading,
                transform=axes.get_yaxis_transform(),
                weight="bold",
                va="center",
            )
            for attack_result in results:
                line += pitches[attack_result.label]
                names[line] = wrapped[attack_result.label]
                where = f"{make_printable(arm)}, {' '.join(names[line])}"
                _draw_row(axes, line, attack_result.headline_row, measure, where)
            line += 1
        _draw_attack_names(axes, names, edge if is_above else None)
        axes.set_ylim(lines - 0.4, -0.6)
        axes.set_xlim(left=min(0, axes.get_xlim()[0]))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel(f"{measure.title}{measure.unit and ','}{measure.unit}")

    return inline_svg(draw, width, height, label)


def _draw_row(axes: Axes, line: float, row: ScoreRow, measure: Measure, where: str) -> None:
    value, factor = row.value, measure.factor
    if value.low is not None and value.high is not None:
        ends = (value.low * factor, value.high * factor)
        draw_intervals(axes, [line], [ends], ACCENT, is_across=True)
    marks = [
        (
            axes.plot([value.mean * factor], [line], "o", color=ACCENT, ms=7)[0],
            f"{where}: {_value_text(value, measure)}",
        )
    ]
    for name, reference in row.references.items():
        (plus,) = axes.plot([reference * factor], [line], "+", color=SOFT, ms=9, mew=1.6)
        text = f"{where}, {make_printable(name)}: {measure.format(reference)}"
        marks.append((plus, text))
    if row.best_uninformed is not None:
        (diamond,) = axes.plot(
            [row.best_uninformed * factor], [line], "D", color=INK, mfc="none", ms=7, mew=1.4
        )
        marks.append((diamond, f"{where}, guessing: {measure.format(row.best_uninformed)}"))
    for mark, text in marks:
        name_values(mark, [text])


def _value_text(value: Estimate, measure: Measure) -> str:
    """Return a value and its interval, such as "9.1 % (95 % interval: 8 to 10 %)"."""
    interval = measure.format_interval(value)
    more = "" if interval == NO_NUMBER else f" (95 % interval: {interval})"
    return f"{measure.format(value.mean)}{more}"


def _draw_attack_names(
    axes: Axes, names: Mapping[float, Sequence[str]], above: float | None
) -> None:
    """Write each name beside its line or, if `above` is an x position, above it."""
    if above is None:
        axes.set_yticks(list(names), [" ".join(name) for name in names.values()])
        return
    axes.set_yticks([])
    for position, name in names.items():
        axes.text(
            above,
            position - 0.8 - NAME_LINE / 2 * (len(name) - 1),
            "\n".join(name),
            transform=axes.get_yaxis_transform(),
            fontsize=11,
            va="center",
        )


def marks_legend(attack_results: Sequence[AttackResult], label: str) -> Markup:
    """Return the legend of a chart of arms."""
    reference = reference_label(one.headline_row for one in attack_results)
    return make_legend(
        [
            LegendEntry("attack", ACCENT, "o", None, size=7.0),
            LegendEntry("95 % interval of a score", ACCENT, width=1.5, has_caps=True),
            LegendEntry("guessing", INK, "D", None, size=7.0, is_outline=True),
            LegendEntry(reference, SOFT, "+", None, size=9.0),
        ],
        label,
    )


def rounds_chart(
    courses: Sequence[RoundSeries], rounds: Sequence[int], factor: float, top: float, label: str
) -> Markup:
    """Draw values over rounds with their intervals; `top` is the value at the upper end."""
    width, height, left, bottom = 300.0, 190.0, 44.0, 42.0
    has_whole = any(course.all_rounds for course in courses)
    beyond = rounds[-1] + max(1.0, 0.12 * (rounds[-1] - rounds[0]))

    def draw(figure: Figure) -> None:
        axes = ChartFrame(width, height, left, bottom, 14.0).axes(figure)
        for course in courses:
            _draw_series(axes, course, beyond, factor)
        ticks = list(rounds[:: ceil(len(rounds) / 6)])
        axes.set_xticks(
            [*ticks, *([beyond] if has_whole else [])],
            [*map(str, ticks), *(["all"] if has_whole else [])],
        )
        margin = max(0.3, 0.04 * (rounds[-1] - rounds[0]))
        axes.set_xlim(rounds[0] - margin, (beyond if has_whole else rounds[-1]) + margin)
        axes.set_ylim(0, factor * top * 1.06)
        axes.locator_params(axis="y", nbins=5)
        axes.tick_params(axis="y", labelcolor=SOFT)
        axes.set_xlabel("single round" if has_whole else "round")
        axes.grid(axis="y")

    return inline_svg(draw, width, height, label)


def _draw_series(axes: Axes, course: RoundSeries, beyond: float, factor: float) -> None:
    if course.guess:
        axes.plot(
            list(course.guess),
            [factor * value for value in course.guess.values()],
            color=INK,
            ls=GUESS_DASHES,
            lw=1.3,
        )
    points = dict(course.points)
    dashes, place = DASHES[course.legend_index // 6 % 4], course.legend_index
    name = make_printable(course.name)
    drawn = _draw_points(axes, place, points, factor, dashes)
    name_values(
        drawn,
        [f"{name}, round {x}: {_number_text(value, factor)}" for x, value in points.items()],
    )
    if course.all_rounds is not None:
        drawn = _draw_points(axes, place, {beyond: course.all_rounds}, factor, "")
        text = _number_text(course.all_rounds, factor)
        name_values(drawn, [f"{name}, all rounds: {text}"])


def _number_text(value: Estimate, factor: float) -> str:
    """Return a value and its interval as bare numbers; the axis has the unit."""
    return _value_text(value, Measure("", "", factor))


def _draw_points(
    axes: Axes,
    place: int,
    points: Mapping[int, Estimate] | Mapping[float, Estimate],
    factor: float,
    dashes: str,
) -> Line2D:
    """Draw the values with their intervals; return the line that has the markers."""
    colour = SERIES[place % len(SERIES)]
    (drawn,) = axes.plot(
        list(points),
        [factor * value.mean for value in points.values()],
        color=colour,
        marker=MARKERS[place % len(MARKERS)],
        ls=dashes,
        ms=5.5,
    )
    ends = {
        x: (factor * value.low, factor * value.high)
        for x, value in points.items()
        if value.low is not None and value.high is not None
    }
    draw_intervals(axes, list(ends), list(ends.values()), colour, is_across=False)
    return drawn


def legend_chart(
    names: Sequence[str], has_blind: bool, label: str, has_intervals: bool = False
) -> Markup:
    """Return the legend of charts over rounds, one name per line."""
    named = [
        LegendEntry(
            name,
            SERIES[place % len(SERIES)],
            MARKERS[place % len(MARKERS)],
            DASHES[place // 6 % 4],
        )
        for place, name in enumerate(names)
    ]
    if has_blind:
        named.append(guess_entry())
    if has_intervals:
        named.append(LegendEntry("95 % interval of a score", SOFT, width=1.5, has_caps=True))
    return make_legend(named, label)


def largest_value(courses: Sequence[RoundSeries]) -> float:
    """Return the largest value that charts of these series must show."""
    ends = [
        end
        for course in courses
        for value in (
            *course.points.values(),
            *([course.all_rounds] if course.all_rounds else []),
        )
        for end in (value.mean, value.high)
        if end is not None
    ]
    ends += [value for course in courses for value in course.guess.values()]
    return max([end for end in ends if isfinite(end)], default=1.0) or 1.0
