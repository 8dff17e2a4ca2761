"""Sections of several questions become one, and nothing of either is lost."""

from overheard.drawing.plates import Table
from overheard.drawing.sections import Section, SectionBlock, merge_sections

ONE, OTHER = (Table(name, ("a",), (("b",),), 1) for name in ("one", "other"))


def section(anchor: str, *blocks: SectionBlock) -> Section:
    return Section(anchor, anchor.upper(), anchor, blocks)


def test_sections_of_one_anchor_become_one_in_place_of_the_first() -> None:
    held = merge_sections(
        (section("a", SectionBlock()), section("b", SectionBlock()), section("a"))
    )
    assert [one.anchor for one in held] == ["a", "b"]


def test_blocks_of_one_heading_become_one_and_say_nothing_twice() -> None:
    (held,) = merge_sections(
        (
            section("a", SectionBlock("", ("note",)), SectionBlock("tables", tables=(ONE,))),
            section(
                "a", SectionBlock("", ("note", "more")), SectionBlock("tables", tables=(OTHER,))
            ),
        )
    )
    assert held.blocks == (
        SectionBlock("", ("note", "more")),
        SectionBlock("tables", tables=(ONE, OTHER)),
    )
