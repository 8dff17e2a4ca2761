"""Label shares by taking labels off the last layer's gradient, one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update, Weights
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
class Llg(Attack[LabelShares]):
    """Counts labels greedily: each one found takes its impact off its class's gradient.

    Let g_c be the sum of row c of the gradient of the last layer's weight, K the number of
    examples and C of classes. A label c adds an impact m < 0 to g_c, and every other label an
    offset s_c. (1) Every class with g_c < 0 is there: count it once, and take m off g_c.
    (2) Until K labels are counted, count the class with the least g_c, and take m off it.

    - impact "gradient" (LLG): m = (1 + 1/C) / K * (sum of the negative g_c), and s = 0. Only
      ratios of the g_c matter, so an update does as well as a gradient: no auxiliary examples,
      broadcast or recipe is needed.
    - impact "auxiliary" (LLG+): m = (1 + 1/C) / (C K) * sum_c (g_c on examples of class c);
      s_c = mean of g_c over the other classes' examples, taken off between (1) and (2). Needs
      auxiliary examples, the broadcast, and the recipe, as the update is made a gradient by
      -delta / (rate * steps).

    Derived for one step of a model that has learned little, whose features are not negative.
    It misleads later in training, and after many local steps. Rounds are averaged.

    Differs from the paper: for LLG+ its code draws 10 batches of K examples a class; here all
    the auxiliary examples of a class make one.

    Args:
        impact: how m and s are found.
        assumed_examples: taken for K where the target's size is hidden.

    """

    impact: Literal["gradient", "auxiliary"] = "gradient"
    assumed_examples: int = 100

    name: ClassVar[str] = "llg"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, MODEL, CROSS_ENTROPY})
    source: ClassVar[str] = (
        "Wainakh et al. 2022 (User-Level Label Leakage from Gradients in Federated Learning, "
        "PETS), Algorithm 1; m and s as in the authors' code"
    )

    def __post_init__(self) -> None:
        """Refuse a size that no client has."""
        if self.assumed_examples < 1:
            raise ValueError(f"assumed_examples must be 1 or more, got {self.assumed_examples}")

    def uses_training(self) -> frozenset[TrainingPart]:
        """Tell on what of the known training its claims hang."""
        return frozenset({"steps"}) if self.impact == "auxiliary" else frozenset()

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over the rounds it was heard in.

        Raises:
            NeedsError: if the impact is to be measured, and what that takes is missing.

        """
        assert knowledge.build_model is not None
        layer = last_layer(knowledge.build_model())
        measured = self._measured(view, layer, knowledge)
        claims = {}
        for target in targets:
            rounds = [
                self._shares(update, measured.get(number), layer, knowledge)
                for number, update in sorted(view.updates(target).items())
                if self.impact == "gradient" or number in measured
            ]
            if not rounds:
                raise NeedsError(
                    f"llg(impact='auxiliary') on {target} needs {BROADCASTS.words}"
                )
            claims[target] = LabelShares(normalised(torch.stack(rounds).mean(0)).float())
        return claims

    def _measured(
        self, view: View, layer: LastLayer, knowledge: Knowledge
    ) -> dict[int, Float[Tensor, "classes classes"]]:
        """What `row_gradients` gives by round; nothing where the impact is not measured."""
        if self.impact == "gradient":
            return {}
        if knowledge.auxiliary is None or not bool(
            (knowledge.auxiliary.counts(knowledge.classes) > 0).all()
        ):
            raise NeedsError(f"llg(impact='auxiliary') needs {AUXILIARY.words}")
        if knowledge.recipe is None:
            raise NeedsError(f"llg(impact='auxiliary') needs {RECIPE.words}")
        return {
            number: row_gradients(start, layer, knowledge)
            for number, start in sorted(view.broadcasts().items())
        }

    def _shares(
        self,
        update: Update,
        measured: Float[Tensor, "classes classes"] | None,
        layer: LastLayer,
        knowledge: Knowledge,
    ) -> Float[Tensor, " classes"]:
        """The shares of one client in one round."""
        examples = update.examples or self.assumed_examples
        length = 1.0
        if knowledge.recipe is not None:
            length = knowledge.recipe.rate * knowledge.recipe.steps(examples)
        gradient = mean_gradient(update.delta, layer, length)
        if gradient is None:
            return normalised(torch.zeros(knowledge.classes, dtype=torch.float64))
        sums = gradient.weight.sum(1)  # (classes)
        larger = 1 + 1 / len(sums)
        if measured is None:
            impact, offsets = (
                sums.clamp(max=0).sum() / examples * larger,
                torch.zeros_like(sums),
            )
        else:
            own = measured.diagonal()
            impact = own.mean() / examples * larger
            offsets = (measured.sum(0) - own) / (len(sums) - 1)
        counts = greedy_counts(sums, offsets, float(impact), examples)
        return normalised(counts.double())


def row_gradients(
    weights: Weights, layer: LastLayer, knowledge: Knowledge
) -> Float[Tensor, "classes classes"]:
    """Sum the gradient over each row of the last layer's weight, for each class alone.

    Entry (k, c): of row c, for the mean loss of the auxiliary examples of class k.
    """
    assert knowledge.build_model is not None
    assert knowledge.auxiliary is not None
    labels = knowledge.auxiliary.labels
    (features,) = features_of_cohort(
        knowledge.build_model, [weights], knowledge.auxiliary.inputs
    )
    logits = features.double() @ weights[layer.weight].double().T
    if layer.bias is not None:
        logits = logits + weights[layer.bias].double()
    true = one_hot(labels, knowledge.classes).double()  # (examples, classes)
    each = (logits.softmax(1) - true) * features.double().sum(1, keepdim=True)
    return true.T @ each / true.sum(0)[:, None]  # (classes, classes)


def greedy_counts(
    sums: Float[Tensor, " classes"],
    offsets: Float[Tensor, " classes"],
    impact: float,
    examples: int,
) -> Int[Tensor, " classes"]:
    """Count so many labels off the gradient's row sums (Algorithm 1).

    None at all where the impact is not negative: to take it off would change nothing.
    """
    counts = (sums < 0).long()
    if not impact < 0:
        return torch.zeros_like(counts)
    left = sums - offsets - impact * counts
    heap = [(value, label) for label, value in enumerate(left.tolist())]
    heapify(heap)
    found = counts.tolist()
    for _ in range(examples - sum(found)):
        least, label = heap[0]
        found[label] += 1
        heapreplace(heap, (least - impact, label))
    return torch.tensor(found)
