"""A trial of the plan's data on a recorded model: whether scale and order of classes fit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from overheard.archive.excerpt import printable_excerpt
from overheard.core.custom_code.reference import REFERENCE
from overheard.core.defense import BuildModel
from overheard.core.errors import DataError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.custom import Own
from overheard.data.reading.scales import SCALE_WORDS, Scale, rescale
from overheard.learning.evaluate import logits_of_models
from overheard.learning.initialization import model_structure
from overheard.learning.models.unknown import Unknown
from overheard.learning.sent_tensors import trainable_parameters
from overheard.plans.plan import Plan

SCALES: tuple[Scale, ...] = ("as_written", "standardised", "min_max", "by_255")

MOST_EXAMPLES = 2000
"""The most examples that are tried, which takes a second for most networks."""

FITS_BETTER = 0.1
"""Smallest gain in accuracy that another order of classes must have."""

STANDARD_ERRORS = 3
"""Standard errors by which a better fit must exceed chance."""

MOST_UPDATES = 50
"""The most updates whose first layer is compared with the mean input."""

CLEAR_PART = 0.2
"""Smallest part of the updates of the first layer that another scale must explain."""

LEARNT_LOSS = 0.8
"""Largest mean loss, relative to that of a guess, of a model that has learnt its classes. One
that has learnt little puts out any order of classes, and does a little better on any scale."""

EXAMPLES_PER_CLASS = 5
"""Fewest examples of a class, on average, from which an order of classes can be told."""


@final
@dataclass(frozen=True, slots=True)
class DataTrial:
    """How well a recorded model does on the plan's data.

    Args:
        accuracy: share of examples whose label the model ranks first, on the plan's scale.
        guess: share of the most frequent label, which a constant guess reaches.
        examples: number of examples.
        scales: the accuracy on each scale that was tried, the plan's included.
        fitting_scale: a scale that fits clearly better; None = there is none.
        is_setting: whether the plan can set the scale; else a function must.
        is_order_seen: whether the model clearly ranks the right classes first.
        order: by output the label that fits it clearly better; () = there is none.

    """

    accuracy: float
    guess: float
    examples: int
    scales: tuple[tuple[Scale, float], ...]
    fitting_scale: Scale | None
    is_setting: bool
    is_order_seen: bool
    order: tuple[int, ...]

    def notes(self) -> Iterator[str]:
        """Yield how often the model is right."""
        yield (
            f"The last recorded model is right about {self.accuracy:.0%} of {self.examples} of "
            f"these examples; always guessing the most frequent class is right about "
            f"{self.guess:.0%}."
        )
        if self.is_order_seen and not self.order:
            yield "The order of the classes fits its outputs."

    def warnings(self, dataset: Dataset) -> Iterator[str]:
        """Yield what does not fit, and what to change."""
        if self.fitting_scale is not None:
            tried = ", ".join(f"{name} {value:.0%}" for name, value in self.scales)
            mend = f'set scale = "{self.fitting_scale}" in the plan\'s source'
            if not self.is_setting:
                mend = f"let the function return numbers {SCALE_WORDS[self.fitting_scale]}"
            yield (
                f"The scale of the inputs does not fit: {self.fitting_scale} fits the recorded "
                f"models or updates better (right of the last model, by scale: {tried}). On a "
                f"wrong scale attacks are less exact: {mend}."
            )
        if self.order:
            names = (printable_excerpt(dataset.task.class_names[one]) for one in self.order)
            yield (
                "The order of the classes does not fit: the outputs of the last recorded model "
                f"fit the classes in the order {', '.join(names)}. Claims would name wrong "
                "classes: number or name the labels so that they are in this order."
            )


def try_data(
    plan: Plan, dataset: Dataset, transcript: Transcript, folder: Path | None
) -> DataTrial | None:
    """Compute the outputs of the last recorded model on the plan's data, on several scales.

    Args:
        plan: the plan.
        dataset: its data, with classes.
        transcript: the recorded messages, with the tensors of the plan's model.
        folder: the data folder.

    Returns:
        None if the network is not at hand, or keeps tensors at home.

    """
    weights, model = _last_model(transcript), plan.training.model
    if weights is None or isinstance(model, Unknown):
        return None
    build_model: BuildModel = partial(model.build, dataset.task)
    structure = model_structure(build_model)
    if not trainable_parameters(structure).keys() <= weights.keys():
        return None
    source = plan.data.source
    is_setting = isinstance(source, Own) and not REFERENCE.fullmatch(source.reference)
    scale: Scale = "as_written"
    if isinstance(source, Own) and is_setting:
        scale = source.scale or "standardised"
    trials, means = dict[Scale, _Outputs](), dict[Scale, Float[Tensor, " inputs"]]()
    for one, examples in _rescaled(source, dataset, folder, scale, is_setting=is_setting):
        (logits,) = logits_of_models(build_model, [weights], examples.inputs)
        trials[one] = _Outputs(logits.double(), examples.labels)
        means[one] = examples.inputs.flatten(1).double().mean(0)
    fitting = _fitting_scale(trials, scale)
    layer = _first_layer(structure, len(means[scale]))
    if layer:
        # Where a model gains by larger inputs, the updates may still show the plan's scale.
        shown = _scale_of_updates(transcript, layer, means, fitting or scale)
        if shown not in (None, scale) and not _scale_of_updates(
            transcript, layer, means, scale
        ):
            shown = scale  # no other one explains them clearly better
        fitting = fitting if shown is None else shown if shown != scale else None
    best = trials[fitting or scale]
    counts = best.labels.bincount()
    return DataTrial(
        trials[scale].accuracy,
        float(counts.max() / counts.sum()),
        len(best.labels),
        tuple((one, outputs.accuracy) for one, outputs in trials.items()),
        fitting,
        is_setting,
        best.is_order_seen(),
        best.fitting_order(),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Outputs:
    """Outputs of a model, and the labels of the examples."""

    logits: Float[Tensor, "examples classes"]
    labels: Int[Tensor, " examples"]

    @property
    def accuracy(self) -> float:
        return float((self.logits.argmax(1) == self.labels).double().mean())

    def losses(self) -> Float[Tensor, " examples"]:
        """Return the cross-entropy of each example, in the order of classes that fits best.

        It shows a fit before the accuracy does.
        """
        return self._losses(self.fitting_order() or tuple(range(self.logits.shape[1])))

    def _losses(self, order: tuple[int, ...]) -> Float[Tensor, " examples"]:
        logits = self.logits[:, torch.tensor(order).argsort()]
        losses = torch.nn.functional.cross_entropy(logits, self.labels, reduction="none")
        return losses.nan_to_num(nan=1e6, posinf=1e6)

    def is_order_seen(self) -> bool:
        """Whether the mean recall of the classes is clearly above that of a constant guess."""
        recall, error = self._recall()
        return float(recall.diag().mean()) - 1 / len(recall) > STANDARD_ERRORS * error

    def fitting_order(self) -> tuple[int, ...]:
        """Return by output the label that fits it best, if that fits clearly better."""
        recall, error = self._recall()
        outputs, labels = linear_sum_assignment(recall.numpy(), maximize=True)
        gain = float(recall[outputs, labels].mean() - recall.diag().mean())
        if len(self.labels) < EXAMPLES_PER_CLASS * len(recall):
            return ()
        is_clear = gain > max(FITS_BETTER, STANDARD_ERRORS * error)
        order = tuple(labels.tolist())
        return order if is_clear and self._has_learnt(order) else ()

    def has_learnt(self) -> bool:
        """Whether the model has learnt the classes, in the order that fits best."""
        return self._has_learnt(self.fitting_order() or tuple(range(self.logits.shape[1])))

    def _has_learnt(self, order: tuple[int, ...]) -> bool:
        recall, _ = self._recall()
        outputs = range(len(order))
        # A model that is too sure of itself has a large loss, but is often right.
        is_often_right = float(recall[outputs, order].mean()) > (1 + 1 / len(order)) / 2
        loss = float(self._losses(order).mean())
        return is_often_right or loss < LEARNT_LOSS * np.log(len(order))

    def _recall(self) -> tuple[Float[Tensor, "outputs labels"], float]:
        """Return the share of each label's examples for which each output is the largest.

        Also return a bound on the standard error of its mean diagonal.
        """
        classes = self.logits.shape[1]
        counts = torch.zeros(classes, classes)
        places = (self.logits.argmax(1), self.labels)
        counts.index_put_(places, torch.ones(len(self.labels)), accumulate=True)
        of_label = counts.sum(0).clamp(min=1)
        return counts / of_label, float((0.25 / of_label).sum().sqrt()) / classes


def _fitting_scale(trials: dict[Scale, _Outputs], scale: Scale) -> Scale | None:
    """Return the scale with the smallest loss, if it is clearly smaller than on `scale`."""
    losses = {one: outputs.losses() for one, outputs in trials.items()}
    best = min(losses, key=lambda one: float(losses[one].mean()))
    gains = losses[scale] - losses[best]
    error = float(gains.std(correction=0)) / np.sqrt(len(gains))
    is_clear = float(gains.mean()) > STANDARD_ERRORS * error
    return best if is_clear and trials[best].has_learnt() else None


def _first_layer(network: nn.Module, inputs: int) -> str:
    """Return the name of the dense layer with a bias that reads the inputs; "" = none."""
    for name, module in network.named_modules():
        if any(True for _ in module.parameters(recurse=False)):
            is_dense = isinstance(module, nn.Linear) and module.bias is not None
            return name if is_dense and module.weight.shape[1] == inputs else ""
    return ""


def _scale_of_updates(
    transcript: Transcript,
    layer: str,
    means: Mapping[Scale, Float[Tensor, " inputs"]],
    scale: Scale,
) -> Scale | None:
    """Return a scale that explains the updates of the first layer better than `scale`.

    Each step moves a unit's weights by its error times the input, and its bias by its error
    alone. So if inputs have a mean m, the update of the weights is close to that of the biases
    times m. Inputs of mean 0 leave no such mark, and noise hides it: a scale is returned only
    if its mean explains a clear part of most updates.
    """
    names = [f"{layer}.{part}" if layer else part for part in ("weight", "bias")]
    updates = [one.body.delta for one in transcript.messages if isinstance(one.body, Update)]
    left = dict[Scale, list[float]]()
    for delta in updates[:MOST_UPDATES]:
        # A frozen layer is not sent.
        if not all(name in delta for name in names):
            return None
        weight, bias = (delta[name].double() for name in names)
        size = float(weight.square().sum())
        if not 0 < size < float("inf"):
            continue
        for one, mean in means.items():
            rest = weight - bias[:, None] * mean
            left.setdefault(one, []).append(float(rest.square().sum()) / size)
    medians = {one: median(parts) for one, parts in left.items()}
    best = min(medians, key=medians.__getitem__, default=scale)
    is_clear = bool(medians) and medians[best] < min(1, medians[scale]) - CLEAR_PART
    return best if is_clear else None


def _last_model(transcript: Transcript) -> Weights | None:
    models = [one.body for one in transcript.messages if isinstance(one.body, Broadcast)]
    return models[-1].weights if models else None


def _rescaled(
    source: DataSource, dataset: Dataset, folder: Path | None, scale: Scale, *, is_setting: bool
) -> Iterator[tuple[Scale, Examples]]:
    """Yield examples on the plan's scale, and on others if they are numbers."""
    examples = concatenate_examples([dataset.train, dataset.test])
    draws = Seed(0).child("data trial").generator()
    rows = torch.randperm(len(examples), generator=draws)[:MOST_EXAMPLES]
    yield scale, examples.take(rows)
    if dataset.task.vocabulary is not None:
        return
    for one in SCALES:
        if one == scale:
            continue
        try:
            if isinstance(source, Own) and is_setting:
                other = replace(source, scale=one).load(folder)
                scaled = concatenate_examples([other.train, other.test]).take(rows)
            else:
                scaled = _rescale_inputs(examples.take(rows), one)
        except (DataError, ValueError):
            continue  # numbers that are too large on this scale are not those of the run
        yield one, scaled


def _rescale_inputs(examples: Examples, scale: Scale) -> Examples:
    """Return examples on another scale, per column or channel.

    Raises:
        ValueError: if numbers are too large on it.

    """
    values = examples.inputs.double().numpy()
    scaled = rescale(values, values, scale, (0, *range(2, values.ndim)))
    return replace(examples, inputs=torch.from_numpy(scaled).float())
