"""The first page: what leaks to whom, how sure this is, what to do, and what was not tested."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportTable
from overheard.epsilon.epsilon_results import EpsilonResult
from overheard.epsilon.table import epsilon_sentences, epsilon_table
from overheard.findings.finding import Audit
from overheard.findings.metadata import MetadataItem
from overheard.findings.names import make_printable
from overheard.findings.threat_results import ArmResult
from overheard.report.first_page.matrix import Matrix, make_matrices
from overheard.report.first_page.next_steps import next_steps
from overheard.report.first_page.not_tested import untested_sentences
from overheard.report.limitations import limitation_sentences
from overheard.report.metadata_names import METADATA_NAMES

NO_METADATA = "Besides weights, nothing is sent."

MISTRUST = (
    "Do not rely on a claim of differential privacy that is said below not to hold or to be "
    "doubtful. Mend its settings, and repeat the audit."
)

RELEASE_NAMES = {
    "controller": "Answers for the data",
    "contact": "Contact",
    "purpose": "Purpose of the model",
    "people": "Whose data",
    "recipients": "Who gets the model",
    "retention": "How long data are stored",
}


@final
@dataclass(frozen=True, slots=True)
class FirstPage:
    """The contents of the first page; all texts are printable.

    Args:
        matrices: the verdicts, by question and observers, arm by arm.
        in_clear: what travels besides weights, by kind; () = nothing.
        epsilon: the table of claimed, recomputed and measured epsilon; None = no such claim.
        broken_claims: sentences on claims of epsilon that do not hold.
        steps: what to do next.
        untested: what was not asked, not run or never tested.
        limits: how far the results can be trusted.
        file_rows: pairs of name and text that identify this audit.

    """

    matrices: tuple[Matrix, ...]
    in_clear: tuple[tuple[str, str], ...]
    epsilon: ReportTable | None
    broken_claims: tuple[str, ...]
    steps: tuple[str, ...]
    untested: tuple[str, ...]
    limits: tuple[str, ...]
    file_rows: tuple[tuple[str, str], ...]


def make_first_page(
    audit: Audit,
    arm_results: Sequence[ArmResult],
    epsilons: Sequence[EpsilonResult],
    digest: str,
) -> FirstPage:
    """Return the first page of an audit.

    Args:
        audit: the audit.
        arm_results: the results of its arms.
        epsilons: its claims of epsilon.
        digest: the SHA-256 of `findings.json`; "" = not stated.

    """
    broken = epsilon_sentences(epsilons)
    return FirstPage(
        make_matrices(arm_results),
        _in_clear(arm_results),
        epsilon_table(epsilons) if epsilons else None,
        broken,
        (*((MISTRUST,) if broken else ()), *next_steps(arm_results)),
        untested_sentences(audit, arm_results),
        limitation_sentences(audit, arm_results),
        _file_rows(audit, digest),
    )


def _in_clear(arm_results: Sequence[ArmResult]) -> tuple[tuple[str, str], ...]:
    """Return what the first run of each arm sends besides weights; equal texts once."""
    arms_by_item: dict[MetadataItem, list[str]] = {}
    for arm in arm_results:
        for item in arm.runs[0].in_clear:
            arms_by_item.setdefault(item, []).append(make_printable(arm.name))
    return tuple(
        (
            METADATA_NAMES.get(item.kind, make_printable(item.kind)),
            make_printable(item.text)
            if len(arms) == len(arm_results)
            else f"{'; '.join(arms)}: {make_printable(item.text)}",
        )
        for item, arms in arms_by_item.items()
    )


def _file_rows(audit: Audit, digest: str) -> tuple[tuple[str, str], ...]:
    versions = ", ".join(f"{name} {number}" for name, number in audit.versions.items())
    seeds = sorted({run.seed for run in audit.arms})
    rows = [
        ("Title", audit.title),
        ("Day of the audit", audit.made_on),
        *((name, audit.release.get(key, "")) for key, name in RELEASE_NAMES.items()),
        ("What was audited", "a recorded run" if audit.is_recorded else "simulated runs"),
        ("Seeds", ", ".join(map(str, seeds))),
        ("Versions", versions),
        ("SHA-256 of findings.json", digest),
    ]
    return tuple((name, make_printable(text)) for name, text in rows if text)
