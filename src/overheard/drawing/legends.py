"""Legends of charts, as lists whose names wrap like any text of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from markupsafe import Markup
from matplotlib.markers import MarkerStyle

from overheard.drawing.svg import INK, PAGE_COLOURS
from overheard.findings.names import make_printable

Dashes = Literal["-", "--", "-.", ":"]
"""How a line is dashed, in matplotlib's words."""

_LENGTHS: dict[Dashes, str] = {"-": "", "--": "5 3", "-.": "7 2 2 2", ":": "2 3"}
"""Lengths of dashes and gaps, in pixels."""

_WIDTH, _HEIGHT = 34, 16
"""Size of a key, in pixels."""


@final
@dataclass(frozen=True, slots=True)
class LegendEntry:
    """An entry of a legend: a key and its name.

    Args:
        name: the name, of any length.
        colour: a colour of `svg`.
        marker: a marker of matplotlib; "" = none.
        dashes: how the line is dashed; None = no line.
        width: width of the line, in pixels.
        size: size of the marker, in pixels.
        is_outline: whether the marker is an outline.
        has_caps: whether the line is an interval with caps at its ends.
        opacity: opacity of the line.

    """

    name: str
    colour: str
    marker: str = ""
    dashes: Dashes | None = "-"
    width: float = 1.8
    size: float = 5.5
    is_outline: bool = False
    has_caps: bool = False
    opacity: float = 1.0


def guess_entry() -> LegendEntry:
    """Return the legend entry of the uninformed guess."""
    return LegendEntry("guessing", INK, dashes="--", width=1.3)


def make_legend(entries: Sequence[LegendEntry], label: str) -> Markup:
    """Return a list of keys and names; `label` says what it is the legend of."""
    items = Markup("").join(
        Markup("<li>{}<span><bdi>{}</bdi></span></li>").format(
            _key(one), make_printable(one.name)
        )
        for one in entries
    )
    return Markup('<ul class="keys" aria-label="{}">{}</ul>').format(label, items)


def _key(entry: LegendEntry) -> Markup:
    """Return the line and the marker of an entry as an `svg` element."""
    parts = []
    middle = _HEIGHT / 2
    if entry.dashes is not None:
        parts.append(
            Markup('<path d="M2 {0}H32" stroke-width="{1}"{2}{3}/>').format(
                f"{middle:g}",
                f"{entry.width:g}",
                _attribute("stroke-dasharray", _LENGTHS[entry.dashes]),
                _attribute("opacity", "" if entry.opacity == 1 else f"{entry.opacity:g}"),
            )
        )
    if entry.has_caps:
        parts.append(Markup('<path d="M2 4V12M32 4V12" stroke-width="1.5"/>'))
    if entry.marker:
        parts.append(_marker(entry))
    return Markup(
        '<svg viewBox="0 0 {0} {1}" width="{0}" height="{1}" aria-hidden="true" fill="none" '
        'stroke="{2}">{3}</svg>'
    ).format(_WIDTH, _HEIGHT, PAGE_COLOURS[entry.colour], Markup("").join(parts))


def _marker(entry: LegendEntry) -> Markup:
    """Return a marker in the middle of a key, in matplotlib's shape."""
    style = MarkerStyle(entry.marker)
    shape = style.get_path().transformed(style.get_transform())
    outline = "".join(
        "M" + "L".join(_corner(x, y, entry) for x, y in np.asarray(line).tolist())
        for line in shape.to_polygons(closed_only=False)
    )
    fill = "none" if entry.is_outline else PAGE_COLOURS[entry.colour]
    return Markup('<path d="{}" stroke-width="1.5" fill="{}"/>').format(outline, fill)


def _corner(x: float, y: float, entry: LegendEntry) -> str:
    """Return the place of a corner of a marker; SVG counts downwards."""
    return f"{_WIDTH / 2 + entry.size * x:.4g} {_HEIGHT / 2 - entry.size * y:.4g}"


def _attribute(name: str, value: str) -> Markup:
    return Markup(' {}="{}"').format(name, value) if value else Markup("")
