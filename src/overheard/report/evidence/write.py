"""Writing of the evidence: the annex, an RO-Crate and digests."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import final

from overheard.archive.atomic import write_bytes, write_text
from overheard.core.errors import FindingsError, OutputError
from overheard.findings.document import FindingsDocument, read_findings
from overheard.report.evidence.annex import make_annex
from overheard.report.evidence.annex_html import annex_as_html
from overheard.report.evidence.annex_pdf import annex_as_pdf
from overheard.report.evidence.digests import (
    DIGESTS_FILE,
    CheckedFolder,
    check_folder,
    write_digests,
)
from overheard.report.evidence.officer import (
    OFFICER_FILE,
    OfficerWords,
    read_officer_words,
    release_fields,
    write_officer_file,
)
from overheard.report.evidence.ro_crate import FILE_FACTS, RO_CRATE_FILE, ro_crate

FINDINGS_FILE = "findings.json"


@final
@dataclass(frozen=True, slots=True)
class WrittenEvidence:
    """What was written, and what is left to people.

    Args:
        folder: the folder of the evidence.
        unstated: titles of what nobody has stated yet.

    """

    folder: Path
    unstated: tuple[str, ...]


def write_evidence(folder: Path, out: Path, made_on: date) -> WrittenEvidence:
    """Write the evidence on the audit in a folder.

    The same audit, officer's words and day give the same bytes. The officer's file is written
    if there is none, and never overwritten.

    Args:
        folder: the folder of the audit, with `findings.json`.
        out: the folder to write to; new, empty, or with evidence that is made anew.
        made_on: the day that the annex states.

    Raises:
        FindingsError: if there are no valid findings, or they were changed.
        PlanError: if the officer's file is invalid.
        OutputError: if the output folder holds other files or cannot be written.

    """
    _check_out(out)
    audit_files = check_folder(folder) if (folder / DIGESTS_FILE).exists() else None
    if audit_files is not None and audit_files.state_of(FINDINGS_FILE) == "changed":
        raise FindingsError(
            f"{folder / FINDINGS_FILE}: was changed after the audit wrote it, so that it is no "
            "evidence: restore the file from a copy, or run `overheard audit` again with the "
            "same plan and folder, which reuses all results"
        )
    findings = read_findings(folder / FINDINGS_FILE)
    write_officer_file(out)
    words = read_officer_words(out)
    _write_files(out, findings, words, audit_files, made_on.isoformat())
    return WrittenEvidence(out, _unstated(findings, words))


def _write_files(
    out: Path,
    findings: FindingsDocument,
    words: OfficerWords,
    audit_files: CheckedFolder | None,
    made_on: str,
) -> None:
    annex = make_annex(findings, words, audit_files, made_on)
    write_text(out / "annex.html", annex_as_html(annex))
    write_bytes(out / "annex.pdf", annex_as_pdf(annex))
    write_text(out / RO_CRATE_FILE, ro_crate(out, findings, words, audit_files, made_on))
    write_digests(out, (*FILE_FACTS, RO_CRATE_FILE))


def _check_out(out: Path) -> None:
    """Refuse a folder with other files, such as that of the audit itself."""
    if not out.exists() or (out / OFFICER_FILE).is_file():
        return
    if not out.is_dir() or any(out.iterdir()):
        raise OutputError(
            f"{out}: is neither empty nor a folder of evidence: choose another folder with "
            "--out"
        )


def _unstated(findings: FindingsDocument, words: OfficerWords) -> tuple[str, ...]:
    fields = release_fields(words, findings.release).values()
    own = {"Residual risk": words.residual_risk, "Decision": words.decision}
    return (
        *(one.title for one in fields if not one.text),
        *(title for title, text in own.items() if not text.strip()),
    )
