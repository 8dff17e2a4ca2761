"""The job that compares updates of one round with the gradients of candidate records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.defense import BuildModel, Defense
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.example_gradients import (
    example_gradients,
    flatten_weights,
    mean_example_gradient,
)
from overheard.learning.precision import computing
from overheard.learning.threads import single_thread
from overheard.learning.training_job import ClientTask
from overheard.learning.workers.job import Job
from overheard.questions.membership.estimators.shadow_training_job import (
    draw_shadow_rows,
    membership_of_rows,
)
from overheard.simulation.chunk import CHUNK
from overheard.simulation.defended_training import DefendedTraining
from overheard.simulation.job_tensors import (
    unpack_background,
    unpack_broadcast,
    unpack_examples,
)
from overheard.simulation.simulated_defenses import SimulatedDefenses

MAX_REPLACEMENTS = CHUNK
"""The most auxiliary examples that take a record's place, to find the mean update."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Companions:
    """Auxiliary examples beside which every record is trained on.

    Args:
        name: the party's name. It is the same for all records, and so are the order of batches
            and the random draws of defenses: they cancel in differences.
        rows: the companions' rows of the pool.
        reference: the mean update with another auxiliary example in the record's place.

    """

    name: str
    rows: Int[Tensor, " companions"]
    reference: Float[Tensor, " params"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DirectionTraining:
    """Trains local models that differ in one example.

    Args:
        training: how clients train, with the known defenses.
        start: the weights from which they start.
        pool: the examples; the auxiliary ones come first.
        background: public examples that defenses may mix in; None = none.

    """

    training: DefendedTraining
    start: Weights
    pool: Examples
    background: Examples | None

    def draw_companions(self, auxiliary: int, size: int, seed: Seed, number: int) -> Companions:
        """Draw the companions of this number, and train the models of their reference.

        Args:
            auxiliary: number of auxiliary examples in the pool.
            size: number of examples of a client.
            seed: the seed of the draw.
            number: which companions to draw.

        Raises:
            NeedsError: if there are fewer than two auxiliary examples.

        """
        if auxiliary < 2:
            raise NeedsError(
                "trainings beside other examples need two or more auxiliary examples: give the "
                "attacker more, or set trainings to 0"
            )
        order = torch.randperm(auxiliary, generator=seed.child("order", number).generator())
        count = min(max(size - 1, 1), max(auxiliary - MAX_REPLACEMENTS, auxiliary // 2))
        name, rows = f"companions/{number}", order[:count]
        replacements = order[count : count + MAX_REPLACEMENTS]
        return Companions(name, rows, self._updates(name, rows, replacements).mean(0))

    def directions(
        self, companions: Sequence[Companions], records: Int[Tensor, " records"]
    ) -> Float[Tensor, "records params"]:
        """Return each record's mean difference to the reference, over all companions.

        Args:
            companions: one or more.
            records: the records' rows of the pool.

        """
        total = torch.zeros(len(records), len(companions[0].reference))
        for one in companions:
            parts = [
                self._updates(one.name, one.rows, rows) - one.reference
                for rows in torch.split(records, CHUNK)
            ]
            total = total + torch.cat(parts) / len(companions)
        return total

    def _updates(
        self, name: str, rows: Int[Tensor, " companions"], others: Int[Tensor, " others"]
    ) -> Float[Tensor, "others params"]:
        """Return the update of a client with these rows and one other, for each other."""
        tasks = [ClientTask(name, torch.cat((rows, other.reshape(1)))) for other in others]
        updates = self.training.updates(self.start, self.pool, tasks, self.background)
        return torch.stack([flatten_weights(update.delta) for update in updates])


def blend_directions(
    trained: Float[Tensor, "records params"], gradients: Float[Tensor, "records params"]
) -> Float[Tensor, "records params"]:
    """Return the mean of both directions of each record, at the length of the trained one.

    The trained direction is exact for its companions and noisy across companions; the gradient
    is neither.
    """
    lengths = trained.norm(dim=1, keepdim=True)
    norms = gradients.norm(dim=1, keepdim=True)
    blended: Tensor = (trained + gradients * (lengths / norms.clamp(min=1e-12))) / 2
    return blended


PATH_POINTS = (0.0, 0.5, 1.0)
"""Where gradients are taken between the broadcast (0) and the mean shadow model (1). Three
points serve as well as five on the tuning seeds; the broadcast alone is .01 of AUC worse."""

MAX_GRADIENT_BYTES = 2**27
"""Largest size of the gradients of some records that are in memory at once."""

MAX_RECORDS = 256
"""The most records whose gradients are computed at once, which bounds their activations."""

UPDATES_TENSOR = "updates"
"""The name of the targets' updates, flattened: (targets, params)."""


@final
@dataclass(frozen=True, slots=True)
class UpdateProductsJob(Job):
    """Train shadow models in one round; return inner products of updates and gradients.

    The direction of a record is minus the gradient of its loss, averaged over `PATH_POINTS` on
    the way from the broadcast to the mean shadow model, minus the mean direction of all
    records. With `trainings`, it is blended with the change of an update if a client trains on
    the record (`blend_directions`). Updates are those of shadow models and of targets, each
    minus the mean update of the shadow models.

    The job reads the broadcast, the examples "auxiliary" and "records", `UPDATES_TENSOR`, and
    the public examples if known defenses may use them. It returns, in float64, the tensors that
    `update_products.ShadowProducts` and `UpdateProducts` describe, under the names of their
    fields.

    Args:
        round: the round.
        models: number of shadow models.
        size: number of training examples per model.
        build_model: builds the architecture.
        recipe: the clients' training recipe.
        seed: the seed of all draws.
        device: the device to compute on.
        defenses: the known defenses, applied to the examples and updates of each model.
        trainings: number of local models that train on each record; 0 = gradients alone.

    """

    round: int
    models: int
    size: int
    build_model: BuildModel
    recipe: Recipe
    seed: Seed
    device: str
    defenses: tuple[Defense, ...]
    trainings: int = 0

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Compute on one core, so that the bits do not depend on the machine.

        Raises:
            PlanError: if a training diverges.

        """
        start = unpack_broadcast(tensors)
        auxiliary = unpack_examples(tensors, "auxiliary")
        records = unpack_examples(tensors, "records")
        pool = concatenate_examples((auxiliary, records))
        rows_of = [
            draw_shadow_rows(self.seed, number, len(pool), self.size)
            for number in range(self.models)
        ]
        with single_thread(), computing("float32"):
            background = unpack_background(tensors)
            shadows = self._shadow_updates(start, pool, rows_of, background)
            mean = shadows.mean(0)
            shadows -= mean
            updates = tensors[UPDATES_TENSOR].to(self.device, shadows.dtype) - mean
            both = torch.cat((shadows, updates))
            trained = DirectionTraining(self._training, start, pool, background)
            products, squares = self._record_products(mean, trained, records, both)
            gram = both @ shadows.T
        count = self.models
        return {
            "is_member": membership_of_rows(rows_of, len(auxiliary), len(records)),
            "among_shadows": gram[:count].double().cpu(),
            "shadow_records": products[:count].double().cpu(),
            "record_squares": squares.double().cpu(),
            "with_shadows": gram[count:].double().cpu(),
            "with_records": products[count:].double().cpu(),
            "squares": updates.double().square().sum(1).cpu(),
        }

    def _shadow_updates(
        self,
        start: Weights,
        pool: Examples,
        rows_of: list[Tensor],
        background: Examples | None,
    ) -> Float[Tensor, "models params"]:
        """Return the updates of the shadow models, after the known defenses."""
        tasks = [ClientTask(f"shadow/{number}", rows) for number, rows in enumerate(rows_of)]
        flat = [
            flatten_weights(update.delta)
            for begin in range(0, len(tasks), CHUNK)
            for update in self._training.updates(
                start, pool, tasks[begin : begin + CHUNK], background
            )
        ]
        return torch.stack(flat).to(self.device)

    def _record_products(
        self,
        mean: Float[Tensor, " params"],
        trained: DirectionTraining,
        records: Examples,
        updates: Float[Tensor, "updates params"],
    ) -> tuple[Float[Tensor, "updates records"], Float[Tensor, " records"]]:
        """Return the products of updates and directions, and the directions' squares."""
        records = records.to(self.device)
        points = [
            _point_on_path(trained.start, mean, part, self.device) for part in PATH_POINTS
        ]
        auxiliary = len(trained.pool) - len(records)
        companions = [
            trained.draw_companions(auxiliary, self.size, self.seed.child("companions"), number)
            for number in range(self.trainings)
        ]
        mean_gradient = torch.stack(
            [
                mean_example_gradient(self.build_model, weights, records, self.recipe)
                for weights in points
            ]
        ).mean(0)
        size = max(1, MAX_GRADIENT_BYTES // (len(mean) * mean.element_size()))
        size = min(size, MAX_RECORDS)
        products, squares = [], []
        for rows in torch.split(torch.arange(len(records)), size):
            directions = mean_gradient.repeat(len(rows), 1)  # (records, params)
            for weights in points:
                part = records.take(rows.to(self.device))
                gradients = example_gradients(self.build_model, weights, part, self.recipe)
                directions -= gradients / len(points)
            if companions:
                exact = trained.directions(companions, auxiliary + rows).to(self.device)
                directions = blend_directions(exact, directions)
            products.append(updates @ directions.T)
            squares.append(directions.square().sum(1))
        return torch.cat(products, 1), torch.cat(squares)

    @property
    def _training(self) -> DefendedTraining:
        return DefendedTraining(
            self.build_model,
            self.recipe,
            SimulatedDefenses(self.defenses, self.round, self.seed),
            self.seed.child("training"),
            self.device,
        )


def _point_on_path(
    start: Weights, change: Float[Tensor, " params"], part: float, device: str
) -> Weights:
    """Return the weights at this part of the way from `start` to `start` plus `change`."""
    names = sorted(start)
    pieces = torch.split(change, [start[name].numel() for name in names])
    return {
        name: start[name].to(device) + part * piece.view(start[name].shape)
        for name, piece in zip(names, pieces, strict=True)
    }
