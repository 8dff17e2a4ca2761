"""Label shares by decomposing an update into the effects of single classes."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from annotated_types import Ge
from jaxtyping import Bool, Float, Int
from scipy.optimize import nnls
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update, Weights
from overheard.core.needs import AUXILIARY, BROADCASTS, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.custom_networks.single_output import change_by_class
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import find_last_layer
from overheard.learning.simplex import normalize_to_shares
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.label_shares.claim import LabelShares
from overheard.simulation.client_sizes import MOST_EXAMPLES

Solver = Literal["nnls", "gradient"]

Bases = Literal["equal_steps", "published"]

PROGRESS = "rounds with gradient bases"
"""The description of its training for `ComputeSettings.on_progress`."""


@final
@dataclass(frozen=True, slots=True)
class Decaf(Attack[LabelShares]):
    """Finds null classes by sign and the other shares by non-negative least squares.

    Each round takes four steps, on the last layer's weight alone:

    - The gradient change is g_u = (w_u - w) / rate.
    - Class c is null if no entry of row c of g_u exceeds `threshold`.
    - Basis g_c comes from training the broadcast on auxiliary examples of class c, and basis
      g_U from training it on those of all non-null classes together.
    - alpha, beta >= 0 minimise || sum_c alpha_c g_c + beta g_U - g_u ||^2. Then
      p_c = (alpha_c + beta / m) / (sum alpha + beta) for the m non-null classes.

    Shares are averaged over rounds. A class is claimed absent if it was null in most rounds.

    The null test is proved in one direction only. With non-negative features and no weight
    decay, a null class has no positive entry. A rare or over-predicted class may have none
    either, so exact sets are not certain. Noise, weight decay, tanh or LeakyReLU invalidate the
    test. If every class appears null, the test has failed and no class is removed.

    Differs from the paper: by default a basis takes as many steps as the client, in batches
    of the same size. The paper trains on all auxiliary examples; with many of them the basis
    takes more steps than the client, and its direction turns away from the client's. On MNIST
    with clients of 8 steps and 1,000 examples a class, mean L1 was 0.23 with the paper's bases
    and 0.13 with equal steps.
    (20) is minimised exactly by NNLS; its 1,000 steps of gradient descent are
    `solver="gradient"` (projected Adam: the paper names no optimiser or rate).
    Equations (19) and (21) are missing from the public text and reconstructed from its tables.
    The majority vote over rounds is Overheard's: the paper averages shares only.

    Args:
        solver: the method that minimises (20).
        calibrator: whether g_U is among the bases (section IV-F leaves it out).
        null_removal: whether null classes are removed first (section IV-E does not).
        threshold: value that a positive entry of g_u must exceed; about 0.001 in the paper for
            LeakyReLU.
        steps: steps of gradient descent.
        bases: how long the bases train. "equal_steps": as many steps as the client, on as many
            examples as these steps need, repeated if there are too few. "published": one pass
            per epoch over all auxiliary examples of the class, also used if the size is hidden.

    """

    solver: Solver = "nnls"
    calibrator: bool = True
    null_removal: bool = True
    threshold: Annotated[float, Ge(0)] = 0.0
    steps: Positive = 1000
    bases: Bases = "equal_steps"

    name: ClassVar[str] = "decaf"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, AUXILIARY, MODEL, RECIPE})
    source: ClassVar[str] = (
        "Decaf: Data Distribution Decompose Attack against Federated Learning "
        "(arXiv 2405.15316), Algorithms 1-3, equations (4), (19)-(21)"
    )
    quick_settings: ClassVar = {"steps": 50}

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"model", "loss", "steps"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim every target's shares, averaged over its observed rounds.

        Raises:
            NeedsError: if bases would take as many steps as a client of more than
                `MOST_EXAMPLES`.

        """
        assert knowledge.build_model is not None
        assert knowledge.recipe is not None
        layer = find_last_layer(
            model_structure(knowledge.build_model), knowledge.classes
        ).weight
        updates = {target: view.updates(target) for target in targets}
        if self.bases == "equal_steps":
            _check_sizes(updates)
        shares: dict[Party, list[Tensor]] = {target: [] for target in targets}
        nulls: dict[Party, list[Tensor]] = {target: [] for target in targets}
        broadcasts = sorted(view.broadcasts().items())
        for done, (number, broadcast) in enumerate(broadcasts):
            knowledge.compute.on_progress(PROGRESS, done, len(broadcasts))
            observed = {
                target: by_round[number]
                for target, by_round in updates.items()
                if number in by_round
            }
            for batches, group in self._group_by_batches(observed, knowledge.recipe).items():
                changes = {
                    target: change_by_class(observed[target].delta[layer]).float()
                    / knowledge.recipe.rate
                    for target in group
                }
                present = {
                    target: self.present_classes(change) for target, change in changes.items()
                }
                bases = train_gradient_bases(
                    broadcast,
                    layer,
                    list(present.values()),
                    knowledge,
                    number,
                    seed,
                    batches=batches,
                )
                for target, change in changes.items():
                    shares[target].append(self.decompose(change, present[target], bases))
                    nulls[target].append(~present[target])
        return {
            target: LabelShares(
                normalize_to_shares(torch.stack(shares[target]).mean(0)),
                _majority(nulls[target]) if self.null_removal else None,
            )
            for target in targets
        }

    def decompose(
        self,
        change: Float[Tensor, "classes features"],
        present: Bool[Tensor, " classes"],
        bases: "GradientBases",
    ) -> Float[Tensor, " classes"]:
        """Estimate the shares of one client in one round, given the bases (step 4)."""
        columns = [bases.by_class[label] for label in present.nonzero().flatten().tolist()]
        if self.calibrator:
            columns.append(bases.by_class_set[_class_set(present)])
        matrix = torch.stack([column.flatten() for column in columns], 1)  # (params, bases)
        matrix, goal = matrix.double(), change.flatten().double()
        factors = (
            _solve_nnls(matrix, goal)
            if self.solver == "nnls"
            else _solve_by_descent(matrix, goal, self.steps)
        )
        common = factors[-1] / present.sum() if self.calibrator else factors.new_zeros(())
        shares = torch.zeros(len(present), dtype=torch.float64)
        shares[present] = factors[: int(present.sum())] + common
        return normalize_to_shares(shares).float()

    def _group_by_batches(
        self, observed: Mapping[Party, Update], recipe: Recipe
    ) -> dict[tuple[int, int] | None, list[Party]]:
        """Group targets by batches per epoch and their size; None = the published bases."""
        groups: dict[tuple[int, int] | None, list[Party]] = {}
        for target, update in observed.items():
            examples = update.examples if self.bases == "equal_steps" else None
            batches = None
            if examples:
                is_private = recipe.private_steps is not None
                batch = recipe.batch_size(examples) if is_private else recipe.batch
                batches = recipe.steps(examples, 1), batch
            groups.setdefault(batches, []).append(target)
        return groups

    def present_classes(
        self, change: Float[Tensor, "classes features"]
    ) -> Bool[Tensor, " classes"]:
        """Find the classes that are not null (Algorithm 1)."""
        every_class = torch.ones(len(change), dtype=torch.bool)
        if not self.null_removal:
            return every_class
        present = (change > self.threshold).any(1)
        return present if bool(present.any()) else every_class


def _check_sizes(updates: Mapping[Party, Mapping[int, Update]]) -> None:
    for target, by_round in updates.items():
        largest = max((update.examples or 0 for update in by_round.values()), default=0)
        if largest > MOST_EXAMPLES:
            raise NeedsError(
                f"decaf on {target} needs a plausible size, but an update reports {largest:,} "
                f"examples, more than {MOST_EXAMPLES:,}: set bases = 'published'"
            )


@final
@dataclass(frozen=True, slots=True)
class GradientBases:
    """Gradient changes of the last layer from training on auxiliary examples.

    Args:
        by_class: from training on one class, by label.
        by_class_set: from training on several classes, by their labels.

    """

    by_class: Mapping[int, Float[Tensor, "classes features"]]
    by_class_set: Mapping[tuple[int, ...], Float[Tensor, "classes features"]]


def train_gradient_bases(
    broadcast: Weights,
    layer: str,
    present: Sequence[Bool[Tensor, " classes"]],
    knowledge: Knowledge,
    number: int,
    seed: Seed,
    *,
    batches: tuple[int, int] | None = None,
) -> GradientBases:
    """Train the broadcast of one round on the auxiliary examples (Algorithm 2).

    Each class that some target holds, and each distinct set of classes, is trained on once.

    Args:
        broadcast: the weights at the start of the round.
        layer: the name of the last layer's weight.
        present: the classes that each target holds.
        knowledge: with auxiliary examples, a model and a recipe.
        number: number of the round.
        seed: the seed of the draws and of the batches.
        batches: full batches per epoch of each basis, and the examples of each, which by
            DP-SGD depend on the client's; None = all auxiliary examples.

    """
    assert knowledge.auxiliary is not None
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    labels = knowledge.auxiliary.labels
    unions = sorted({_class_set(classes) for classes in present})
    classes = sorted({label for union in unions for label in union})
    wanted = [(label,) for label in classes] + [union for union in unions if len(union) > 1]
    rows = [torch.isin(labels, torch.tensor(key)).nonzero().flatten() for key in wanted]
    drawn = rows
    if batches is not None:
        draws = seed.child("rows", number)
        drawn = [_draw_batches(own, *batches, draws) for own in rows]
    # The name seeds the batches. It has no labels, so permuting them leaves results unchanged.
    members = [
        ClientTask(f"{int(own[0])}+{len(own)}", chosen)
        for own, chosen in zip(rows, drawn, strict=True)
    ]
    trained = train_cohort(
        knowledge.build_model,
        broadcast,
        knowledge.auxiliary,
        members,
        knowledge.recipe,
        seed=seed.child("bases"),
        round=number,
        workers=knowledge.compute.workers,
    )
    changes = {
        key: change_by_class(result.delta[layer]).float() / knowledge.recipe.rate
        for key, result in zip(wanted, trained, strict=True)
    }
    return GradientBases(
        {label: changes[label,] for label in classes},
        {union: changes[union] for union in unions},
    )


def _draw_batches(
    rows: Int[Tensor, " _rows"], batches: int, batch: int, seed: Seed
) -> Int[Tensor, " examples"]:
    """Draw rows that fill this many batches; all are repeated equally often, or nearly so.

    A single batch is not filled up by repetition, as its mean gradient would stay the same.
    """
    wanted = batches * batch if batches > 1 else min(batch, len(rows))
    shuffled = rows[torch.randperm(len(rows), generator=seed.generator())]
    return shuffled.repeat(-(-wanted // len(rows)))[:wanted]


def _majority(verdicts: Sequence[Bool[Tensor, " classes"]]) -> Bool[Tensor, " classes"]:
    return torch.stack(list(verdicts)).double().mean(0) > 0.5


def _class_set(present: Bool[Tensor, " classes"]) -> tuple[int, ...]:
    return tuple(present.nonzero().flatten().tolist())


def _solve_nnls(
    matrix: Float[Tensor, "params bases"], change: Float[Tensor, " params"]
) -> Float[Tensor, " bases"]:
    """Minimise (20) exactly under non-negativity."""
    # QR compression keeps the minimiser and leaves a system of bases x bases numbers.
    triangle, rotated = _compress(matrix, change)
    factors, _ = nnls(triangle.numpy(), rotated.numpy())
    return torch.from_numpy(factors)


def _compress(
    matrix: Float[Tensor, "params bases"], change: Float[Tensor, " params"]
) -> tuple[Float[Tensor, "bases bases"], Float[Tensor, " bases"]]:
    orthogonal, triangle = torch.linalg.qr(matrix)
    return triangle, orthogonal.T @ change


DESCENT_RATE = 0.01
"""Rate of the projected Adam steps, with the basis of the union scaled to length 1."""


def _solve_by_descent(
    matrix: Float[Tensor, "params bases"], change: Float[Tensor, " params"], steps: int
) -> Float[Tensor, " bases"]:
    """Minimise (20) by projected gradient descent from equal factors."""
    triangle, rotated = (one.numpy() for one in _compress(matrix, change))
    unit = max(float(np.linalg.norm(triangle[:, -1])), sys.float_info.min)
    triangle, rotated = triangle / unit, rotated / unit
    curvature, slope = triangle.T @ triangle, triangle.T @ rotated
    factors = np.full(matrix.shape[1], 1 / matrix.shape[1])
    mean, square = np.zeros_like(factors), np.zeros_like(factors)
    # Adam in NumPy: ten numbers take PyTorch's optimizer ten times as long.
    for step in range(1, steps + 1):
        gradient = 2 * (curvature @ factors - slope)
        mean += 0.1 * (gradient - mean)
        square += 0.001 * (gradient * gradient - square)
        scale = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        factors = np.maximum(factors - DESCENT_RATE * mean / (1 - 0.9**step) / scale, 0)
    return torch.from_numpy(factors)
