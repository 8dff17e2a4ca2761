"""Legends: every name in full, as text, beside a key that looks like the marks of the chart."""

from xml.etree import ElementTree as Xml

from overheard.drawing.legends import LegendEntry, make_legend
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
