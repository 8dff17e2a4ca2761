"""The chart of a target's shares: bars, dots and intervals where the shares are."""

import re
from itertools import pairwise
from xml.etree import ElementTree as Xml

import pytest

from overheard.core.claims import Interval
from overheard.drawing.shares_chart import shares_chart

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
def test_a_name_is_text_and_nothing_else(name: str):
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


def test_every_colour_is_a_variable_of_the_page():
    chart = shares_chart(NAMES, GUESSED, CLAIMED, BOUNDS, 0.8, "x")
    assert set(re.findall(r'(?:stroke|fill)="([^"]*)"', chart)) == {
        "none",
        *(f"var(--{name})" for name in ("line", "truth", "accent", "ink", "soft")),
    }
