"""The page and the JSON of a review, which tell the same."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import final

from overheard.doctor.criticism import SEVERITIES, Diagnosis
from overheard.doctor.diagnosis_formats import as_document
from overheard.doctor.source.app_facts import AppFact
from overheard.findings.names import make_printable
from overheard.report.run_overview import RunOverview
from overheard.report.template import load_template

FORMAT = "overheard review"

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""

LIMITS = (
    "Only Python files, pyproject.toml and the settings of an NVFlare job are read, and no "
    "compiled files, tests, setup.py, hidden folders, environments or build folders.",
    "The source was read and not run. What it loads, downloads or computes when it runs is "
    "unknown.",
    "The rules look for known faults of differential privacy. Code can have others: that no "
    "rule found one proves nothing.",
    "What leaks can only be measured: overheard audit simulates the federation, or opens a "
    "recording of it.",
)
"""What a review cannot tell."""

RAN_ONCE = (
    "The app ran once, in a simulation on this machine, with the data that it has here. With "
    "other data, settings or clients it may send something else. It ran in the process that "
    "recorded it, so an app that is made to deceive can change what is shown."
)
"""What a review with a run cannot tell."""


@final
@dataclass(frozen=True, slots=True)
class ShownRun:
    """What the recording of a simulated run shows.

    Args:
        overview: what was sent, and who can read it.
        diagnosis: what the rules of the doctor say of it.
        code: which code ran, in words.
        next_step: the command that leads to claims.
        rounds: number of recorded rounds.
        ended_after: after how many seconds it was ended; None = it ended by itself.

    """

    overview: RunOverview
    diagnosis: Diagnosis
    code: str
    next_step: str
    rounds: int
    ended_after: int | None = None

    def lines(self) -> tuple[tuple[str, str], ...]:
        """Return pairs of a name and a text, printable."""
        ended = (
            f"{self.rounds}, and the app ended by itself"
            if self.ended_after is None
            else f"{self.rounds}; the app was ended after {self.ended_after} s"
        )
        found, facts = self.overview, list[tuple[str, str]]()
        for name, text in found.facts:
            if name or not facts:
                facts.append((name, text))
            else:  # it continues the fact before it
                facts[-1] = (facts[-1][0], f"{facts[-1][1]} {text}")
        pairs = [
            ("Simulated rounds", ended),
            *((name[:1].upper() + name[1:], text) for name, text in facts),
            ("Who can read it", " ".join(found.readers)),
            *(("Sent beside weights", one.text) for one in found.metadata),
            *(
                (f"{one.rule.severity.capitalize()} fault", f"{one.rule.title}: {one.what}")
                for one in self.diagnosis.criticisms
            ),
        ]
        return tuple(
            (make_printable(name), make_printable(text)) for name, text in pairs if text
        )


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
        shown: what a simulated run of it shows; None = it did not run.

    """

    app: str
    digest: str
    files: int
    facts: Sequence[AppFact]
    diagnosis: Diagnosis
    shown: ShownRun | None = None

    @property
    def exit_code(self) -> int:
        """1 if there is a critical fault, else 0."""
        has_alarm = self.shown is not None and bool(self.shown.diagnosis.alarms)
        return 1 if self.diagnosis.alarms or has_alarm else 0

    @property
    def limits(self) -> tuple[str, ...]:
        """What it cannot tell."""
        return LIMITS if self.shown is None else (LIMITS[0], RAN_ONCE, *LIMITS[2:])


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
        limits=review.limits,
        shown=review.shown,
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
        "run": None if review.shown is None else _run_document(review.shown, review.app),
        "limits": list(review.limits),
    }
    return json.dumps(document, indent=1) + "\n"


def _run_document(shown: ShownRun, app: str) -> dict[str, object]:
    code = 1 if shown.diagnosis.alarms else 0
    return {
        "code": make_printable(shown.code),
        "rounds": shown.rounds,
        "ended_after": shown.ended_after,
        "shows": [{"name": name, "text": text} for name, text in shown.lines()],
        "diagnosis": as_document(shown.diagnosis, app, code),
        "next": make_printable(shown.next_step),
    }
