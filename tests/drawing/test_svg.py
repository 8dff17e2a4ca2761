"""Inline charts contain no markup from names, no fixed colours and no duplicate ids."""

import re
from xml.etree import ElementTree as Xml

import pytest
from matplotlib.figure import Figure

from overheard.drawing.svg import ACCENT, INK, inline_svg


def named(name: str) -> str:
    def draw(figure: Figure) -> None:
        axes = figure.add_axes((0.3, 0.2, 0.6, 0.7))
        axes.plot([0, 1], [0, 1], color=ACCENT, marker="o")
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
    assert tags <= {"svg", "g", "path", "use", "text", "defs", "clipPath", "rect"}
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
    assert all(f"#{name}" in first for name in ids(first))


def test_the_same_drawing_gives_the_same_bytes() -> None:
    assert named("a") == named("a")
