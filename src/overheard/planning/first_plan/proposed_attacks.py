"""Proposes the attacks of a first plan, and tells which of them can run."""

from collections.abc import Iterator
from dataclasses import replace

from overheard.auditing.inputs import AuditInputs
from overheard.auditing.recording import check_recording
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.data.dataset import Dataset
from overheard.planning.first_plan.listed_candidates import membership_threats
from overheard.planning.first_plan.plan_facts import PlanFacts, ThreatText
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.outlook import planned_audit
from overheard.planning.recorded_facts import RecordedFacts

FIRST_ATTACKS = ("mean_softmax", "bias_inversion", "decaf", "llg", "ilrg")
"""Attacks on label shares that take seconds."""

WORD_ATTACKS = ("embedding_rows", "combined_rows")
"""Attacks on the words of texts, which take seconds."""

RECORDED_ATTACKS = ("shift",)
"""Attacks that also run on a recording of which nothing else is known."""

SIMULATING_ATTACK = "{ kind = 'amortised', most_rounds = 1, steps = 100 }"
"""The attack that gains most, as far as it runs in a minute."""

SHARED_LAYERS_ATTACK = "class_geometry"
"""The attack that needs no last layer, where each client keeps its own."""

NUMBERS_ATTACK = "target_regression"
"""The attack on the distribution of numbers to predict."""

ATTACKS_WITHOUT_CLASSES = ("whitened_membership", "lira_pooled", "loss_membership")
"""Attacks that take seconds, on single records, for data without classes."""

LISTED_RECORDS = (
    "records of which you know whether a client trained on them (--candidates FILE)"
)
"""What attacks on membership of a recorded run need."""


def first_attacks(dataset: Dataset, recording: RecordedFacts | None) -> tuple[str, ...]:
    """Return the attacks that take seconds, for the first threat of a plan."""
    first: tuple[str, ...] = (
        FIRST_ATTACKS if dataset.task.has_classes else ATTACKS_WITHOUT_CLASSES
    )
    if dataset.task.vocabulary is not None:
        first = (*first, *WORD_ATTACKS)
    if dataset.listed is not None and not dataset.task.has_classes:
        first = ()  # The listed records have a threat of their own.
    is_shift_asked = recording is not None and recording.reads_updates
    return (*first, *RECORDED_ATTACKS) if is_shift_asked else first


def propose_threats(
    facts: PlanFacts, dataset: Dataset, request: FirstPlanRequest
) -> tuple[ThreatText, ...]:
    """Return the threats of a plan, also those for which something is missing."""
    has_classes = dataset.task.has_classes
    simulating = SIMULATING_ATTACK if has_classes else NUMBERS_ATTACK
    if facts.is_head_at_home and has_classes:
        simulating = SHARED_LAYERS_ATTACK
    # Without the number of clients behind a mean update, none can be simulated.
    is_number_known = facts.clients > 0
    is_simulated = facts.is_model_known and is_number_known and request.data is not None
    is_simulated &= dataset.task.kind != "language_modeling"
    return (
        *((ThreatText(facts.first_attacks),) if facts.first_attacks else ()),
        *membership_threats(dataset),
        *((ThreatText((simulating,), virtual=250),) if is_simulated else ()),
    )


def split_by_needs(
    audit_inputs: AuditInputs, recording: RecordedFacts | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the attacks that can run, and by each other attack what is missing."""
    plan = audit_inputs.plan
    able, missing = dict[str, None](), dict[str, str]()
    checked = None
    if recording is not None:
        checked = check_recording(plan, audit_inputs, recording.folder)
    for view in planned_audit(plan, audit_inputs, checked).views:
        for one in view.outlooks():
            if one.able_count:
                able[one.part] = None
            else:
                missing[one.part] = "; ".join(_with_option(why) for why, _ in one.missing)
    return tuple(able), {name: what for name, what in missing.items() if name not in able}


def _with_option(reason: str) -> str:
    """Return what an attack lacks, with the option of `init` that gives it."""
    return LISTED_RECORDS if reason == CandidateRecords.how_to_get else reason


def able_threats(
    threats: tuple[ThreatText, ...], able: tuple[str, ...]
) -> Iterator[ThreatText]:
    """Yield the threats with those attacks that can run, by name, and no threat without one."""
    for threat in threats:
        kept = tuple(one for one in threat.attacks if _name(one) in able)
        if kept:
            yield replace(threat, attacks=kept)


def _name(attack: str) -> str:
    """Return the name of an attack of a plan's text.

    >>> _name("decaf"), _name("{ kind = 'amortised', steps = 100 }")
    ('decaf', 'amortised')
    """
    return attack.split("'")[1] if "'" in attack else attack
