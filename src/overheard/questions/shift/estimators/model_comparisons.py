"""The numbers by round of the shift paper: comparisons of models, and their validation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import copysign, sqrt
from typing import Literal, final, get_args

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.needs import AUXILIARY, CLASSES, MODEL
from overheard.core.recipe import LOSSES_OF_TASKS
from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.initialization import fresh_model
from overheard.learning.loss import mean_loss
from overheard.learning.sent_tensors import load_sent_tensors
from overheard.questions.shift.estimators.model_series import ModelComparison

BLOCK_SIZE = 2**16
"""Numbers processed at a time, so that their float64 copies fit into the processor's cache.
Comparing the outputs of all layers of `shift_conv` on 100 images (11 million numbers) 100 times
by `procrustes` takes 19 s on one core, forward passes included; without blocks, 47 s."""


def cosine(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> float:
    """Compute the cosine similarity of two tensors, flattened: -1..1, 1 = same direction.

    Brunner and Montuoro 2024, equation 1:  (A . B) / (|A| |B|),  here in float64. The cosine of
    two zero tensors is 1, and of a zero and a nonzero tensor 0. NaN if either holds one.
    """
    one, other = _norm(a), _norm(b)
    if one * other == 0:
        return float(one == other)
    similarity = sum(float(left @ right) for left, right in _blocks(a, b)) / (one * other)
    # Rounding may exceed 1. NaN fails the comparison and is returned.
    return similarity if not abs(similarity) > 1 else copysign(1.0, similarity)


def procrustes(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> float:
    """Compute the Frobenius norm of the difference of two tensors, each scaled to norm 1.

    Brunner and Montuoro 2024, equation 2:  trace(X^T X)^(1/2)  with X = A - B. The equation
    does not normalize, but the paper's range of 0..1 requires it. Unlike the usual Procrustes
    distance there is no rotation. With norm 1 the value is  (2 - 2 cosine)^(1/2):  it ranks
    pairs as `cosine` does. 0 = same direction, 2^(1/2) = orthogonal, 2 = opposite. It exceeds 1
    if the cosine is below 1/2.

    A zero tensor is not scaled: its value is 0 with another zero tensor and 1 with any other
    tensor. NaN if either holds one.
    """
    one, other = _norm(a) or 1.0, _norm(b) or 1.0
    differences = (left / one - right / other for left, right in _blocks(a, b))
    return sqrt(sum(float(block @ block) for block in differences))


def central_moment_discrepancy(
    a: Float[Tensor, "..."], b: Float[Tensor, "..."], moments: int = 5
) -> float:
    """Compute the central moment discrepancy (CMD), 0 or more.

    Brunner and Montuoro 2024, equation 3, after Zellinger et al. 2017:
    |E(A) - E(B)| + sum over k = 2..K of |C_k(A) - C_k(B)|,  C_k(A) = E((a - E(A))^k).
    E averages over the rows of each column, and the norm runs over the columns; a vector is one
    column. Zellinger et al. divide the k-th term by the k-th power of the range of values;
    equation 3 does not, so the result depends on the scale. Permuting the rows of a tensor does
    not change it. NaN if either holds one.

    Args:
        a: rows (examples, or the entries of a vector) by columns.
        b: the same.
        moments: K, the highest moment; 5 in the paper.

    """
    if moments < 1:
        raise ValueError(f"moments must be 1 or more, got {moments}")
    if a.shape != b.shape or not a.numel():
        raise ValueError(
            f"expected two tensors of one shape, not empty, got {a.shape}, {b.shape}"
        )
    squares = torch.zeros(moments, dtype=torch.float64, device=a.device)
    width = max(1, BLOCK_SIZE // len(a))
    columns = (torch.split(_as_rows(numbers), width, 1) for numbers in (a, b))
    for left, right in zip(*columns, strict=True):
        difference = _moments(left.double(), moments) - _moments(right.double(), moments)
        squares += difference.square().sum(1)
    return float(squares.sqrt().sum())


def scaled_moment_discrepancy(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> float:
    """Compute the CMD of two tensors divided by the range of all their values.

    Zellinger et al. 2017 define it so: the k-th term is divided by the k-th power of the range.
    It does not depend on the unit of the values, so it also compares those without bounds,
    whose highest moments otherwise decide the sum.
    """
    lows, highs = zip(a.aminmax(), b.aminmax(), strict=True)
    width = float(torch.stack(highs).max() - torch.stack(lows).min()) or 1.0
    return central_moment_discrepancy(a.double() / width, b.double() / width)


def _norm(numbers: Tensor) -> float:
    return sqrt(sum(float(block @ block) for block, _ in _blocks(numbers, numbers)))


def _blocks(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield both tensors, flattened, as float64 blocks."""
    if a.shape != b.shape:
        raise ValueError(f"expected two tensors of one shape, got {a.shape} and {b.shape}")
    pieces = zip(
        torch.split(a.flatten(), BLOCK_SIZE), torch.split(b.flatten(), BLOCK_SIZE), strict=True
    )
    return ((left.double(), right.double()) for left, right in pieces)


def _as_rows(numbers: Tensor) -> Tensor:
    return numbers[:, None] if numbers.dim() == 1 else numbers.flatten(1)


def _moments(
    rows: Float[Tensor, "examples features"], count: int
) -> Float[Tensor, "moments features"]:
    """Compute the mean, and the central moments from the second up, of each column."""
    mean = rows.mean(0)
    centred = rows - mean
    power, moments = centred.clone(), [mean]
    for _ in range(count - 1):
        power *= centred
        moments.append(power.mean(0))
    return torch.stack(moments)


Information = Literal["weights", "representations", "gradients"]
Metric = Literal["cosine", "procrustes", "cmd", "scaled_cmd"]
ValidationMeasure = Literal["loss", "accuracy"]

METRICS: Mapping[Metric, Callable[[Tensor, Tensor], float]] = {
    "cosine": cosine,
    "procrustes": procrustes,
    "cmd": central_moment_discrepancy,
    "scaled_cmd": scaled_moment_discrepancy,
}


@final
@dataclass(frozen=True, slots=True)
class NamedComparison:
    """A comparison of models that has a name, and is built with an attacker's knowledge.

    Args:
        name: differs between comparisons that could differ.
        build: returns the comparison; raises `NeedsError` if knowledge is missing.

    """

    name: str
    build: Callable[[Knowledge], ModelComparison] = field(compare=False)


def change_comparison(
    information: Information, metric: Metric, layer: str | None = None, probe: int = 100
) -> NamedComparison:
    """Return the comparison of `ShiftTrend` with these settings."""
    return NamedComparison(
        repr(("change", information, metric, layer, probe)),
        partial(
            compare_changes, information=information, metric=metric, layer=layer, probe=probe
        ),
    )


def validation_comparison(measure: ValidationMeasure) -> NamedComparison:
    """Return the comparison of `ValidationShift` with this measure."""
    return NamedComparison(
        repr(("validation", measure)), partial(validate_models, measure=measure)
    )


def compare_changes(
    knowledge: Knowledge,
    information: Information,
    metric: Metric,
    layer: str | None,
    probe: int,
) -> ModelComparison:
    """Return the comparison of a round's model with that of the round before.

    The settings are those of `ShiftTrend`.

    Raises:
        NeedsError: if the layer does not exist, or the inputs of representations are missing.

    """
    compare = METRICS[metric]
    if information == "gradients":
        return ModelComparison(partial(_flat_weights, layer), partial(_by_steps, compare), 3)
    if information == "weights":
        return ModelComparison(partial(_flat_weights, layer), partial(_in_pairs, compare), 2)
    read = partial(_layer_outputs, knowledge, layer, probe)
    return ModelComparison(read, partial(_in_pairs, compare), 2)


def validate_models(knowledge: Knowledge, measure: ValidationMeasure) -> ModelComparison:
    """Return the validation of each model on the attacker's examples, by itself.

    Raises:
        NeedsError: if the accuracy is asked for, and examples have no classes.

    """
    if measure == "accuracy" and not knowledge.has_classes:
        raise NeedsError(f"validation_shift(measure='accuracy') needs {CLASSES.description}")
    return ModelComparison(partial(_validation, knowledge, measure), _alone, 1)


def _in_pairs(compare: Callable[[Tensor, Tensor], float], tensors: Sequence[Tensor]) -> float:
    before, now = tensors
    return compare(before, now)


def _by_steps(compare: Callable[[Tensor, Tensor], float], tensors: Sequence[Tensor]) -> float:
    """Compare the weights before minus those after: the gradients of section 4.1."""
    earlier, before, now = tensors
    return compare(earlier - before, before - now)


def _alone(tensors: Sequence[Tensor]) -> float:
    return float(tensors[0])


def _flat_weights(
    layer: str | None, models: Iterable[Weights]
) -> Iterator[Float[Tensor, " params"]]:
    """Yield the weights of each model as one vector, or those of one layer."""
    for weights in models:
        layers = {name: name.rpartition(".")[0] for name in weights}
        selected = [name for name in weights if layer in (None, layers[name])]
        if not selected:
            raise _missing_layer_error(layer, layers.values())
        yield torch.cat([weights[name].double().flatten() for name in selected])


def _layer_outputs(
    knowledge: Knowledge, layer: str | None, probe: int, models: Iterable[Weights]
) -> Iterator[Float[Tensor, "examples features"]]:
    """Yield the concatenated outputs of each model's layers, or those of one layer."""
    auxiliary, classes = knowledge.auxiliary, knowledge.classes
    if knowledge.build_model is None:
        raise NeedsError(f"shift(information='representations') needs {MODEL.description}")
    if auxiliary is None or not bool((auxiliary.label_counts(classes) > 0).all()):
        raise NeedsError(f"shift(information='representations') needs {AUXILIARY.description}")
    for outputs in representations_of_models(
        knowledge.build_model,
        models,
        _first_of_each_class(auxiliary, classes, probe),
        layer=layer,
        device=knowledge.compute.own_device,
    ):
        if not outputs:
            model = knowledge.build_model()
            raise _missing_layer_error(layer, (name for name, _ in model.named_modules()))
        yield torch.cat(tuple(outputs.values()), 1)


def _validation(
    knowledge: Knowledge, measure: ValidationMeasure, models: Iterable[Weights]
) -> Iterator[Float[Tensor, ""]]:
    """Yield the loss or the accuracy of each model; NaN if its outputs are not finite."""
    assert knowledge.auxiliary is not None
    assert knowledge.build_model is not None
    labels, loss = knowledge.auxiliary.loss_labels.cpu(), LOSSES_OF_TASKS[knowledge.kind][0]
    for logits in logits_of_models(
        knowledge.build_model,
        models,
        knowledge.auxiliary.inputs,
        device=knowledge.compute.device,
    ):
        # Non-finite logits would still have an accuracy.
        if not bool(logits.isfinite().all()):
            yield torch.tensor(torch.nan)
        elif measure == "loss":
            yield mean_loss(logits.double(), labels, loss, 0.0)
        else:
            yield (logits.argmax(1) == labels).double().mean()


def _first_of_each_class(
    auxiliary: Examples, classes: int, count: int
) -> Shaped[Tensor, "examples ..."]:
    """Return the first inputs of each class, in equal numbers and in their order."""
    per_class = -(-count // classes)
    # The rank of each example within its label does not depend on how labels are numbered.
    ranks = torch.zeros_like(auxiliary.labels)
    for label in range(classes):
        rows = auxiliary.labels == label
        ranks[rows] = torch.arange(int(rows.sum()), device=ranks.device)
    return auxiliary.inputs[ranks < per_class]


def _missing_layer_error(layer: str | None, layers: Iterable[str]) -> NeedsError:
    names = ", ".join(repr(name) for name in dict.fromkeys(layers) if name)
    return NeedsError(
        f"shift(layer={layer!r}): the model has no such layer; choose one of {names}"
    )


def standard_comparisons(knowledge: Knowledge) -> tuple[NamedComparison, ...]:
    """Return comparisons to read together in one simulation, as each alone costs little."""
    changes = (
        change_comparison(information, metric)
        for information in get_args(Information)
        for metric in ("cosine", "cmd")
    )
    measures = get_args(ValidationMeasure) if knowledge.has_classes else ("loss",)
    return (*changes, *(validation_comparison(measure) for measure in measures))


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
