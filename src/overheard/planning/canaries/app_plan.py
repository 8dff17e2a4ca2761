"""A plan that draws canaries for the clients of a Flower app, and then audits its recording."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.core.attack import Attack
from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.data.datasets.custom import Own as OwnData
from overheard.data.partition.candidates import CandidateSettings
from overheard.learning.models.custom import Own as OwnModel
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.first_plan.proposed_data import own_data
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.first_plan.task_guess import loss_of_task
from overheard.planning.networks.app_imports import importable_from, other_place
from overheard.planning.training_facts import (
    ASSUMED,
    ROUNDS,
    TrainingFacts,
    read_training_facts,
)
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import KnownPart, Plan, ThreatPlan, TrainingPlan
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.whitened_membership import WhitenedMembership

SIZES = (50, 20, 10, 5, 2, 1)
"""Mean numbers of canaries of a client, in the order in which they are tried."""

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@final
@dataclass(frozen=True, slots=True)
class CanaryPlan:
    """A plan with canaries for the clients of an app.

    Args:
        plan: the plan, for recordings of the app.
        training: how clients train, as far as it is known.
        scale: the scale of numbers of the inputs, in words; "" = as the data give them.

    """

    plan: Plan
    training: TrainingFacts
    scale: str = ""


def plan_canaries(
    request: FirstPlanRequest, clients: int | None, resources: Resources
) -> CanaryPlan:
    """Return a plan with as many canaries as the data allow, up to 50 a client.

    Its attacks train nothing. The networks of the app are imported and built.

    Args:
        request: the app, and the data that no client holds; a recording there is none of yet.
        clients: number of clients; None = as many nodes as the app states.
        resources: where the data are.

    Raises:
        PlanError: if something is missing, or the data are too few; the message says what to
            add.
        DataError: if the data cannot be read.

    """
    app = request.app or FederatedApp()
    source = own_data(request)
    if source is None:
        raise PlanError(
            "canaries are drawn from examples that no client holds, in the form of the "
            "clients' data: add --data FILE (a table: also --label COLUMN)"
        )
    clients = clients or app.nodes
    if clients is None:
        raise PlanError(
            f"{app.config_place} does not say how many clients there are (num-supernodes of "
            "its federation): add --clients NUMBER"
        )
    with importable_from(app.folder):
        dataset = source.load(resources.data)
        model = _network(request, app, dataset.task)
        training = read_training_facts(None, app)
        plan = _largest_plan(source, dataset.task, model, app, training, clients, resources)
        return CanaryPlan(plan, training, dataset.reading.scale)


def _largest_plan(
    source: OwnData,
    task: Task,
    model: OwnModel,
    app: FederatedApp,
    training: TrainingFacts,
    clients: int,
    resources: Resources,
) -> Plan:
    """Return the plan with the most canaries that the data allow."""
    problem = ""
    for members in SIZES:
        plan = Plan(
            title="What canaries prove of a recording of the Flower app",
            data=DataPlan(
                source=source,
                clients=clients,
                candidates=CandidateSettings(
                    members=members,
                    outsiders=members * clients,
                    canaries="mislabelled" if task.has_classes else "labelled",
                ),
            ),
            training=_training_plan(task, model, app, training),
            threats=(_threat(training),),
        )
        try:
            partition_for_plan(plan, load_data(plan, resources), plan.seeds[0])
        except PlanError as error:
            problem = str(error)
            continue
        return plan
    raise PlanError(
        f"{source.reference}: too few examples for canaries of {clients} clients, each of whom "
        f"needs 2 or more ({problem}): name more examples by --data"
    )


def _training_plan(
    task: Task, model: OwnModel, app: FederatedApp, training: TrainingFacts
) -> TrainingPlan:
    return TrainingPlan.model_validate(
        {
            "model": model,
            "rounds": app.rounds or ROUNDS,
            "rate": training.number("rate", ASSUMED["rate"]),
            "epochs": int(training.number("epochs", ASSUMED["epochs"])),
            "batch": int(training.number("batch", ASSUMED["batch"])),
            "optimizer": training.optimizer,
            "momentum": training.number("momentum", 0),
            "weight_decay": training.number("weight_decay", 0),
            "label_smoothing": training.number("label_smoothing", 0),
            "loss": loss_of_task(task, None),
        }
    )


def _threat(training: TrainingFacts) -> ThreatPlan:
    """Return the server, with attacks on single records that train nothing."""
    # Any: an attack answers a question of its own.
    attacks: tuple[Attack[Any], ...] = (LossMembership(),)
    knows: tuple[KnownPart, ...] = ("model",)
    if training.is_complete:
        attacks, knows = (WhitenedMembership(), *attacks), (*knows, "recipe")
    return ThreatPlan(attacks=attacks, knows=knows, by_round=False)


def _network(request: FirstPlanRequest, app: FederatedApp, task: Task) -> OwnModel:
    """Return the network of the app, which is imported and built, for the task of the data.

    Networks with the same tensors are one, such as a class and the function that builds it.
    """
    if request.model is not None:
        try:
            model = OwnModel(request.model, app.arguments.get(request.model))
        except ValueError as error:
            raise PlanError(f"--model: {error}") from error
        model.build(task)
        return model
    found, refused = dict[Shapes, OwnModel](), dict[str, str]()
    for one in app.models():
        try:
            found.setdefault(_shapes(one, task, app.folder), one)
        except PlanError as error:
            refused[one.reference] = str(error).partition(". ")[0]
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        names = ", ".join(one.reference for one in found.values())
        raise PlanError(
            f"the app has several networks that fit the data, {names}: name the one that is "
            "trained by --model package.module:Class"
        )
    if not refused:
        raise PlanError(
            "the app defines no network of torch: name the one that is trained by --model "
            "package.module:Class"
        )
    why = "".join(f" {one} is not taken: {reason}." for one, reason in refused.items())
    raise PlanError(
        "no network of the app fits the data: name the one that is trained by --model "
        f"package.module:Class, or data in the form that it reads by --data.{why}"
    )


def _shapes(model: OwnModel, task: Task, folder: Path | None) -> Shapes:
    """Return the tensors of a network; refuse one from outside of the app's folder."""
    elsewhere = "" if folder is None else other_place(model.reference, folder)
    if elsewhere:
        raise PlanError(elsewhere)
    tensors = model.build(task).state_dict()
    return tuple((name, tuple(one.shape)) for name, one in tensors.items())
