"""Writes a first plan that runs, with comments that explain each choice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import final

import torch

from overheard.algorithms.fed_prox import FedProx
from overheard.auditing.inputs import AuditInputs, Resources, load_inputs
from overheard.auditing.recording import check_recording
from overheard.auditing.subject import DataFit, check_data
from overheard.consistency.check import check_recording as check_messages
from overheard.consistency.statement import state_step
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.defense import Defense
from overheard.core.errors import PlanError
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.parties import SERVER
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.custom import Own as OwnData
from overheard.data.datasets.digits import Digits
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.reading.float_labels import output_names
from overheard.data.reading.text_table import TABLE_SUFFIXES
from overheard.data.summary import NO_LABEL_SHARES, summarise_data
from overheard.disk.reading import parse_toml
from overheard.learning.model import Model
from overheard.learning.models.custom import Own as OwnModel
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.learning.models.unknown import Unknown
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.listed_candidates import membership_threats, with_candidates
from overheard.planning.networks.app_imports import importable_from
from overheard.planning.networks.layers_at_home import LayersAtHome
from overheard.planning.networks.linear_layer import recorded_linear_layer
from overheard.planning.networks.network_fit import (
    NetworkFit,
    fit_network,
    with_outputs_of_head,
)
from overheard.planning.networks.shown_task import ShownTask, show_task
from overheard.planning.outlook import planned_audit
from overheard.planning.plan_refusal import say_what_is_missing
from overheard.planning.plan_text import PlanFacts, ThreatText, plan_text
from overheard.planning.recorded_facts import RecordedFacts
from overheard.planning.recorded_plugins import parse_model, parse_plugin, proposed_network
from overheard.planning.task_guess import loss_of_task, with_task_of_labels
from overheard.planning.text_source import with_tokens
from overheard.planning.toml_notation import toml_value
from overheard.planning.training_facts import TrainingFacts, read_training_facts
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, parse_plan
from overheard.plans.plugin_field import plugin_table
from overheard.plans.registries import ALGORITHMS, DEFENSES
from overheard.plans.strict_model import parse_toml as parse_table

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

AUXILIARY_SIZES = (20, 10, 5, 2, 1)
"""Auxiliary examples per class, in the order in which they are tried."""

EXAMPLES_WITHOUT_CLASSES = 20
"""By how much more auxiliary examples there are if there are no classes to count them by."""

MEMBERS, OUTSIDERS = 5, 50
"""Candidate records of each client, and of nobody."""

USUAL_SIDES = (28, 32, 224, 64, 96, 48, 128, 16, 8)
"""Usual sides of images in pixels."""

IMAGE_SIDES = (*USUAL_SIDES, *(side for side in range(4, 65) if side not in USUAL_SIDES))
"""Sides of images, in the order in which they are tried."""

CLIENTS = 10
"""Clients of a simulated federation."""

ROUNDS = 8
"""Rounds of a simulated federation."""

ONLY_GLOBAL_MODELS = (
    "The recording has only global models, and no update of a client. The change between two "
    "rounds is the mean update of all clients that took part, if the server just adds it. A "
    "client, or one that joins late, reads it too. So the plan asks about the cohort, as a "
    "client would that joins in round 0. Questions about single clients cannot be asked"
)
"""What init says of a recording without updates."""

LISTED_RECORDS = (
    "records of which you know whether a client trained on them (--candidates FILE)"
)
"""What attacks on membership of a recorded run need."""

PLACE = "the first plan"
"""What errors of the text would name as their place."""


@final
@dataclass(frozen=True, slots=True)
class FirstPlanRequest:
    """What a user gives for a first plan.

    Args:
        recording: facts of a finished recording; None = simulate a federation.
        app: facts of a Flower app; None = none given.
        data: a file or a "package.module:function"; None = none given.
        label: the column of the labels in a table, or in a folder of datasets.
        user: the column of the users in a table; None = unknown.
        model: "package.module:name" of a function or class; None = not given.
        read: settings of how the data are read, each a line of TOML.
        candidates: a file with records whose membership is asked; None = none.
        text: the column of the texts in a table; None = none given.
        tokenizer: "package.module:function" that makes token ids of a text; None = none given.
        shown: what the network shows of its task; None = not known.

    """

    recording: RecordedFacts | None = None
    app: FederatedApp | None = None
    data: str | None = None
    label: str = "label"
    user: str | None = None
    model: str | None = None
    read: tuple[str, ...] = ()
    candidates: str | None = None
    text: str | None = None
    tokenizer: str | None = None
    shown: ShownTask | None = None


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
    request = _with_shown_task(_with_outputs_of_head(request))
    source = with_task_of_labels(_data_source(request), request.recording, request.read)
    source = with_candidates(source, request.recording, request.candidates)
    dataset = source.load(resources.data)
    facts = _plan_facts(request, source, dataset)
    facts = _with_fitting_sizes(facts, dataset, request, resources)
    # Without the number of clients behind a mean update, none can be simulated.
    is_number_known = facts.clients > 0
    is_simulated = facts.is_model_known and is_number_known and request.data is not None
    simulating = SIMULATING_ATTACK if dataset.task.has_classes else NUMBERS_ATTACK
    if facts.is_head_at_home and dataset.task.has_classes:
        simulating = SHARED_LAYERS_ATTACK
    is_simulated &= dataset.task.kind != "language_modeling"
    threats = (
        *((ThreatText(facts.first_attacks),) if facts.first_attacks else ()),
        *membership_threats(dataset),
        *((ThreatText((simulating,), virtual=250),) if is_simulated else ()),
    )
    facts = replace(facts, threats=threats)
    audit_inputs = _inputs(facts, resources)
    able, missing = _split_by_needs(audit_inputs.plan, audit_inputs, request.recording)
    if not able:
        _refuse_contradiction(request.recording)
        raise PlanError(
            say_what_is_missing(
                facts,
                missing,
                _refused_networks(facts),
                _notes(facts, is_whole=True),
                has_list=request.candidates is not None,
            )
        )
    kept = tuple(_able_threats(threats, able))
    facts = replace(facts, threats=kept, missing=missing)
    facts, data = _with_tried_data(facts, audit_inputs, resources)
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


def _with_outputs_of_head(request: FirstPlanRequest) -> FirstPlanRequest:
    """Return the request with the outputs of a last layer that each client keeps."""
    if request.recording is None or request.data is not None:
        return request
    networks, folder = _networks(request)
    return replace(request, recording=with_outputs_of_head(request.recording, networks, folder))


def _with_shown_task(request: FirstPlanRequest) -> FirstPlanRequest:
    """Return the request with what the network of the recording shows of its task."""
    if request.recording is None:
        return request
    networks, folder = _networks(request)
    return replace(request, shown=show_task(networks, request.recording, folder))


def _networks(request: FirstPlanRequest) -> tuple[tuple[OwnModel, ...], Path | None]:
    """Return the networks that may be that of a recording, and where they must lie."""
    if request.model is not None:
        return (_given_model(request.model),), None
    app = request.app or FederatedApp()
    return app.models(), app.folder


def _refuse_contradiction(recording: RecordedFacts | None) -> None:
    """Say what contradicts itself in a recording, if that is why no attack can run."""
    if recording is None:
        return
    proof = check_messages(recording.folder, state_step(recording.manifest))
    if proof.is_refused:
        raise PlanError(f"{recording.folder}: {' '.join(proof.sentences)}")


def _with_tried_data(
    facts: PlanFacts, audit_inputs: AuditInputs, resources: Resources
) -> tuple[PlanFacts, tuple[str, ...]]:
    """Take the scale of the data that fits the recorded model; also say what was read.

    Without a recording, or without data, there is nothing to try.
    """
    if isinstance(facts.source, NoExamples):
        return facts, ()
    recording = facts.recording
    if recording is None:
        return facts, summarise_data(audit_inputs.dataset)
    fit = _fit_of_data(audit_inputs, recording)
    if fit.fitting_scale is not None and isinstance(facts.source, OwnData):
        facts = replace(facts, source=replace(facts.source, scale=fit.fitting_scale))
        audit_inputs = _inputs(facts, resources)
        fit = _fit_of_data(audit_inputs, recording)
    told = (*fit.warnings, *fit.notes)
    return replace(facts, data_notes=told), (*summarise_data(audit_inputs.dataset), *told)


def _fit_of_data(audit_inputs: AuditInputs, recording: Path) -> DataFit:
    """Return what a recording shows of the plan's data."""
    checked = check_recording(audit_inputs.plan, audit_inputs, recording)
    return check_data(checked, checked.open_run().observed.transcript)


def own_data(request: FirstPlanRequest) -> OwnData | None:
    """Return the data that the user names, read as the request says; None = none are named.

    Raises:
        PlanError: if a setting of --read is none of the source, or texts lack a tokenizer.

    """
    if request.data is None:
        return None
    own = OwnData(request.data, request.label)
    if request.data.endswith(TABLE_SUFFIXES):
        recording = request.recording
        kind = "classification" if recording is None else recording.task_kind
        own = replace(own, user=request.user, task=kind)
    own = with_tokens(own, request.shown, request.text, request.tokenizer, request.app)
    return _with_settings(own, request.read) if request.read else own


def _data_source(request: FirstPlanRequest) -> DataSource:
    recording, own = request.recording, own_data(request)
    if own is not None:
        return own
    if recording is None:
        return Digits()
    task = recording.manifest.task
    if task is None and request.shown is not None:
        shown = request.shown
        return NoExamples(shown.output_names, shown.shape, shown.vocabulary, shown.kind)
    if task is None:
        kind = recording.task_kind
        # A classifier with one output tells two classes apart.
        outputs = max(2, recording.outputs) if kind == "classification" else recording.outputs
        names = output_names(kind, outputs)
        return NoExamples(names, _guess_shape(request, recording, names), task=kind)
    return NoExamples(task.class_names, task.shape, task.vocabulary, task.kind)


def _with_settings(source: OwnData, lines: tuple[str, ...]) -> OwnData:
    """Return the source with more settings, each a line of TOML.

    Raises:
        PlanError: if a line is no setting of the source.

    """
    try:
        given = parse_toml("\n".join(lines), "--read", PlanError)
    except PlanError as error:
        raise PlanError(
            f"{error}: give a setting of the data source as in a plan, such as "
            "--read 'header_lines = 0'"
        ) from error
    kept = {key: value for key, value in plugin_table(source).items() if key not in given}
    settings = (f"{key} = {toml_value(value)}" for key, value in kept.items())
    text = "\n".join(("[source]", *settings, *lines))
    read = parse_table(DataPlan, text, "--read", "data source").source
    assert isinstance(read, OwnData)
    return read


def _guess_shape(
    request: FirstPlanRequest, recording: RecordedFacts, names: tuple[str, ...]
) -> tuple[int, ...]:
    """Return the shape of an input for which a known network has the recorded tensors."""
    first = next(iter(recording.shapes.values()))
    # The second are those of a kernel of inputs x outputs.
    shapes: list[tuple[int, ...]] = [(first[1],), (first[0],)] if len(first) == 2 else []
    if len(first) == 4:
        channels = (first[1], first[2])
        shapes = [(one, side, side) for one in channels for side in IMAGE_SIDES]
    networks, _ = _networks(request)
    for shape in shapes:
        dataset = NoExamples(names, shape, task=recording.task_kind).load(None)
        if any(not _fit(one, dataset, request).difference for one in networks):
            return shape
    return (1,)


def _plan_facts(request: FirstPlanRequest, source: DataSource, dataset: Dataset) -> PlanFacts:
    recording, app = request.recording, request.app or FederatedApp()
    chosen = _choose_model(request, dataset)
    defenses = () if recording is None else _recorded_defenses(recording)
    recipe = None if recording is None else recording.manifest.recipe
    rounds = app.rounds or ROUNDS if recording is None else recording.rounds
    first: tuple[str, ...] = (
        FIRST_ATTACKS if dataset.task.has_classes else ATTACKS_WITHOUT_CLASSES
    )
    if dataset.task.vocabulary is not None:
        first = (*first, *WORD_ATTACKS)
    if dataset.listed is not None and not dataset.task.has_classes:
        first = ()  # The listed records have a threat of their own.
    attacks = first if recording is None else (*first, *RECORDED_ATTACKS)
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
        first_attacks=attacks if reads_updates else first,
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
        if recording is None or isinstance(chosen.model, OwnModel)
        else proposed_network(recording.manifest.model),
    )


@final
@dataclass(frozen=True, slots=True)
class _ChosenModel:
    """The model of a plan.

    Args:
        model: the model.
        origin: where it comes from, in words.
        is_of_app: whether it is a network of the Flower app.
        others: networks of the app that were looked at and not taken, with the reason.
        at_home: layers of it that clients keep, by what the recording lacks; None = none.

    """

    model: Model
    origin: str
    is_of_app: bool = False
    others: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    at_home: LayersAtHome | None = None

    def algorithm(
        self, recording: RecordedFacts | None, defenses: tuple[Defense, ...]
    ) -> Algorithm | None:
        """Return the algorithm of the run; None = unknown, or the plan cannot name it."""
        if self.at_home is not None:
            return self.at_home.algorithm
        return None if recording is None else _recorded_algorithm(recording, defenses)


def _choose_model(request: FirstPlanRequest, dataset: Dataset) -> _ChosenModel:
    """Return the model of the plan, and where it comes from."""
    recording, app = request.recording, request.app or FederatedApp()
    if request.model is not None:
        given = _given_model(request.model)
        at_home = None if recording is None else _fit(given, dataset, request).at_home
        return _ChosenModel(given, "as given", at_home=at_home)
    stated = None if recording is None else parse_model(recording.manifest.model)
    if stated is not None:
        return _ChosenModel(stated, "as the recording states")
    if recording is None:
        return _choose_simulated_model(app, dataset)
    fits = dict[str, NetworkFit]()
    for model in app.models():
        fits[model.reference] = _fit(model, dataset, request)
        if fits[model.reference].is_whole:
            break
    others = {reference: fit.difference for reference, fit in fits.items() if fit.difference}
    fitting = [reference for reference in fits if reference not in others]
    if fitting:
        # A network with all of its tensors comes before one of which layers are missing.
        chosen = next((one for one in fitting if fits[one].is_whole), fitting[0])
        return _ChosenModel(
            OwnModel(chosen, app.arguments.get(chosen)),
            "the network of the Flower app with the same tensors",
            is_of_app=True,
            others=MappingProxyType(others),
            at_home=fits[chosen].at_home,
        )
    is_named = others or recording.manifest.model
    linear = None if is_named else recorded_linear_layer(recording, dataset.task)
    if linear is not None:
        origin = "a linear layer, as the recording has its weights and intercepts alone"
        return _ChosenModel(linear, origin)
    shapes = (f"{name} {_shape(shape)}" for name, shape in recording.shapes.items())
    unknown = Unknown(tuple(shapes))
    return _ChosenModel(unknown, "unknown", others=MappingProxyType(others))


def _choose_simulated_model(app: FederatedApp, dataset: Dataset) -> _ChosenModel:
    """Return the one network of the app, or else a small one."""
    if len(app.networks) == 1:
        return _ChosenModel(app.models()[0], "the one network of the Flower app", True)
    default: Model = TextBag() if dataset.task.vocabulary is not None else Mlp()
    several = dict.fromkeys(app.networks, "the app has several: name one by --model")
    return _ChosenModel(
        default,
        "a small network: set your own by --model package.module:Class",
        others=MappingProxyType(several),
    )


def _fit(model: OwnModel, dataset: Dataset, request: FirstPlanRequest) -> NetworkFit:
    """Return whether a network fits the recording, whole or without layers at home."""
    recording = request.recording
    assert recording is not None
    stated = _recorded_algorithm(recording, _recorded_defenses(recording))
    _, folder = _networks(request)
    return fit_network(model, dataset.task, recording, stated, folder)


def _given_model(reference: str) -> OwnModel:
    try:
        return OwnModel(reference)
    except ValueError as error:
        raise PlanError(f"--model: {error}") from error


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _recorded_defenses(recording: RecordedFacts) -> tuple[Defense, ...]:
    """Return the recorded defenses if a plan can name all of them, else none."""
    stated = recording.manifest.defenses
    found = [parse_plugin(one.settings, DEFENSES) for one in stated]
    known = tuple(one for one in found if one is not None)
    return known if [repr(one) for one in known] == [one.settings for one in stated] else ()


def _recorded_algorithm(
    recording: RecordedFacts, defenses: tuple[Defense, ...]
) -> Algorithm | None:
    """Return the recorded algorithm if the plan can name it, with the recipe and defenses."""
    found = parse_plugin(recording.manifest.algorithm, ALGORITHMS)
    recipe = recording.manifest.recipe
    if found is None and recipe is not None and recipe.proximal:
        return FedProx(recipe.proximal)
    if found is None or (recipe is not None and found.conflict(recipe, defenses)):
        return None
    return found


def _with_fitting_sizes(
    facts: PlanFacts, dataset: Dataset, request: FirstPlanRequest, resources: Resources
) -> PlanFacts:
    """Choose the numbers of auxiliary examples, and of clients' examples in a simulation."""
    if isinstance(facts.source, NoExamples):
        return facts
    problem = ""
    for per_class in AUXILIARY_SIZES:
        more = 1 if facts.has_classes else EXAMPLES_WITHOUT_CLASSES
        tried = replace(facts, auxiliary_per_class=more * per_class)
        if request.recording is None:
            tried = _with_clients(tried, dataset)
        try:
            audit_inputs = _inputs(tried, resources)
            for seed in audit_inputs.plan.seeds:
                audit_inputs.partition(seed)
        except PlanError as error:
            problem = str(error)
            continue
        return tried
    raise PlanError(f"the data are too few for a plan: {problem}")


def _with_clients(facts: PlanFacts, dataset: Dataset) -> PlanFacts:
    """Choose the split, the number of clients and their sizes by the size of the data."""
    auxiliary = (facts.auxiliary_per_class or 0) * dataset.task.classes
    free = len(dataset.train) - auxiliary
    if not facts.has_classes:
        facts = replace(facts, candidates=(MEMBERS, OUTSIDERS))
        free -= OUTSIDERS
    if dataset.users is not None:
        users = int(torch.unique(dataset.users).numel())
        clients = min(CLIENTS, max(2, users * 2 // 3))
        return replace(facts, clients=clients, sizes=(1, max(2, free)), split='"by_user"')
    largest = max(2, min(1000, free // (2 * CLIENTS)))
    sizes = (max(1, largest // 2), largest)
    split = '{ kind = "dirichlet", alpha = 0.5 }' if facts.has_classes else '"iid"'
    return replace(facts, sizes=sizes, split=split)


def _inputs(facts: PlanFacts, resources: Resources) -> AuditInputs:
    plan = parse_plan(plan_text(facts), PLACE)
    return load_inputs(plan, resources, MemoryTensorCache())


def _split_by_needs(
    plan: Plan, audit_inputs: AuditInputs, recording: RecordedFacts | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the attacks that can run, and by each other attack what is missing."""
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


def _able_threats(
    threats: tuple[ThreatText, ...], able: tuple[str, ...]
) -> Iterator[ThreatText]:
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
