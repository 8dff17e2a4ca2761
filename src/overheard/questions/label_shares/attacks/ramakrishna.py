"""Label shares by matching the last layer's change with what each class alone would do."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from overheard.core.messages import Update, Weights, moved
from overheard.core.needs import AUXILIARY, BROADCASTS, CROSS_ENTROPY, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.cohort import Member, Trained
from overheard.learning.confusion import confusion
from overheard.learning.evaluate import logits_of_cohort
from overheard.learning.last_layer import LastLayer, last_layer
from overheard.learning.simplex import SUM_WEIGHT, normalised, shares_that_solve
from overheard.learning.train import train_cohort
from overheard.questions.label_shares.claim import LabelShares

Form = Literal["soft_label", "auxiliary_gradient", "auxiliary_gradient_weights", "ratio"]

LARGEST_MULTIPLE = 1.5
"""Of an even share, above which "ratio" throws an estimate away."""


@final
@dataclass(frozen=True, slots=True)
class Ramakrishna(Attack[LabelShares]):
    """The estimators that Ramakrishna and Dan propose, and the one that they compare with.

    With db and dW the change of the last layer's bias and weight in a round:

    - "soft_label": (I - S) p = db / (rate * steps), where column k of S is the mean softmax of
      the client's model on the auxiliary examples of class k.
    - "auxiliary_gradient": sum_k p_k db_k = db, where db_k is the change that training on the
      auxiliary examples of class k alone makes: so many epochs, each one full batch.
    - "auxiliary_gradient_weights": the same with dW under db, by plain least squares.
    - "ratio": Wang et al., one weight j at a time: p_c = (dW_cj / N - m_cj) / (a_cj - m_cj), N
      the number of the client's examples, a_cj the change an example makes in class c's own
      training, m_cj the mean of that over the training of each other class. p_c is averaged
      over those j that give 0 < p_c < 1.5 / C (a filter of their code, beyond which no share
      survives); it is 1 / C where none does.

    p >= 0 and sum p = 1 by non-negative least squares in the first two, by projection in the
    others. Rounds are averaged.

    Differs from the paper and its code: (1) their row for sum p = 1 weighs as much as any
    other, which is no equality; here it does act as one. (2) They divide by rate * epochs, as
    if an epoch were one step; here by rate * steps, so that clients with minibatches are on one
    scale with the auxiliary training, whose change is divided by its own steps. (3) S comes
    from the client's model at the end of the round, as in one of the two versions in their
    code; the other sums it over auxiliary training. (4) For "ratio" the auxiliary training has
    the client's batch size, so that a change grows with the number of examples, as it presumes.

    Where the size is hidden, the steps are unknown: shares are then the direction of the
    solution without sum p = 1. "ratio" is refused there. Momentum and other optimizers than SGD
    spoil the scale of "soft_label". All forms mislead once training has come far.

    Args:
        form: "soft_label" unless told otherwise: it withstands minibatches best. With five
            steps a client and four classes, mean L1 distances were 0.38 for it, 0.77, 0.71 and
            1.01 for the others in this order, and 1.10 for even shares.

    """

    form: Form = "soft_label"

    name: ClassVar[str] = "ramakrishna"
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
        "Ramakrishna and Dan 2022 (Inferring Class-Label Distribution in Federated Learning, "
        "AISec); ratio: Wang et al. 2021 (Addressing Class Imbalance in Federated Learning, "
        "AAAI)"
    )

    def uses_training(self) -> frozenset[TrainingPart]:
        """Tell on what of the known training its claims hang."""
        if self.form == "soft_label":
            return frozenset({"steps"})
        return frozenset({"model", "loss", "steps"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over the rounds it was heard in.

        Raises:
            NeedsError: if the form reads the bias and the last layer has none, or counts
                examples and the target's size is hidden.

        """
        assert knowledge.build_model is not None
        layer = last_layer(knowledge.build_model())
        if layer.bias is None and self.form in {"soft_label", "auxiliary_gradient"}:
            raise NeedsError(
                f"ramakrishna(form={self.form!r}) needs a model whose last layer has a bias"
            )
        broadcasts = view.broadcasts()
        updates = {
            target: {n: one for n, one in view.updates(target).items() if n in broadcasts}
            for target in targets
        }
        rounds: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for number, start in sorted(broadcasts.items()):
            heard = {target: mine[number] for target, mine in updates.items() if number in mine}
            found = self._of_round(heard, start, number, layer, knowledge, seed)
            for target, shares in found.items():
                rounds[target].append(shares)
        return {
            target: LabelShares(normalised(torch.stack(mine).mean(0)).float())
            for target, mine in rounds.items()
        }

    def _of_round(
        self,
        heard: Mapping[Party, Update],
        start: Weights,
        number: int,
        layer: LastLayer,
        knowledge: Knowledge,
        seed: Seed,
    ) -> dict[Party, Float[Tensor, " classes"]]:
        """The shares of each target that was heard in one round."""
        assert knowledge.recipe is not None
        if not heard:
            return {}
        recipe = knowledge.recipe
        if self.form == "ratio":
            alone = trained_alone(start, knowledge, recipe, number, seed)
            each = torch.stack(
                [one.delta[layer.weight].double() / len(one.member.rows) for one in alone]
            )  # (trained, classes, features)
            return {
                target: by_ratio(
                    update.delta[layer.weight].double(), _size(target, update), each
                )
                for target, update in heard.items()
            }
        names = self._names(layer)
        if self.form == "soft_label":
            local = (moved(start, update.delta) for update in heard.values())
            systems = dict(zip(heard, bias_gradients(local, knowledge), strict=True))
        else:
            alone = trained_alone(start, knowledge, whole_batches(knowledge), number, seed)
            length = recipe.rate * recipe.epochs
            columns = [_gradient(one.delta, names, length) for one in alone]
            systems = dict.fromkeys(heard, torch.stack(columns, 1))  # (params, trained)
        solve = _least_squares if self.form == "auxiliary_gradient_weights" else _non_negative
        return {
            target: solve(
                systems[target],
                _gradient(
                    update.delta, names, recipe.rate * recipe.steps(update.examples or 1)
                ),
                sums_to_one=bool(update.examples),
            )
            for target, update in heard.items()
        }

    def _names(self, layer: LastLayer) -> list[str]:
        """Which parameters of the last layer the form reads."""
        if self.form == "auxiliary_gradient_weights":
            return [layer.weight] if layer.bias is None else [layer.weight, layer.bias]
        return [] if layer.bias is None else [layer.bias]


def bias_gradients(
    cohort: Iterable[Weights], knowledge: Knowledge
) -> Iterator[Float[Tensor, "classes trained"]]:
    """For each model: column k is the output bias's gradient on examples of class k alone."""
    assert knowledge.build_model is not None
    assert knowledge.auxiliary is not None
    auxiliary = knowledge.auxiliary
    for logits in logits_of_cohort(knowledge.build_model, cohort, auxiliary.inputs):
        answers = confusion(logits, auxiliary.labels)
        yield (answers - torch.eye(len(answers), dtype=answers.dtype)).T


def whole_batches(knowledge: Knowledge) -> Recipe:
    """The clients' recipe, with an epoch that is one step for the examples of any class."""
    assert knowledge.auxiliary is not None
    assert knowledge.recipe is not None
    return replace(
        knowledge.recipe, batch=int(knowledge.auxiliary.counts(knowledge.classes).max())
    )


def trained_alone(
    start: Weights, knowledge: Knowledge, recipe: Recipe, number: int, seed: Seed
) -> list[Trained]:
    """Train the broadcast of one round on the auxiliary examples of each class, in order."""
    assert knowledge.build_model is not None
    assert knowledge.auxiliary is not None
    labels = knowledge.auxiliary.labels
    rows = [(labels == label).nonzero().flatten() for label in range(knowledge.classes)]
    # Named by its first row, not by its label: renaming classes moves no draw.
    members = [Member(f"{int(mine[0])}", mine) for mine in rows]
    return list(
        train_cohort(
            knowledge.build_model,
            start,
            knowledge.auxiliary,
            members,
            recipe,
            seed=seed.child("alone"),
            round=number,
        )
    )


def by_ratio(
    change: Float[Tensor, "classes features"],
    examples: int,
    alone: Float[Tensor, "trained classes features"],
) -> Float[Tensor, " classes"]:
    """Wang et al.'s estimate; `alone`: what an example changes where its class is alone."""
    classes = len(change)
    own = alone.diagonal().T  # (classes, features)
    others = (alone.sum(0) - own) / (classes - 1)
    each = (change / examples - others) / (own - others)
    # What is no number fails both comparisons.
    kept = (each > 0) & (each < LARGEST_MULTIPLE / classes)
    found = torch.where(kept, each, 0.0).sum(1) / kept.sum(1).clamp(min=1)
    return onto_simplex(torch.where(kept.any(1), found, 1 / classes))


def onto_simplex(values: Float[Tensor, " classes"]) -> Float[Tensor, " classes"]:
    """The nearest shares in Euclidean distance (Held et al. 1974: sort, then one threshold)."""
    # What is alike in all values changes nothing; taken off, large ones cannot drown the 1.
    values = values - values.max()
    falling = values.sort(descending=True).values
    excess = (falling.cumsum(0) - 1) / torch.arange(1, len(values) + 1, dtype=values.dtype)
    return (values - excess[falling > excess][-1]).clamp(min=0)


def _gradient(delta: Weights, names: Sequence[str], length: float) -> Float[Tensor, " params"]:
    """The mean gradient of these parameters over a way of this length."""
    return torch.cat([-delta[name].double().flatten() / length for name in names])


def _non_negative(
    system: Float[Tensor, "params classes"],
    gradient: Float[Tensor, " params"],
    *,
    sums_to_one: bool,
) -> Float[Tensor, " classes"]:
    if not _can_be_solved(system, gradient):
        return normalised(system.new_zeros(system.shape[1]))
    if sums_to_one:
        # Gradients may be of any order, and the weight is meant for equations of order 1.
        return shares_that_solve(system, gradient, SUM_WEIGHT * float(system.abs().max()))
    shares, _ = nnls(system.numpy(), gradient.numpy())
    return normalised(torch.from_numpy(shares))


def _least_squares(
    system: Float[Tensor, "params classes"],
    gradient: Float[Tensor, " params"],
    *,
    sums_to_one: bool,
) -> Float[Tensor, " classes"]:
    if not _can_be_solved(system, gradient):
        return normalised(system.new_zeros(system.shape[1]))
    # gelsd: a class whose training moves nothing, or as another's does, is no obstacle.
    solved = torch.linalg.lstsq(system, gradient[:, None], driver="gelsd").solution[:, 0]
    return onto_simplex(solved) if sums_to_one else normalised(solved)


def _can_be_solved(
    system: Float[Tensor, "params classes"], gradient: Float[Tensor, " params"]
) -> bool:
    """False where an update moved nothing, or where a model has diverged."""
    finite = torch.isfinite(gradient).all() & torch.isfinite(system).all()
    return bool(finite & gradient.any())


def _size(target: Party, update: Update) -> int:
    if not update.examples:
        raise NeedsError(
            f"ramakrishna(form='ratio') on {target} needs the number of its examples, which "
            "travels beside no update: choose another form"
        )
    return update.examples
