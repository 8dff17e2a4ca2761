"""Label shares from a linear system with model outputs recovered from the gradient."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update, Weights
from overheard.core.needs import BROADCASTS, CROSS_ENTROPY, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.custom_networks.single_output import weight_by_class
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import LastLayer, find_last_layer
from overheard.learning.mean_gradient import LastLayerGradients, mean_gradients
from overheard.learning.simplex import normalize_rows_to_shares
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.mean_over_rounds import (
    claim_mean_over_rounds,
)

LARGEST_FEATURE = 1e10
"""Bound at which the authors' code clips a recovered feature."""


@final
@dataclass(frozen=True, slots=True)
class Ilrg(Attack[LabelShares]):
    """Solves  sum_k n_k (P_kc - [k = c]) = K db_c  and  sum_k n_k = K  for the counts n.

    The examples of class k dominate row k of the gradient of the last layer. The ratio of its
    weight and bias, e_k = dW_k / db_k, therefore approximates their mean feature. The last
    layer gives the model's output for it: P_k = softmax(W e_k + b), with the broadcast's W and
    b. The pseudo-inverse solves the system; negative counts are set to 0 and counts are
    rescaled to shares. No auxiliary examples are needed. Rounds are averaged.

    Derived for a single step on all examples. With more steps it does not hold:
    -delta / (rate * steps) approximates the gradient while W and b change, and momentum or an
    optimizer other than SGD distorts the scale. On a trained model, examples of other classes
    also affect row k, so e_k is not a mean feature.

    Differs from the authors' code: because shares are claimed, counts are not rounded and a
    count above K is not set to 0; a class whose bias did not change has features of 0.

    Args:
        assumed_examples: value of K if the target's size is hidden; it affects only the number
            of steps.

    """

    assumed_examples: Positive = 100

    name: ClassVar[str] = "ilrg"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPE, CROSS_ENTROPY})
    source: ClassVar[str] = (
        "Ma et al. 2023 (Instance-wise Batch Label Restoration via Gradients in Federated "
        "Learning, ICLR), iLRG, and the authors' code"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"steps"})

    def has_separate_targets(self) -> bool:
        """Return True: each update is solved for by itself."""
        return True

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over its observed rounds.

        Raises:
            NeedsError: if the model's last layer has no bias.

        """
        assert knowledge.build_model is not None
        assert knowledge.recipe is not None
        layer = find_last_layer(model_structure(knowledge.build_model), knowledge.classes)
        if layer.bias is None:
            raise NeedsError("ilrg needs a model whose last layer has a bias")
        rounds: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for _, start, updates in view.updates_by_round(targets):
            estimates = self._estimate_round(list(updates.values()), start, layer, knowledge)
            for target, shares in zip(updates, estimates, strict=True):
                rounds[target].append(shares)
        return claim_mean_over_rounds(rounds)

    def _estimate_round(
        self, updates: Sequence[Update], start: Weights, layer: LastLayer, knowledge: Knowledge
    ) -> Iterator[Float[Tensor, " classes"]]:
        """Yield the shares behind each update to a broadcast."""
        assert knowledge.recipe is not None
        recipe = knowledge.recipe
        lengths = [
            recipe.rate * recipe.steps(update.examples or self.assumed_examples)
            for update in updates
        ]
        for gradients in mean_gradients([one.delta for one in updates], layer, lengths):
            yield from solve_shares(gradients, start, layer)


def solve_shares(
    gradients: LastLayerGradients, start: Weights, layer: LastLayer
) -> Float[Tensor, "clients classes"]:
    """Estimate the shares of clients in one round; even shares without a gradient."""
    assert layer.bias is not None
    assert gradients.bias is not None
    weight = weight_by_class(start[layer.weight]).double()
    bias = weight_by_class(start[layer.bias]).double()
    unchanged = (gradients.bias == 0)[..., None]  # (clients, classes, 1)
    embeddings = torch.where(unchanged, 0.0, gradients.weight / gradients.bias[..., None])
    embeddings = embeddings.clamp(-LARGEST_FEATURE, LARGEST_FEATURE)
    # One by one, as a product of stacked matrices is rounded differently.
    logits = torch.stack([one @ weight.T for one in embeddings])
    outputs = (logits + bias).softmax(2)  # (clients, classes, classes)
    usable = gradients.is_usable & outputs.isfinite().flatten(1).all(1)
    ones = outputs.new_ones((int(usable.sum()), 1, len(bias)))
    systems = torch.cat([ones, outputs[usable].mT - torch.eye(len(bias))], 1)
    goals = torch.cat([ones[:, 0, :1], gradients.bias[usable]], 1)
    inverses = torch.linalg.pinv(systems)
    counts = torch.zeros_like(gradients.bias)
    for row, inverse, goal in zip(usable.nonzero().flatten(), inverses, goals, strict=True):
        counts[row] = inverse @ goal
    return normalize_rows_to_shares(counts)
