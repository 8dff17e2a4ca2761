"""Names in the columns of a table: classes, users and values of attributes, as written."""

import re
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import final

import torch

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import DataError
from overheard.data.reading.arrays import checked_names
from overheard.data.reading.tables import CategoricalColumn
from overheard.data.reading.text_table import MISSING_VALUES, TextColumn, merge_texts

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
"""A number that may stand as a name, such as 7, 007 or 1E1."""

_ANY_NUMBER = Decimal(0)

MAX_QUOTED = 3
"""The most examples that a sentence names."""


def read_names_of_column(path: Path, name: str, column: TextColumn) -> CategoricalColumn:
    """Return a column of names as they are written: 01 and 1 are two, and so are 7 and 7.0.

    If all are numbers, they are in the order of their size, else in that of their letters. Only
    the Unicode forms of one word (such as é as one or as two characters) are one name.

    Raises:
        DataError: if a cell is missing, or a name is too long or has control characters.

    """
    if "" in column.texts:
        row = column.row_of(column.texts.index(""))
        raise DataError(
            f"{path}: column {name!r} must not have empty cells, as in row {row}: drop those "
            "rows"
        )
    column, notes = merge_unicode_forms(name, column)
    checked_names(path, name, column.texts)
    ordered = sorted(column.texts, key=name_order(column.texts))
    place = {text: number for number, text in enumerate(ordered)}
    ranks = torch.tensor([place[text] for text in column.texts])
    return CategoricalColumn(ranks[torch.from_numpy(column.codes)], tuple(ordered), notes)


def merge_unicode_forms(name: str, column: TextColumn) -> tuple[TextColumn, tuple[str, ...]]:
    """Make the Unicode forms of a word one text, and note it; other texts stay as they are."""
    groups = _groups(column.texts, _unicode_form)
    if not groups:
        return column, ()
    several = [_unicode_form(group[0]) for group in groups]
    replacement = {
        text: form for form, group in zip(several, groups, strict=True) for text in group
    }
    merged = merge_texts(column, [replacement.get(text, text) for text in column.texts])
    return merged, (
        f"Column {name!r} has {_quoted(several)} in several forms of Unicode, read as one.",
    )


def name_order(texts: tuple[str, ...]) -> "NameOrder":
    """Return the order of these names: by size if all are numbers, else by their letters."""
    return NameOrder(all(NUMBER.fullmatch(text) for text in texts))


@final
@dataclass(frozen=True, slots=True)
class NameOrder:
    """The key by which names are sorted; `are_numbers` = all of them are numbers."""

    are_numbers: bool

    def __call__(self, text: str) -> tuple[Decimal, str]:
        """Return the key of a name."""
        return (Decimal(text) if self.are_numbers else _ANY_NUMBER, text)


def spelled_alike(texts: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return groups of names that differ by blanks, final dots or capitals alone.

    >>> spelled_alike(("sick", "well", "Sick "))
    (('sick', 'Sick '),)
    """
    return _groups(texts, _plain_spelling)


def merge_spellings(column: TextColumn) -> tuple[TextColumn, tuple[str, ...]]:
    """Make names that are spelled alike one: the most frequent spelling; and note it."""
    counts = dict(zip(column.texts, column.counts().tolist(), strict=True))
    chosen, notes = dict[str, str](), list[str]()
    for group in spelled_alike(column.texts):
        common = max(group, key=lambda text: (counts[text], -len(text)))
        chosen |= dict.fromkeys(group, common)
        notes.append(f"The labels {_quoted(group)} are read as {printable_excerpt(common)!r}.")
    return merge_texts(column, [chosen.get(text, text) for text in column.texts]), tuple(notes)


def refuse_spellings(path: Path, name: str, column: TextColumn) -> None:
    """Refuse labels that are probably one, in several spellings.

    Raises:
        DataError: if there are any; the message says how to merge them, and how to keep them.

    """
    for group in spelled_alike(column.texts):
        raise DataError(
            f"{path}: column {name!r} has the labels {_quoted(group)}, which differ by blanks, "
            'final dots or capitals alone: correct them, or set spellings = "merged" in the '
            'plan\'s source to make them one class, or spellings = "kept" for classes of their '
            "own"
        )


def equal_numbers(texts: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return groups of names that are the same number, such as 7, 7.0 and 007."""
    return _groups([text for text in texts if NUMBER.fullmatch(text)], Decimal)


def _groups(
    texts: Sequence[str], key: Callable[[str], Hashable]
) -> tuple[tuple[str, ...], ...]:
    """Return groups of several texts with one key, in the order of their first texts."""
    # Millions of texts may differ, so that only keys of several ones get a list.
    seen, repeated = set[Hashable](), set[Hashable]()
    for one in map(key, texts):
        (repeated if one in seen else seen).add(one)
    if not repeated:
        return ()
    del seen
    groups = dict[Hashable, list[str]]()
    for text in texts:
        if (one := key(text)) in repeated:
            groups.setdefault(one, []).append(text)
    return tuple(map(tuple, groups.values()))


def note_names_alike(name: str, column: CategoricalColumn, noun: str) -> tuple[str, ...]:
    """Return a note on names that may be no names, or are one in two spellings; they stay."""
    if missing := [text for text in column.names if text.strip() in MISSING_VALUES]:
        return (
            f"Column {name!r}: {_quoted(missing)} is one of the {noun}, as written. If it "
            "stands for a missing one, drop those rows.",
        )
    alike = [*spelled_alike(column.names), *equal_numbers(column.names)]
    if not alike:
        return ()
    more = f", and {len(alike) - 1} more such" if len(alike) > 1 else ""
    return (
        f"Column {name!r}: {_quoted(alike[0])} are different {noun}, as they are "
        f"written{more}.",
    )


def _unicode_form(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _plain_spelling(text: str) -> str:
    return " ".join(text.split()).rstrip(". ").casefold() or text


def _quoted(texts: "list[str] | tuple[str, ...]") -> str:
    shown = [repr(printable_excerpt(text)) for text in texts[:MAX_QUOTED]]
    more = len(texts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
