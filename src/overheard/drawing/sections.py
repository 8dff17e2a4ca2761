"""What stands in a section of a report, and how sections of several questions become one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.drawing.plates import Plate, Table


@final
@dataclass(frozen=True, slots=True)
class Term:
    """A line of the glossary: a term, and what it means."""

    name: str
    meaning: str


@final
@dataclass(frozen=True, slots=True)
class SectionBlock:
    """A part of a section: paragraphs, then tables, then figures.

    Args:
        heading: above it; "" where it needs none.
        paragraphs: of text. Names in it are already as `findings.names.shown` has them.
        tables: likewise.
        plates: the figures.
        panel_width: of one drawing of a figure, in pixels.

    """

    heading: str = ""
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    plates: tuple[Plate, ...] = ()
    panel_width: int = 260


@final
@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report.

    Args:
        anchor: of links to it; sections with the same one become one.
        title: above it.
        menu_title: in the contents.
        blocks: its parts.

    """

    anchor: str
    title: str
    menu_title: str
    blocks: tuple[SectionBlock, ...]


def merge_sections(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Sections of one anchor become one in place of the first, blocks of one heading too."""
    held = dict[str, Section]()
    for section in sections:
        first = held.get(section.anchor)
        held[section.anchor] = (
            section
            if first is None
            else replace(first, blocks=_merge_blocks((*first.blocks, *section.blocks)))
        )
    return tuple(held.values())


def _merge_blocks(blocks: Sequence[SectionBlock]) -> tuple[SectionBlock, ...]:
    """Blocks of one heading become one; a paragraph that two have stands there once."""
    held = dict[str, SectionBlock]()
    for block in blocks:
        first = held.get(block.heading)
        held[block.heading] = (
            block
            if first is None
            else replace(
                first,
                paragraphs=tuple(dict.fromkeys((*first.paragraphs, *block.paragraphs))),
                tables=(*first.tables, *block.tables),
                plates=(*first.plates, *block.plates),
            )
        )
    return tuple(held.values())
