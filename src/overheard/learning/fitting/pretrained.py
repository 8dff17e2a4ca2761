"""Weights that a model starts from, trained on public examples and stored in a file."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import apply_update
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.disk.writing import write_bytes
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask


def pretrain(
    build_model: BuildModel,
    examples: Examples,
    recipe: Recipe,
    path: Path,
    *,
    seed: Seed,
    device: torch.device | str = "cpu",
) -> float:
    """Train a model as one client would, and write its weights; return the last mean loss.

    Give it public examples, such as a data set's `background`: those of no client.

    Args:
        build_model: builds the model; all that it sends is written.
        examples: what it trains on.
        recipe: how it trains.
        path: the file to write, in the format safetensors.
        seed: root of the initial weights and of the order of batches.
        device: where to compute.

    Raises:
        PlanError: if the training diverges.
        OutputError: if the file cannot be written.

    """
    start = initial_weights(build_model, seed.child("initial"))
    client = ClientTask("pretraining", torch.arange(len(examples)))
    (trained,) = train_cohort(
        build_model, start, examples, [client], recipe, seed=seed, round=0, device=device
    )
    weights = apply_update(start, trained.delta)
    if not all(bool(one.isfinite().all()) for one in weights.values()):
        raise PlanError("the pretraining diverged: lower the rate")
    content = save({name: one.contiguous() for name, one in weights.items()})
    write_bytes(path, content, inside=path.parent, is_private=False)
    return trained.loss


def load_pretrained(network: nn.Module, path: Path, optional: tuple[str, ...]) -> None:
    """Copy the weights of a file into a network, in place.

    Parameters that only the network has, such as those of adapters, stay as they are.

    Args:
        network: the network.
        path: a file that `pretrain` wrote.
        optional: parameters that also stay if their shape differs, such as a last layer of
            other classes.

    Raises:
        PlanError: if the file is missing or damaged, or does not fit the network.

    """
    parameters = dict(network.named_parameters())
    try:
        stored = {name: one.float() for name, one in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise PlanError(f"model: base: {path} cannot be read: {error}") from error
    if not all(bool(one.isfinite().all()) for one in stored.values()):
        raise PlanError(f"model: base: {path} has NaN or infinity: train it again")
    unknown = sorted(stored.keys() - parameters.keys())
    if unknown:
        raise PlanError(
            f"model: base: {path} has {', '.join(unknown[:3])}, which the model has not: take "
            "the settings with which it was trained"
        )
    with torch.no_grad():
        for name, weight in stored.items():
            if parameters[name].shape == weight.shape:
                parameters[name].copy_(weight)
            elif name not in optional:
                raise PlanError(
                    f"model: base: {name} has the shape {tuple(weight.shape)} in {path}, and "
                    f"{tuple(parameters[name].shape)} in the model: take the settings and the "
                    "vocabulary with which it was trained"
                )
