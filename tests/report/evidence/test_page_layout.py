"""Lines stay on their page and in their cells, and no word of a text is lost."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.report.evidence.page_layout import (
    BLOCK_TITLE,
    BODY,
    CAPTION,
    CELL,
    HEIGHT,
    MARGIN,
    SECTION_TITLE,
    TEXT_WIDTH,
    WIDTH,
    PageLayout,
    drawable,
    text_width,
    wrap,
)

WORDS = st.text("abcdefghij WM.,ε", min_size=0, max_size=400)


@given(text=WORDS, width=st.floats(20, 400))
def test_wrapping_loses_nothing_and_fits(text: str, width: float) -> None:
    lines = wrap(text, width, BODY)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(len(line) == 1 or text_width(line, BODY) <= width for line in lines)


def test_a_width_is_that_of_the_font() -> None:
    # DejaVu Sans: the letter M is 1767 of 2048 units wide, the letter i 569.
    assert text_width("M", BODY) == pytest.approx(9.0 * 1767 / 2048)
    assert text_width("iiii", BODY) == pytest.approx(4 * 9.0 * 569 / 2048)


def test_what_the_font_does_not_have_is_escaped() -> None:
    assert drawable("a\u0301 \u4e2d \U0001f9ec") == "a\u0301 \\u4e2d \\U0001f9ec"


@settings(max_examples=20)
@given(
    rows=st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=12),
    paragraph=WORDS,
)
def test_everything_is_on_a_page(rows: list[tuple[str, str, str]], paragraph: str) -> None:
    layout = PageLayout()
    layout.add_text("A title", SECTION_TITLE, before=10.0, after=4.0)
    for _ in range(30):
        layout.add_text(paragraph, BODY, before=0.0, after=4.0)
    layout.add_table(("One", "Two", "Three"), rows)
    for page in layout.pages:
        for line in page.lines:
            assert MARGIN <= line.left < WIDTH - MARGIN
            assert MARGIN - 0.1 <= line.baseline <= HEIGHT - MARGIN
        for box in page.boxes:
            assert box.bottom >= MARGIN - 0.1
            assert box.left + box.width <= WIDTH - MARGIN + 0.1
    words = "".join(line.text for page in layout.pages for line in page.lines)
    assert sum(words.count(one) for one in "abc") >= sum(
        sum(cell.count(one) for one in "abc") for row in rows for cell in row
    )


def test_a_table_repeats_its_headers_on_each_page() -> None:
    layout = PageLayout()
    layout.add_table(("Head", "Other"), [("a", "b")] * 150)
    assert len(layout.pages) > 2
    for page in layout.pages:
        assert page.lines[0].text == "Head"
        assert page.boxes[0].is_filled


def test_a_row_that_is_taller_than_a_page_goes_on_at_the_next() -> None:
    layout = PageLayout()
    layout.add_table([f"c{n}" for n in range(8)], [["long " * 290] * 8])
    longs = [line.text.count("long") for page in layout.pages for line in page.lines]
    assert sum(longs) == 8 * 290
    assert len(layout.pages) > 1


def test_rows_touch_and_do_not_overlap() -> None:
    layout = PageLayout()
    layout.add_table(("A", "B"), [("one two three " * 9, "x")] * 5)
    left = [box for box in layout.pages[0].boxes if box.left == MARGIN]
    for upper, lower in pairwise(left):
        assert upper.bottom == pytest.approx(lower.bottom + lower.height)
    widths = {box.left: box.width for box in layout.pages[0].boxes}
    assert sum(widths.values()) == pytest.approx(TEXT_WIDTH)
    # The column with the longer text is the wider one.
    assert max(widths, key=widths.__getitem__) == MARGIN


def test_a_title_is_not_left_alone_at_the_end_of_a_page() -> None:
    layout = PageLayout()
    lines = int((HEIGHT - 2 * MARGIN) / BODY.line_height) - 2
    for _ in range(lines):
        layout.add_text("x", BODY, before=0.0, after=0.0)
    layout.add_text("Title", SECTION_TITLE, before=0.0, after=0.0)
    assert [len(page.lines) for page in layout.pages] == [lines, 1]
    assert CELL.size < BODY.size


@pytest.mark.parametrize("count", range(40, 70))
def test_a_title_stays_with_the_table_below_its_caption(count: int) -> None:
    layout = PageLayout()
    for _ in range(count):
        layout.add_text("x", BODY, before=0.0, after=0.0)
    layout.add_text("Title", BLOCK_TITLE, before=7.0, after=3.0)
    layout.add_text("Caption", CAPTION, before=3.0, after=3.0)
    layout.add_table(("a",), [("b",)])
    pages = [[line.text for line in page.lines] for page in layout.pages]
    (last,) = [page for page in pages if "Title" in page]
    assert last[-4:] == ["Title", "Caption", "a", "b"]


@pytest.mark.parametrize("count", range(40, 70))
def test_a_header_stays_with_the_first_row(count: int) -> None:
    layout = PageLayout()
    for _ in range(count):
        layout.add_text("x", BODY, before=0.0, after=0.0)
    layout.add_table(("head", "other"), [("long " * 80, "b")])
    pages = [[line.text for line in page.lines] for page in layout.pages]
    (found,) = [page for page in pages if "head" in page]
    assert "b" in found
