"""The annex to a data-protection impact assessment: what was tested, found and not tested."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import RunRow
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER
from overheard.report.evidence.annex_epsilon import epsilon_section
from overheard.report.evidence.annex_plan import read_threats
from overheard.report.evidence.annex_results import results_section, summary_section
from overheard.report.evidence.annex_section import (
    AnnexSection,
    limited_table,
    observer_words,
    question_words,
    target_words,
)
from overheard.report.evidence.annex_tests import tests_section
from overheard.report.evidence.digests import CheckedFolder
from overheard.report.evidence.officer import (
    OFFICER,
    OFFICER_FILE,
    OfficerWords,
    StatedField,
    release_fields,
)
from overheard.report.evidence.standards import (
    EPSILON,
    NO_IDENTIFIER,
    FindingStandards,
    Level,
    StandardReference,
    standards_of,
)
from overheard.report.metadata_names import METADATA_NAMES
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


READING = (
    "The tables name where standards and catalogues describe a kind of finding. They help to "
    "find the place, and do not state that anything is met. Sentences are in Overheard’s own "
    "words. Look up what was not verified before you rely on it."
)

SOURCES = "Where these sections are, and who read them"

LEVELS: dict[Level, str] = {
    "client": "about a client",
    "record": "about a record",
    "cohort": "about all clients together",
    "run": "about a run",
}


def standards_section(findings: FindingsDocument) -> AnnexSection:
    """Return what standards say on each kind of finding, and how that was checked."""
    kinds = dict.fromkeys((one.question, one.about) for one in findings.verdicts)
    entries = dict.fromkeys(standards_of(question, about) for question, about in kinds)
    if findings.epsilon:
        entries[standards_of(EPSILON)] = None
    return AnnexSection(
        "Standards by finding",
        (
            SectionBlock("", (READING,)),
            *(standards_block(entry) for entry in entries),
            *_sources_blocks(entries),
        ),
    )


def standards_block(entry: FindingStandards) -> SectionBlock:
    """Return the sections of standards on one kind of finding, as a table."""
    is_epsilon = entry.kind == EPSILON
    name = "claims of differential privacy" if is_epsilon else question_words(entry.kind)
    heading = f"{name[:1].upper()}{name[1:]} ({LEVELS[entry.level]})"
    if not entry.references:
        return SectionBlock(heading, (f"{NO_IDENTIFIER.capitalize()}. {entry.note}",))
    table = limited_table(
        heading,
        ("Standard, edition and place", "What it says", "Verified"),
        [(one.name, one.sentence, _verified(one)) for one in entry.references],
    )
    return SectionBlock(heading, (entry.note,) if entry.note else (), (table,))


def _verified(reference: StandardReference) -> str:
    return reference.reading_note or "read in the original"


def _sources_blocks(entries: Iterable[FindingStandards]) -> Iterator[SectionBlock]:
    """Yield a table of all sources, each once, unless there is none."""
    rows = dict.fromkeys(
        (f"{one.standard} ({one.edition})", one.source, one.checked_by)
        for entry in entries
        for one in entry.references
    )
    if rows:
        table = limited_table(SOURCES, ("Standard", "Address", "Who checked it"), list(rows))
        yield SectionBlock(SOURCES, (), (table,))


HONEST = (
    "Observers are honest but curious: they follow the protocol and analyse what they read. "
    "Servers and clients that deviate from the protocol were not tested."
)

SHARED_EXAMPLES = (
    "Attackers were given examples of their own. Whether some of these are a client’s examples "
    "is not known for this recording. If so, attacks look stronger than they are."
)

SWITCHES = (
    "An arm is one variant of the federation, with its own defenses. A defense protects only "
    "while nobody switches it off who could."
)

NOTHING_IN_CLEAR = "Nothing is sent besides weights."


def threat_model_section(findings: FindingsDocument) -> AnnexSection:
    """Return the observers with their knowledge, what they read in clear, and the defenses."""
    knowledge = limited_table(
        "Observers, and what they know beforehand",
        ("Observers", "About", "Know beforehand", "Names of senders"),
        list(dict.fromkeys(_knowledge_rows(findings.plan))),
    )
    planned = [run for run in findings.arms if not run.is_control]
    first_runs = {run.arm: run for run in reversed(planned)}
    runs = [first_runs[arm] for arm in dict.fromkeys(run.arm for run in planned)]
    clear = limited_table(
        "What messages contain besides weights",
        ("Kind", "What, and who reads it", "Arms"),
        _clear_rows(runs),
    )
    honest = (HONEST,) if findings.is_auxiliary_separate else (HONEST, SHARED_EXAMPLES)
    read = () if clear.rows else (NOTHING_IN_CLEAR,)
    return AnnexSection(
        "Threat model",
        (
            SectionBlock("Observers", honest, (knowledge,) if knowledge.rows else ()),
            SectionBlock("Sent in clear text", read, (clear,) if clear.rows else ()),
            SectionBlock("Defenses", (SWITCHES,), (_defenses(runs),)),
        ),
    )


def _knowledge_rows(plan: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each threat of the plan."""
    for threat in read_threats(plan):
        yield (
            observer_words(threat.observers),
            target_words(threat.about, threat.observers),
            ", ".join(threat.knows) or "nothing",
            "new in each round" if threat.has_new_names else "the same in all rounds",
        )


def _clear_rows(runs: Sequence[RunRow]) -> Sequence[tuple[str, ...]]:
    arms = defaultdict[tuple[str, str], dict[str, None]](dict)
    for run in runs:
        for item in run.in_clear:
            arms[item.kind, item.text][run.arm] = None
    order = list(dict.fromkeys(kind for kind, _ in arms))
    return [
        (
            METADATA_NAMES.get(kind, make_printable(kind)),
            make_printable(text),
            _arms(names, runs),
        )
        for (kind, text), names in sorted(
            arms.items(), key=lambda item: order.index(item[0][0])
        )
    ]


def _arms(names: Mapping[str, None], runs: Sequence[RunRow]) -> str:
    if len(names) == len(runs) > 1:
        return "all"
    return ", ".join(map(make_printable, names))


def _defenses(runs: Sequence[RunRow]) -> ReportTable:
    rows = list[tuple[str, ...]]()
    for run in runs:
        name = make_printable(run.arm)
        if not run.defenses:
            none = "none" if run.are_defenses_known else "not stated by the recording"
            rows.append((name, none, *[NO_NUMBER] * 3))
        rows += [
            (
                name,
                *map(
                    make_printable,
                    (one.settings, one.enforced_at, one.switched_off_by, one.promise),
                ),
            )
            for one in run.defenses
        ]
    return limited_table(
        "Arms and their defenses",
        ("Arm", "Defense", "Enforced at", "Could be switched off by", "Formal promise"),
        rows,
    )
