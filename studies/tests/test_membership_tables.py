"""The tables of docs/membership.md are those of the stored values."""

from pathlib import Path

from overheard_studies.membership_tables import BLOCK, TABLES, with_tables

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_tables_of_the_stored_values() -> None:
    page = (ROOT / "docs" / "membership.md").read_text("utf-8")
    assert with_tables(page, ROOT / "studies" / "reproduced", TABLES) == page
    assert len(BLOCK.findall(page)) >= 3


def test_a_table_is_made_anew_and_all_else_stays() -> None:
    old = "Before.\n<!-- table strengths -->\n| wrong |\n<!-- end of table -->\nAfter.\n"
    new = with_tables(old, ROOT / "studies" / "reproduced", TABLES)
    assert "wrong" not in new
    assert "| mnist mlp | ." in new
    assert new.startswith("Before.\n")
    assert new.endswith("\nAfter.\n")
