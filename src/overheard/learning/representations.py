"""What every layer of a trained model gives on the same inputs."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.initial import fresh

Representations = Mapping[str, Float[Tensor, "examples features"]]
"""By the name of the layer, in the order in which layers are called."""


def representations_of_cohort(
    build_model: BuildModel,
    cohort: Iterable[Weights],
    inputs: Shaped[Tensor, "examples ..."],
    *,
    layer: str | None = None,
    batch: int = 100,
    device: torch.device | str = "cpu",
) -> Iterator[Representations]:
    """Give each model's outputs, layer by layer, in order of the cohort, on the cpu.

    A layer is a module without modules in it that gives a tensor with a row an example; so a
    function between two layers and a flatten count too, if they are modules. What one gives is
    laid flat; one that is called several times gives its outputs side by side. The cohort is
    read as it is asked for, a model at a time.

    Args:
        build_model: gives the architecture.
        cohort: the weights of each model.
        inputs: the same for all.
        layer: the name of the only one asked for; None = all. An unknown name gives none.
        batch: inputs a forward pass.
        device: to compute on.

    """
    model = fresh(build_model, Seed(0)).to(device).eval()
    for weights in cohort:
        model.to(dtype=next(iter(weights.values())).dtype)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(weights[name])
        parts = [_outputs(model, part.to(device), layer) for part in torch.split(inputs, batch)]
        yield {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _outputs(model: nn.Module, inputs: Tensor, layer: str | None) -> dict[str, Tensor]:
    """What the layers give on one batch."""
    heard: dict[str, list[Tensor]] = {}
    hooks = [
        module.register_forward_hook(partial(_hear, heard, name, len(inputs)))
        for name, module in model.named_modules()
        if next(module.children(), None) is None and layer in (None, name)
    ]
    try:
        with torch.inference_mode():
            model(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return {name: torch.cat(outputs, 1) for name, outputs in heard.items()}


def _hear(
    heard: dict[str, list[Tensor]],
    name: str,
    examples: int,
    module: nn.Module,
    inputs: object,
    output: object,
) -> None:
    if isinstance(output, Tensor) and output.dim() and len(output) == examples:
        # A copy: the next module may work in place.
        heard.setdefault(name, []).append(output.reshape(examples, -1).cpu().clone())
