"""Label shares by subtracting labels from the last layer's gradient one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import islice
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
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
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.custom_networks.single_output import weight_by_class
from overheard.learning.features import features_of_models
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import LastLayer, find_last_layer
from overheard.learning.mean_gradient import mean_gradients
from overheard.learning.simplex import normalize_rows_to_shares
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.mean_over_rounds import (
    claim_mean_over_rounds,
)

MOST_COUNTED = 10**6
"""The most labels that are counted. Shares need no more; a client may report any number."""


@final
@dataclass(frozen=True, slots=True)
class Llg(Attack[LabelShares]):
    """Counts labels greedily: each label found is subtracted from its class's gradient.

    Let g_c be the sum of row c of the gradient of the last layer's weight, K the number of
    examples and C of classes. A label c adds an impact m < 0 to g_c, and every other label an
    offset s_c. (1) Every class with g_c < 0 is present: count it once, and subtract m from g_c.
    (2) Until K labels are counted, count the class with the smallest g_c and subtract m.

    - impact "gradient" (LLG): m = (1 + 1/C) / K * (sum of the negative g_c), and s = 0. Only
      ratios of the g_c matter, so an update works as well as a gradient. No auxiliary examples,
      broadcast or recipe are needed.
    - impact "auxiliary" (LLG+): m = (1 + 1/C) / (C K) * sum_c (g_c on examples of class c);
      s_c = mean of g_c over the other classes' examples, subtracted between (1) and (2). This
      needs auxiliary examples, the broadcast and the recipe: -delta / (rate * steps) turns the
      update into a gradient.

    Derived for one step of a barely trained model with non-negative features. Later in training
    and after many local steps the estimate is misleading. Rounds are averaged.

    Differs from the paper: for LLG+ its code draws 10 batches of K examples per class; here all
    auxiliary examples of a class form one batch.
    K is at most `MOST_COUNTED`: m scales with 1 / K, so more labels have the same shares.

    Args:
        impact: how m and s are determined.
        assumed_examples: value of K if the target's size is hidden.

    """

    impact: Literal["gradient", "auxiliary"] = "gradient"
    assumed_examples: Positive = 100

    name: ClassVar[str] = "llg"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, MODEL, CROSS_ENTROPY})
    source: ClassVar[str] = (
        "Wainakh et al. 2022 (User-Level Label Leakage from Gradients in Federated Learning, "
        "PETS), Algorithm 1; m and s as in the authors' code"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"steps"}) if self.impact == "auxiliary" else frozenset()

    def has_separate_targets(self) -> bool:
        """Return whether no broadcast has to be measured."""
        return self.impact == "gradient"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over its observed rounds.

        Raises:
            NeedsError: if the impact is "auxiliary" and what it needs is missing.

        """
        assert knowledge.build_model is not None
        layer = find_last_layer(model_structure(knowledge.build_model), knowledge.classes)
        measured = self._measure_row_sums(view, layer, knowledge)
        sent = {
            target: [
                (update, measured.get(number))
                for number, update in sorted(view.updates(target).items())
                if self.impact == "gradient" or number in measured
            ]
            for target in targets
        }
        for target, updates in sent.items():
            if not updates:
                raise NeedsError(
                    f"llg(impact='auxiliary') on {target} needs {BROADCASTS.description}"
                )
        together = [one for updates in sent.values() for one in updates]
        estimates = iter(self._estimate_shares(together, layer, knowledge))
        return claim_mean_over_rounds(
            {target: list(islice(estimates, len(sent[target]))) for target in targets}
        )

    def _measure_row_sums(
        self, view: View, layer: LastLayer, knowledge: Knowledge
    ) -> dict[int, Float[Tensor, "classes classes"]]:
        """Return `gradient_row_sums` by round; empty if the impact is "gradient"."""
        if self.impact == "gradient":
            return {}
        if knowledge.auxiliary is None or not bool(
            (knowledge.auxiliary.label_counts(knowledge.classes) > 0).all()
        ):
            raise NeedsError(f"llg(impact='auxiliary') needs {AUXILIARY.description}")
        if knowledge.recipe is None:
            raise NeedsError(f"llg(impact='auxiliary') needs {RECIPE.description}")
        return {
            number: gradient_row_sums(start, layer, knowledge)
            for number, start in sorted(view.broadcasts().items())
        }

    def _estimate_shares(
        self,
        updates: Sequence[tuple[Update, Float[Tensor, "classes classes"] | None]],
        layer: LastLayer,
        knowledge: Knowledge,
    ) -> Float[Tensor, "updates classes"]:
        """Estimate the shares behind each update, with what was measured on its broadcast."""
        examples = [update.examples or self.assumed_examples for update, _ in updates]
        lengths = [1.0] * len(updates)
        if knowledge.recipe is not None:
            recipe = knowledge.recipe
            lengths = [recipe.rate * recipe.steps(number) for number in examples]
        remaining, counts = iter(zip(updates, examples, strict=True)), list[list[int]]()
        for gradients in mean_gradients([one.delta for one, _ in updates], layer, lengths):
            sums = gradients.weight.sum(2)  # (clients, classes)
            negative = sums.clamp(max=0).sum(1)  # (clients)
            for row, total, is_usable, ((_, measured), number) in zip(
                sums.tolist(),
                negative.tolist(),
                gradients.is_usable.tolist(),
                islice(remaining, len(sums)),
                strict=True,
            ):
                found = [0] * knowledge.classes
                if is_usable:
                    counted = min(number, MOST_COUNTED)
                    impact, offsets = _label_effects(row, total, counted, measured)
                    found = count_labels_greedily(row, offsets, impact, counted)
                counts.append(found)
        return normalize_rows_to_shares(torch.tensor(counts, dtype=torch.float64))


def _label_effects(
    sums: Sequence[float],
    negative: float,
    examples: int,
    measured: Float[Tensor, "classes classes"] | None,
) -> tuple[float, Sequence[float]]:
    """Return the impact m and the offset s_c of each class, as `Llg` defines them.

    Args:
        sums: the gradient's row sums.
        negative: the sum of those below 0.
        examples: the number of labels.
        measured: `gradient_row_sums` of the broadcast; None if the impact is "gradient".

    """
    factor = 1 + 1 / len(sums)
    if measured is None:
        return negative / examples * factor, [0.0] * len(sums)
    own_class = measured.diagonal()
    offsets = (measured.sum(0) - own_class) / (len(sums) - 1)
    return float(own_class.mean() / examples * factor), offsets.tolist()


def gradient_row_sums(
    weights: Weights, layer: LastLayer, knowledge: Knowledge
) -> Float[Tensor, "classes classes"]:
    """Sum the gradient over each row of the last layer's weight, for each class alone.

    Entry (k, c) is the sum of row c for the mean loss on the auxiliary examples of class k.
    """
    assert knowledge.build_model is not None
    assert knowledge.auxiliary is not None
    labels = knowledge.auxiliary.labels
    (features,) = features_of_models(
        knowledge.build_model, [weights], knowledge.auxiliary.inputs
    )
    logits = features.double() @ weight_by_class(weights[layer.weight]).double().T
    if layer.bias is not None:
        logits = logits + weight_by_class(weights[layer.bias]).double()
    true = one_hot(labels, knowledge.classes).double()  # (examples, classes)
    row_sums = (logits.softmax(1) - true) * features.double().sum(1, keepdim=True)
    return true.T @ row_sums / true.sum(0)[:, None]  # (classes, classes)


def count_labels_greedily(
    sums: Sequence[float], offsets: Sequence[float], impact: float, examples: int
) -> list[int]:
    """Count `examples` labels from the gradient's row sums, by class (Algorithm 1).

    Return zeros if the impact is not negative, as subtracting it would find nothing.
    """
    if not impact < 0:
        return [0] * len(sums)
    found = [int(value < 0) for value in sums]
    heap = [
        (value - offset - impact * count, label)
        for label, (value, offset, count) in enumerate(zip(sums, offsets, found, strict=True))
    ]
    heapify(heap)
    for _ in range(examples - sum(found)):
        least, label = heap[0]
        found[label] += 1
        heapreplace(heap, (least - impact, label))
    return found
