"""Who could read what, which tests were made, and which were not."""

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from overheard.core.parties import COHORT, SERVER
from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.findings.document_reader import FindingsDocument
from overheard.findings.document_rows import RunRow
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER
from overheard.findings.threat_verdict import TargetKind
from overheard.plans.registries import questions
from overheard.report.evidence.annex_results import rows_of
from overheard.report.evidence.annex_section import (
    AnnexSection,
    limited_table,
    observer_words,
    question_words,
    target_words,
)
from overheard.report.evidence.standards import NO_IDENTIFIER, untested_threats
from overheard.report.first_page.first_page import METADATA_NAMES

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

CLEAR_NOT_STATED = "The findings do not state what is sent besides weights."

KNOWLEDGE = {
    "auxiliary": "labelled examples of the same task",
    "model": "the architecture of the model",
    "recipe": "how clients train",
    "defenses": "which defenses are active",
}
"""What a threat of a plan may grant, in words."""


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
    is_stated = all(run.in_clear is not None for run in runs)
    read = () if clear.rows else (NOTHING_IN_CLEAR if is_stated else CLEAR_NOT_STATED,)
    return AnnexSection(
        "Threat model",
        (
            SectionBlock("Observers", honest, (knowledge,) if knowledge.rows else ()),
            SectionBlock("Sent in clear text", read, (clear,) if clear.rows else ()),
            SectionBlock("Defenses", (SWITCHES,), (_defenses(runs),)),
        ),
    )


def tests_section(findings: FindingsDocument) -> AnnexSection:
    """Return the attacks that ran, those that could not, and what nobody tested."""
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
    blocks = [SectionBlock("Tests that were made", (), (made,))]
    if refused.rows:
        blocks.append(SectionBlock("Tests that could not be made", (), (refused,)))
    blocks.append(SectionBlock("Not asked", _unasked(findings)))
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


def _knowledge_rows(plan: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each threat of the plan; none if the text is no plan."""
    try:
        threats = tomllib.loads(plan).get("threats", [])
    except (ValueError, RecursionError):
        return
    for threat in threats if isinstance(threats, list) else []:
        if not isinstance(threat, Mapping):
            continue
        observers = _texts(threat.get("observers"))
        about: TargetKind = "cohort" if threat.get("about") == "cohort" else "clients"
        each_round = threat.get("pseudonyms") == "round"
        yield (
            observer_words(observers),
            target_words(about, observers),
            ", ".join(_known_words(threat.get("knows"))) or "nothing",
            "new in each round" if each_round else "the same in all rounds",
        )


def _known_words(knows: object) -> Iterator[str]:
    return (KNOWLEDGE.get(one, make_printable(one)) for one in _texts(knows))


def _texts(value: object) -> Sequence[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _clear_rows(runs: Sequence[RunRow]) -> Sequence[tuple[str, ...]]:
    arms = defaultdict[tuple[str, str], dict[str, None]](dict)
    for run in runs:
        for item in run.in_clear or ():
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


def _made_rows(findings: FindingsDocument) -> Sequence[tuple[str, ...]]:
    """Return a row for each threat and question; arms with the same tests share one."""
    arms = defaultdict[tuple[str, ...], dict[str, None]](dict)
    sizes = dict[tuple[str, ...], tuple[int, int]]()
    for verdict in findings.verdicts or ():
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


def _refused_rows(findings: FindingsDocument) -> Sequence[tuple[str, ...]]:
    """Return a row for each reason; attacks and arms with the same reason share one."""
    attacks = defaultdict[tuple[str, ...], dict[str, None]](dict)
    arms = defaultdict[tuple[str, ...], dict[str, None]](dict)
    for one in findings.refusals:
        about: TargetKind = "cohort" if one.target == COHORT else "clients"
        key = (
            observer_words(one.observers),
            f"{question_words(one.question)}, about {target_words(about, one.observers)}",
            " and ".join(map(make_printable, one.missing)),
        )
        attacks[key][make_printable(one.attack)] = None
        arms[key][make_printable(one.arm)] = None
    return [
        (*key[:2], "; ".join(names), key[2], ", ".join(arms[key]))
        for key, names in attacks.items()
    ]


def _unasked(findings: FindingsDocument) -> tuple[str, ...]:
    places = {(one.question, frozenset(one.observers)) for one in findings.summary}
    places |= {(one.question, frozenset(one.observers)) for one in findings.refusals}
    places |= {(one.question, frozenset(one.observers)) for one in findings.verdicts or ()}
    asked = {question for question, _ in places}
    observers = {group for _, group in places}
    missing = [f"“{question_words(name)}”" for name in questions() if name not in asked]
    unseen = [
        words
        for words, is_asked in (
            ("the server", frozenset({SERVER}) in observers),
            ("a client that takes part", any(SERVER not in one for one in observers)),
            ("parties that share what they read", any(len(one) > 1 for one in observers)),
        )
        if not is_asked
    ]
    return (
        f"Questions that were not asked: {'; '.join(missing)}."
        if missing
        else "Every question of this version was asked.",
        *([f"Observers that were not asked about: {'; '.join(unseen)}."] if unseen else []),
    )
