"""Charts as SVG."""

import re
from itertools import pairwise
from xml.etree import ElementTree as Xml

import pytest
from matplotlib.figure import Figure

from overheard.core.claims import Interval, LearningCurve
from overheard.core.parties import SERVER, client
from overheard.drawing.coverage import learning_curve_sentences
from overheard.drawing.legends import LegendEntry, make_legend
from overheard.drawing.line_charts import (
    Axis,
    TradeoffSeries,
    frontier_chart,
    histogram_chart,
)
from overheard.drawing.point_names import NamedPoint
from overheard.drawing.shares_chart import shares_chart
from overheard.drawing.svg import ACCENT, INK, inline_svg, name_values
from overheard.findings.finding import Cell, ClaimRow, Finding
from tests.runs.audits import HOSTILE


def named(name: str) -> str:
    def draw(figure: Figure) -> None:
        axes = figure.add_axes((0.3, 0.2, 0.6, 0.7))
        (line,) = axes.plot([0, 1], [0, 1], color=ACCENT, marker="o")
        name_values(line, [f"{name}: 0", f"{name}: 1"])
        axes.set_xlabel("time, s")
        axes.set_yticks([0, 1], [name, "b"])
        axes.text(0, 0, name, color=INK)

    return inline_svg(draw, 200.0, 150.0, f"chart of {name}")


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "$\\frac{1}{0}$ and $", '"><img src=x>', "八", "--><b>"],
)
def test_a_name_is_text_and_nothing_else(name: str) -> None:
    root = Xml.fromstring(named(name))
    tags = {element.tag for element in root.iter()}
    parts = {"svg", "g", "path", "use", "text", "defs", "clipPath", "rect"}
    assert tags <= parts | {"title", "desc"}
    assert [text.text for text in root.iter("text")].count(name) == 2
    assert root.get("aria-label") == f"chart of {name}"


def test_every_colour_is_a_variable_of_the_page() -> None:
    assert not re.search(r"#[0-9a-f]{6}\b(?!\")", re.sub(r'(id|href)="[^"]*"', "", named("a")))
    assert "var(--accent)" in named("a")


def test_ids_of_two_charts_differ_and_only_used_ones_stay() -> None:
    def ids(svg: str) -> set[str]:
        return set(re.findall(r' id="([^"]+)"', svg))

    first, second = named("a"), named("b")
    assert ids(first)
    assert not ids(first) & ids(second)
    assert all(f"#{name}" in first or f'by="{name}"' in first for name in ids(first))


def test_each_mark_has_its_own_value_as_text() -> None:
    marks = [
        one for one in Xml.fromstring(named("<b>")).iter("use") if one.get("class") == "value"
    ]
    assert [mark.findtext("title") for mark in marks] == ["<b>: 0", "<b>: 1"]


def test_values_that_do_not_match_the_marks_are_left_out() -> None:
    def draw(figure: Figure) -> None:
        (line,) = figure.add_axes((0.1, 0.1, 0.8, 0.8)).plot([0, 1], [0, 1], "o")
        name_values(line, ["only one"])

    assert "only one" not in inline_svg(draw, 200.0, 150.0, "two marks")


def test_the_axes_are_described_for_who_cannot_see_them() -> None:
    root = Xml.fromstring(named("a"))
    description = root.find("desc")
    assert description is not None
    assert root.get("aria-describedby") == description.get("id")
    # Of 0 to 1, matplotlib leaves 5 % free at both ends.
    expected = "Horizontal axis: time, s, from −0.05 to 1.1. A table below has the values."
    assert description.text == expected


def test_nothing_needs_a_style_attribute() -> None:
    assert "style=" not in named("a")


MARKUP = '<script>alert(1)</script>"'


def keys(*entries: LegendEntry) -> list[Xml.Element]:
    return Xml.fromstring(make_legend(entries, "names")).findall("li")


def test_names_are_text_and_never_cut() -> None:
    name = MARKUP + "long " * 60
    (item,) = keys(LegendEntry(name, INK))
    assert item.findtext("span/bdi") == name


def test_the_label_is_escaped() -> None:
    assert Xml.fromstring(make_legend([], MARKUP)).get("aria-label") == MARKUP


def test_keys_have_the_colour_of_the_page_and_no_voice() -> None:
    (item,) = keys(LegendEntry("attack", ACCENT, "o", None))
    drawn = item.find("svg")
    assert drawn is not None
    assert (drawn.get("stroke"), drawn.get("aria-hidden")) == ("var(--accent)", "true")


PERCENT = Axis("of all, %", 0.0, 100.0)


def test_the_end_of_the_axis_falls_into_the_last_bin() -> None:
    # 100 would begin an eleventh bin: one bar for it with 95, one for 5.
    bars = [histogram_chart(values, 10.0, PERCENT, f"{len(values)}") for values in (
        [5.0], [5.0, 95.0], [5.0, 95.0, 100.0],
    )]  # fmt: skip
    heights = [len(re.findall(r"var\(--accent\)", bar)) for bar in bars]
    assert heights[0] == heights[1] == heights[2]
    assert len({str(bar) for bar in bars}) == 3


def test_names_of_points_are_escaped_and_may_be_missing() -> None:
    trade = TradeoffSeries(
        0, True, [NamedPoint(HOSTILE, 10.0, 90.0), NamedPoint("", 20.0, 95.0)]
    )
    drawing = frontier_chart([trade], 5.0, PERCENT, PERCENT, "frontier")
    assert "<script" not in drawing
    words = [element.text for element in Xml.fromstring(drawing).iter("text")]
    assert any(word and word.startswith("<script") for word in words)


NAMES, GUESSED, CLAIMED = ("a", "b"), (0.5, 0.5), (0.8, 0.2)


BOUNDS = Interval((0.6, 0.0), (0.9, 0.4))


def drawn(names=NAMES, bounds: Interval | None = None) -> Xml.Element:
    return Xml.fromstring(shares_chart(names, GUESSED, CLAIMED, bounds, 0.8, "shares of x"))


def lines(root: Xml.Element, colour: str) -> list[str]:
    return [one.get("d") for one in root.iter("path") if one.get("stroke") == f"var({colour})"]


def test_dots_and_bars_are_at_their_shares_with_their_values_as_text():
    # The axes are 142 pixels wide from 72 on, for shares of 0 to 0.8: 0.5 is at 160.75, 0.8 at
    # 214, 0.2 at 107.5. Two classes of 15 pixels and 6 more are 36 high: the first is at
    # 36 * 0.6 / 2.2 = 9.82, the second at 36 * 1.6 / 2.2 = 26.18.
    root = drawn()
    dots = list(root.iter("circle"))
    assert [(one.get("cx"), one.get("cy")) for one in dots] == [
        ("214", "9.82"),
        ("107.5", "26.18"),
    ]
    assert {one.get("class") for one in dots} == {"value"}
    assert [one.findtext("title") for one in dots] == [
        "a: inferred 80 %, bar 50 %",
        "b: inferred 20 %, bar 50 %",
    ]
    assert lines(root, "--truth") == ["M72 9.82H160.75", "M72 26.18H160.75"]
    assert lines(root, "--accent") == ["M160.75 9.82H214", "M160.75 26.18H107.5"]


def test_bounds_replace_the_line_to_the_bar():
    # 0 is at 72 and 0.4 at 143; caps are 7 pixels high.
    root = drawn(bounds=BOUNDS)
    assert lines(root, "--accent")[1] == "M72 26.18H143M72 22.68v7M143 22.68v7"
    assert [one.findtext("title") for one in root.iter("circle")] == [
        "a: inferred 80 % (60 to 90 %), bar 50 %",
        "b: inferred 20 % (0 to 40 %), bar 50 %",
    ]


@pytest.mark.parametrize("name", ["<script>", '"><img src=x>', "&amp;"])
def test_a_name_of_a_share_is_text_and_nothing_else(name: str):
    root = drawn((name, "b"))
    assert {one.tag for one in root.iter()} == {"svg", "path", "text", "circle", "title"}
    assert next(root.iter("circle")).findtext("title").startswith(f"{name}: inferred")


def test_names_of_many_classes_do_not_overlap():
    names = [f"class {number}" for number in range(60)]
    chart = shares_chart(names, [1 / 60] * 60, [1 / 60] * 60, None, 0.1, "many")
    texts = [one for one in Xml.fromstring(chart).iter("text") if "class" in one.text]
    places = [float(one.get("y")) for one in texts]
    assert len(places) > 10
    assert min(low - high for high, low in pairwise(places)) >= 10


def test_every_colour_of_shares_is_a_variable_of_the_page():
    chart = shares_chart(NAMES, GUESSED, CLAIMED, BOUNDS, 0.8, "x")
    assert set(re.findall(r'(?:stroke|fill)="([^"]*)"', chart)) == {
        "none",
        *(f"var(--{name})" for name in ("line", "truth", "accent", "ink", "soft")),
    }


CELL = Cell("no defense", 0, (SERVER,), "amortised", "Amortised()", "label_shares", (0,))


def claims(*curves: LearningCurve | None) -> tuple[Finding, ...]:
    return tuple(
        Finding(CELL, (client(number),), ClaimRow((1.0,), learning_curve=curve))
        for number, curve in enumerate(curves)
    )


def test_states_each_curve_once():
    stopped = LearningCurve((160, 320), (0.25, 0.2461), 320, 1200)
    whole = LearningCurve((160,), (0.5,), 320, 320)
    assert learning_curve_sentences(claims(stopped, stopped, None, whole)) == (
        "The attacker trained 320 of 1200 virtual clients, as its own error hardly fell when "
        "their number was doubled. Its own error (L1): 0.250 with 160, 0.246 with 320.",
        "The attacker trained all 320 virtual clients. Its own error (L1): 0.500 with 160.",
    )
    assert learning_curve_sentences(claims(None)) == ()
