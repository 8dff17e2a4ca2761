"""The chart of one target's shares, written as SVG: a report has up to 24 for each attack.

Matplotlib takes forty times as long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import final

from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from overheard.core.claims import Interval
from overheard.drawing.chart_frame import CAP_SIZE
from overheard.drawing.legends import LegendEntry, make_legend
from overheard.drawing.svg import ACCENT, GRID, INK, PAGE_COLOURS, SOFT, TRUTH, VALUE_CLASS
from overheard.findings.names import make_printable, shorten
from overheard.findings.number_format import format_number

_WIDTH, _LEFT, _RIGHT, _BOTTOM = 230.0, 72.0, 16.0, 24.0
"""Width of the chart and the room around its axes, in pixels."""

_TEXT = Markup('<text x="{}" y="{}" font-size="11px" text-anchor="{}" fill="{}">{}</text>')
_LINE = Markup('<path d="{}" fill="none" stroke="{}" stroke-width="{}"{}/>')
_DOT = Markup('<circle class="{}" cx="{}" cy="{}" r="{}" fill="{}"><title>{}</title></circle>')

_DOTS = Markup(' stroke-dasharray="1.2 1.98"')


def shares_chart(
    names: Sequence[str],
    true: Sequence[float],
    claimed: Sequence[float],
    bounds: Interval | None,
    top: float,
    label: str,
) -> Markup:
    """Draw true shares as bars and claimed ones as dots; `top` is the share at the right end.

    A dotted line joins each dot with the end of its bar. If the claim has bounds, a line with
    caps joins them instead.
    """
    step = min(15.0, max(3.0, 210 / len(names)))
    height = _BOTTOM + 6 + step * len(names)
    frame = _Frame(len(names), top, height)
    parts = [
        *_draw_axes(frame, names, ceil(11 / step)),
        *_draw_shares(frame, true, claimed, bounds, step),
    ]
    radius = min(6.0 if bounds is None else 5.0, 0.75 * step) / 2 + 0.5
    texts = _share_texts(names, true, claimed, bounds)
    for place, (share, text) in enumerate(zip(claimed, texts, strict=True)):
        x, y = _number(frame.x(share)), _number(frame.y(place))
        colour = PAGE_COLOURS[ACCENT]
        parts.append(_DOT.format(VALUE_CLASS, x, y, f"{radius:g}", colour, text))
    return Markup(
        '<svg width="{0:g}" height="{1:g}" viewBox="0 0 {0:g} {1:g}" role="img" '
        'aria-label="{2}">{3}</svg>'
    ).format(_WIDTH, height, label, Markup("").join(parts))


def shares_legend(bar: str, interval: str, label: str) -> Markup:
    """Return the legend of charts of shares.

    Args:
        bar: what the bars show; "" = there are none.
        interval: name of the claims' intervals; "" = they have none.
        label: what it is the legend of.

    """
    entries = [LegendEntry("inferred share", ACCENT, "o", None, size=6.0)]
    if bar:
        entries.append(LegendEntry(bar, TRUTH, width=10.0))
    if interval:
        entries.append(LegendEntry(interval, ACCENT, width=1.5, has_caps=True))
    elif bar:
        entries.append(
            LegendEntry("difference of the two shares", ACCENT, dashes=":", width=1.2)
        )
    return make_legend(entries, label)


@final
@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a chart has its shares and its classes, in pixels."""

    classes: int
    top: float
    height: float

    @property
    def bottom(self) -> float:
        """The lower end of the axes."""
        return self.height - _BOTTOM

    def x(self, share: float) -> float:
        """Return the place of a share."""
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * share / self.top

    def y(self, place: int) -> float:
        """Return the place of a class; there is room of .6 classes above and below."""
        return self.bottom * (place + 0.6) / (self.classes + 0.2)


def _draw_axes(frame: _Frame, names: Sequence[str], name_interval: int) -> Iterator[Markup]:
    """Draw the lines of some shares, and write the shares and the names of classes."""
    grid, bottom = PAGE_COLOURS[GRID], _number(frame.bottom)
    steps = MaxNLocator(nbins=3, steps=[1, 2, 2.5, 5, 10])
    for percent in map(float, steps.tick_values(0, 100 * frame.top)):
        if 0 <= percent <= 100 * frame.top:
            x = _number(frame.x(percent / 100))
            yield _LINE.format(f"M{x} {frame.bottom + 3.5:g}V0", grid, "0.8", "")
            text = f"{percent:g} %"
            yield _TEXT.format(
                x, _number(frame.bottom + 15.36), "middle", PAGE_COLOURS[SOFT], text
            )
    yield _LINE.format(f"M{_LEFT:g} 0V{bottom}H{_WIDTH - _RIGHT:g}", grid, "0.8", "")
    for place in range(0, len(names), name_interval):
        y = _number(frame.y(place) + 4.18)
        name = shorten(names[place], 10)
        yield _TEXT.format(f"{_LEFT - 3.5:g}", y, "end", PAGE_COLOURS[INK], name)


def _draw_shares(
    frame: _Frame,
    true: Sequence[float],
    claimed: Sequence[float],
    bounds: Interval | None,
    step: float,
) -> Iterator[Markup]:
    """Draw the bars, and the line of each claim or of its bounds."""
    accent, cap = PAGE_COLOURS[ACCENT], min(CAP_SIZE, 0.6 * step) / 2
    for place, share in enumerate(true):
        y, end = _number(frame.y(place)), _number(frame.x(share))
        bar = f"M{_LEFT:g} {y}H{end}"
        yield _LINE.format(bar, PAGE_COLOURS[TRUTH], f"{0.68 * step:g}", "")
        if bounds is None:
            line = f"M{end} {y}H{_number(frame.x(claimed[place]))}"
            yield _LINE.format(line, accent, "1.2", _DOTS)
            continue
        low = _number(frame.x(bounds.low[place]))
        high = _number(frame.x(bounds.high[place]))
        above = _number(frame.y(place) - cap)
        caps = "".join(f"M{x} {above}v{_number(2 * cap)}" for x in (low, high))
        yield _LINE.format(f"M{low} {y}H{high}{caps}", accent, "1.5", "")


def _share_texts(
    names: Sequence[str],
    true: Sequence[float],
    claimed: Sequence[float],
    bounds: Interval | None,
) -> list[str]:
    """Return for each class the inferred share, its bounds, and what the bar shows."""
    texts = []
    for index, name in enumerate(names):
        interval = ""
        if bounds is not None:
            low, high = 100 * bounds.low[index], 100 * bounds.high[index]
            interval = f" ({format_number(low)} to {format_number(high)} %)"
        texts.append(
            f"{make_printable(name)}: inferred {format_number(100 * claimed[index])} %"
            f"{interval}, bar {format_number(100 * true[index])} %"
        )
    return texts


def _number(value: float) -> str:
    """Return a place in pixels, exact enough for any screen.

    >>> _number(92.285715), _number(72.0)
    ('92.29', '72')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")
