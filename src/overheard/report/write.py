"""Writing of an audit's report, as a page and as data files."""

from hashlib import sha256
from pathlib import Path

from overheard.disk.folders import remove_file
from overheard.disk.writing import write_text
from overheard.findings.audit import Audit
from overheard.report.evidence.digests import write_digests
from overheard.report.exports import as_csv, as_json
from overheard.report.page import render_page
from overheard.report.pictures import PICTURES_FILE, render_pictures

REPORT_FILES = ("findings.json", "findings.csv", "report.html", "plan.toml")
"""Files whose digests are written; the plan is there if `overheard audit` made the folder."""


DATA_FILES = ("findings.json", "findings.csv", "digests.json")
"""Files of a finished audit beside the report and the plan."""


def write_report(audit: Audit, folder: Path) -> None:
    """Write `findings.json`, `findings.csv` and `report.html`, each completely or not at all.

    It writes `pictures.html`, too, if the plan asks for pictures and there are any.
    Last it writes `digests.json`, with which `overheard verify` finds later changes. The same
    audit gives the same bytes.

    Args:
        audit: the results to report.
        folder: where to write; created if it does not exist.

    Raises:
        OutputError: if the folder cannot be written.

    """
    findings = as_json(audit)
    write_text(folder / "findings.json", findings, inside=folder)
    write_text(folder / "findings.csv", as_csv(audit), inside=folder)
    digest = sha256(findings.encode("utf-8")).hexdigest()
    write_text(folder / "report.html", render_page(audit, digest), inside=folder)
    _write_pictures(audit, folder)
    write_digests(folder, REPORT_FILES)


def write_interim_report(audit: Audit, folder: Path) -> None:
    """Write `report.html` alone, for an audit that goes on.

    Data files of an earlier audit are removed: they would not match the page, and nobody should
    judge a run by results that still change.

    Args:
        audit: the results so far.
        folder: where to write.

    Raises:
        OutputError: if the folder cannot be written.

    """
    for name in DATA_FILES:
        remove_file(folder / name, inside=folder)
    write_text(folder / "report.html", render_page(audit), inside=folder)
    _write_pictures(audit, folder)


def _write_pictures(audit: Audit, folder: Path) -> None:
    """Write the pictures of claims; remove those of an earlier audit if there are none."""
    path = folder / PICTURES_FILE
    if page := render_pictures(audit):
        write_text(path, page, inside=folder)
    else:
        remove_file(path, inside=folder)
