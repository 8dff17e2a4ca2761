"""Converts a matplotlib figure to inline SVG in the colours of the page."""

import json
import re
import warnings
from collections.abc import Callable, Sequence
from hashlib import blake2b
from io import StringIO
from xml.etree import ElementTree as Xml

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

from overheard.findings.number_format import format_number

# Placeholder colours: the page chooses the real ones, which matplotlib cannot know.
INK = "#010101"
SOFT = "#010102"
GRID = "#010103"
TRUTH = "#010104"
ACCENT = "#010105"
SERIES = ("#010111", "#010112", "#010113", "#010114", "#010115", "#010116")

PAGE_COLOURS = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    GRID: "var(--line)",
    TRUTH: "var(--truth)",
    ACCENT: "var(--accent)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, 1)},
}

_PAPER_COLOURS = {
    INK: "#1d2429",
    SOFT: "#56616a",
    GRID: "#dedbd3",
    TRUTH: "#c3ccd0",
    ACCENT: "#0b6168",
    **dict(
        zip(
            SERIES,
            ("#0b6168", "#b4520f", "#5b4fa8", "#8a1f4f", "#3f6d1f", "#57606a"),
            strict=True,
        )
    ),
}
"""The colours of the page in its light scheme."""

_COLOURED = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")

_STYLE: dict[RcKeyType, object] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and takes the page's font
    "text.parse_math": False,  # a name with two $ is not a formula
    "text.usetex": False,
    "font.size": 12,
    "axes.edgecolor": GRID,
    "axes.labelcolor": SOFT,
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.titlesize": 12,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 12,
    "lines.linewidth": 1.8,
    "text.color": INK,
    "xtick.color": GRID,
    "xtick.labelcolor": SOFT,
    "ytick.color": GRID,
    "ytick.labelcolor": INK,
}


_VALUES = "values "
"""How the id of an artist begins whose marks have texts."""

VALUE_CLASS = "value"
"""The class of an SVG element that shows a value; its `title` tells the value."""


def name_values(artist: Artist, texts: Sequence[str]) -> None:
    """Give each mark of an artist a text, which the page shows on hover and on focus.

    Args:
        artist: a line with one marker per text, or one patch.
        texts: the texts, in the order of the marks.

    """
    artist.set_gid(_VALUES + json.dumps(list(texts)))


class Chart(Markup):
    """A chart as an `svg` element, which can be drawn again as a matplotlib figure."""

    draw: Callable[[Figure], None]
    size: tuple[float, float]

    def to_figure(self) -> Figure:
        """Return the chart as a figure, in the colours of the page's light scheme."""
        with mpl.rc_context(_STYLE):
            figure = _draw(self.draw, self.size)
        figure.set_facecolor("white")
        for artist in figure.findobj():
            for name in _COLOURED:
                _use_paper_colours(artist, name)
        return figure


def inline_svg(
    draw: Callable[[Figure], None], width: float, height: float, label: str
) -> Chart:
    """Draw a chart as an `svg` element for an HTML page.

    The same drawing gives the same bytes. The page must set the CSS variables of the colours.

    Args:
        draw: draws the chart on an empty figure.
        width: the width of the chart in CSS pixels; the page may scale it.
        height: the height of the chart in CSS pixels.
        label: name of the chart for screen readers; unique on its page, since the chart's
            internal references are derived from it. A description of the axes is added.

    """
    salt = blake2b(label.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()
    text = StringIO()
    with mpl.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # Matplotlib's font is used for the layout only; the reader's browser has the glyph.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        figure = _draw(draw, (width, height))
        figure.savefig(text, format="svg", metadata={"Date": None})
    root = _prepare_svg(text.getvalue())
    _describe(root, label, figure.axes, f"d{salt}")
    chart = Chart(Xml.tostring(root, encoding="unicode"))
    chart.draw, chart.size = draw, (width, height)
    return chart


def _draw(draw: Callable[[Figure], None], size: tuple[float, float]) -> Figure:
    width, height = size
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    draw(figure)
    return figure


def _use_paper_colours(artist: Artist, name: str) -> None:
    """Replace a placeholder colour of an artist, or those of a collection."""
    get, put = (getattr(artist, f"{verb}_{name}", None) for verb in ("get", "set"))
    if get is None or put is None:
        return
    colours = to_rgba_array(get())
    hexes = [to_hex(colour) for colour in colours]
    if not any(one in _PAPER_COLOURS for one in hexes):
        return
    replaced = [
        to_rgba(_PAPER_COLOURS.get(one, one), colour[3])
        for one, colour in zip(hexes, colours, strict=True)
    ]
    put(replaced if isinstance(artist, Collection) else replaced[0])


def _prepare_svg(svg: str) -> Xml.Element:
    """Return the drawing with unique ids, in the page's colours, and without style attributes.

    The page's security policy forbids style attributes.
    """
    root = Xml.fromstring(svg)
    used = set(re.findall(r'url\(#(\w+)\)|href="#(\w+)"', svg))
    referenced = {name for pair in used for name in pair}
    for element in list(root.iter()):
        _add_values(element)
    for element in root.iter():
        element.tag = element.tag.partition("}")[2]
        element.text = (element.text or "").strip() or None
        element.tail = None
        for name in list(element.attrib):
            value = element.attrib.pop(name)
            plain = name.partition("}")[2] or name
            if plain == "style":
                element.attrib.update(_presentation(value))
            # Every chart uses the same ids, but ids must be unique on a page.
            elif plain != "id" or value in referenced:
                element.set(plain, value)
    for parent in reversed(list(root.iter())):
        for child in list(parent):
            if child.tag in ("metadata", "style") or (child.tag == "defs" and not len(child)):
                parent.remove(child)
    width, height = root.get("viewBox", "").split()[2:]
    root.attrib.pop("version", None)
    root.attrib.update(width=width, height=height)
    return root


def _add_values(element: Xml.Element) -> None:
    """Write the texts that `name_values` gave an artist into its marks."""
    name = element.get("id", "")
    if not name.startswith(_VALUES):
        return
    marks = [one for one in element.iter() if one.tag.endswith("use")] or list(element)
    texts = json.loads(name.removeprefix(_VALUES))
    # Matplotlib leaves out marks beyond the chart; then the texts have no clear owner.
    if len(marks) == len(texts):
        for mark, text in zip(marks, texts, strict=True):
            mark.set("class", VALUE_CLASS)
            Xml.SubElement(mark, "{}title").text = text


def _describe(root: Xml.Element, label: str, all_axes: Sequence[Axes], name: str) -> None:
    """Give a drawing its name and a description for screen readers."""
    root.set("role", "img")
    root.set("aria-label", label)
    parts = [_describe_axes(axes) for axes in all_axes]
    if text := " ".join(filter(None, parts)):
        description = Xml.Element("desc", id=name)
        description.text = f"{text} A table below has the values."
        root.insert(0, description)
        root.set("aria-describedby", name)


def _describe_axes(axes: Axes) -> str:
    """Return what the axes show and from where to where; "" = they have no titles."""
    sides = (
        ("Horizontal", axes.get_xlabel(), axes.get_xlim()),
        ("Vertical", axes.get_ylabel(), axes.get_ylim()),
    )
    return " ".join(
        f"{side} axis: {title}, from {format_number(ends[0])} to {format_number(ends[1])}."
        for side, title, ends in sides
        if title
    )


def _presentation(style: str) -> dict[str, str]:
    """Return the declarations of a style attribute as attributes of SVG."""
    pairs = (one.partition(":") for one in style.split(";") if ":" in one)
    return {
        name.strip(): re.sub(
            r"#0101\w\w", lambda found: PAGE_COLOURS[found.group()], value.strip()
        )
        for name, _, value in pairs
        if name.strip() != "font-family"
    }
