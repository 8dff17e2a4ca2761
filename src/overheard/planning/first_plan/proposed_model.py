"""Proposes the model of a first plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.defense import Defense
from overheard.data.dataset import Dataset
from overheard.learning.model import Model
from overheard.learning.models.custom import Own
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.learning.models.unknown import Unknown
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.first_plan.recorded_settings import (
    recorded_algorithm,
    recorded_defenses,
)
from overheard.planning.first_plan.request import FirstPlanRequest, given_model
from overheard.planning.networks.layers_at_home import LayersAtHome
from overheard.planning.networks.linear_layer import recorded_linear_layer
from overheard.planning.networks.network_fit import NetworkFit, fit_network
from overheard.planning.recorded_facts import RecordedFacts
from overheard.planning.recorded_plugins import parse_model


@final
@dataclass(frozen=True, slots=True)
class ProposedModel:
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
        return None if recording is None else recorded_algorithm(recording, defenses)


def propose_model(request: FirstPlanRequest, dataset: Dataset) -> ProposedModel:
    """Return the model of the plan, and where it comes from."""
    recording, app = request.recording, request.app or FederatedApp()
    if request.model is not None:
        given = given_model(request.model)
        at_home = None if recording is None else fit_recording(given, dataset, request).at_home
        return ProposedModel(given, "as given", at_home=at_home)
    stated = None if recording is None else parse_model(recording.manifest.model)
    if stated is not None:
        return ProposedModel(stated, "as the recording states")
    if recording is None:
        return _propose_simulated_model(app, dataset)
    fits = dict[str, NetworkFit]()
    for model in app.models():
        fits[model.reference] = fit_recording(model, dataset, request)
        if fits[model.reference].is_whole:
            break
    others = {reference: fit.difference for reference, fit in fits.items() if fit.difference}
    fitting = [reference for reference in fits if reference not in others]
    if fitting:
        # A network with all of its tensors comes before one of which layers are missing.
        chosen = next((one for one in fitting if fits[one].is_whole), fitting[0])
        return ProposedModel(
            Own(chosen, app.arguments.get(chosen)),
            "the network of the Flower app with the same tensors",
            is_of_app=True,
            others=MappingProxyType(others),
            at_home=fits[chosen].at_home,
        )
    is_named = others or recording.manifest.model
    linear = None if is_named else recorded_linear_layer(recording, dataset.task)
    if linear is not None:
        origin = "a linear layer, as the recording has its weights and intercepts alone"
        return ProposedModel(linear, origin)
    shapes = (f"{name} {_shape(shape)}" for name, shape in recording.shapes.items())
    unknown = Unknown(tuple(shapes))
    return ProposedModel(unknown, "unknown", others=MappingProxyType(others))


def _propose_simulated_model(app: FederatedApp, dataset: Dataset) -> ProposedModel:
    """Return the one network of the app, or else a small one."""
    if len(app.networks) == 1:
        return ProposedModel(app.models()[0], "the one network of the Flower app", True)
    default: Model = TextBag() if dataset.task.vocabulary is not None else Mlp()
    several = dict.fromkeys(app.networks, "the app has several: name one by --model")
    return ProposedModel(
        default,
        "a small network: set your own by --model package.module:Class",
        others=MappingProxyType(several),
    )


def fit_recording(model: Own, dataset: Dataset, request: FirstPlanRequest) -> NetworkFit:
    """Return whether a network fits the recording, whole or without layers at home."""
    recording = request.recording
    assert recording is not None
    stated = recorded_algorithm(recording, recorded_defenses(recording))
    _, folder = request.networks()
    return fit_network(model, dataset.task, recording, stated, folder)


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
