"""A folder like that of a finished audit, to log."""

from pathlib import Path

from tests.gate.documents import document, summary_row, verdict_row, write_document


def audit_folder(folder: Path) -> Path:
    """Write findings with one verdict, and a report; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    verdict = verdict_row(score="membership_auc")
    rows = summary_row(0.6, 0.7), summary_row(0.5, 0.6, rounds=[1])
    content = document(*rows, verdicts=[verdict], versions={"overheard": "0.1.0"})
    write_document(folder, content)
    (folder / "report.html").write_text("<p>report</p>")
    return folder


METRICS = {
    "membership/bare/server/clients/membership_auc": 0.65,
    "membership/bare/server/clients/guess": 0.5,
    "membership/bare/server/clients/gain": 0.1,
    "membership/bare/server/clients/p_value": 0.001,
}
"""The figures of `audit_folder`: of the row over the most rounds."""
