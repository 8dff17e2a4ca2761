"""Who could read what: observers with their knowledge, what is in clear text, and defenses."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import RunRow
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER
from overheard.report.evidence.annex_plan import read_threats
from overheard.report.evidence.annex_section import (
    AnnexSection,
    limited_table,
    observer_words,
    target_words,
)
from overheard.report.metadata_names import METADATA_NAMES

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
