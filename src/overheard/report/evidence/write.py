"""Writing of the evidence: the annex, an RO-Crate and digests."""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import final

from overheard.core.errors import OutputError
from overheard.disk.folders import make_folder
from overheard.disk.writing import write_bytes, write_text
from overheard.drawing.figures import ReportTable
from overheard.findings.document import FindingsDocument, read_findings
from overheard.report.evidence.annex import Annex, make_annex
from overheard.report.evidence.annex_pdf import annex_as_pdf
from overheard.report.evidence.digests import (
    EVIDENCE_FOLDER,
    FINDINGS_FILE,
    CheckedFolder,
    check_folder,
    check_unchanged,
    list_evidence,
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


@final
@dataclass(frozen=True, slots=True)
class WrittenEvidence:
    """What was written, and what is left to people.

    Args:
        folder: the folder of the evidence.
        unstated: titles of what nobody has stated yet.
        sha256: the SHA-256 of the list of digests that covers the evidence; it is that of the
            audit, which it covers too, if the evidence is in the audit's folder.

    """

    folder: Path
    unstated: tuple[str, ...]
    sha256: str


def write_evidence(
    folder: Path, out: Path, made_on: date, *, is_private: bool = True
) -> WrittenEvidence:
    """Write the evidence on the audit in a folder.

    The same audit, officer's words and day give the same bytes. The officer's file is written
    if there is none, and never overwritten.

    Args:
        folder: the folder of the audit, with `findings.json`.
        out: the folder to write to; new, empty, or with evidence that is made anew.
        made_on: the day that the annex states.
        is_private: whether the files are for the user alone, see `write_bytes`.

    Raises:
        FindingsError: if there are no valid findings, or a file of the audit was changed.
        PlanError: if the officer's file is invalid.
        OutputError: if the audit has no list of digests, or the output folder holds other
            files or cannot be written.

    """
    _check_out(out)
    findings = read_findings(folder / FINDINGS_FILE)
    audit_files = check_unchanged(folder)
    inside = folder if out.is_relative_to(folder) else out
    make_folder(out, inside=inside, is_private=is_private)
    write_officer_file(out, is_private=is_private)
    words = read_officer_words(out)
    _write_files(out, findings, words, audit_files, made_on.isoformat(), is_private=is_private)
    covering = out
    if out.resolve() == (folder / EVIDENCE_FOLDER).resolve():
        list_evidence(folder, is_private=is_private)
        covering = folder
    unstated = _unstated(findings, words)
    return WrittenEvidence(out, unstated, check_folder(covering).sha256)


def _write_files(
    out: Path,
    findings: FindingsDocument,
    words: OfficerWords,
    audit_files: CheckedFolder,
    made_on: str,
    *,
    is_private: bool,
) -> None:
    annex = make_annex(findings, words, audit_files, made_on)
    page = annex_as_html(annex)
    write_text(out / "annex.html", page, inside=out, is_private=is_private)
    write_bytes(out / "annex.pdf", annex_as_pdf(annex), inside=out, is_private=is_private)
    crate = ro_crate(out, findings, words, audit_files, made_on)
    write_text(out / RO_CRATE_FILE, crate, inside=out, is_private=is_private)
    write_digests(out, (*FILE_FACTS, RO_CRATE_FILE), is_private=is_private)


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


def annex_as_html(annex: Annex) -> str:
    """Return the annex as HTML, with all text escaped; the page may load nothing."""
    return "\n".join(_lines(annex)) + "\n"


def _lines(annex: Annex) -> Iterator[str]:
    style = files("overheard.report.evidence").joinpath("annex.css").read_text("utf-8")
    digest = b64encode(sha256(style.encode("utf-8")).digest()).decode("ascii")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield (
        '<meta http-equiv="Content-Security-Policy" '
        f"content=\"default-src 'none'; style-src 'sha256-{digest}'\">"
    )
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(annex.title)}</title>\n<style>{style}</style>\n</head>"
    yield "<body>\n<main>"
    yield f"<h1>{escape(annex.title)}</h1>"
    yield f"<p>Made on {escape(annex.made_on)}.</p>"
    yield from (f"<p>{escape(paragraph)}</p>" for paragraph in annex.introduction)
    for section in annex.sections:
        yield f"<section>\n<h2>{escape(section.title)}</h2>"
        for block in section.blocks:
            if block.heading:
                yield f"<h3>{escape(block.heading)}</h3>"
            yield from (f"<p>{escape(paragraph)}</p>" for paragraph in block.paragraphs)
            for table in block.tables:
                yield _table(table, heading=block.heading)
        yield "</section>"
    yield "</main>\n</body>\n</html>"


def _table(table: ReportTable, heading: str) -> str:
    """Return a table; a heading with the same words as its caption stands in for it."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.headers)
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows
    )
    # A wide table scrolls by itself; the focus lets the keyboard scroll it.
    name = escape(table.caption)
    caption = "" if table.caption == heading else f"<caption>{name}</caption>\n"
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{name}">\n<table>\n'
        f"{caption}<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )
