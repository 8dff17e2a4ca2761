"""Compares a network with a recording, which imports and builds the network."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

from torch import nn

from overheard.archive.reader import open_transcript
from overheard.auditing.recorded_tensors.model_tensors import match_model_tensors
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.errors import AuditError
from overheard.core.task import Task
from overheard.federation.local_tensors import local_names
from overheard.learning.models.custom import Own
from overheard.learning.sent_tensors import trainable_parameters
from overheard.planning.networks.app_imports import other_place
from overheard.planning.recorded_facts import RecordedFacts


def network_difference(
    model: Own,
    task: Task,
    recording: RecordedFacts,
    algorithm: Algorithm,
    folder: Path | None,
) -> str:
    """Return why a network is not that of a recording, by the rule of an audit; "" = it is.

    The network is imported and built, which runs its code. If its module would be imported
    from outside of the folder, nothing is imported.

    Args:
        model: the class or function of the network, with its arguments.
        task: the task for which it is built.
        recording: the recording.
        algorithm: the algorithm of the run, which may keep tensors at home.
        folder: where its module must lie; None = anywhere.

    """
    elsewhere = "" if folder is None else other_place(model.reference, folder)
    if elsewhere:
        return elsewhere
    try:
        network = model.build(task)
        if not trainable_parameters(network):
            return "it has no trainable parameter"
        refuse_other_network(
            network, recording, local_names(algorithm, partial(model.build, task))
        )
    except AuditError as error:
        # Further sentences tell what to change in a plan, which there is none of yet.
        return str(error).removeprefix(f"{recording.folder}: ").partition(". ")[0]
    return ""


def refuse_other_network(
    network: nn.Module, recording: RecordedFacts, at_home: Collection[str] = ()
) -> None:
    """Raise PlanError unless a network has the recorded tensors, by the rule of an audit.

    Args:
        network: the network.
        recording: the recording.
        at_home: names of tensors that stay with each client.

    """
    match_model_tensors(
        recording.folder,
        open_transcript(recording.folder),
        network,
        recording.manifest.model,
        None,
        at_home,
        recording.manifest.left_out,
    )
