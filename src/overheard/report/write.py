"""Leaves the report of an audit in a folder."""

from pathlib import Path

from overheard.archive.atomic import write_text
from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit
from overheard.report.page import page
from overheard.report.tables import as_csv, as_json


def write_report(audit: Audit, folder: Path, seed: Seed) -> None:
    """Write `findings.json`, `findings.csv` and `report.html`, each whole or not at all.

    The same audit and seed give the same bytes.

    Args:
        audit: what to tell.
        folder: where; made if it does not exist.
        seed: of the bootstrap behind the intervals.

    Raises:
        OutputError: if the disk or the permissions do not allow it.

    """
    every = arms(audit, seed)
    write_text(folder / "findings.json", as_json(audit, every))
    write_text(folder / "findings.csv", as_csv(audit))
    write_text(folder / "report.html", page(audit, every))
