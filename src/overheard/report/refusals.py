"""Groups refusals by reason."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from overheard.core.failures import HOW_TO_REPORT
from overheard.core.parties import Party
from overheard.findings.finding import Refusal
from overheard.findings.names import make_printable
from overheard.findings.refusal_kind import RefusalKind
from overheard.findings.threat_results import ArmResult

MAX_MISSING = 3
"""Most missing things that a sentence names; of more it gives the number."""


@dataclass(frozen=True, slots=True)
class RefusalGroup:
    """One reason why an attack of some observers could not run in an arm.

    Args:
        arm: name of the arm.
        observers: whose views the attack would have been given.
        label: the attack's label in reports.
        question: the unanswered question.
        missing: what the attack lacked.
        targets: the number of different targets.
        claims: the number of claims not made, over targets, rounds and seeds.

    """

    arm: str
    observers: tuple[Party, ...]
    label: str
    question: str
    missing: tuple[str, ...]
    targets: int
    claims: int


KINDS: Mapping[RefusalKind, str] = {
    "missing": "Missing",
    "failed": "Overheard failed",
    "contradicted": "The recording contradicts itself",
}
"""What stands before the reasons of each kind."""


def why_refused(refusals: Iterable[Refusal], missing: str = KINDS["missing"]) -> str:
    """Return why these attacks have no claim: a sentence for each kind of reason.

    Args:
        refusals: the refusals.
        missing: what stands before what was missing.

    """
    by_kind: dict[RefusalKind, list[Refusal]] = {}
    for one in refusals:
        by_kind.setdefault(one.kind, []).append(one)
    heads = {**KINDS, "missing": missing}
    return " ".join(
        f"{heads[kind]}: {_list_reasons(by_kind[kind])}." for kind in heads if kind in by_kind
    )


def failure_sentences(refusals: Iterable[Refusal]) -> tuple[str, ...]:
    """Return how often Overheard itself failed, where first, and what to do; () = never."""
    failed = [one for one in refusals if one.kind == "failed"]
    if not failed:
        return ()
    claims = f"{len(failed)} claim{'' if len(failed) == 1 else 's'}"
    attacks = list(dict.fromkeys(one.cell.label or one.cell.attack for one in failed))
    named = ", ".join(map(make_printable, attacks[:MAX_MISSING]))
    more = len(attacks) - MAX_MISSING
    return (
        f"Overheard itself failed to make or score {claims} ({named}"
        f"{f' and {more} more' if more > 0 else ''}): {_list_reasons(failed)}. "
        f"{HOW_TO_REPORT}.",
    )


def _list_reasons(refusals: Iterable[Refusal]) -> str:
    """Return the reasons of these refusals, each once, for use in a sentence."""
    missing = list(dict.fromkeys(need for refusal in refusals for need in refusal.missing))
    listed = " and ".join(map(make_printable, missing[:MAX_MISSING]))
    more = len(missing) - MAX_MISSING
    return f"{listed}, and {more} more" if more > 0 else listed


def group_refusals(arm_results: Sequence[ArmResult]) -> tuple[RefusalGroup, ...]:
    """Return one group per arm and reason, in the order of each group's first refusal."""
    groups: dict[tuple[str, tuple[Party, ...], str, str, tuple[str, ...]], list[Refusal]]
    groups = defaultdict(list)
    for arm in arm_results:
        for threat_result in arm.threat_results:
            for refusal in threat_result.refusals:
                label = threat_result.labels[refusal.cell.attack]
                reason = (arm.name, threat_result.observers, label, threat_result.question)
                groups[(*reason, refusal.missing)].append(refusal)
    return tuple(
        RefusalGroup(*reason, len({refusal.target for refusal in members}), len(members))
        for reason, members in groups.items()
    )
