"""Outputs of every layer of trained models on the same inputs."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model
from overheard.learning.sent_tensors import load_sent_tensors

Representations = Mapping[str, Float[Tensor, "examples features"]]
"""Layer outputs by the name of the layer, in the order in which layers are called."""


def representations_of_models(
    build_model: BuildModel,
    models: Iterable[Weights],
    inputs: Shaped[Tensor, "examples ..."],
    *,
    layer: str | None = None,
    batch: int = 100,
    device: torch.device | str = "cpu",
) -> Iterator[Representations]:
    """Yield the layer outputs of each model, in order, on the CPU.

    A layer is a module without submodules that returns a tensor with one row per example, so
    activations and flatten modules count too. Outputs are flattened; a layer that is called
    several times has its outputs concatenated. Models are read lazily, one at a time.

    Args:
        build_model: builds the architecture.
        models: the weights of each model.
        inputs: inputs of every model.
        layer: name of the only layer to return; None = all. An unknown name returns none.
        batch: inputs per forward pass.
        device: where to compute.

    """
    model = fresh_model(build_model, Seed(0)).to(device).eval()
    for weights in models:
        model.to(dtype=next(iter(weights.values())).dtype)
        load_sent_tensors(model, weights)
        parts = [_outputs(model, part.to(device), layer) for part in torch.split(inputs, batch)]
        yield {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _outputs(model: nn.Module, inputs: Tensor, layer: str | None) -> dict[str, Tensor]:
    """Return the layer outputs on one batch."""
    outputs_by_layer: dict[str, list[Tensor]] = {}
    hooks = [
        module.register_forward_hook(
            partial(_record_output, outputs_by_layer, name, len(inputs))
        )
        for name, module in model.named_modules()
        if next(module.children(), None) is None and layer in (None, name)
    ]
    try:
        with torch.inference_mode():
            model(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return {name: torch.cat(outputs, 1) for name, outputs in outputs_by_layer.items()}


def _record_output(
    outputs_by_layer: dict[str, list[Tensor]],
    name: str,
    examples: int,
    module: nn.Module,
    inputs: object,
    output: object,
) -> None:
    if isinstance(output, Tensor) and output.dim() and len(output) == examples:
        # A copy: the next module may work in place.
        outputs_by_layer.setdefault(name, []).append(output.reshape(examples, -1).cpu().clone())
