"""A shift as a break in the trend of how much the model changes from round to round."""

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
from overheard.learning.discrepancy import cmd, cosine, procrustes
from overheard.learning.representations import representations_of_cohort
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.models_heard import ModelsHeard
from overheard.questions.shift.estimators.trend import Trend

Information = Literal["weights", "representations", "gradients"]
Metric = Literal["cosine", "procrustes", "cmd"]

METRICS: Mapping[Metric, Callable[[Tensor, Tensor], float]] = {
    "cosine": cosine,
    "procrustes": procrustes,
    "cmd": cmd,
}

LAG: Mapping[Information, int] = {"weights": 1, "representations": 1, "gradients": 2}
"""How many models a comparison takes besides that of its own round."""


@final
@dataclass(frozen=True, slots=True)
class ShiftTrend(Attack[Shift]):
    """Compares the target's models of consecutive rounds, and watches for a break.

    The target's model is taken out of the global one (`ModelsHeard`); of it the attacker looks
    at the weights, at the outputs of the layers on fixed examples of its own, or at the
    gradients  g(t) = w(t-1) - w(t). A metric compares those of round t with those of the round
    before; its divergence from the line through the `trend` rounds before (`Trend`) is the
    statistic of round t. As the model of round t was trained on the data of round t, data that
    are new in round t show at t; who listens as a client reads it with the next broadcast.

    It raises no alarm, as the paper states no threshold and no rate of false alarms; the round
    of the largest statistic is its guess. It misleads: fresh examples of the same kind move
    the same numbers, which only a control run tells apart, and the first rounds, in which the
    model learns fastest, break any line.

    A gap in what was heard breaks the trend, which starts anew behind it, and so do weights
    that are no finite numbers; without one stretch that is long enough it is refused.

    Differs from the paper: the trend's length, which it does not give, is 5; the last layer's
    outputs are those before the softmax; the Procrustes distance is normed (see `procrustes`).

    Args:
        information: what of the models is compared. Representations take the architecture and
            auxiliary examples of every class; the others take neither.
        metric: how.
        layer: the name of the only layer looked at, such as "2"; None = all of them as one.
        trend: rounds that the line is fitted to.
        extract: whether the observers' own influence is removed from the broadcasts.
        probe: auxiliary examples on which representations are taken: of each class as many,
            the first ones, the number being rounded up; all that there are of a rarer class.
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
    answers: ClassVar = Shift
    needs: ClassVar = frozenset({UPDATES, BROADCASTS})
    source: ClassVar[str] = (
        "Brunner and Montuoro 2024 (Data Distribution Shifts in (Industrial) Federated "
        "Learning as a Privacy Issue, arXiv 2409.13875), sections 4 and 5.3"
    )

    def __post_init__(self) -> None:
        """Refuse a line that nothing determines, and no examples."""
        self._trend()
        if self.probe < 1:
            raise ValueError(f"probe must be 1 or more, got {self.probe}")

    def uses_training(self) -> frozenset[TrainingPart]:
        """Tell on what of the known training its claims hang."""
        return frozenset({"model"} if self.information == "representations" else ())

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Shift]:
        """Claim the round at which each target's model broke its trend most.

        Raises:
            NeedsError: if too few rounds on end can be read, the model has no such layer, or
                what representations take is missing.

        """
        claims = {}
        for target in targets:
            told = series(
                view,
                target,
                knowledge,
                information=self.information,
                metric=self.metric,
                layer=self.layer,
                probe=self.probe,
                extract=self.extract,
            )
            heard = ModelsHeard(view, target, self.extract).rounds()
            teller = f"{self.name} on {target}"
            claims[target] = self._trend().shift(told, heard, LAG[self.information], teller)
        return claims

    def _trend(self) -> Trend:
        return Trend(self.trend, self.standardise)


def series(
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
    """Compare what the attacker has of a target in each round with the round before.

    By round, as far as both were heard and the value is a finite number. The settings are those
    of `ShiftTrend`.

    Raises:
        NeedsError: if the model has no such layer, or what representations take is missing.

    """
    course = ModelsHeard(view, target, extract)
    if information == "representations":
        told = _representations(course, knowledge, layer, probe)
    else:
        told = (_flat(weights, layer) for weights in course.models())
    numbered: Iterator[tuple[int, Tensor]] = zip(course.rounds(), told, strict=True)
    if information == "gradients":
        numbered = _gradients(numbered)
    compared = {
        number: METRICS[metric](before, now) for number, before, now in _on_end(numbered)
    }
    return {number: value for number, value in compared.items() if isfinite(value)}


def _flat(weights: Weights, layer: str | None) -> Float[Tensor, " params"]:
    """The weights as one vector, or those of one layer."""
    layers = {name: name.rpartition(".")[0] for name in weights}
    chosen = [name for name in weights if layer in (None, layers[name])]
    if not chosen:
        raise _no_such(layer, layers.values())
    return torch.cat([weights[name].double().flatten() for name in chosen])


def _representations(
    course: ModelsHeard, knowledge: Knowledge, layer: str | None, probe: int
) -> Iterator[Float[Tensor, "examples features"]]:
    """The outputs of the layers of each model, side by side, or those of one layer."""
    auxiliary, classes = knowledge.auxiliary, knowledge.classes
    if knowledge.build_model is None:
        raise NeedsError(f"shift(information='representations') needs {MODEL.words}")
    if auxiliary is None or not bool((auxiliary.counts(classes) > 0).all()):
        raise NeedsError(f"shift(information='representations') needs {AUXILIARY.words}")
    for told in representations_of_cohort(
        knowledge.build_model,
        course.models(),
        _first_of_each_class(auxiliary, classes, probe),
        layer=layer,
        device=knowledge.means.device,
    ):
        if not told:
            model = knowledge.build_model()
            raise _no_such(layer, (name for name, _ in model.named_modules()))
        yield torch.cat(tuple(told.values()), 1)


def _first_of_each_class(
    auxiliary: Examples, classes: int, count: int
) -> Shaped[Tensor, "examples ..."]:
    """So many inputs, of each class as many, in the order in which they come."""
    each = -(-count // classes)
    # As often as its label came before it: the same rows whatever number a label bears.
    ranks = torch.zeros_like(auxiliary.labels)
    for label in range(classes):
        rows = auxiliary.labels == label
        ranks[rows] = torch.arange(int(rows.sum()), device=ranks.device)
    return auxiliary.inputs[ranks < each]


def _no_such(layer: str | None, layers: Iterable[str]) -> NeedsError:
    names = ", ".join(repr(name) for name in dict.fromkeys(layers) if name)
    return NeedsError(f"shift(layer={layer!r}) needs a layer of that name: name one of {names}")


def _on_end(
    numbered: Iterable[tuple[int, Tensor]],
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """A round, what was had in the round before, and what in it; no pair over a gap."""
    for (earlier, before), (number, now) in pairwise(numbered):
        if earlier == number - 1:
            yield number, before, now


def _gradients(numbered: Iterable[tuple[int, Tensor]]) -> Iterator[tuple[int, Tensor]]:
    """Weights before minus weights now, as section 4.1 approximates the gradient."""
    for number, before, now in _on_end(numbered):
        yield number, before - now
