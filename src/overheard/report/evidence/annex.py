"""The annex to a data-protection impact assessment: what was tested, found and not tested."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.findings.document import FindingsDocument
from overheard.findings.names import make_printable
from overheard.report.evidence.annex_epsilon import epsilon_section
from overheard.report.evidence.annex_results import results_section, summary_section
from overheard.report.evidence.annex_section import AnnexSection, limited_table
from overheard.report.evidence.annex_standards import standards_section
from overheard.report.evidence.annex_tests import tests_section
from overheard.report.evidence.annex_threats import threat_model_section
from overheard.report.evidence.digests import CheckedFolder
from overheard.report.evidence.officer import (
    OFFICER,
    OFFICER_FILE,
    OfficerWords,
    StatedField,
    release_fields,
)
from overheard.report.terms import GlossaryTerm, read_terms

EXPLAINED = frozenset(
    (
        "Canary",
        "Client",
        "Cohort",
        "Differential privacy (DP)",
        "Epsilon, delta",
        "Ground truth",
        "Honest but curious",
        "Label shares",
        "Member, non-member",
        "Round",
        "Secure aggregation",
        "Target",
        "Update",
    )
)
"""Terms of the glossary that an annex explains if it contains them."""


TO_BE_FILLED_IN = f"To be filled in by {OFFICER}, in {OFFICER_FILE}."

RISK_TO_BE_WEIGHED = (
    f"{TO_BE_FILLED_IN} To be weighed: what leaks (“In short” and “Results”), what was not "
    "tested (“Tests”), who could read the messages (“Threat model”) and who gets the model."
)

DECISION_TO_BE_STATED = f"{TO_BE_FILLED_IN} It says what was decided, by whom, and when."

OPEN_STATEMENTS = (
    f"Some statements are open. Write them into {OFFICER_FILE}, and run “overheard evidence” "
    "again."
)


@final
@dataclass(frozen=True, slots=True)
class Annex:
    """The annex, as sections of printable text and tables.

    Args:
        title: its title.
        made_on: the day on which it was made, such as "2026-11-22".
        introduction: the paragraphs before the first section. They say what the annex
            reports, and that it is no legal assessment.
        sections: its sections, in order.

    """

    title: str
    made_on: str
    introduction: tuple[str, ...]
    sections: tuple[AnnexSection, ...]


def make_annex(
    findings: FindingsDocument, words: OfficerWords, folder: CheckedFolder, made_on: str
) -> Annex:
    """Return the annex of an audit.

    Args:
        findings: what the audit found.
        words: what the officer stated.
        folder: the files of the audit, compared with their digests.
        made_on: the day on which the annex is made.

    """
    release = release_fields(words, findings.release)
    sections = (
        summary_section(findings),
        _context_section(findings, tuple(release.values())),
        threat_model_section(findings),
        tests_section(findings),
        results_section(findings),
        epsilon_section(findings),
        _words_section("Residual risk", words.residual_risk, RISK_TO_BE_WEIGHED),
        _words_section("Decision", words.decision, DECISION_TO_BE_STATED),
        _retention_section(release["retention"]),
    )
    return Annex(
        f"Evidence for a data-protection impact assessment: {make_printable(findings.title)}",
        made_on,
        (
            "This annex reports measurements by Overheard: what attacks could infer from the "
            "messages of a federated-learning run. It is no legal assessment, and it does not "
            "state that a law or a standard is met.",
            "Attacks that were tested are evidence for these attacks only. A stronger attack, "
            "or one that was not tested, may reveal more. “Terms” explains words of the field.",
        ),
        (
            *sections,
            terms_section(sections),
            standards_section(findings),
            _files_section(findings, folder),
        ),
    )


def _context_section(findings: FindingsDocument, fields: Sequence[StatedField]) -> AnnexSection:
    audited = "a recorded run" if findings.is_recorded else "simulated runs"
    known = (
        ("What was audited", make_printable(findings.subject), "the audit"),
        ("Recorded or simulated", audited, "the audit"),
        ("Day of the audit", make_printable(findings.made_on) or "not stated", "the audit"),
    )
    stated = tuple(
        (one.title, make_printable(" ".join(one.shown_text.split())), one.stated_in or "–")
        for one in fields
    )
    simulated = (
        "The runs were simulated: they show what such a federation reveals, on the data of "
        "the plan, and not what a run in production revealed."
    )
    notes = (
        *([simulated] if not findings.is_recorded else []),
        *([] if all(one.text for one in fields) else [OPEN_STATEMENTS]),
    )
    table = ReportTable("Context", ("What", "Statement", "Stated in"), (*known, *stated), 3)
    return AnnexSection("Context of the release", (SectionBlock("", notes, (table,)),))


def _words_section(title: str, text: str, empty: str) -> AnnexSection:
    """Return a section of the officer's own words by paragraph; without words, say so."""
    paragraphs = tuple(
        make_printable(" ".join(paragraph.split()))
        for paragraph in text.split("\n\n")
        if paragraph.strip()
    )
    return AnnexSection(title, (SectionBlock("", paragraphs or (empty,)),))


def _retention_section(retention: StatedField) -> AnnexSection:
    text = make_printable(retention.shown_text)
    return AnnexSection(
        "Retention",
        (
            SectionBlock(
                "",
                (
                    text,
                    "The folder of an audit contains the messages of its runs and, in "
                    "findings.json, the ground truth about clients. Both are as sensitive as "
                    "the updates themselves. This annex contains neither.",
                ),
            ),
        ),
    )


def _files_section(findings: FindingsDocument, folder: CheckedFolder) -> AnnexSection:
    versions = ReportTable(
        "Software",
        ("Name", "Version"),
        tuple(
            (make_printable(name), make_printable(version))
            for name, version in findings.versions.items()
        ),
        2,
    )
    files = ReportTable(
        "Files of the audit",
        ("File", "SHA-256", "State"),
        tuple((make_printable(one.name), one.sha256 or "–", one.state) for one in folder.files),
        3,
    )
    text = (
        "“overheard verify” compares the files with these digests. A digest is no signature: "
        "sign this annex, or store it elsewhere, so that nobody can change both.",
    )
    return AnnexSection("Files and versions", (SectionBlock("", text, (files, versions)),))


def terms_section(sections: Iterable[AnnexSection]) -> AnnexSection:
    """Return the terms of the glossary that these sections contain, with their meanings."""
    text = "\n".join(_texts(sections)).lower()
    rows = [
        (one.name, one.meaning)
        for one in read_terms()
        if one.name in EXPLAINED and re.search(_pattern(one), text)
    ]
    table = limited_table("Terms of this annex", ("Term", "Meaning"), rows)
    return AnnexSection("Terms", (SectionBlock("", (), (table,)),))


def _pattern(term: GlossaryTerm) -> str:
    """Return a pattern of the first words of a term's name, as singular and as plural."""
    word = term.name.split(",")[0].split(" (")[0].lower()
    forms = {word, f"{word}s", f"{word.removesuffix('y')}ies"}
    return rf"\b({'|'.join(map(re.escape, sorted(forms)))})\b"


def _texts(sections: Iterable[AnnexSection]) -> Iterator[str]:
    for section in sections:
        for block in section.blocks:
            yield from (block.heading, *block.paragraphs)
            for table in block.tables:
                yield from (table.caption, *table.headers)
                yield from (cell for row in table.rows for cell in row)
