"""The Markdown shows every text literally, and has all parts of the annex."""

import re
from itertools import pairwise

from overheard.report.evidence.annex_markdown import annex_as_markdown
from overheard.report.evidence.officer import OfficerWords
from tests.report.evidence.annexes import annex_of


def test_has_a_heading_for_each_section_and_equally_wide_rows() -> None:
    annex = annex_of()
    text = annex_as_markdown(annex)
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == [one.title for one in annex.sections]
    for section in annex.sections:
        for block in section.blocks:
            for table in block.tables:
                assert all(len(row) == len(table.headers) for row in table.rows)


def test_no_name_becomes_markup() -> None:
    nasty = "<script>x</script> | [a](javascript:x) `code` # **b**\n# heading"
    words = OfficerWords(residual_risk=nasty)
    text = annex_as_markdown(annex_of(words, title=nasty))
    bare = re.sub(r"\\.", "", text)
    assert "<script" not in bare
    assert "](" not in bare
    assert "**" not in bare
    assert "\n# heading" not in text


def test_a_caption_that_repeats_its_heading_is_left_out() -> None:
    text = annex_as_markdown(annex_of())
    lines = [one.lstrip("# ").rstrip(":") for one in text.splitlines() if one.strip()]
    assert not [one for one, after in pairwise(lines) if one == after]
    assert "Whether a given record" in text
