"""Label shares from the exact equation of the output bias."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update
from overheard.core.needs import AUXILIARY, BROADCASTS, CROSS_ENTROPY, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.confusion import confusion_of_model, confusion_of_updates
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import find_last_layer
from overheard.learning.simplex import normalize_to_shares, solve_for_shares
from overheard.questions.label_shares.claim import LabelShares


@final
@dataclass(frozen=True, slots=True)
class BiasInversion(Attack[LabelShares]):
    """Solves  db = kappa (I - P^T) pi  for the shares pi >= 0.

    Each step of SGD moves the output bias by rate * (batch shares - mean output). Over a round,
    db = kappa (I - P^T) pi, where kappa = rate * steps and P is the confusion matrix averaged
    over the steps. The trapezoid rule estimates P from both ends of the round, which the server
    has: (P(w) + P(w_u)) / 2 on auxiliary examples. Momentum m multiplies kappa by 1 / (1 - m);
    weight decay is subtracted. Rounds are averaged.

    A known label smoothing s replaces the first pi by (1 - s) pi + s / C. An update that is not
    finite yields even shares.

    If the size is hidden or the optimizer is not SGD, kappa is unknown and only the direction
    of kappa * pi is solved for. Shares are then identified only up to mixing with the model's
    own prior. Adam and Adadelta scale each coordinate separately, which misleads the attack.
    """

    name: ClassVar[str] = "bias_inversion"
    claim_type: ClassVar = LabelShares
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
        "Ramakrishna and Dan 2022 (AISec), soft-label form, with Chen and Vikalo's 2024 "
        "(arXiv 2405.00955) model of the drift, here by the trapezoid rule"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"loss", "steps"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over its observed rounds.

        Raises:
            NeedsError: if the model's last layer has no bias.

        """
        assert knowledge.build_model is not None
        assert knowledge.recipe is not None
        bias = find_last_layer(model_structure(knowledge.build_model), knowledge.classes).bias
        if bias is None:
            raise NeedsError("bias_inversion needs a model whose last layer has a bias")
        rounds: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for _, start, updates in view.updates_by_round(targets):
            at_start, start_bias = confusion_of_model(start, knowledge), start[bias].double()
            deltas = [update.delta for update in updates.values()]
            at_end = confusion_of_updates(start, deltas, knowledge)
            for (target, update), matrix in zip(updates.items(), at_end, strict=True):
                mean = (at_start + matrix) / 2
                shares = _solve_shares(start_bias, update, bias, mean, knowledge.recipe)
                rounds[target].append(shares)
        return {
            target: LabelShares(normalize_to_shares(torch.stack(by_round).mean(0)).float())
            for target, by_round in rounds.items()
        }


def _solve_shares(
    start: Float[Tensor, " classes"],
    update: Update,
    bias: str,
    matrix: Float[Tensor, "classes classes"],
    recipe: Recipe,
) -> Float[Tensor, " classes"]:
    """Solve for one client and round; `matrix` is P, `start` the broadcast's bias."""
    change = update.delta[bias].double()
    if not bool(change.isfinite().all() & matrix.isfinite().all()):
        return torch.full_like(change, 1 / len(change))
    # The mean smoothed target is (1 - s) pi + s / C.
    smoothing, classes = recipe.label_smoothing, len(change)
    targets = (1 - smoothing) * torch.eye(classes, dtype=torch.float64) + smoothing / classes
    system = targets - matrix.T
    if recipe.optimizer != "sgd" or update.examples is None:
        scaled, _ = nnls(system.numpy(), change.numpy())
        return normalize_to_shares(torch.from_numpy(scaled))
    steps = recipe.steps(update.examples)
    decay = recipe.rate * recipe.weight_decay * steps * (start + change / 2)
    kappa = recipe.rate * steps / (1 - recipe.momentum)
    goal = (change + decay / (1 - recipe.momentum)) / kappa
    return solve_for_shares(system, goal)
