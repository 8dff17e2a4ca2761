"""The charts of a report; each is shown with a table of the same values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overheard.core.claims import Interval
from overheard.drawing.chart_frame import (
    GUESS_DASHES,
    LINE_HEIGHT,
    ChartFrame,
    guess_line,
    legend_text,
    list_legend,
)
from overheard.drawing.svg import ACCENT, INK, SERIES, SOFT, TRUTH, inline_svg
from overheard.findings.names import make_printable, shorten, shorten_attack_names
from overheard.findings.number_format import Measure, reference_label
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import AttackResult
from overheard.statistics.estimate import Estimate

MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":")
MAX_NAME_AT_LINE_END = 18
"""Longest name, in characters, that fits beside a chart of arms; longer ones are above."""


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

    Names are beside the lines, or above them if one of them is too long.
    """
    short = shorten_attack_names(
        [
            attack_result.label
            for results in attack_results.values()
            for attack_result in results
        ]
    )
    is_above = any(len(name) > MAX_NAME_AT_LINE_END for name in short.values())
    pitch, left = (2, 16.0) if is_above else (1, 128.0)
    lines = sum(1 + pitch * len(results) for results in attack_results.values())
    reference = reference_label(
        attack_result.headline_row
        for results in attack_results.values()
        for attack_result in results
    )
    width, height, bottom = 400.0, 80.0 + LINE_HEIGHT * lines, 76.0
    edge = -left / (width - left - 12)

    def draw(figure: Figure) -> None:
        axes = ChartFrame(width, height, left, bottom, 12.0, 1.0).axes(figure)
        line, names = 0, dict[int, str]()
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
            for number, attack_result in enumerate(results, 1):
                position = line + pitch * number
                _draw_row(axes, position, attack_result.headline_row, measure.factor)
                names[position] = short[attack_result.label]
            line += 1 + pitch * len(results)
        _draw_attack_names(axes, names, edge if is_above else None)
        axes.set_ylim(lines - 0.4, -0.6)
        axes.set_xlim(left=min(0, axes.get_xlim()[0]))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel(f"{measure.title}{measure.unit and ','}{measure.unit}")
        _draw_marks_legend(figure, reference)

    return inline_svg(draw, width, height, label)


def _draw_row(axes: Axes, line: int, row: ScoreRow, factor: float) -> None:
    value = row.value
    if value.low is not None and value.high is not None:
        axes.plot([value.low * factor, value.high * factor], [line, line], color=ACCENT, lw=3)
    axes.plot([value.mean * factor], [line], "o", color=ACCENT, ms=7)
    for reference in row.references.values():
        axes.plot([reference * factor], [line], "+", color=SOFT, ms=9, mew=1.6)
    if row.blind is not None:
        axes.plot([row.blind * factor], [line], "D", color=INK, mfc="none", ms=7, mew=1.4)


def _draw_attack_names(axes: Axes, names: Mapping[int, str], above: float | None) -> None:
    """Write each name beside its line or, if `above` is an x position, above it."""
    if above is None:
        axes.set_yticks(list(names), list(map(make_printable, names.values())))
        return
    axes.set_yticks([])
    for position, name in names.items():
        axes.text(
            above,
            position - 0.8,
            shorten(name, 62),
            transform=axes.get_yaxis_transform(),
            fontsize=11,
            va="center",
        )


def _draw_marks_legend(figure: Figure, reference: str) -> None:
    """Add the legend of a chart of arms."""
    figure.legend(
        handles=[
            Line2D([], [], color=ACCENT, marker="o", label="attack, 95 % interval"),
            Line2D([], [], color=INK, marker="D", mfc="none", ls="", label="guessing"),
            Line2D([], [], color=SOFT, marker="+", ms=9, mew=1.6, ls="", label=reference),
        ],
        loc="lower left",
        ncols=3,
        columnspacing=0.9,
        handletextpad=0.4,
        handlelength=1.5,
        borderaxespad=0,
    )


def shares_chart(
    names: Sequence[str],
    true: Sequence[float],
    claimed: Sequence[float],
    bounds: Interval | None,
    top: float,
    label: str,
) -> Markup:
    """Draw true shares as bars and claimed ones as dots; `top` is the share at the right end.

    A line joins each dot with the end of its bar or, if the claim has bounds, the two bounds.
    """
    step = min(15.0, max(3.0, 210 / len(names)))
    width, left, bottom = 230.0, 72.0, 24.0
    height = bottom + 6 + step * len(names)
    name_interval = ceil(11 / step)

    def draw(figure: Figure) -> None:
        axes = ChartFrame(width, height, left, bottom, 16.0, 1.0).axes(figure)
        places = list(range(len(names)))
        axes.hlines(places, 0, [100 * share for share in true], color=TRUTH, lw=0.68 * step)
        low, high = (true, claimed) if bounds is None else (bounds.low, bounds.high)
        axes.hlines(
            places,
            [100 * share for share in low],
            [100 * share for share in high],
            color=ACCENT,
            lw=1.2 if bounds is None else 1.8,
        )
        axes.plot(
            [100 * share for share in claimed],
            places,
            "o",
            color=ACCENT,
            ms=min(6.0 if bounds is None else 5.0, 0.75 * step),
            clip_on=False,
            zorder=3,
        )
        axes.set_yticks(
            places[::name_interval], [shorten(name, 10) for name in names[::name_interval]]
        )
        axes.tick_params(axis="y", length=0, labelsize=11)
        axes.tick_params(axis="x", labelsize=11)
        axes.set_xlim(0, 100 * top)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.locator_params(axis="x", nbins=3)
        axes.xaxis.set_major_formatter("{x:g} %")
        axes.grid(axis="x")

    return inline_svg(draw, width, height, label)


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
    _draw_points(
        axes, course.legend_index, points, factor, DASHES[course.legend_index // 6 % 4]
    )
    if course.all_rounds is not None:
        _draw_points(axes, course.legend_index, {beyond: course.all_rounds}, factor, "")


def _draw_points(
    axes: Axes,
    place: int,
    points: Mapping[int, Estimate] | Mapping[float, Estimate],
    factor: float,
    dashes: str,
) -> None:
    colour = SERIES[place % len(SERIES)]
    axes.plot(
        list(points),
        [factor * value.mean for value in points.values()],
        color=colour,
        marker=MARKERS[place % len(MARKERS)],
        ls=dashes,
        ms=5.5,
    )
    ends = [
        (x, factor * value.low, factor * value.high)
        for x, value in points.items()
        if value.low is not None and value.high is not None
    ]
    if ends:
        axes.vlines(*zip(*ends, strict=True), color=colour, lw=1.2)


def legend_chart(names: Sequence[str], has_blind: bool, label: str) -> Markup:
    """Draw the legend of charts over rounds, one name per line."""

    def lines() -> list[Line2D]:
        named = [
            Line2D(
                [], [],
                color=SERIES[place % len(SERIES)],
                marker=MARKERS[place % len(MARKERS)],
                ls=DASHES[place // 6 % 4],
                ms=5.5,
                label=legend_text(name),
            )
            for place, name in enumerate(names)
        ]  # fmt: skip
        return [*named, guess_line()] if has_blind else named

    return list_legend(lines, names, int(has_blind), label)


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
