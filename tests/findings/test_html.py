"""HTML tables escape all text."""

from overheard.findings.html import MAX_LENGTH, html_table, html_text

HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m\"'&"


def test_escapes_markup_and_unprintable_characters():
    expected = r"&lt;script&gt;alert(1)&lt;/script&gt;\u202e\x1b[31m&quot;&#x27;&amp;"
    assert html_text(HOSTILE) == expected


def test_escapes_every_text_of_a_table():
    page = html_table(HOSTILE, (HOSTILE,), [(HOSTILE,)], HOSTILE)
    assert page.count("&lt;script&gt;") == 4
    for raw in ("<script", "\u202e", "\x1b"):
        assert raw not in page


def test_a_long_text_is_cut():
    assert len(html_text("a" * 10_000)) == MAX_LENGTH
