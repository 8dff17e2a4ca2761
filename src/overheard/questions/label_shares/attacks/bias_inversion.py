"""Label shares from the exact equation of the output bias."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
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
from overheard.learning.custom_networks.single_output import change_by_class, weight_by_class
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import find_last_layer
from overheard.learning.mean_gradient import STACK_BYTES
from overheard.learning.simplex import normalize_to_shares, solve_each_for_shares
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.mean_over_rounds import (
    claim_mean_over_rounds,
)


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
        bias = find_last_layer(model_structure(knowledge.build_model), knowledge.classes).bias
        if bias is None:
            raise NeedsError("bias_inversion needs a model whose last layer has a bias")
        rounds: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for _, start, updates in view.updates_by_round(targets):
            at_start, start_bias = (
                confusion_of_model(start, knowledge),
                weight_by_class(start[bias]).double(),
            )
            deltas = [update.delta for update in updates.values()]
            at_end = confusion_of_updates(start, deltas, knowledge)
            remaining, size = iter(updates.items()), _clients_at_once(knowledge.classes)
            while matrices := list(islice(at_end, size)):
                chosen = dict(islice(remaining, len(matrices)))
                means = (at_start + torch.stack(matrices)) / 2
                sent = list(chosen.values())
                shares = _solve_shares(start_bias, sent, bias, means, knowledge.recipe)
                for target, one in zip(chosen, shares, strict=True):
                    rounds[target].append(one)
        return claim_mean_over_rounds(rounds)


def _clients_at_once(classes: int) -> int:
    return max(1, STACK_BYTES // (torch.float64.itemsize * classes**2))


def _solve_shares(
    start: Float[Tensor, " classes"],
    updates: Sequence[Update],
    bias: str,
    matrices: Float[Tensor, "clients classes classes"],
    recipe: Recipe,
) -> Float[Tensor, "clients classes"]:
    """Solve for clients of one round; `matrices` are the P, `start` the broadcast's bias."""
    changes = torch.stack([change_by_class(update.delta[bias]) for update in updates]).double()
    classes = changes.shape[1]
    # The mean smoothed target is (1 - s) pi + s / C.
    smoothing = recipe.label_smoothing
    targets = (1 - smoothing) * torch.eye(classes, dtype=torch.float64) + smoothing / classes
    systems = targets - matrices.mT
    is_finite = changes.isfinite().all(1) & matrices.isfinite().flatten(1).all(1)
    shares = torch.full_like(changes, 1 / classes)
    is_known = torch.tensor(
        [recipe.optimizer == "sgd" and one.examples is not None for one in updates]
    )
    for row in (is_finite & ~is_known).nonzero().flatten().tolist():
        scaled, _ = nnls(systems[row].numpy(), changes[row].numpy())
        shares[row] = normalize_to_shares(torch.from_numpy(scaled))
    rows = (is_finite & is_known).nonzero().flatten()
    if len(rows):
        examples = [updates[row].examples or 0 for row in rows.tolist()]
        goals = _goals(start, changes[rows], [recipe.steps(one) for one in examples], recipe)
        shares[rows] = solve_each_for_shares(systems[rows], goals)
    return shares


def _goals(
    start: Float[Tensor, " classes"],
    changes: Float[Tensor, "clients classes"],
    steps: Sequence[int],
    recipe: Recipe,
) -> Float[Tensor, "clients classes"]:
    """Return db / kappa of clients with known steps, without the effect of weight decay."""
    pulls = [recipe.rate * recipe.weight_decay * count for count in steps]
    kappas = [recipe.rate * count / (1 - recipe.momentum) for count in steps]
    decays = changes.new_tensor(pulls)[:, None] * (start + changes / 2)
    return (changes + decays / (1 - recipe.momentum)) / changes.new_tensor(kappas)[:, None]
