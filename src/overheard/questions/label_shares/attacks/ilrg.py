"""Label shares from a linear system whose outputs are recovered from the gradient itself."""

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
from overheard.learning.last_layer import LastLayer, last_layer
from overheard.learning.mean_gradient import LastGradient, mean_gradient
from overheard.learning.simplex import normalised
from overheard.questions.label_shares.claim import LabelShares

LARGEST_FEATURE = 1e10
"""Where the authors' code cuts a recovered feature off."""


@final
@dataclass(frozen=True, slots=True)
class Ilrg(Attack[LabelShares]):
    """Solves  sum_k n_k (P_kc - [k = c]) = K db_c  and  sum_k n_k = K  for the counts n.

    Row k of the gradient of the last layer is mostly made by the examples of class k. So its
    weight over its bias, e_k = dW_k / db_k, is about their mean feature, and the last layer
    itself says what the model answers to it: P_k = softmax(W e_k + b), with the broadcast's W
    and b. The system is solved by the pseudo-inverse, negative counts are set to 0, and shares
    are taken. No auxiliary examples are needed. Rounds are averaged.

    Derived for a single step of all examples. Where the recipe takes more, it is used off its
    ground: -delta / (rate * steps) stands for the gradient, W and b move meanwhile, and
    momentum or another optimizer than SGD spoils the scale. On a trained model e_k is no mean
    feature any more, as other classes' examples weigh in row k too.

    Differs from the authors' code: counts are not rounded, nor is one above K set to 0, as
    shares are claimed; a class whose bias did not move has features of 0.

    Args:
        assumed_examples: taken for K where the target's size is hidden, which only the number
            of steps hangs on.

    """

    assumed_examples: int = 100

    name: ClassVar[str] = "ilrg"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPE, CROSS_ENTROPY})
    source: ClassVar[str] = (
        "Ma et al. 2023 (Instance-wise Batch Label Restoration via Gradients in Federated "
        "Learning, ICLR), iLRG, and the authors' code"
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
        """Claim every target's shares, averaged over the rounds it was heard in.

        Raises:
            NeedsError: if the model's last layer has no bias.

        """
        assert knowledge.build_model is not None
        assert knowledge.recipe is not None
        layer = last_layer(knowledge.build_model())
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
                    rounds.append(restored(gradient, broadcasts[number], layer))
            claims[target] = LabelShares(normalised(torch.stack(rounds).mean(0)).float())
        return claims


def restored(
    gradient: LastGradient | None, start: Weights, layer: LastLayer
) -> Float[Tensor, " classes"]:
    """The shares of one client in one round, all alike where the gradient says nothing."""
    assert layer.bias is not None
    weight, bias = start[layer.weight].double(), start[layer.bias].double()
    silence = normalised(torch.zeros_like(bias))
    if gradient is None:
        return silence
    assert gradient.bias is not None
    still = (gradient.bias == 0)[:, None]  # (classes, 1)
    embeddings = torch.where(still, 0.0, gradient.weight / gradient.bias[:, None])
    embeddings = embeddings.clamp(-LARGEST_FEATURE, LARGEST_FEATURE)  # (classes, features)
    answers = (embeddings @ weight.T + bias).softmax(1)  # (classes, classes)
    if not bool(torch.isfinite(answers).all()):
        return silence
    system = torch.cat([torch.ones_like(bias)[None], answers.T - torch.eye(len(bias))])
    goal = torch.cat([torch.ones_like(bias)[:1], gradient.bias])
    return normalised(torch.linalg.pinv(system) @ goal)
