"""The numbers by round of the shift paper: comparisons of models, and their validation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, final, get_args

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.needs import AUXILIARY, CLASSES, MODEL
from overheard.core.recipe import LOSSES_OF_TASKS
from overheard.learning.discrepancy import central_moment_discrepancy, cosine, procrustes
from overheard.learning.evaluate import logits_of_models
from overheard.learning.loss import mean_loss
from overheard.learning.representations import representations_of_models
from overheard.questions.shift.estimators.model_series import ModelComparison

Information = Literal["weights", "representations", "gradients"]
Metric = Literal["cosine", "procrustes", "cmd"]
ValidationMeasure = Literal["loss", "accuracy"]

METRICS: Mapping[Metric, Callable[[Tensor, Tensor], float]] = {
    "cosine": cosine,
    "procrustes": procrustes,
    "cmd": central_moment_discrepancy,
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
        device=knowledge.compute.device,
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
