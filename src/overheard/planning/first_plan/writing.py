"""Writes a first plan that runs, with comments that explain each choice."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import final

from overheard.auditing.inputs import Resources
from overheard.consistency.check import check_recording as check_messages
from overheard.consistency.statement import state_step
from overheard.core.errors import PlanError
from overheard.core.parties import SERVER
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.summary import NO_LABEL_SHARES
from overheard.learning.models.custom import Own
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.first_plan.draft import PLACE, load_draft
from overheard.planning.first_plan.listed_candidates import with_candidates
from overheard.planning.first_plan.plan_facts import PlanFacts
from overheard.planning.first_plan.plan_refusal import say_what_is_missing
from overheard.planning.first_plan.plan_text import plan_text
from overheard.planning.first_plan.proposed_attacks import (
    able_threats,
    first_attacks,
    propose_threats,
    split_by_needs,
)
from overheard.planning.first_plan.proposed_data import propose_source
from overheard.planning.first_plan.proposed_model import propose_model
from overheard.planning.first_plan.proposed_split import CLIENTS, with_fitting_sizes
from overheard.planning.first_plan.recorded_settings import recorded_defenses
from overheard.planning.first_plan.request import FirstPlanRequest, with_facts_of_networks
from overheard.planning.first_plan.task_guess import loss_of_task, with_task_of_labels
from overheard.planning.first_plan.tried_data import with_tried_data
from overheard.planning.networks.app_imports import importable_from
from overheard.planning.recorded_facts import RecordedFacts
from overheard.planning.recorded_plugins import proposed_network
from overheard.planning.training_facts import ROUNDS, TrainingFacts, read_training_facts
from overheard.plans.plan import Plan, parse_plan

ONLY_GLOBAL_MODELS = (
    "The recording has only global models, and no update of a client. The change between two "
    "rounds is the mean update of all clients that took part, if the server just adds it. A "
    "client, or one that joins late, reads it too. So the plan asks about the cohort, as a "
    "client would that joins in round 0. Questions about single clients cannot be asked"
)
"""What init says of a recording without updates."""


@final
@dataclass(frozen=True, slots=True)
class FirstPlan:
    """A first plan as text, and what can be told of it.

    Args:
        text: the TOML, with comments.
        plan: the same as a plan.
        attacks: names of the attacks that run.
        missing: by attack that does not run, what is missing.
        proposal: "package.module:name" of a network that the recording names and the plan does
            not, as whoever made the recording chose it; None = there is none.
        training: how clients train, as far as it is known.
        networks: networks of the app that were looked at, with the reason against each; empty
            if one was taken.
        app: the folder from which the plan's network is imported; None = from no app.
        notes: sentences on what can be asked of the recording.
        data: sentences on what was read of the data, and how it fits the recorded model.

    """

    text: str
    plan: Plan
    attacks: tuple[str, ...]
    missing: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    proposal: str | None = None
    training: TrainingFacts = field(default_factory=TrainingFacts)
    networks: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    app: Path | None = None
    notes: tuple[str, ...] = ()
    data: tuple[str, ...] = ()


def write_first_plan(request: FirstPlanRequest, resources: Resources) -> FirstPlan:
    """Write a plan that was checked against its data and its recording; nothing is trained.

    Attacks for which something is missing are left out, and a comment says what.

    Raises:
        PlanError: if no plan fits, such as a model that is not that of the recording.
        DataError: if the data cannot be read.

    """
    with importable_from(None if request.app is None else request.app.folder):
        return _write_plan(request, resources)


def _write_plan(request: FirstPlanRequest, resources: Resources) -> FirstPlan:
    request = with_facts_of_networks(request)
    recording = request.recording
    source = with_task_of_labels(propose_source(request), recording, request.read)
    source = with_candidates(source, recording, request.candidates)
    dataset = source.load(resources.data)
    facts = _plan_facts(request, source, dataset)
    facts = with_fitting_sizes(facts, dataset, request, resources)
    threats = propose_threats(facts, dataset, request)
    facts = replace(facts, threats=threats)
    audit_inputs = load_draft(facts, resources)
    able, missing = split_by_needs(audit_inputs, recording)
    if not able:
        _refuse_contradiction(recording)
        raise PlanError(
            say_what_is_missing(
                facts,
                missing,
                _refused_networks(facts),
                _notes(facts, is_whole=True),
                has_list=request.candidates is not None,
            )
        )
    kept = tuple(able_threats(threats, able))
    facts = replace(facts, threats=kept, missing=missing)
    facts, data = with_tried_data(facts, audit_inputs, resources)
    text = plan_text(facts)
    plan = parse_plan(text, PLACE)
    return FirstPlan(
        text,
        plan,
        able,
        MappingProxyType(missing),
        facts.proposal,
        facts.training,
        _refused_networks(facts),
        facts.app,
        _notes(facts),
        data,
    )


def _refused_networks(facts: PlanFacts) -> Mapping[str, str]:
    """Return why no network of the app was taken; empty if one was."""
    return MappingProxyType({}) if facts.is_model_known else facts.networks


def _notes(facts: PlanFacts, *, is_whole: bool = False) -> tuple[str, ...]:
    """Return sentences on what can be asked of a recording.

    Args:
        facts: the facts of the plan.
        is_whole: whether to say what is also said of the data.

    """
    alone = ONLY_GLOBAL_MODELS if facts.is_global_only else ""
    is_unsaid = is_whole or isinstance(facts.source, NoExamples)
    language = NO_LABEL_SHARES if is_unsaid and facts.is_language_model else ""
    return tuple(note for note in (alone, facts.at_home, language) if note)


def _refuse_contradiction(recording: RecordedFacts | None) -> None:
    """Say what contradicts itself in a recording, if that is why no attack can run."""
    if recording is None:
        return
    proof = check_messages(recording.folder, state_step(recording.manifest))
    if proof.is_refused:
        raise PlanError(f"{recording.folder}: {' '.join(proof.sentences)}")


def _plan_facts(request: FirstPlanRequest, source: DataSource, dataset: Dataset) -> PlanFacts:
    recording, app = request.recording, request.app or FederatedApp()
    chosen = propose_model(request, dataset)
    defenses = () if recording is None else recorded_defenses(recording)
    recipe = None if recording is None else recording.manifest.recipe
    rounds = app.rounds or ROUNDS if recording is None else recording.rounds
    reads_updates = recording is None or recording.reads_updates
    return PlanFacts(
        recording=None if recording is None else recording.folder,
        observer=SERVER if recording is None else recording.observer,
        is_about_cohort=not reads_updates,
        is_global_only=recording is not None and recording.is_global_only,
        source=source,
        model=chosen.model,
        model_origin=chosen.origin,
        rounds=rounds,
        training=read_training_facts(recording, app),
        defenses=defenses,
        unparsed_defenses=()
        if recording is None or defenses
        else tuple(one.settings for one in recording.manifest.defenses),
        clients=CLIENTS if recording is None else recording.clients,
        first_attacks=first_attacks(dataset, recording),
        has_classes=dataset.task.has_classes,
        is_language_model=dataset.task.kind == "language_modeling",
        loss=loss_of_task(dataset.task, recipe),
        has_truth=recording is None or recording.has_truth,
        networks=chosen.others,
        app=app.folder if chosen.is_of_app else None,
        has_users=dataset.users is not None,
        is_shape_known=request.data is not None
        or recording is None
        or recording.manifest.task is not None,
        algorithm=chosen.algorithm(recording, defenses),
        at_home="" if chosen.at_home is None else chosen.at_home.sentence,
        is_head_at_home=chosen.at_home is not None and chosen.at_home.has_head,
        proposal=None
        if recording is None or isinstance(chosen.model, Own)
        else proposed_network(recording.manifest.model),
    )
