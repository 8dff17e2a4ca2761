"""Changes as Markdown and JSON are safe, whatever the names in the findings."""

import json
import re
from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.document_rows import IntervalEstimate
from overheard.gate.audit_changes import AuditChange, AuditChanges
from overheard.gate.changes_text import changes_as_json, changes_as_markdown

DIFFERENCE = IntervalEstimate(mean=0.1, low=-0.1, high=0.3)


def changes(name: str = "bare") -> AuditChanges:
    change = AuditChange("score", name, "0.6", "0.7", "within the intervals", DIFFERENCE)
    return AuditChanges("February", "March", (change,), 3, ("Careful.",))


def test_markdown_has_a_row_per_change_and_the_notes() -> None:
    lines = changes_as_markdown(changes()).splitlines()
    assert lines[0] == (
        "## Overheard: 0 verdicts changed, 0 scores beyond the intervals, 0 settings of the "
        "plan changed; both audits have 3 verdicts and scores"
    )
    assert lines[2] == "From “February” to “March”."
    assert lines[6] == "| score | bare | 0.6 | 0.7 | within the intervals |"
    assert lines[-1] == "Careful."
    assert "|" not in changes_as_markdown(AuditChanges("a", "b", (), 0, ()))


def test_json_has_the_difference_with_its_range() -> None:
    document = json.loads(changes_as_json(changes()))
    assert (document["format"], document["compared"]) == ("overheard comparison", 3)
    assert document["changes"] == [
        {
            "kind": "score",
            "subject": "bare",
            "before": "0.6",
            "after": "0.7",
            "remark": "within the intervals",
            "difference": {"mean": 0.1, "low": -0.1, "high": 0.3},
        }
    ]


@given(st.text(st.characters(exclude_categories=())))
def test_any_name_keeps_the_table_whole(name: str) -> None:
    (line,) = (one for one in changes_as_markdown(changes(name)).split("\n") if "within" in one)
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 6
    subject = json.loads(changes_as_json(changes(name)))["changes"][0]["subject"]
    assert not {"Cc", "Cf", "Cs", "Zl", "Zp"} & set(map(category, subject))
