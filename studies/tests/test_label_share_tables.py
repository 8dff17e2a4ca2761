"""The bound tables of docs/label-shares.md are those of the stored values."""

from pathlib import Path

from overheard_studies.label_share_tables import TABLES
from overheard_studies.membership_tables import BLOCK, with_tables

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_tables_of_the_stored_values() -> None:
    page = (ROOT / "docs" / "label-shares.md").read_text("utf-8")
    assert with_tables(page, ROOT / "studies" / "reproduced", TABLES) == page
    assert [name for _, name, _ in BLOCK.findall(page)] == list(TABLES)
