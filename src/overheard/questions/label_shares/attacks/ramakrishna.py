"""Label shares by matching the last layer's change to the effects of single classes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update, Weights
from overheard.core.needs import AUXILIARY, BROADCASTS, CROSS_ENTROPY, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.confusion import confusion_of_updates
from overheard.learning.custom_networks.single_output import change_by_class
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import LastLayer, find_last_layer
from overheard.learning.simplex import SUM_WEIGHT, normalize_to_shares, solve_for_shares
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult, ClientTask
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.mean_over_rounds import (
    claim_mean_over_rounds,
)

Form = Literal["soft_label", "auxiliary_gradient", "auxiliary_gradient_weights", "ratio"]

LARGEST_MULTIPLE = 1.5
"""Multiple of an even share above which "ratio" discards an estimate."""


@final
@dataclass(frozen=True, slots=True)
class Ramakrishna(Attack[LabelShares]):
    """The estimators that Ramakrishna and Dan propose, and one that they compare with.

    With db and dW the change of the last layer's bias and weight in a round:

    - "soft_label": (I - S) p = db / (rate * steps), where column k of S is the mean softmax of
      the client's model on the auxiliary examples of class k.
    - "auxiliary_gradient": sum_k p_k db_k = db, where db_k is the change from training on the
      auxiliary examples of class k alone, for the client's epochs with one full batch each.
    - "auxiliary_gradient_weights": the same with dW stacked on db, by plain least squares.
    - "ratio": Wang et al., one weight j at a time: p_c = (dW_cj / N - m_cj) / (a_cj - m_cj).
      N is the number of the client's examples. The change per example is a_cj when training
      on class c alone; m_cj is its mean when training on each other class. The result is the
      mean of p_c over the j with 0 < p_c < 1.5 / C, a filter of their code, or else 1 / C.

    The first two forms enforce p >= 0 and sum p = 1 by non-negative least squares, the others
    by projection. Rounds are averaged.

    Differs from the paper and its code: (1) Their row for sum p = 1 has the weight of any other
    row, which does not enforce equality; here it does. (2) They divide by rate * epochs, as if
    an epoch were one step; here by rate * steps. This puts clients with minibatches on the
    scale of the auxiliary training, whose change is divided by its own steps. (3) S comes from
    the client's model at the end of the round, as in one of the two versions of their code; the
    other sums it over auxiliary training. (4) For "ratio" the auxiliary training has the
    client's batch size, so that a change grows with the number of examples, as it assumes.

    If the size is hidden, the steps are unknown. Shares are then the direction of the solution
    without sum p = 1, and "ratio" is refused. Momentum and optimizers other than SGD distort
    the scale of "soft_label". All forms mislead late in training.

    Args:
        form: "soft_label" by default, as it is the most robust to minibatches. With five steps
            per client and four classes, its mean L1 distance was 0.38; the others had 0.77,
            0.71 and 1.01 in this order, and even shares 1.10.

    """

    form: Form = "soft_label"

    name: ClassVar[str] = "ramakrishna"
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
        "Ramakrishna and Dan 2022 (Inferring Class-Label Distribution in Federated Learning, "
        "AISec); ratio: Wang et al. 2021 (Addressing Class Imbalance in Federated Learning, "
        "AAAI)"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        if self.form == "soft_label":
            return frozenset({"steps"})
        return frozenset({"model", "loss", "steps"})

    def has_separate_targets(self) -> bool:
        """Return whether nothing is trained on single classes."""
        return self.form == "soft_label"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over its observed rounds.

        Raises:
            NeedsError: if the form reads the bias and the last layer has none, or counts
                examples and the target's size is hidden.

        """
        assert knowledge.build_model is not None
        layer = find_last_layer(model_structure(knowledge.build_model), knowledge.classes)
        if layer.bias is None and self.form in {"soft_label", "auxiliary_gradient"}:
            raise NeedsError(
                f"ramakrishna(form={self.form!r}) needs a model whose last layer has a bias"
            )
        rounds: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for number, start, observed in view.updates_by_round(targets):
            estimates = self._estimate_round(observed, start, number, layer, knowledge, seed)
            for target, shares in estimates.items():
                rounds[target].append(shares)
        return claim_mean_over_rounds(rounds)

    def _estimate_round(
        self,
        observed: Mapping[Party, Update],
        start: Weights,
        number: int,
        layer: LastLayer,
        knowledge: Knowledge,
        seed: Seed,
    ) -> dict[Party, Float[Tensor, " classes"]]:
        """Estimate the shares of each target observed in one round."""
        assert knowledge.recipe is not None
        if not observed:
            return {}
        recipe = knowledge.recipe
        if self.form == "ratio":
            trained = train_on_single_classes(start, knowledge, recipe, number, seed)
            per_example = torch.stack(
                [
                    change_by_class(one.delta[layer.weight]).double() / len(one.client.rows)
                    for one in trained
                ]
            )  # (trained, classes, features)
            return {
                target: estimate_by_ratio(
                    change_by_class(update.delta[layer.weight]).double(),
                    _known_size(target, update),
                    per_example,
                )
                for target, update in observed.items()
            }
        names = self._parameter_names(layer)
        if self.form == "soft_label":
            deltas = [update.delta for update in observed.values()]
            gradients = class_bias_gradients(start, deltas, knowledge)
            systems = dict(zip(observed, gradients, strict=True))
        else:
            trained = train_on_single_classes(
                start, knowledge, full_batch_recipe(knowledge), number, seed
            )
            length = recipe.rate * recipe.epochs
            columns = [_layer_gradient(one.delta, names, length) for one in trained]
            systems = dict.fromkeys(observed, torch.stack(columns, 1))  # (params, trained)
        solve = (
            _solve_least_squares
            if self.form == "auxiliary_gradient_weights"
            else _solve_non_negative
        )
        return {
            target: solve(
                systems[target],
                _layer_gradient(
                    update.delta, names, recipe.rate * recipe.steps(update.examples or 1)
                ),
                sums_to_one=bool(update.examples),
            )
            for target, update in observed.items()
        }

    def _parameter_names(self, layer: LastLayer) -> list[str]:
        """Return the names of the last layer's parameters that the form reads."""
        if self.form == "auxiliary_gradient_weights":
            return [layer.weight] if layer.bias is None else [layer.weight, layer.bias]
        return [] if layer.bias is None else [layer.bias]


def class_bias_gradients(
    start: Weights, deltas: Sequence[Weights], knowledge: Knowledge
) -> Iterator[Float[Tensor, "classes trained"]]:
    """Yield each model's gradients of the output bias; column k is that on class k alone.

    The models are those after each update to the broadcast.
    """
    for outputs in confusion_of_updates(start, deltas, knowledge):
        yield (outputs - torch.eye(len(outputs), dtype=outputs.dtype)).T


def full_batch_recipe(knowledge: Knowledge) -> Recipe:
    """Return the clients' recipe with one full batch per epoch, whatever the class."""
    assert knowledge.auxiliary is not None
    assert knowledge.recipe is not None
    private = knowledge.recipe.private_steps
    return replace(
        knowledge.recipe,
        batch=int(knowledge.auxiliary.label_counts(knowledge.classes).max()),
        private_steps=None if private is None else replace(private, batches=1),
    )


def train_on_single_classes(
    start: Weights, knowledge: Knowledge, recipe: Recipe, number: int, seed: Seed
) -> list[ClientResult]:
    """Train the broadcast of one round on the auxiliary examples of each class, in order."""
    assert knowledge.build_model is not None
    assert knowledge.auxiliary is not None
    labels = knowledge.auxiliary.labels
    rows = [(labels == label).nonzero().flatten() for label in range(knowledge.classes)]
    # The name seeds the batches. It has no label, so permuting labels leaves results unchanged.
    members = [ClientTask(f"{int(own[0])}", own) for own in rows]
    return list(
        train_cohort(
            knowledge.build_model,
            start,
            knowledge.auxiliary,
            members,
            recipe,
            seed=seed.child("alone"),
            round=number,
            workers=knowledge.compute.workers,
        )
    )


def estimate_by_ratio(
    change: Float[Tensor, "classes features"],
    examples: int,
    alone: Float[Tensor, "trained classes features"],
) -> Float[Tensor, " classes"]:
    """Return Wang et al.'s estimate; `alone` has the change per example of each class."""
    classes = len(change)
    own = alone.diagonal().T  # (classes, features)
    others = (alone.sum(0) - own) / (classes - 1)
    ratios = (change / examples - others) / (own - others)
    # NaN fails both comparisons.
    plausible = (ratios > 0) & (ratios < LARGEST_MULTIPLE / classes)
    means = torch.where(plausible, ratios, 0.0).sum(1) / plausible.sum(1).clamp(min=1)
    return project_onto_simplex(torch.where(plausible.any(1), means, 1 / classes))


def project_onto_simplex(values: Float[Tensor, " classes"]) -> Float[Tensor, " classes"]:
    """Return the nearest shares in Euclidean distance (Held et al. 1974: sort, threshold)."""
    # A common offset changes nothing. Without it, large values keep their precision.
    values = values - values.max()
    descending = values.sort(descending=True).values
    excess = (descending.cumsum(0) - 1) / torch.arange(1, len(values) + 1, dtype=values.dtype)
    return (values - excess[descending > excess][-1]).clamp(min=0)


def _layer_gradient(
    delta: Weights, names: Sequence[str], length: float
) -> Float[Tensor, " params"]:
    """Return the mean gradient of these parameters; `length` is rate * steps."""
    return torch.cat(
        [-change_by_class(delta[name]).double().flatten() / length for name in names]
    )


def _solve_non_negative(
    system: Float[Tensor, "params classes"],
    gradient: Float[Tensor, " params"],
    *,
    sums_to_one: bool,
) -> Float[Tensor, " classes"]:
    if not _is_solvable(system, gradient):
        return normalize_to_shares(system.new_zeros(system.shape[1]))
    if sums_to_one:
        # The weight is meant for equations of order 1; gradients may be of any order.
        return solve_for_shares(system, gradient, SUM_WEIGHT * float(system.abs().max()))
    shares, _ = nnls(system.numpy(), gradient.numpy())
    return normalize_to_shares(torch.from_numpy(shares))


def _solve_least_squares(
    system: Float[Tensor, "params classes"],
    gradient: Float[Tensor, " params"],
    *,
    sums_to_one: bool,
) -> Float[Tensor, " classes"]:
    if not _is_solvable(system, gradient):
        return normalize_to_shares(system.new_zeros(system.shape[1]))
    # gelsd also solves systems in which a class has no effect or the same as another.
    solved = torch.linalg.lstsq(system, gradient[:, None], driver="gelsd").solution[:, 0]
    return project_onto_simplex(solved) if sums_to_one else normalize_to_shares(solved)


def _is_solvable(
    system: Float[Tensor, "params classes"], gradient: Float[Tensor, " params"]
) -> bool:
    """Return False if the update is all 0 or the model has diverged."""
    finite = torch.isfinite(gradient).all() & torch.isfinite(system).all()
    return bool(finite & gradient.any())


def _known_size(target: Party, update: Update) -> int:
    if not update.examples:
        raise NeedsError(
            f"ramakrishna(form='ratio') on {target} needs the number of its examples, which "
            "its updates do not report: choose another form"
        )
    return update.examples
