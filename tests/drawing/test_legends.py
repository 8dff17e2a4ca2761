"""Legends: every name in full, as text, beside a key that looks like the marks of the chart."""

from xml.etree import ElementTree as Xml

from overheard.drawing.legends import LegendEntry, guess_entry, make_legend
from overheard.drawing.svg import ACCENT, INK

HOSTILE = '<script>alert(1)</script>"'


def keys(*entries: LegendEntry) -> list[Xml.Element]:
    return Xml.fromstring(make_legend(entries, "names")).findall("li")


def test_names_are_text_and_never_cut() -> None:
    name = HOSTILE + "long " * 60
    (item,) = keys(LegendEntry(name, INK))
    assert item.findtext("span/bdi") == name


def test_the_label_is_escaped() -> None:
    assert Xml.fromstring(make_legend([], HOSTILE)).get("aria-label") == HOSTILE


def test_keys_have_the_colour_of_the_page_and_no_voice() -> None:
    (item,) = keys(LegendEntry("attack", ACCENT, "o", None))
    drawn = item.find("svg")
    assert drawn is not None
    assert (drawn.get("stroke"), drawn.get("aria-hidden")) == ("var(--accent)", "true")


def test_an_interval_has_caps_and_a_line_has_none() -> None:
    line, interval = keys(LegendEntry("a", INK), LegendEntry("b", INK, has_caps=True))
    assert len(line.findall("svg/path")) == 1
    assert len(interval.findall("svg/path")) == 2


def test_the_guess_is_dashed() -> None:
    (item,) = keys(guess_entry())
    assert item.findtext("span/bdi") == "guessing"
    assert item.find("svg/path[@stroke-dasharray]") is not None


def test_a_hollow_square_is_an_outline_around_the_middle() -> None:
    (item,) = keys(LegendEntry("a", INK, "s", None, size=4.0, is_outline=True))
    (path,) = item.findall("svg/path")
    assert path.get("fill") == "none"
    # 4 pixels wide around (17, 8), counted downwards.
    assert path.get("d", "").startswith("M15 10L19 10L19 6L15 6")
