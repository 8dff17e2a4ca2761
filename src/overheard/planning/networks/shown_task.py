"""What a network of an app shows of its task: tokens, images, and what it puts out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import final

import torch
from torch import Tensor, nn

from overheard.core.errors import AuditError
from overheard.core.task import TaskKind
from overheard.data.reading.float_labels import output_names
from overheard.data.reading.token_rows import NEXT_TOKEN
from overheard.learning.custom_networks.logits_network import (
    logits_of,
    padding_token,
    takes_tokens,
    vocabulary_of,
)
from overheard.learning.models.custom import Own
from overheard.planning.networks.app_imports import other_place
from overheard.planning.networks.network_difference import refuse_other_network
from overheard.planning.recorded_facts import RecordedFacts

USUAL_TOKENS = 16
"""Tokens of a text, where nothing tells how many there are."""

POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
"""How configurations of Hugging Face name the most tokens of a text."""


@final
@dataclass(frozen=True, slots=True)
class ShownTask:
    """What a network shows of its task.

    Args:
        shape: the shape of an input.
        vocabulary: number of tokens; None = inputs are numbers.
        kind: what is predicted.
        outputs: number of outputs.
        padding: the token after the end of a text, by the network's configuration.

    """

    shape: tuple[int, ...]
    vocabulary: int | None
    kind: TaskKind
    outputs: int
    padding: int = 0

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, where none are known."""
        if self.kind == "language_modeling":
            return NEXT_TOKEN
        return output_names(self.kind, self.outputs)


def show_task(
    models: Sequence[Own], recording: RecordedFacts, folder: Path | None
) -> ShownTask | None:
    """Return what the first network with the recorded tensors shows of its task.

    The networks are imported, built and run on one example, which runs their code.

    Args:
        models: networks that may be that of the recording.
        recording: the recording.
        folder: where their modules must lie; None = anywhere.

    Returns:
        None if no network has the recorded tensors, or it shows nothing that its tensors do
        not tell, as one of numbers without a configuration.

    """
    for model in models:
        if folder is not None and other_place(model.reference, folder):
            continue
        try:
            network = model.build_for_any(None)
            refuse_other_network(network, recording)
        except AuditError:
            continue
        return _task_of_texts(network) or _task_of_images(network)
    return None


def _task_of_texts(network: nn.Module) -> ShownTask | None:
    vocabulary = vocabulary_of(network)
    if vocabulary is None:
        return None
    config = _config(network)
    most = min((config[name] for name in POSITIONS if name in config), default=USUAL_TOKENS)
    length = max(1, min(USUAL_TOKENS, most))
    # Ones, as a text of padding alone is none.
    outputs = _run(network, torch.ones(1, length, dtype=torch.int64))
    if outputs is None:
        return None
    padding = padding_token(network)
    if outputs.dim() == 3:
        return ShownTask((length,), vocabulary, "language_modeling", 1, padding)
    count = outputs.numel()
    return ShownTask((length,), vocabulary, "classification", max(2, count), padding)


def _task_of_images(network: nn.Module) -> ShownTask | None:
    config = _config(network)
    side, channels = config.get("image_size", 0), config.get("num_channels", 3)
    outputs = _run(network, torch.zeros(1, channels, side, side)) if side else None
    if outputs is None or outputs.dim() != 2:
        return None
    return ShownTask((channels, side, side), None, "classification", max(2, outputs.shape[1]))


def _run(network: nn.Module, inputs: Tensor) -> Tensor | None:
    """Return the logits of one example; None = the network does not take such inputs."""
    arguments = {"input_ids": inputs} if takes_tokens(network) else {}
    try:
        with torch.no_grad():
            network.eval()
            return logits_of(network(**arguments) if arguments else network(inputs))
    except Exception:  # the code of the user may fail in any way
        return None


def _config(network: nn.Module) -> Mapping[str, int]:
    """Return the whole numbers in the configuration of a network of Hugging Face."""
    config = getattr(network, "config", None)
    found = {
        name: value
        for name in (*POSITIONS, "image_size", "num_channels")
        if isinstance(value := getattr(config, name, None), int)
    }
    return MappingProxyType(found)
