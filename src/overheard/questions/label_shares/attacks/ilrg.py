"""Label shares from a linear system with model outputs recovered from the gradient."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.needs import BROADCASTS, CROSS_ENTROPY, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import LastLayer, find_last_layer
from overheard.learning.mean_gradient import LastLayerGradient, mean_gradient
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares

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

    assumed_examples: int = 100

    name: ClassVar[str] = "ilrg"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPE, CROSS_ENTROPY})
    source: ClassVar[str] = (
        "Ma et al. 2023 (Instance-wise Batch Label Restoration via Gradients in Federated "
        "Learning, ICLR), iLRG, and the authors' code"
    )

    def __post_init__(self) -> None:
        """Refuse an invalid size."""
        if self.assumed_examples < 1:
            raise ValueError(f"assumed_examples must be 1 or more, got {self.assumed_examples}")

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"steps"})

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
        broadcasts = view.broadcasts()
        claims = {}
        for target in targets:
            rounds = []
            for number, update in sorted(view.updates(target).items()):
                if number in broadcasts:
                    steps = knowledge.recipe.steps(update.examples or self.assumed_examples)
                    length = knowledge.recipe.rate * steps
                    gradient = mean_gradient(update.delta, layer, length)
                    rounds.append(solve_shares(gradient, broadcasts[number], layer))
            claims[target] = LabelShares(
                normalize_to_shares(torch.stack(rounds).mean(0)).float()
            )
        return claims


def solve_shares(
    gradient: LastLayerGradient | None, start: Weights, layer: LastLayer
) -> Float[Tensor, " classes"]:
    """Estimate the shares of one client in one round; even shares without a gradient."""
    assert layer.bias is not None
    weight, bias = start[layer.weight].double(), start[layer.bias].double()
    even_shares = normalize_to_shares(torch.zeros_like(bias))
    if gradient is None:
        return even_shares
    assert gradient.bias is not None
    unchanged = (gradient.bias == 0)[:, None]  # (classes, 1)
    embeddings = torch.where(unchanged, 0.0, gradient.weight / gradient.bias[:, None])
    embeddings = embeddings.clamp(-LARGEST_FEATURE, LARGEST_FEATURE)  # (classes, features)
    outputs = (embeddings @ weight.T + bias).softmax(1)  # (classes, classes)
    if not bool(torch.isfinite(outputs).all()):
        return even_shares
    system = torch.cat([torch.ones_like(bias)[None], outputs.T - torch.eye(len(bias))])
    goal = torch.cat([torch.ones_like(bias)[:1], gradient.bias])
    return normalize_to_shares(torch.linalg.pinv(system) @ goal)
