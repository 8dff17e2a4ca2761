"""Whether a network is that of a recording, whole or without layers that clients keep."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from torch import nn

from overheard.algorithms.fed_avg import FedAvg
from overheard.archive.reader import open_transcript
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.model_tensors import never_sent
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.errors import AuditError
from overheard.core.task import Task
from overheard.data.reading.float_labels import output_names
from overheard.learning.models.custom import Own
from overheard.planning.networks.app_imports import other_place
from overheard.planning.networks.layers_at_home import LayersAtHome, find_layers_at_home
from overheard.planning.networks.network_difference import network_difference
from overheard.planning.recorded_facts import RecordedFacts
from overheard.planning.toml_notation import plan_value


@final
@dataclass(frozen=True, slots=True)
class NetworkFit:
    """Whether a network is that of a recording.

    Args:
        difference: why it is not; "" = it is.
        at_home: the layers that clients keep, if no message has them; None = there are none.

    """

    difference: str
    at_home: LayersAtHome | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is that of the recording with all of its tensors."""
        return not self.difference and self.at_home is None


def fit_network(
    model: Own,
    task: Task,
    recording: RecordedFacts,
    stated: Algorithm | None,
    folder: Path | None,
) -> NetworkFit:
    """Compare a network with a recording; it is imported and built, which runs its code.

    Args:
        model: the class or function of the network, with its arguments.
        task: the task for which it is built.
        recording: the recording.
        stated: the algorithm that the recording states; None = unknown.
        folder: where its module must lie; None = anywhere.

    """
    difference = network_difference(model, task, recording, stated or FedAvg(), folder)
    if not difference and not _never_sent(recording):
        return NetworkFit("")
    found = _layers_at_home(model, task, recording, stated, folder)
    if found is None or not (found.usual or difference):
        return NetworkFit(difference)
    if not found.usual:
        return NetworkFit(
            f"no message has {found.missing}. If each client trains them at home, set "
            f"model = {plan_value(model)} and "
            f"algorithm = {plan_value(found.algorithm)} in the plan. If nobody trains them, "
            "give them requires_grad = False in the network"
        )
    if stated is not None and not isinstance(stated, FedAvg):
        return NetworkFit(
            f"no message has {found.missing}, so that clients keep them, and the recording "
            f"states the algorithm {stated.name}. A plan cannot state both"
        )
    other = network_difference(model, task, recording, found.algorithm, folder)
    return NetworkFit(other, None if other else found)


def with_outputs_of_head(
    recording: RecordedFacts, models: Sequence[Own], folder: Path | None
) -> RecordedFacts:
    """Return the facts with the number of outputs of a network whose last layer is missing.

    A recording does not tell it, as no message has the last layer.

    Args:
        recording: the facts.
        models: networks that may be that of the run, which are imported and built.
        folder: where their modules must lie; None = anywhere.

    """
    if recording.manifest.task is not None:
        return recording
    names = output_names("classification", max(2, recording.outputs))
    for model in models:
        found = _layers_at_home(model, Task((1,), names), recording, None, folder)
        if found is not None and found.has_head and found.usual:
            return replace(recording, head_outputs=found.outputs)
    return recording


def _layers_at_home(
    model: Own,
    task: Task,
    recording: RecordedFacts,
    stated: Algorithm | None,
    folder: Path | None,
) -> LayersAtHome | None:
    if folder is not None and other_place(model.reference, folder):
        return None
    mean = stated.mean if isinstance(stated, FedAvg) else "examples"
    try:
        network: nn.Module = model.build_for_any(task)
        return find_layers_at_home(network, _sent_back(recording), mean)
    except (AuditError, ValueError):
        return None


def _never_sent(recording: RecordedFacts) -> frozenset[str]:
    return never_sent(open_transcript(recording.folder))


def _sent_back(recording: RecordedFacts) -> Shapes:
    """Return the broadcast tensors without those that no client sends back."""
    kept = _never_sent(recording)
    return {name: shape for name, shape in recording.shapes.items() if name not in kept}
