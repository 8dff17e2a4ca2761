"""Shift detection by a break in the trend of model changes between rounds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.discrepancy import central_moment_discrepancy, cosine, procrustes
from overheard.learning.representations import representations_of_models
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.target_models import TargetModels
from overheard.questions.shift.estimators.trend import Trend

Information = Literal["weights", "representations", "gradients"]
Metric = Literal["cosine", "procrustes", "cmd"]

METRICS: Mapping[Metric, Callable[[Tensor, Tensor], float]] = {
    "cosine": cosine,
    "procrustes": procrustes,
    "cmd": central_moment_discrepancy,
}

EXTRA_MODELS: Mapping[Information, int] = {"weights": 1, "representations": 1, "gradients": 2}
"""How many models of earlier rounds a comparison needs."""


@final
@dataclass(frozen=True, slots=True)
class ShiftTrend(Attack[Shift]):
    """Compares the target's models of consecutive rounds and detects a break in their trend.

    The target's model is extracted from the global model (`TargetModels`). The attacker
    compares its weights, its layers' outputs on fixed examples, or its gradients
    g(t) = w(t-1) - w(t). A metric compares round t with the round before. The statistic of
    round t is the divergence of this value from the line through the `trend` rounds before
    (`Trend`). The model of round t is trained on the data of round t, so new data in round t
    appear at t; a client observes it with the next broadcast.

    It raises no alarm, as the paper states neither a threshold nor a rate of false alarms. The
    claimed round is that of the largest statistic. It can mislead: new examples of the same
    kind change the same values, which only a control run can distinguish. The first rounds, in
    which the model learns fastest, break any trend.

    A gap in the observed rounds, or non-finite weights, restarts the trend. The attack refuses
    to run without a long enough sequence of consecutive rounds.

    Differs from the paper: the length of the trend, which is not stated there, is 5; outputs of
    the last layer are taken before the softmax; the Procrustes distance is normalised (see
    `procrustes`).

    Args:
        information: the part of the models that is compared. Representations need the
            architecture and auxiliary examples of every class; the others need neither.
        metric: the distance or similarity.
        layer: the name of the only layer to compare, such as "2"; None = all layers together.
        trend: number of rounds that the line is fitted to.
        extract: whether the observers' own influence is removed from the broadcasts.
        probe: number of auxiliary examples for representations: the first ones of each class,
            in equal numbers, rounded up; all examples of a rarer class.
        standardise: whether the statistic is in units of its standard error (`Trend`); the
            paper's is not.

    """

    information: Information = "gradients"
    metric: Metric = "cosine"
    layer: str | None = None
    trend: int = 5
    extract: bool = True
    probe: int = 100
    standardise: bool = False

    name: ClassVar[str] = "shift"
    claim_type: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES, BROADCASTS})
    source: ClassVar[str] = (
        "Brunner and Montuoro 2024 (Data Distribution Shifts in (Industrial) Federated "
        "Learning as a Privacy Issue, arXiv 2409.13875), sections 4 and 5.3"
    )

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        self._trend()
        if self.probe < 1:
            raise ValueError(f"probe must be 1 or more, got {self.probe}")

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that affect the claims."""
        return frozenset({"model"} if self.information == "representations" else ())

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        """Claim for each target the round with the largest break in the trend.

        Raises:
            NeedsError: if too few consecutive rounds are readable, the layer does not exist, or
                the inputs of representations are missing.

        """
        claims = {}
        for target in targets:
            values = model_change_series(
                view,
                target,
                knowledge,
                information=self.information,
                metric=self.metric,
                layer=self.layer,
                probe=self.probe,
                extract=self.extract,
            )
            rounds = TargetModels(view, target, self.extract).rounds()
            subject = f"{self.name} on {target}"
            claims[target] = self._trend().claim_shift(
                values, rounds, EXTRA_MODELS[self.information], subject
            )
        return claims

    def _trend(self) -> Trend:
        return Trend(self.trend, self.standardise)


def model_change_series(
    view: View,
    target: Party,
    knowledge: Knowledge,
    *,
    information: Information = "gradients",
    metric: Metric = "cosine",
    layer: str | None = None,
    probe: int = 100,
    extract: bool = True,
) -> dict[int, float]:
    """Compare a target's model in each round with that of the round before.

    Return values by round, if both rounds were observed and the value is finite. The settings
    are those of `ShiftTrend`.

    Raises:
        NeedsError: if the layer does not exist, or the inputs of representations are missing.

    """
    target_models = TargetModels(view, target, extract)
    if information == "representations":
        tensors = _layer_outputs(target_models, knowledge, layer, probe)
    else:
        tensors = (_flatten_weights(weights, layer) for weights in target_models.models())
    numbered: Iterator[tuple[int, Tensor]] = zip(target_models.rounds(), tensors, strict=True)
    if information == "gradients":
        numbered = _gradients(numbered)
    compared = {
        number: METRICS[metric](before, now)
        for number, before, now in _consecutive_pairs(numbered)
    }
    return {number: value for number, value in compared.items() if isfinite(value)}


def _flatten_weights(weights: Weights, layer: str | None) -> Float[Tensor, " params"]:
    """Return the weights as one vector, or those of one layer."""
    layers = {name: name.rpartition(".")[0] for name in weights}
    selected = [name for name in weights if layer in (None, layers[name])]
    if not selected:
        raise _missing_layer_error(layer, layers.values())
    return torch.cat([weights[name].double().flatten() for name in selected])


def _layer_outputs(
    target_models: TargetModels, knowledge: Knowledge, layer: str | None, probe: int
) -> Iterator[Float[Tensor, "examples features"]]:
    """Yield the concatenated outputs of each model's layers, or those of one layer."""
    auxiliary, classes = knowledge.auxiliary, knowledge.classes
    if knowledge.build_model is None:
        raise NeedsError(f"shift(information='representations') needs {MODEL.description}")
    if auxiliary is None or not bool((auxiliary.label_counts(classes) > 0).all()):
        raise NeedsError(f"shift(information='representations') needs {AUXILIARY.description}")
    for outputs in representations_of_models(
        knowledge.build_model,
        target_models.models(),
        _first_of_each_class(auxiliary, classes, probe),
        layer=layer,
        device=knowledge.compute.device,
    ):
        if not outputs:
            model = knowledge.build_model()
            raise _missing_layer_error(layer, (name for name, _ in model.named_modules()))
        yield torch.cat(tuple(outputs.values()), 1)


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


def _consecutive_pairs(
    numbered: Iterable[tuple[int, Tensor]],
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield the round and the tensors of the round before and of it, for consecutive rounds."""
    for (earlier, before), (number, now) in pairwise(numbered):
        if earlier == number - 1:
            yield number, before, now


def _gradients(numbered: Iterable[tuple[int, Tensor]]) -> Iterator[tuple[int, Tensor]]:
    """Yield the weights before minus those after, the approximation of section 4.1."""
    for number, before, now in _consecutive_pairs(numbered):
        yield number, before - now
