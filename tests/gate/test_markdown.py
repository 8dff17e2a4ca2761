"""Names in the findings cannot inject Markdown, and escaped text is shown literally."""

import re
from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.document_rows import IntervalEstimate
from overheard.gate.judged_findings import CheckResult
from overheard.gate.markdown import as_markdown, escape_markdown
from overheard.gate.verdict import RuleVerdict

FIGURE = IntervalEstimate(mean=0.7, low=0.65, high=0.75)


def verdict(what: str = "bare", why: str = "beyond") -> RuleVerdict:
    return RuleVerdict("records", "auc", what, "fail", "at most 0.6", FIGURE, why)


def test_has_a_heading_a_row_per_verdict_and_notes():
    passed = RuleVerdict("bytes", "bytes", "bare", "pass", "at most 9", None)
    lines = as_markdown(
        CheckResult("Two clients", (verdict(), passed), ("Careful.",))
    ).splitlines()
    assert lines[0] == "## Overheard: fail: 1 fail, 1 pass"
    assert lines[2] == "Audit: “Two clients”."
    assert lines[6] == (
        "| **fail** | records | bare | auc | 0.7 (0.65 to 0.75) | at most 0.6 | beyond |"
    )
    assert lines[7] == "| pass | bytes | bare | bytes |  | at most 9 |  |"
    assert lines[-1] == "Careful."


def test_markup_is_escaped():
    page = as_markdown(
        CheckResult("<b>*x*", (verdict("a|b\n\x1b <script> `c` [d](e) http://f"),), ())
    )
    assert r"\<b\>\*x\*" in page
    assert r"a\|b\\n\\x1b \<script\> \`c\` \[d\](e) http\:\/\/f" in page


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_keeps_the_table_whole(text: str):
    page = as_markdown(CheckResult("t", (verdict(text, text),), ()))
    (line,) = (line for line in page.split("\n") if line.startswith("| **fail**"))
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 8
    assert not re.search(r"(?<!\\)(?:\\\\)*[<&`*_]", line.replace("**fail**", ""))
    assert not {"Cc", "Cf", "Cs", "Zl", "Zp"} & set(map(category, line))


@given(st.text())
def test_unescaping_gives_the_text_on_one_line(text: str) -> None:
    printable = "".join(one for one in text if one.isprintable())
    escaped = escape_markdown(printable)
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped) == printable
    assert "\n" not in escape_markdown(text)


def test_no_character_of_markup_stays_bare() -> None:
    for one in "<>|*_`[]#!&\\$~=":
        assert escape_markdown(one) == f"\\{one}"
    assert escape_markdown("www.example.org") == "www\\.example.org"
