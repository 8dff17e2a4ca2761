"""The description of the evidence as an RO-Crate 1.2 (https://w3id.org/ro/crate/1.2)."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from overheard.findings.document_reader import FindingsDocument
from overheard.findings.names import make_printable
from overheard.report.evidence.digests import CheckedFolder
from overheard.report.evidence.model_card import (
    FAIR4ML,
    MODEL_ID,
    JsonEntity,
    model_entities,
)
from overheard.report.evidence.officer import OfficerWords, release_fields

RO_CRATE_FILE = "ro-crate-metadata.json"

SPECIFICATION = "https://w3id.org/ro/crate/1.2"

FILE_FACTS = {
    "annex.html": ("Annex, as a page", "text/html"),
    "annex.md": ("Annex, as Markdown", "text/markdown"),
    "annex.pdf": ("Annex, as a PDF", "application/pdf"),
    "model-card.jsonld": ("Block for a model card", "application/ld+json"),
    "officer.toml": ("Statements of the data-protection officer", "application/toml"),
}
"""Title and media type of each file of the evidence."""


def ro_crate(
    folder: Path,
    findings: FindingsDocument,
    words: OfficerWords,
    audit_files: CheckedFolder | None,
    made_on: str,
) -> str:
    """Return the contents of `ro-crate-metadata.json`.

    The files of the audit are named with their digests, but are no part of the crate: they
    contain the ground truth about clients.

    Args:
        folder: the folder of the evidence, which holds the files to describe.
        findings: the findings of the audit.
        words: what the officer stated.
        audit_files: the files of the audit; None = they have no digests.
        made_on: the day on which the evidence is made.

    """
    names = [name for name in FILE_FACTS if (folder / name).is_file()]
    sources = _source_entities(audit_files)
    title = f"Evidence on “{make_printable(findings.title)}”"
    graph = [
        {
            "@id": RO_CRATE_FILE,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": SPECIFICATION},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": title,
            "description": "What attacks could infer from the messages of a "
            f"federated-learning run, as an annex. Audited: {make_printable(findings.subject)}",
            "datePublished": made_on,
            "license": {"@id": "#license"},
            "author": {"@id": "#controller"},
            "hasPart": _links(names),
            "mentions": [{"@id": MODEL_ID}, *_links(str(one["@id"]) for one in sources)],
        },
        *_context_entities(findings, words),
        *(_file_entity(folder, name) for name in names),
        *sources,
        *model_entities(findings, words),
        *_software_and_action(names, sources, made_on),
    ]
    context = [
        f"{SPECIFICATION}/context",
        {"fair4ml": FAIR4ML, "sha256": "http://schema.org/sha256"},
    ]
    document = {"@context": context, "@graph": graph}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _context_entities(findings: FindingsDocument, words: OfficerWords) -> Sequence[JsonEntity]:
    release = release_fields(words, findings.release)
    return (
        {
            "@id": "#controller",
            "@type": "Organization",
            "name": make_printable(release["controller"].shown_text),
            "description": f"Contact: {make_printable(release['contact'].shown_text)}",
        },
        {
            "@id": "#license",
            "@type": "CreativeWork",
            "name": "Use of this evidence",
            "description": make_printable(" ".join(release["license"].shown_text.split())),
        },
    )


def _file_entity(folder: Path, name: str) -> JsonEntity:
    title, media_type = FILE_FACTS[name]
    content = (folder / name).read_bytes()
    return {
        "@id": name,
        "@type": "File",
        "name": title,
        "encodingFormat": media_type,
        "contentSize": str(len(content)),
        "sha256": sha256(content).hexdigest(),
    }


def _source_entities(audit_files: CheckedFolder | None) -> Sequence[JsonEntity]:
    """Describe the files of the audit; an id with a hash names a file that is not here."""
    if audit_files is None:
        return ()
    return [
        {
            "@id": f"#{one.name}",
            "@type": "File",
            "name": one.name,
            "description": "A file of the audit, which is not part of this crate.",
            "sha256": one.sha256,
        }
        for one in audit_files.files
        if one.sha256
    ]


def _software_and_action(
    names: Sequence[str], sources: Sequence[JsonEntity], made_on: str
) -> Sequence[JsonEntity]:
    return (
        {
            "@id": "#overheard",
            "@type": "SoftwareApplication",
            "name": "Overheard",
            "version": version("overheard"),
            "url": "https://github.com/overheard/overheard",
        },
        {
            "@id": "#making-of-the-annex",
            "@type": "CreateAction",
            "name": "Making of the annex from the findings",
            "instrument": {"@id": "#overheard"},
            "object": _links(str(one["@id"]) for one in sources),
            "result": _links(names),
            "endTime": made_on,
        },
    )


def _links(ids: Iterable[str]) -> list[JsonEntity]:
    return [{"@id": one} for one in ids]
