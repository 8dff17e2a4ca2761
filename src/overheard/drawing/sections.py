"""The sections of a report, and merging of the sections of several questions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.drawing.figures import ReportFigure, ReportTable


@final
@dataclass(frozen=True, slots=True)
class Term:
    """A glossary entry: a term and its meaning."""

    name: str
    meaning: str


@final
@dataclass(frozen=True, slots=True)
class SectionBlock:
    """A part of a section: paragraphs, then tables, then figures.

    Args:
        heading: the heading of the block; "" for none.
        paragraphs: paragraphs of text, with names already escaped by
            `findings.names.make_printable`.
        tables: with names escaped likewise.
        figures: the figures.
        panel_width: width of one drawing of a figure, in pixels.

    """

    heading: str = ""
    paragraphs: tuple[str, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    panel_width: int = 260


@final
@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report.

    Args:
        anchor: the anchor of links to it; sections with the same anchor are merged.
        title: the title of the section.
        menu_title: its title in the table of contents.
        blocks: its parts.

    """

    anchor: str
    title: str
    menu_title: str
    blocks: tuple[SectionBlock, ...]


def merge_sections(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Merge sections with the same anchor at the place of the first; merge blocks likewise."""
    merged = dict[str, Section]()
    for section in sections:
        first = merged.get(section.anchor)
        merged[section.anchor] = (
            section
            if first is None
            else replace(first, blocks=_merge_blocks((*first.blocks, *section.blocks)))
        )
    return tuple(merged.values())


def _merge_blocks(blocks: Sequence[SectionBlock]) -> tuple[SectionBlock, ...]:
    """Merge blocks with the same heading; drop repeated paragraphs."""
    merged = dict[str, SectionBlock]()
    for block in blocks:
        first = merged.get(block.heading)
        merged[block.heading] = (
            block
            if first is None
            else replace(
                first,
                paragraphs=tuple(dict.fromkeys((*first.paragraphs, *block.paragraphs))),
                tables=(*first.tables, *block.tables),
                figures=(*first.figures, *block.figures),
            )
        )
    return tuple(merged.values())
