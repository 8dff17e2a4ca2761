"""Label shares from the last layer's row sums, given what the model answers on average."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update, Weights, moved
from overheard.core.needs import AUXILIARY, BROADCASTS, CROSS_ENTROPY, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.features import features_of_cohort
from overheard.learning.last_layer import LastLayer, last_layer
from overheard.learning.mean_gradient import mean_gradient
from overheard.learning.simplex import normalised
from overheard.questions.label_shares.claim import LabelShares


@final
@dataclass(frozen=True, slots=True)
class Zlg(Attack[LabelShares]):
    """Counts n_c = K p_c - K DW_c / (O s), the gradient's rows solved for the labels.

    Row c of the gradient of the last layer's weight sums to (1 / K) sum_i (p_ic - y_ic) o_i,
    with p_i the softmax of example i and o_i the sum of its features. Where every o_i is about
    their mean O, that is O (p_c - n_c / K). DW_c is the sum over row c of all gradients of the
    round, -delta / rate; s is the number of local steps, K of examples. p and O are means over
    inputs that the attacker has. Rounds are averaged.

    Under federated averaging p and O move along the way: as Dimitrov et al. do, they are drawn
    as straight lines from the broadcast model (first step) to the client's (after the last),
    and the counts of all s steps are averaged.

    It misleads where the features' sums differ much between classes or are not positive, and
    where the optimizer is not plain SGD. Differs from the papers: counts are not rounded, as
    shares are claimed; p and O come from auxiliary examples unless `inputs` is "noise".

    Args:
        interpolate: whether p and O follow the local steps; if not, they stay at the broadcast.
        inputs: what p and O are measured on: the auxiliary examples or, as published, noise of
            that shape (standard normal; for texts the same words, put anywhere).
        assumed_examples: taken for K where the target's size is hidden, which only s hangs on.

    """

    interpolate: bool = True
    inputs: Literal["auxiliary", "noise"] = "auxiliary"
    assumed_examples: int = 100

    name: ClassVar[str] = "zlg"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset(
        {
            UPDATES,
            BROADCASTS,
            AUXILIARY,
            MODEL,
            RECIPE,
            CROSS_ENTROPY,
        }
    )
    source: ClassVar[str] = (
        "Geng et al. 2021 (Towards General Deep Leakage in Federated Learning, arXiv "
        "2110.09074), label restoration; over local steps: Dimitrov et al. 2022 (Data Leakage "
        "in Federated Averaging, TMLR), label reconstruction, and their code"
    )

    def __post_init__(self) -> None:
        """Refuse a size that no client has."""
        if self.assumed_examples < 1:
            raise ValueError(f"assumed_examples must be 1 or more, got {self.assumed_examples}")

    def uses_training(self) -> frozenset[TrainingPart]:
        """Tell on what of the known training its claims hang."""
        return frozenset({"steps"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over the rounds it was heard in."""
        assert knowledge.auxiliary is not None
        assert knowledge.build_model is not None
        layer = last_layer(knowledge.build_model())
        inputs = knowledge.auxiliary.inputs
        if self.inputs == "noise":
            inputs = noise_like(inputs, seed.child("noise"))
        broadcasts = view.broadcasts()
        told = _answers(broadcasts.values(), inputs, layer, knowledge)
        at_start = dict(zip(broadcasts, told, strict=True))
        claims = {}
        for target in targets:
            heard = [
                (number, update)
                for number, update in sorted(view.updates(target).items())
                if number in broadcasts
            ]
            local = (moved(broadcasts[number], update.delta) for number, update in heard)
            at_end = (
                _answers(local, inputs, layer, knowledge)
                if self.interpolate
                else (at_start[number] for number, _ in heard)
            )
            rounds = [
                self._shares(update, at_start[number], end, layer, knowledge)
                for (number, update), end in zip(heard, at_end, strict=True)
            ]
            claims[target] = LabelShares(normalised(torch.stack(rounds).mean(0)).float())
        return claims

    def _shares(
        self,
        update: Update,
        start: "MeanAnswer",
        end: "MeanAnswer",
        layer: LastLayer,
        knowledge: Knowledge,
    ) -> Float[Tensor, " classes"]:
        """The shares of one client in one round."""
        assert knowledge.recipe is not None
        steps = knowledge.recipe.steps(update.examples or self.assumed_examples)
        gradient = mean_gradient(update.delta, layer, knowledge.recipe.rate * steps)
        if gradient is None:
            return normalised(torch.zeros(knowledge.classes, dtype=torch.float64))
        passed = torch.arange(steps, dtype=torch.float64)[:, None] / steps  # (steps, 1)
        probabilities = (1 - passed) * start.probabilities + passed * end.probabilities
        activity = (1 - passed) * start.activity + passed * end.activity  # (steps, 1)
        # Without any activity the rows cannot move: they say nothing of the labels then.
        moves = torch.where(activity == 0, 0.0, gradient.weight.sum(1) / activity)
        return normalised(torch.nan_to_num((probabilities - moves).mean(0), 0.0, 0.0, 0.0))


@final
@dataclass(frozen=True, slots=True)
class MeanAnswer:
    """What a model answers on average.

    Args:
        probabilities: mean softmax output (p).
        activity: mean sum of an example's features (O).

    """

    probabilities: Float[Tensor, " classes"]
    activity: float


def _answers(
    cohort: Iterable[Weights],
    inputs: Shaped[Tensor, "examples ..."],
    layer: LastLayer,
    knowledge: Knowledge,
) -> Iterator[MeanAnswer]:
    assert knowledge.build_model is not None
    models, again = tee(cohort)
    features = features_of_cohort(knowledge.build_model, models, inputs)
    for weights, inner in zip(again, features, strict=True):
        logits = inner.double() @ weights[layer.weight].double().T
        if layer.bias is not None:
            logits = logits + weights[layer.bias].double()
        yield MeanAnswer(logits.softmax(1).mean(0), float(inner.double().sum(1).mean()))


def noise_like(
    inputs: Shaped[Tensor, "examples ..."], seed: Seed
) -> Shaped[Tensor, "examples ..."]:
    """Inputs of that shape that mean nothing: normal numbers, or the same words shuffled."""
    generator = seed.generator()
    if inputs.is_floating_point():
        drawn = torch.randn(inputs.shape, generator=generator, dtype=inputs.dtype)
        return drawn.to(inputs.device)
    order = torch.randperm(inputs.numel(), generator=generator).to(inputs.device)
    return inputs.flatten()[order].view_as(inputs)
