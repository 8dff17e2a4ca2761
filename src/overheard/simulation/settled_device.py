"""The device on which virtual clients are trained."""

from collections.abc import Callable
from dataclasses import replace

from jaxtyping import Shaped
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.learning.devices.choice import settle_device
from overheard.learning.devices.training_work import TrainingWork
from overheard.learning.train import describe_training
from overheard.simulation.chunk import CHUNK


def settled_device(
    knowledge: Knowledge,
    inputs: Shaped[Tensor, "examples ..."],
    clients: float,
    examples: float | Callable[[], float],
    *,
    read: float = 0.0,
    epochs: int | None = None,
    are_jobs: bool = True,
    part: str = "virtual clients",
) -> str:
    """Return the device for the virtual clients of a round, which is no longer "auto".

    The choice depends on what is trained in all rounds, so that it is the same for each of them
    and for whatever part of them is stored already.

    Args:
        knowledge: with a model, a recipe, and the compute settings.
        inputs: examples such as those they train on, one or more.
        clients: their number in one round.
        examples: the examples of each, or a function that returns them; it is not called
            without a GPU.
        read: examples whose outputs are computed after the training of each.
        epochs: how often each passes its examples; None = as often as the recipe says.
        are_jobs: whether they are trained in jobs, which worker processes share.
        part: what they are called in what an audit says of its devices.

    Raises:
        LeftToMainProcess: if it is a GPU, and this is a worker process.

    """
    compute = knowledge.compute
    if compute.cluster is not None:  # its machines train on their cores
        return "cpu" if compute.device == "auto" else compute.device

    def describe() -> TrainingWork | None:
        recipes, build_model = knowledge.candidate_recipes(), knowledge.build_model
        if not recipes or build_model is None:
            return None
        # The recipe with the most epochs stands for all.
        recipe = max(recipes, key=lambda one: one.epochs)
        size = examples() if callable(examples) else examples
        return describe_training(
            build_model,
            inputs,
            recipe,
            clients=max(1, round(clients)),
            examples=size * (recipe.epochs if epochs is None else epochs),
            steps=recipe.steps(max(1, round(size)), epochs),
            chunk=CHUNK,
            are_jobs=are_jobs,
            read=read,
            times=compute.repeats,
        )

    return settle_device(compute.device, describe, part)


def with_settled_device(
    knowledge: Knowledge,
    inputs: Shaped[Tensor, "examples ..."],
    clients: float,
    examples: float | Callable[[], float],
    *,
    read: float = 0.0,
    epochs: int | None = None,
    are_jobs: bool = True,
    part: str = "virtual clients",
) -> Knowledge:
    """Return the knowledge with the device of `settled_device` in its compute settings."""
    device = settled_device(
        knowledge,
        inputs,
        clients,
        examples,
        read=read,
        epochs=epochs,
        are_jobs=are_jobs,
        part=part,
    )
    return replace(knowledge, compute=replace(knowledge.compute, device=device))
