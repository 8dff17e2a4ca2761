"""The description of the evidence as an RO-Crate 1.2 (https://w3id.org/ro/crate/1.2)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import final

from overheard.core.errors import OutputError
from overheard.disk.limits import ARRAY
from overheard.disk.reading import read_small_file
from overheard.findings.document import FindingsDocument
from overheard.findings.names import make_printable
from overheard.report.evidence.digests import CheckedFolder
from overheard.report.evidence.officer import OfficerWords, release_fields

JsonEntity = dict[str, object]
"""An entity of a JSON-LD document; further entities are named by their `@id`."""


@final
@dataclass(frozen=True, slots=True)
class FileFacts:
    """What the crate says of a file besides its contents.

    Args:
        title: its name for readers.
        media_type: its type, by the list of IANA.
        description: its role among the files.

    """

    title: str
    media_type: str
    description: str


RO_CRATE_FILE = "ro-crate-metadata.json"

SPECIFICATION = "https://w3id.org/ro/crate/1.2"

ACTION_ID = "#making-of-the-annex"

SAME_TEXT = (
    "Which tests were made, what they found, and what was not tested; both annexes are alike."
)

FILE_FACTS = {
    "annex.html": FileFacts("Annex, as a page", "text/html", SAME_TEXT),
    "annex.pdf": FileFacts("Annex, as a PDF", "application/pdf", SAME_TEXT),
    "officer.toml": FileFacts(
        "Statements of the data-protection officer",
        "application/toml",
        "What no measurement can tell, such as the residual risk. The annex contains it.",
    ),
}
"""The files of the evidence."""

MEDIA_TYPES = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".toml": "application/toml",
}
"""Media types of the files of an audit."""


def ro_crate(
    folder: Path,
    findings: FindingsDocument,
    words: OfficerWords,
    audit_files: CheckedFolder,
    made_on: str,
) -> str:
    """Return the contents of `ro-crate-metadata.json`.

    The files of the audit are named with their digests, but are no part of the crate: they
    contain the ground truth about clients.

    Args:
        folder: the folder of the evidence, which holds the files to describe.
        findings: the findings of the audit.
        words: what the officer stated.
        audit_files: the files of the audit.
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
            "publisher": {"@id": "#controller"},
            "hasPart": _links(names),
            "mentions": _links((ACTION_ID, *(str(one["@id"]) for one in sources))),
        },
        *_context_entities(findings, words),
        *(_file_entity(folder, name) for name in names),
        *sources,
        *_software_and_action(names, sources, made_on),
    ]
    document = {"@context": f"{SPECIFICATION}/context", "@graph": graph}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _context_entities(findings: FindingsDocument, words: OfficerWords) -> Sequence[JsonEntity]:
    release = release_fields(words, findings.release)
    return (
        {
            "@id": "#controller",
            "@type": "Organization",
            "name": make_printable(" ".join(release["controller"].shown_text.split())),
            "description": "Who answers for the data.",
            "contactPoint": {"@id": "#contact"},
        },
        {
            "@id": "#contact",
            "@type": "ContactPoint",
            "name": "Contact for questions on the data",
            "description": make_printable(" ".join(release["contact"].shown_text.split())),
        },
        {
            "@id": "#license",
            "@type": "CreativeWork",
            "name": "Use of this evidence",
            "description": make_printable(" ".join(release["license"].shown_text.split())),
        },
    )


def _file_entity(folder: Path, name: str) -> JsonEntity:
    facts = FILE_FACTS[name]
    content = read_small_file(folder / name, OutputError, part=ARRAY)
    return {
        "@id": name,
        "@type": "File",
        "name": facts.title,
        "description": facts.description,
        "encodingFormat": facts.media_type,
        "contentSize": str(len(content)),
        "sha256": sha256(content).hexdigest(),
    }


def _source_entities(audit_files: CheckedFolder) -> Sequence[JsonEntity]:
    """Describe the files of the audit, which are not here.

    A local identifier, which starts with a number sign, says that a file is absent on purpose
    (RO-Crate 1.2, section "File Data Entity").
    """
    return [
        {
            "@id": f"#{one.name}",
            "@type": "File",
            "name": one.name,
            "description": "A file in the folder of the audit; it is no part of this crate.",
            "encodingFormat": MEDIA_TYPES.get(
                Path(one.name).suffix, "application/octet-stream"
            ),
            "contentSize": str(one.size),
            "localPath": one.name,
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
            "description": "The software that ran the audit’s attacks and wrote the annex.",
            "version": version("overheard"),
            "url": "https://github.com/overheard/overheard",
        },
        {
            "@id": ACTION_ID,
            "@type": "CreateAction",
            "name": "Making of the annex from the findings",
            "description": "The software wrote the annex from the files of the audit.",
            "instrument": {"@id": "#overheard"},
            "object": _links(str(one["@id"]) for one in sources),
            "result": _links(names),
            "endTime": made_on,
        },
    )


def _links(ids: Iterable[str]) -> list[JsonEntity]:
    return [{"@id": one} for one in ids]
