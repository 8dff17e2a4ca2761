import unicodedata
from pathlib import Path

import numpy as np
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.table_names import (
    merge_spellings,
    note_names_alike,
    read_names_of_column,
    refuse_spellings,
)
from overheard.data.reading.text_table import TextColumn

PATH = Path("t.csv")


def column(*cells: str) -> TextColumn:
    texts = tuple(dict.fromkeys(cells))
    return TextColumn(np.array([texts.index(cell) for cell in cells]), texts)


def test_names_stay_as_written_and_numbers_are_in_order_of_size() -> None:
    read = read_names_of_column(PATH, "u", column("10", "1", "01", "9", "7.0", "7", "1E1"))
    assert read.names == ("01", "1", "7", "7.0", "9", "10", "1E1")
    assert read.numbers.tolist() == [5, 1, 0, 4, 3, 2, 6]
    assert read_names_of_column(PATH, "u", column("b", "10", "9")).names == ("10", "9", "b")


@pytest.mark.parametrize("word", ["نمی\u200cدانم", "ක්\u200dෂය", "type\u00a02"])
def test_joiners_and_blanks_are_parts_of_words(word: str) -> None:
    assert read_names_of_column(PATH, "u", column(word, "a")).names == ("a", word)


@pytest.mark.parametrize("word", ["a\u202eb", "a\x1b[0m", "a\nb", "x" * 101])
def test_refuses_names_that_could_change_a_page(word: str) -> None:
    with pytest.raises(DataError, match="is not a valid name"):
        read_names_of_column(PATH, "u", column(word))


def test_forms_of_unicode_are_one_name_and_told() -> None:
    other = unicodedata.normalize("NFD", "bénin")
    read = read_names_of_column(PATH, "u", column("bénin", other, "malin"))
    assert read.names == ("bénin", "malin")
    assert read.numbers.tolist() == [0, 0, 1]
    assert "several forms of Unicode" in read.notes[0]
    # A single form stays as it is written.
    assert read_names_of_column(PATH, "u", column(other)).names == (other,)


def test_spellings_of_a_label_are_refused_or_merged() -> None:
    labels = column("sick", "well", "Sick ", "sick", "well.")
    with pytest.raises(DataError, match="'sick', 'Sick ', which differ by blanks"):
        refuse_spellings(PATH, "y", labels)
    merged, notes = merge_spellings(labels)
    assert merged.cells() == ["sick", "well", "sick", "sick", "well"]
    assert len(notes) == 2
    refuse_spellings(PATH, "y", column("A+", "A", ".", ".."))


def test_tells_names_that_are_one_number() -> None:
    read = read_names_of_column(PATH, "u", column("1", "01", "b"))
    assert "'01', '1' are different users" in note_names_alike("u", read, "users")[0]
