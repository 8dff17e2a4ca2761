"""Which tests were made, which were not, and which nobody makes."""

from collections import defaultdict
from collections.abc import Sequence

from overheard.core.parties import NETWORK, RELEASE, SERVER, Party, is_client
from overheard.drawing.sections import SectionBlock
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import RefusalRow, SummaryRow, VerdictRow
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER
from overheard.plans.registries import ATTACKS, questions
from overheard.report.evidence.annex_plan import read_threats
from overheard.report.evidence.annex_results import rows_of
from overheard.report.evidence.annex_section import (
    AnnexSection,
    limited_table,
    observer_words,
    question_words,
    target_words,
)
from overheard.report.evidence.standards import NO_IDENTIFIER, untested_threats

NOTHING_CHECKED = "No attack ran whose claims could be checked."

WHY_UNCHECKED = (
    "These attacks read the messages and made claims. What is true of the clients is not known "
    "for this run, so nobody can say how accurate the claims are. To have them checked, record "
    "the ground truth as well, or audit a simulation of the same federation."
)


def tests_section(findings: FindingsDocument) -> AnnexSection:
    """Return attacks that ran, were not checked or could not run, and what nobody tested."""
    made = limited_table(
        "Attacks that ran",
        ("Observers", "Question", "Attacks", "Arms", "Targets", "Runs"),
        _made_rows(findings),
    )
    refused = limited_table(
        "Attacks that could not run. This does not show protection",
        ("Observers", "Question", "Attacks", "Missing", "Arms"),
        _refused_rows(findings),
    )
    unchecked = limited_table(
        "Claims that could not be checked. This does not show that nothing leaks",
        ("Observers", "Question", "Attacks in the plan", "Arms"),
        _unchecked_rows(findings),
    )
    nothing = () if made.rows else (NOTHING_CHECKED,)
    blocks = [SectionBlock("Tests that were made", nothing, (made,) if made.rows else ())]
    if unchecked.rows:
        blocks.append(SectionBlock("Claims without a check", (WHY_UNCHECKED,), (unchecked,)))
    if refused.rows:
        blocks.append(SectionBlock("Tests that could not be made", (), (refused,)))
    blocks.append(SectionBlock("Not asked", _not_tested(findings)))
    never = limited_table(
        "What no audit by Overheard tests",
        ("Threat", "Standards that name it"),
        [
            (
                one.threat,
                "; ".join(f"{ref.standard}, {ref.id}" for ref in one.references)
                or NO_IDENTIFIER,
            )
            for one in untested_threats()
        ],
    )
    blocks.append(SectionBlock("Not tested", (), (never,)))
    return AnnexSection("Tests", tuple(blocks))


def _made_rows(findings: FindingsDocument) -> Sequence[tuple[str, ...]]:
    """Return a row for each threat and question; arms with the same tests share one."""
    arms = defaultdict[tuple[str, ...], dict[str, None]](dict)
    sizes = dict[tuple[str, ...], tuple[int, int]]()
    for verdict in findings.verdicts:
        rows = rows_of(findings, verdict)
        if not rows:
            continue
        attacks = dict.fromkeys(make_printable(row.attack) for row in rows)
        key = (
            observer_words(verdict.observers),
            f"{question_words(verdict.question)}, about "
            f"{target_words(verdict.about, verdict.observers)}",
            "; ".join(attacks),
        )
        arms[key][make_printable(verdict.arm)] = None
        targets, seeds = sizes.get(key, (0, 0))
        sizes[key] = (
            max(targets, *(row.targets for row in rows)),
            max(seeds, *(row.seeds for row in rows)),
        )
    return [(*key, ", ".join(names), *map(str, sizes[key])) for key, names in arms.items()]


def _unchecked_rows(findings: FindingsDocument) -> Sequence[tuple[str, ...]]:
    """Return a row for each observers and question whose claims nobody could check."""
    arms = defaultdict[tuple[str, ...], dict[str, None]](dict)
    for verdict in findings.verdicts:
        if verdict.verdict == "unchecked":
            key = (
                observer_words(verdict.observers),
                f"{question_words(verdict.question)}, about "
                f"{target_words(verdict.about, verdict.observers)}",
                "; ".join(_planned_attacks(findings.plan, verdict)) or NO_NUMBER,
            )
            arms[key][make_printable(verdict.arm)] = None
    return [(*key, ", ".join(names)) for key, names in arms.items()]


def _planned_attacks(plan: str, verdict: VerdictRow) -> Sequence[str]:
    """Return the attacks that a plan names for the place of a verdict; () = none are known."""
    place = (frozenset(verdict.observers), verdict.about)
    return list(
        dict.fromkeys(
            make_printable(attack)
            for threat in read_threats(plan)
            if (frozenset(threat.observers), threat.about) == place
            for attack in threat.attacks
            if _answers(attack, verdict.question)
        )
    )


def _answers(attack: str, question: str) -> bool:
    """Return whether an attack answers a question; one that is not installed may."""
    known, asked = ATTACKS.plugins().get(attack), questions().get(question)
    return known is None or asked is None or known.claim_type is asked.scorer.claim_type


def _refused_rows(findings: FindingsDocument) -> Sequence[tuple[str, ...]]:
    """Return a row for each reason; attacks and arms with the same reason share one."""
    attacks = defaultdict[tuple[str, ...], dict[str, None]](dict)
    arms = defaultdict[tuple[str, ...], dict[str, None]](dict)
    for one in findings.refusals:
        key = (
            observer_words(one.observers),
            f"{question_words(one.question)}, about "
            f"{target_words(one.key.about, one.observers)}",
            " and ".join(map(make_printable, one.missing)),
        )
        attacks[key][make_printable(one.attack)] = None
        arms[key][make_printable(one.arm)] = None
    return [
        (*key[:2], "; ".join(names), key[2], ", ".join(arms[key]))
        for key, names in attacks.items()
    ]


def _not_tested(findings: FindingsDocument) -> tuple[str, ...]:
    rows: tuple[SummaryRow | RefusalRow | VerdictRow, ...]
    rows = (*findings.summary, *findings.refusals, *findings.verdicts)
    asked = {one.question for one in rows}
    observers = {frozenset(map(Party, one.observers)) for one in rows}
    missing = [f"“{question_words(name)}”" for name in questions() if name not in asked]
    unseen = [
        words
        for words, is_asked in (
            ("the server", frozenset({SERVER}) in observers),
            (
                "a client that takes part",
                any(SERVER not in one and any(map(is_client, one)) for one in observers),
            ),
            ("parties that share what they read", any(len(one) > 1 for one in observers)),
            ("readers of the final model", any(RELEASE in one for one in observers)),
            ("the network", any(NETWORK in one for one in observers)),
        )
        if not is_asked
    ]
    return (
        f"Questions that were not asked: {'; '.join(missing)}."
        if missing
        else "Every question of this version was asked.",
        *([f"Observers that were not asked about: {'; '.join(unseen)}."] if unseen else []),
    )
