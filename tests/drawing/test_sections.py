"""Sections of several questions are merged without loss."""

from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import Section, SectionBlock, merge_sections

ONE, OTHER = (ReportTable(name, ("a",), (("b",),), 1) for name in ("one", "other"))


def section(anchor: str, *blocks: SectionBlock) -> Section:
    return Section(anchor, anchor.upper(), anchor, blocks)


def test_merges_blocks_with_the_same_heading_without_repetition() -> None:
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
