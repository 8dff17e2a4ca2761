"""Outputs and utility of trained models."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights, apply_update
from overheard.core.seeds import Seed
from overheard.core.task import TaskKind
from overheard.learning.architecture import is_plain_mlp
from overheard.learning.devices.choice import settle_device
from overheard.learning.devices.training_work import TrainingWork, count_step
from overheard.learning.engines.instance_norm_block import use_instance_norm_blocks
from overheard.learning.engines.stacked import build_stacked_networks
from overheard.learning.engines.stacked_networks import StackedNetworks
from overheard.learning.initialization import fresh_model, model_structure
from overheard.learning.memory_layout import MemoryOrder
from overheard.learning.precision import computing
from overheard.learning.sent_tensors import load_sent_tensors

MODELS_PER_STACK = 16
"""Plain MLPs that are run at once."""

MAX_STACK_BYTES = 2**28
"""Largest size of a stack of several models, in bytes: 16 models of 100 million parameters
would exhaust memory and gain no speed."""


def logits_of_models(
    build_model: BuildModel,
    models: Iterable[Weights],
    inputs: Shaped[Tensor, "examples ..."],
    *,
    batch: int = 500,
    device: torch.device | str = "cpu",
    count: int | None = None,
) -> Iterator[Float[Tensor, "examples classes"]]:
    """Yield the logits of each model on the same inputs, in order, on the CPU.

    Models are read lazily, a few ahead at most. Plain MLPs run several at once.

    Args:
        build_model: builds the architecture; its weights are not used.
        models: the weights of each model.
        inputs: the inputs.
        batch: most inputs at once.
        device: where to compute; "auto" = on a GPU if that saves time, else on the CPU.
        count: the number of models, by which "auto" chooses; None = unknown, if they are not
            in a sequence: then it is the CPU.

    """
    device = settle_device(
        str(device),
        lambda: _describe_reading(build_model, models, inputs, count),
        "outputs of models",
    )
    structure, read = model_structure(build_model), inputs.to(device)
    if is_plain_mlp(structure):
        return _stacked(structure, iter(models), read, batch)
    model = fresh_model(build_model, Seed(0)).to(device).eval()
    return _one_by_one(model, models, read, batch)


def _describe_reading(
    build_model: BuildModel, models: Iterable[Weights], inputs: Tensor, count: int | None
) -> TrainingWork | None:
    """Describe the reading of models, to choose the device for it; None = unknown."""
    if count is None and isinstance(models, Sequence):
        count = len(models)
    counts = count_step(build_model, inputs) if count and len(inputs) else None
    if count is None or counts is None:
        return None
    is_mlp = is_plain_mlp(model_structure(build_model))
    return TrainingWork(
        counts,
        clients=count,
        examples=0.0,
        steps=0.0,
        chunk=MODELS_PER_STACK,
        update_bytes=0.0,
        is_stacked_on_cpu=is_mlp,
        on_gpu="stacked" if is_mlp else "one by one",
        in_workers=False,
        read=float(len(inputs)),
    )


def logits_of_updates(
    build_model: BuildModel,
    start: Weights,
    deltas: Iterable[Weights],
    inputs: Shaped[Tensor, "examples ..."],
    *,
    batch: int = 500,
) -> Iterator[Float[Tensor, "examples classes"]]:
    """Yield the logits of the model after each update, as `logits_of_models` does, on the CPU.

    The broadcast is read once, and added to each update in memory that is used again.
    """
    structure = model_structure(build_model)
    if not is_plain_mlp(structure):
        weights = {name: start[name] for name in start}
        local = (apply_update(weights, delta) for delta in deltas)
        yield from logits_of_models(build_model, local, inputs, batch=batch)
        return
    added = _AddedUpdates({name: start[name] for name, _ in structure.named_parameters()})
    remaining, size = iter(deltas), _models_per_stack(structure)
    networks = build_stacked_networks(structure)
    while chunk := list(islice(remaining, size)):
        yield from _stacked_logits(networks, added.stack(chunk), inputs, batch)


def accuracy(
    build_model: BuildModel,
    weights: Weights,
    examples: Examples,
    device: torch.device | str = "cpu",
) -> float:
    """Return the share of examples whose label the model ranks first (0..1)."""
    (logits,) = logits_of_models(build_model, [weights], examples.inputs, device=device)
    return float((logits.argmax(1) == examples.labels.cpu()).double().mean())


def utility(
    build_model: BuildModel,
    weights: Weights,
    examples: Examples,
    kind: TaskKind,
    device: torch.device | str = "cpu",
) -> float:
    """Return how well a model does a task of this kind (0..1), as `UTILITIES` names it.

    - accuracy: see `accuracy`.
    - label accuracy: the share of labels of all examples that the model predicts correctly; a
      label is predicted if its probability is above one half.
    - probability of the next token: exp of minus the mean loss, which is the geometric mean of
      the probabilities of tokens given those before them, and one over the perplexity.
    - explained variance: one minus the squared error relative to that of the mean of the
      examples (the coefficient of determination), averaged over the outputs. An output that is
      predicted worse than by that mean counts as 0, and so does a constant one.
    """
    if kind == "classification":
        return accuracy(build_model, weights, examples, device)
    (outputs,) = logits_of_models(build_model, [weights], examples.inputs, device=device)
    if kind == "language_modeling":
        return float((-outputs.double().mean()).exp().nan_to_num(nan=0.0))
    rows = examples.loss_labels.cpu().double()
    if kind == "multi_label":
        return float(((outputs > 0) == (rows > 0.5)).double().mean())
    errors = (outputs.double() - rows).square().sum(0)
    spread = (rows - rows.mean(0)).square().sum(0)
    # Not finite for a constant number, and for a model that diverged.
    explained = (1 - errors / spread).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    return float(explained.clamp(min=0).mean())


def _one_by_one(
    model: nn.Module, models: Iterable[Weights], inputs: Tensor, batch: int
) -> Iterator[Tensor]:
    if inputs.device.type == "cpu":
        use_instance_norm_blocks(model)
    order = MemoryOrder.on(inputs.device)
    stored = order.stored(inputs)
    for weights in models:
        model.to(dtype=next(iter(weights.values())).dtype)
        order.store_kernels(model)
        load_sent_tensors(model, weights)
        with computing("float32"), torch.inference_mode():
            parts = [model(order.read(part)) for part in torch.split(stored, batch)]
        # Concatenated outside inference mode, so that a caller may train on the logits.
        yield torch.cat(parts).cpu()


def _stacked(
    model: nn.Module, models: Iterator[Weights], inputs: Tensor, batch: int
) -> Iterator[Tensor]:
    networks, size = build_stacked_networks(model), _models_per_stack(model)
    names = [name for name, _ in model.named_parameters()]
    while chunk := list(islice(models, size)):
        with torch.no_grad():
            stack = [_stack([weights[name] for weights in chunk]) for name in names]
            stack = [weights.to(inputs.device) for weights in stack]
        yield from _stacked_logits(networks, stack, inputs, batch)


def _models_per_stack(model: nn.Module) -> int:
    model_bytes = sum(one.numel() * one.element_size() for one in model.parameters())
    return max(1, min(MODELS_PER_STACK, MAX_STACK_BYTES // model_bytes))


def _stack(tensors: list[Tensor]) -> Tensor:
    """Return the tensors stacked along a first axis; a single one is not copied."""
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack(tensors)


def _stacked_logits(
    networks: StackedNetworks, stack: Sequence[Tensor], inputs: Tensor, batch: int
) -> Tensor:
    """Return the logits (models, examples, classes) of stacked models, on the CPU."""
    models = len(stack[0])
    with computing("float32"), torch.no_grad():
        parts = [
            networks.logits(stack, part.expand(models, *part.shape))
            for part in torch.split(inputs, batch)
        ]
        return torch.cat(parts, dim=1).cpu()


@final
class _AddedUpdates:
    """Stacks of models after updates, in memory that the next stack uses again."""

    def __init__(self, start: Mapping[str, Tensor]) -> None:
        self._start = start
        self._memory: dict[str, Tensor] = {}

    def stack(self, deltas: Sequence[Weights]) -> list[Tensor]:
        """Return each tensor of the models after these updates, stacked along a first axis."""
        return [self._add(name, weight, deltas) for name, weight in self._start.items()]

    def _add(self, name: str, weight: Tensor, deltas: Sequence[Weights]) -> Tensor:
        for row, delta in enumerate(deltas):
            change = delta[name]
            if name not in self._memory:
                dtype = torch.result_type(weight, change)
                self._memory[name] = torch.empty((len(deltas), *weight.shape), dtype=dtype)
            torch.add(weight, change, out=self._memory[name][row])
        return self._memory[name][: len(deltas)]
