"""Findings for annexes: a leak, an arm without attacks, a claim of epsilon."""

import json
from pathlib import Path

from overheard.findings.document import FindingsDocument
from overheard.report.evidence.annex import Annex, make_annex
from overheard.report.evidence.annex_section import AnnexSection
from overheard.report.evidence.digests import CheckedFile, CheckedFolder
from overheard.report.evidence.officer import OfficerWords
from tests.gate.documents import (
    JsonObject,
    document,
    epsilon_row,
    estimate,
    refusal,
    run,
    summary_row,
    verdict_row,
)

PLAN = """\
[[threats]]
observers = ["server", "client/1"]
about = "cohort"
knows = ["auxiliary", "a new word"]
pseudonyms = "round"
"""

NOISE: JsonObject = {
    "settings": "LocalDp(clip=1.0)",
    "enforced_at": "client",
    "switched_off_by": "the client itself",
    "promise": "epsilon 2",
}


def content(**changes: object) -> JsonObject:
    """Return findings in which membership leaks, but not in the arm `noisy`."""
    rows = (
        summary_row(0.6, 0.7),
        summary_row(0.7, 0.8, attack="strong"),
        # Fewer rounds: not what the verdict is about.
        summary_row(0.9, 0.95, attack="early", rounds=[0]),
    )
    settings: JsonObject = {
        "title": "Two hospitals",
        "arms": [
            run(in_clear=[{"kind": "examples", "text": "50 examples"}]),
            run("noisy", defenses=[NOISE], in_clear=[]),
        ],
        "verdicts": [
            verdict_row(
                score="membership_auc",
                gain=estimate(0.2, 0.3),
                sentence="The server tells members from others.",
            ),
            verdict_row(
                "unmeasured",
                None,
                arm="noisy",
                gain=None,
                attack="",
                smallest_p_value=None,
                margins={},
            ),
        ],
        "refusals": [refusal(arm="noisy"), refusal(arm="noisy", attack="other")],
        "epsilon": [epsilon_row(claimed=1.5, claimed_for="run", is_recomputed=True, pld=2.0)],
        "plan": PLAN,
        "versions": {"overheard": "0.1.0"},
        "made_on": "2026-11-21",
        "is_recorded": True,
        "release": {"contact": "dpo@example.org"},
    }
    return document(*rows, **(settings | changes))


def read(**changes: object) -> FindingsDocument:
    """Return these findings as they are read."""
    return FindingsDocument.model_validate_json(json.dumps(content(**changes)))


def annex_of(words: OfficerWords | None = None, **changes: object) -> Annex:
    """Return the annex of these findings."""
    files = (CheckedFile("findings.json", "as written", "a" * 64, 7),)
    folder = CheckedFolder(Path("audit"), "b" * 64, files)
    return make_annex(read(**changes), words or OfficerWords(), folder, "2026-11-22")


def text_of(section: AnnexSection) -> str:
    """Return all text of a section: paragraphs, then rows of tables."""
    lines = [section.title]
    for block in section.blocks:
        lines += [block.heading, *block.paragraphs]
        for table in block.tables:
            lines += [table.caption, " | ".join(table.headers)]
            lines += [" | ".join(row) for row in table.rows]
    return "\n".join(lines)


def section_of(annex: Annex, title: str) -> str:
    """Return the text of the section of this title."""
    (found,) = [one for one in annex.sections if one.title == title]
    return text_of(found)
