"""The settings and data that determine a simulated run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.algorithms.fed_avg import FedAvg
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.defense import BuildModel, Defense
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.parties import Party, client, is_shadow_device, shadow_device
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.truth import TrueFact
from overheard.federation.sampling import Sampling
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.train import Engine

FED_AVG_PROTOCOL = "fedavg"
"""The protocol of a run in which clients send weights and the server adds their mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """A federation to be simulated: model, data, training, defenses and seed.

    Args:
        build_model: builds the model with fresh weights.
        model: name of the model in the manifest, such as its settings or
            "package.module:build".
        task: the learning task.
        recipe: how clients train.
        pool: the examples of all clients.
        rows: `rows[round][client]` are the pool's rows that the client holds in the round.
        test: examples of no client, on which each global model is tested.
        rounds: number of rounds.
        seed: seed of all random draws; engine and device may also change the last bits.
        participation: share of the clients that are sampled in each round, at least one client.
        failure_rate: probability that a sampled client sends no update.
        defenses: the defenses, in the order in which they act.
        engine: how cohorts are trained, see `learning.train`.
        workers: worker processes; None = the engine's default.
        device: where to train.
        shadows: number of shadow devices of the server; they have the last rows of each round.
        are_shadows_defended: whether defenses that clients enforce also act on the examples and
            updates of shadow devices. Changes of the training apply to all in any case.
        facts: what is true of the clients. They are recorded in the ground truth and do not
            affect the run.
        background: public examples of the task that every client has, for defenses that mix
            them in; None = there are none.
        distillation: how clients distil, if they send distilled data instead of weights; None =
            they send weights.
        algorithm: how clients train beyond the recipe, and how the server steps.
        sampling: how the clients of a round are sampled.
        epochs_range: smallest and largest number of epochs; each client has one of its own for
            the whole run, drawn evenly. None = all clients have the epochs of the recipe.
        straggler_rate: probability that a sampled client is slow in a round; it then trains for
            fewer epochs, drawn evenly from 1 to one less than its own.
        crafted: of each client, the numbers of the canaries with crafted gradients that its
            last rows are, in every round; empty = no gradients are crafted.
        crafted_count: number of these canaries, inserted or not.

    """

    build_model: BuildModel
    model: str
    task: Task
    recipe: Recipe
    pool: Examples
    rows: Sequence[Sequence[Int[Tensor, " _"]]]  # each of a length of its own
    test: Examples
    rounds: int
    seed: Seed
    participation: float = 1.0
    failure_rate: float = 0.0
    defenses: tuple[Defense, ...] = ()
    engine: Engine = "auto"
    workers: int | None = None
    device: str = "cpu"
    shadows: int = 0
    are_shadows_defended: bool = False
    facts: Facts[TrueFact] = field(default_factory=Facts)
    background: Examples | None = None
    distillation: Distillation | None = None
    algorithm: Algorithm = field(default_factory=FedAvg)
    sampling: Sampling = "fixed"
    epochs_range: tuple[int, int] | None = None
    straggler_rate: float = 0.0
    crafted: Mapping[Party, tuple[int, ...]] = field(default_factory=dict)
    crafted_count: int = 0

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        if self.rounds < 1 or len(self.rows) != self.rounds:
            raise ValueError(
                f"rounds must be 1 or more, with rows for each, got {self.rounds} rounds and "
                f"rows for {len(self.rows)}"
            )
        sizes = {len(rows) for rows in self.rows}
        if len(sizes) != 1 or 0 in sizes:
            raise ValueError(
                f"every round must have the same clients, one or more, got {sorted(sizes)}"
            )
        for number, rows in enumerate(self.rows):
            _check_rows(number, torch.cat(tuple(rows)), len(self.pool))
        if not 0 < self.participation <= 1:
            raise ValueError(f"participation must be in (0, 1], got {self.participation}")
        if not 0 <= self.failure_rate < 1:
            raise ValueError(f"failure_rate must be in [0, 1), got {self.failure_rate}")
        if not len(self.test):
            raise ValueError("the test set must have an example or more, got none")
        for examples in (self.pool, self.test):
            _check_labels(examples, self.task.classes)
        if not 0 <= self.shadows < sizes.pop():
            raise ValueError(
                "shadows must be 0 or more and leave a client that is no shadow device, got "
                f"{self.shadows}"
            )
        if self.background is not None:
            _check_labels(self.background, self.task.classes)
            _check_background_inputs(self.background, self.pool)
        if self.distillation is not None and (self.defenses or self.shadows):
            raise ValueError(
                "distillation cannot be combined with defenses of weights or shadow devices"
            )
        self._check_algorithm()
        if self.crafted and any(type(d).on_data is not Defense.on_data for d in self.defenses):
            raise PlanError(
                "candidates: canaries with crafted gradients cannot be combined with a defense "
                "that changes examples: leave it out"
            )
        names = [defense.name for defense in self.defenses]
        if len(set(names)) != len(names):
            # Two defenses of one name would draw the same noise.
            raise ValueError(f"each defense may occur once, got {names}")

    def _check_algorithm(self) -> None:
        if self.distillation is not None and not self.task.has_classes:
            raise PlanError(
                f"distillation: {self.distillation.name} makes examples of each class, but the "
                f"task is {self.task.kind}: remove the distillation"
            )
        if self.distillation is not None and self._weights_protocol != FED_AVG_PROTOCOL:
            raise ValueError(
                "distillation has a protocol of its own: it cannot be combined with another "
                "algorithm, sampling or epochs of single clients"
            )
        is_async = self.algorithm.schedule(1, 1, self.seed) is not None
        if is_async and (self.participation != 1 or self.sampling != "fixed"):
            raise PlanError(
                "training.participation: an asynchronous algorithm has its own number of "
                "clients at a time; leave participation at 1 and sampling at 'fixed'"
            )
        conflict = self.algorithm.conflict(self.recipe, self.defenses)
        if conflict:
            raise PlanError(f"training.algorithm: {conflict}")
        if self.sampling == "with_replacement":
            for defense in self.defenses:
                if defense.mechanism() is not None:
                    raise PlanError(
                        "training.sampling: a client that is drawn twice counts twice, which "
                        f"the noise of {defense.name} does not cover; choose 'fixed' or "
                        "'poisson'"
                    )
        if not 0 <= self.straggler_rate <= 1:
            raise ValueError(f"straggler_rate must be in [0, 1], got {self.straggler_rate}")
        low, high = self.epochs_range or (1, 1)
        if not 1 <= low <= high:
            raise ValueError(f"epochs_range must rise from 1 or more, got {low} to {high}")

    @property
    def protocol(self) -> str:
        """The protocol with all settings that differ from FedAvg's, as a manifest has it."""
        return self._weights_protocol if self.distillation is None else repr(self.distillation)

    @property
    def _weights_protocol(self) -> str:
        parts = [
            FED_AVG_PROTOCOL if self.algorithm == FedAvg() else repr(self.algorithm),
            "" if self.sampling == "fixed" else f"sampling {self.sampling}",
            "" if self.epochs_range is None else f"epochs {self.epochs_range}",
            f"stragglers {self.straggler_rate}" if self.straggler_rate else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def most_epochs(self) -> int:
        """The most epochs for which a client may train in a round."""
        return self.recipe.epochs if self.epochs_range is None else self.epochs_range[1]

    @property
    def clients(self) -> tuple[Party, ...]:
        """All clients, then the shadow devices, in the order of their rows."""
        real = len(self.rows[0]) - self.shadows
        return (*map(client, range(real)), *map(shadow_device, range(self.shadows)))

    def defenses_of(self, party: Party) -> tuple[Defense, ...]:
        """Return the defenses that act on the examples and updates of this party."""
        if is_shadow_device(party) and not self.are_shadows_defended:
            return tuple(one for one in self.defenses if one.enforced_at != "client")
        return self.defenses

    @property
    def is_masked(self) -> bool:
        """Whether no party can read a single update."""
        return any(defense.masks_updates for defense in self.defenses)


def _check_rows(number: int, rows: Int[Tensor, " examples"], length: int) -> None:
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < length:
        raise ValueError(f"round {number} refers to rows outside the pool of {length} examples")


def _check_labels(examples: Examples, classes: int) -> None:
    labels = examples.labels
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise ValueError(
            f"labels must be between 0 and {classes - 1}, got {int(labels.min())} to "
            f"{int(labels.max())}"
        )


def _check_background_inputs(background: Examples, pool: Examples) -> None:
    """Refuse background inputs whose shape or dtype differs from those of clients."""
    given, expected = background.inputs, pool.inputs
    if given.shape[1:] != expected.shape[1:] or given.dtype != expected.dtype:
        raise ValueError(
            f"background inputs must be like the pool's, {tuple(expected.shape[1:])} of "
            f"{expected.dtype}, got {tuple(given.shape[1:])} of {given.dtype}"
        )
