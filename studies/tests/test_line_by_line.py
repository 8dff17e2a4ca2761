"""The page on the papers, line by line, has a row for each experiment of the five papers."""

import re

import pytest

from overheard_studies.how_run import CHECKOUT
from overheard_studies.reproduce import find_papers
from studies.tests.test_conclusions import FIVE_PAPERS

PAGE = (CHECKOUT / "studies" / "line_by_line.md").read_text("utf-8")

COLUMNS = ["In the paper", "Code", "Run", "Published / here", "Same?"]


def rows_of(title: str) -> list[list[str]]:
    """Return the cells of the table below the heading of a paper."""
    (section,) = [one for one in PAGE.split("\n## ") if one.startswith(title)]
    lines = [one for one in section.splitlines() if one.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("name", sorted(FIVE_PAPERS))
def test_each_experiment_of_a_paper_is_in_its_table(name: str) -> None:
    paper = find_papers()[name]
    heading, _, *rows = rows_of(paper.title)
    assert heading == COLUMNS
    assert [row for row in rows if len(row) != len(COLUMNS)] == []
    named = {one for row in rows for one in re.findall(r"`([\w/]+)`", row[2])}
    assert {*paper.studies()} - named == set()
    others = {f"{key}/{one}" for key, other in find_papers().items() for one in other.studies()}
    assert named - {*paper.studies()} - others == set()
