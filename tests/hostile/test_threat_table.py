"""Each place where bytes enter has a row in the table of SECURITY.md, with tests."""

import re
from pathlib import Path

from tests.hostile.entries import ENTRIES

ROOT = Path(__file__).parents[2]

ELSEWHERE = {
    "data: downloads": "tests/data/reading/test_fetch.py",
    "live replies: Flower": "tests/hostile/test_replies.py",
    "live replies: NVFlare": "tests/hostile/test_results.py",
}
"""Rows whose hostile input no file holds, each with its tests."""

ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_each_row_has_tests_and_each_entry_of_the_corpus_has_a_row() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    section = page.partition("## Where bytes enter")[2].partition("\n## ")[0]
    rows = [where for where, *_ in ROW.findall(section) if where != "Where"]
    assert len(set(rows)) == len(rows)
    assert set(rows) == {entry.row for entry in ENTRIES} | ELSEWHERE.keys()


def test_the_tests_of_other_rows_are_there() -> None:
    for path in ELSEWHERE.values():
        assert "def test_" in (ROOT / path).read_text(encoding="utf-8")
