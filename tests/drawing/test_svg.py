"""Inline charts contain no markup from names, no fixed colours and no duplicate ids."""

import re
from xml.etree import ElementTree as Xml

import pytest
from matplotlib.figure import Figure

from overheard.drawing.svg import ACCENT, INK, inline_svg, name_values


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
