"""Writing of a release: the page, the findings and the evidence that may leave."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import final

import tomli_w

from overheard.core.errors import OutputError
from overheard.disk.folders import make_folder
from overheard.disk.writing import write_text
from overheard.findings.audit import Audit
from overheard.findings.document import FindingsDocument, read_findings
from overheard.findings.names import make_printable
from overheard.report.doctor_section import alarm_sentences
from overheard.report.evidence.annex_epsilon import (
    broken_claims_blocks,
    epsilon_section,
    mechanism_sentences,
)
from overheard.report.evidence.digests import (
    FINDINGS_FILE,
    check_unchanged,
    write_digests,
)
from overheard.report.evidence.officer import OFFICER_FILE, read_officer_words
from overheard.report.evidence.write import write_evidence
from overheard.report.page import ReleasedParts, render_page
from overheard.report.release.left_out import KEPT, RELEASE_FILE, LeftOut, ReleaseSettings
from overheard.report.release.released_audit import released_audit
from overheard.report.release.released_findings import (
    client_names,
    read_claims,
    release_findings,
)
from overheard.report.threat_sentences import threat_sentences

EVIDENCE = "evidence"
"""The folder of the evidence, in that of an audit and in that of a release."""

MIN_NAME_LENGTH = 3
"""Shortest name that is looked for in the texts that stay as they are."""


@final
@dataclass(frozen=True, slots=True)
class WrittenRelease:
    """What was written, and what its owner should look at.

    Args:
        folder: the folder of the release.
        left_out: what it leaves out.
        remaining_names: names of clients that texts of the owner still contain, such as the
            title.

    """

    folder: Path
    left_out: tuple[LeftOut, ...]
    remaining_names: tuple[str, ...]


def write_release(
    folder: Path,
    out: Path,
    settings: ReleaseSettings,
    today: date,
    more: Callable[[FindingsDocument], Mapping[str, str]] = lambda found: {},
) -> WrittenRelease:
    """Write what may leave of an audit to a folder of its own.

    The same audit, settings and day give the same bytes. The umask decides who may read them,
    as they are made to be handed on.

    Args:
        folder: the folder of the audit.
        out: the folder to write to; new, empty, or with a release that is made anew.
        settings: what may leave.
        today: the day that the evidence states.
        more: returns the texts of further files by name, from the released findings.

    Raises:
        FindingsError: if there are no valid findings, or a file of the audit was changed.
        OutputError: if the audit has no list of digests, or the output folder holds other
            files or cannot be written.

    """
    _check_out(folder, out)
    found = read_findings(folder / FINDINGS_FILE)
    check_unchanged(folder)
    claims = read_claims(folder / FINDINGS_FILE)
    released = release_findings(found, claims, settings)
    audit = released_audit(released.document)
    document = _with_sentences(released.document, audit)
    text = document.to_json()
    page = render_page(
        audit, sha256(text.encode()).hexdigest(), page_parts(document, released.left_out)
    )
    contents = {
        FINDINGS_FILE: text,
        "report.html": page,
        RELEASE_FILE: _release_json(settings, released.left_out),
        **more(document),
    }
    make_folder(out, inside=out, is_private=False)
    for name, content in contents.items():
        write_text(out / name, content, inside=out, is_private=False)
    write_digests(out, contents, is_private=False)
    _write_evidence(folder, out, today)
    names = client_names(found, claims)
    # In a simulation, names are numbers.
    is_kept = settings.with_names or not found.is_recorded
    kept = () if is_kept else _remaining(names, text)
    return WrittenRelease(out, released.left_out, kept)


def _with_sentences(document: FindingsDocument, audit: Audit) -> FindingsDocument:
    """Return findings whose verdicts are in words again, with the names of the release."""
    results = {
        (one.arm, tuple(map(str, one.observers)), one.question, one.target_kind): one
        for arm in audit.arm_results
        for one in arm.threat_results
    }
    verdicts = tuple(
        one.model_copy(update={"sentence": threat_sentences(results[place])[0]})
        for one in document.verdicts
        for place in [(one.arm, one.observers, one.question, one.about)]
    )
    return document.model_copy(update={"verdicts": verdicts})


def page_parts(document: FindingsDocument, left_out: tuple[LeftOut, ...]) -> ReleasedParts:
    """Return what the page of a release says of epsilon, and of what is left out."""
    broken = broken_claims_blocks(document)
    return ReleasedParts(
        tuple(sentence for block in broken for sentence in block.paragraphs),
        mechanism_sentences(document.epsilon),
        epsilon_section(document).blocks if document.epsilon else (),
        tuple(
            make_printable(f"{one.what[:1].upper()}{one.what[1:]}: {one.why}.")
            for one in left_out
        ),
        alarm_sentences(document.doctor),
    )


def _release_json(settings: ReleaseSettings, left_out: tuple[LeftOut, ...]) -> str:
    content = {
        "format": "overheard release",
        "version": 1,
        **asdict(settings),
        "left_out": [asdict(one) for one in left_out],
        "kept_as_written": list(KEPT),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _check_out(folder: Path, out: Path) -> None:
    """Refuse a folder with other files, such as that of the audit itself."""
    if os.path.realpath(out) == os.path.realpath(folder):
        raise OutputError(f"{out} is the folder of the audit: choose another with --out")
    if not out.exists() or (out / RELEASE_FILE).is_file():
        return
    if not out.is_dir() or any(out.iterdir()):
        raise OutputError(
            f"{out}: is neither empty nor a release: choose another folder with --out"
        )


def _write_evidence(folder: Path, out: Path, today: date) -> None:
    """Write the evidence on the released findings, with the officer's words if there are any.

    Only the words are taken over, and no comments of the file.
    """
    words = read_officer_words(folder / EVIDENCE)
    stated = {name: text for name, text in words.model_dump().items() if text}
    if stated:
        text = tomli_w.dumps(stated)
        write_text(out / EVIDENCE / OFFICER_FILE, text, inside=out, is_private=False)
    write_evidence(out, out / EVIDENCE, today, is_private=False)


def _remaining(names: frozenset[str], text: str) -> tuple[str, ...]:
    """Return the names of clients that a text contains as words; short ones are left out."""
    return tuple(
        sorted(
            one
            for one in names
            if len(one) >= MIN_NAME_LENGTH
            and not one.isdecimal()
            and re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.IGNORECASE)
        )
    )
