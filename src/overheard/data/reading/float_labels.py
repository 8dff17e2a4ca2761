"""Labels that are no classes: several labels of an example, or numbers to predict."""

from collections.abc import Mapping
from types import MappingProxyType

from jaxtyping import Bool, Float, Float32, Shaped
from torch import Tensor

from overheard.core.task import TaskKind

OUTPUT_WORDS: Mapping[TaskKind, str] = MappingProxyType(
    {
        "classification": "class",
        "multi_label": "label",
        "regression": "number",
        "language_modeling": "loss",
    }
)
"""What an output of a model stands for."""


def kind_of_labels(labels: Shaped[Tensor, "examples ..."]) -> TaskKind:
    """Return what labels of this shape and type stand for.

    One whole number per example is a class, and so is a single 0 or 1 of any type. A row of
    zeros and ones per example says which labels apply. Other real numbers, one or several
    per example, are to be predicted.

    Raises:
        ValueError: if the labels are of none of these forms.

    """
    are_bits = bool(((labels == 0) | (labels == 1)).all())
    is_single = labels.dim() == 1 or (labels.dim() == 2 and labels.shape[1] == 1)
    if (labels.dim() == 1 and not labels.is_floating_point()) or (is_single and are_bits):
        return "classification"
    if labels.dim() == 2 and are_bits:
        return "multi_label"
    if labels.dim() in (1, 2) and labels.is_floating_point():
        return "regression"
    raise ValueError(
        "labels must be one whole number per example (its class), a row of 0 and 1 per example "
        "(which labels apply), or real numbers (to predict), but are "
        f"{labels.dtype} of shape {tuple(labels.shape)}"
    )


def float_label_rows(
    labels: Shaped[Tensor, "examples ..."],
) -> Float32[Tensor, "examples outputs"]:
    """Return labels that are no classes as a row of float32 for each example.

    Raises:
        ValueError: if there is no number in a row, or one is NaN or infinite.

    """
    rows = labels.float().reshape(len(labels), -1)
    if not rows.shape[1] or not bool(rows.isfinite().all()):
        raise ValueError("each example needs a label or more, without NaN and infinity")
    return rows


def standardise_numbers(
    rows: Float[Tensor, "examples outputs"], is_test: Bool[Tensor, " examples"]
) -> Float32[Tensor, "examples outputs"]:
    """Return numbers to predict in deviations from the mean, both of the training part.

    Raises:
        ValueError: if all training examples have the same number.

    """
    train = rows[~is_test].double()
    deviation = train.std(0, correction=0)
    if not bool((deviation > 0).all()):
        raise ValueError("all training examples have the same number to predict")
    return ((rows.double() - train.mean(0)) / deviation).float()


def output_names(kind: TaskKind, count: int) -> tuple[str, ...]:
    """Return names of this many outputs of a task, where none are given."""
    return tuple(f"{OUTPUT_WORDS[kind]} {number}" for number in range(count))
