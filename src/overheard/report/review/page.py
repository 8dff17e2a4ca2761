"""The page and the JSON of a review, which tell the same."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import final

from overheard.doctor.criticism import SEVERITIES, Diagnosis
from overheard.doctor.diagnosis_formats import as_document
from overheard.doctor.source.app_facts import AppFact
from overheard.findings.names import make_printable
from overheard.report.template import load_template

FORMAT = "overheard review"

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""

LIMITS = (
    "Only Python files and pyproject.toml are read, and no tests, setup.py, hidden folders, "
    "environments or build folders.",
    "The source was read and not run. What it loads, downloads or computes when it runs is "
    "unknown.",
    "The rules look for known faults of differential privacy. Code can have others: that no "
    "rule found one proves nothing.",
    "What leaks can only be measured: overheard audit simulates the federation, or opens a "
    "recording of it.",
)
"""What a review cannot tell."""


@final
@dataclass(frozen=True, slots=True)
class Review:
    """What was found in the source of an app.

    Args:
        app: the app, as it was named.
        digest: SHA-256 of the files that were read, with their names.
        files: number of files that were read.
        facts: what the source states.
        diagnosis: what the rules of the doctor say.

    """

    app: str
    digest: str
    files: int
    facts: Sequence[AppFact]
    diagnosis: Diagnosis

    @property
    def exit_code(self) -> int:
        """1 if there is a critical fault, else 0."""
        return 1 if self.diagnosis.alarms else 0


def review_page(review: Review) -> str:
    """Return the page as HTML, with all names escaped and printable."""
    found = review.diagnosis
    return load_template("review.html.j2", "overheard.report.review").render(
        app=make_printable(review.app),
        digest=review.digest,
        files=review.files,
        counts=[
            (severity, sum(one.rule.severity == severity for one in found.criticisms), words)
            for severity, words in SEVERITIES.items()
        ],
        facts=[
            (one.name, make_printable(one.text), ", ".join(map(make_printable, one.places)))
            for one in review.facts
        ],
        faults=[
            {
                "severity": one.rule.severity,
                "title": one.rule.title,
                "texts": [
                    (name, make_printable(text))
                    for name, text in (
                        ("Where", one.where),
                        ("What", one.what),
                        ("Evidence", one.evidence),
                        ("To mend it", one.rule.mend),
                        ("See", one.rule.reference),
                    )
                ],
            }
            for one in found.criticisms
        ],
        notes=list(map(make_printable, found.notes)),
        unseen=[f"{one.rule.title}: {make_printable(one.why)}" for one in found.unseen],
        passed=[one.title for one in found.passed],
        limits=LIMITS,
    )


def review_json(review: Review) -> str:
    """Return the review as JSON; `diagnosis` is what `overheard doctor --json` prints."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "target": make_printable(review.app),
        "exit_code": review.exit_code,
        "sha256": review.digest,
        "files": review.files,
        "facts": [
            {
                name: list(map(make_printable, value))
                if isinstance(value, tuple)
                else make_printable(value)
                for name, value in asdict(one).items()
            }
            for one in review.facts
        ],
        "diagnosis": as_document(review.diagnosis, review.app, review.exit_code),
        "limits": list(LIMITS),
    }
    return json.dumps(document, indent=1) + "\n"
