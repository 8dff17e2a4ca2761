"""Everything that determines a simulated run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import Examples
from overheard.core.parties import Party, client, is_shadow, shadow
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.truth import NO_ATTRIBUTES, NO_MEMBERS, NO_SHIFTS, NO_USERS
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.train import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """A federation to be run: model, data, training, defenses and chance.

    Args:
        build_model: gives the model with fresh weights.
        model: what the manifest calls it, such as its settings or "package.module:build".
        task: what is learned.
        recipe: how clients train.
        pool: the examples of all clients.
        rows: `rows[round][client]` are the pool's rows which that client holds in that round.
        test: examples of nobody, on which each global model is tested.
        rounds: how many there are.
        seed: of all that is left to chance; the training's engine and device may change the
            last bits besides.
        participation: share of the clients asked in a round, drawn anew each round; always
            one client at least.
        failure_rate: how often a client that was asked gives no answer.
        defenses: in the order in which they act.
        engine: how cohorts are trained, see `learning.train`.
        workers: processes to train in; None leaves it to the engine.
        device: where to train.
        shifts: by client, the rounds from which on what it holds is of another kind; told in
            the ground truth, and without any effect on the run.
        shadows: so many of those who hold rows, the last, are shadow devices of the server.
        are_shadows_defended: whether defenses that clients enforce act on what shadow devices
            learn from and send, too. What a defense makes of the training itself all follow.
        users: who stands behind each client that is one person; told in the ground truth.
        attributes: values of sensitive attributes, by attribute and user; told likewise.
        members: by client, places of the records in question that it holds; told likewise.
        background: public examples of the task, which every client has besides its own, for
            defenses that mix them in; None = there are none.
        distillation: how clients distil, where distilled data travel in place of weights;
            None = FedAvg.

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
    shifts: Mapping[Party, tuple[int, ...]] = field(default_factory=lambda: NO_SHIFTS)
    shadows: int = 0
    are_shadows_defended: bool = False
    users: Mapping[Party, str] = field(default_factory=lambda: NO_USERS)
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NO_ATTRIBUTES)
    members: Mapping[Party, tuple[int, ...]] = field(default_factory=lambda: NO_MEMBERS)
    background: Examples | None = None
    distillation: Distillation | None = None

    def __post_init__(self) -> None:
        """Refuse a federation that cannot be run."""
        if self.rounds < 1 or len(self.rows) != self.rounds:
            raise ValueError(
                f"a federation has a round or more and rows for each: {self.rounds} rounds, "
                f"{len(self.rows)} rows"
            )
        sizes = {len(held) for held in self.rows}
        if len(sizes) != 1 or 0 in sizes:
            raise ValueError(
                f"every round has the same clients, one or more, got {sorted(sizes)} of them"
            )
        for number, held in enumerate(self.rows):
            _refuse_strange_rows(number, torch.cat(tuple(held)), len(self.pool))
        if not 0 < self.participation <= 1:
            raise ValueError(f"participation lies in (0, 1], got {self.participation}")
        if not 0 <= self.failure_rate < 1:
            raise ValueError(f"failure_rate lies in [0, 1), got {self.failure_rate}")
        if not len(self.test):
            raise ValueError("a test set has an example or more, got none")
        for examples in (self.pool, self.test):
            _refuse_strange_labels(examples, self.task.classes)
        if not 0 <= self.shadows < sizes.pop():
            raise ValueError(f"a client or more is no shadow device, got {self.shadows}")
        if self.background is not None:
            _refuse_strange_labels(self.background, self.task.classes)
            _refuse_other_inputs(self.background, self.pool)
        if self.distillation is not None and (self.defenses or self.shadows):
            raise ValueError(
                "where distilled data travel, no defense of weights and no shadow device acts"
            )
        for who, shifted in self.shifts.items():
            _refuse_strange_shifts(who, shifted, self.clients, self.rounds)
        names = [defense.name for defense in self.defenses]
        if len(set(names)) != len(names):
            # Two of one name would draw the same noise.
            raise ValueError(f"each defense acts once, got {names}")

    @property
    def clients(self) -> tuple[Party, ...]:
        """All clients, and shadow devices after them, in the order of their rows."""
        real = len(self.rows[0]) - self.shadows
        return (*map(client, range(real)), *map(shadow, range(self.shadows)))

    def defenses_of(self, who: Party) -> tuple[Defense, ...]:
        """The defenses that act on what this party learns from and sends."""
        if is_shadow(who) and not self.are_shadows_defended:
            return tuple(one for one in self.defenses if one.enforced_at != "client")
        return self.defenses

    @property
    def is_masked(self) -> bool:
        """True if nobody can read a single update."""
        return any(defense.masks_updates for defense in self.defenses)


def _refuse_strange_rows(number: int, rows: Int[Tensor, " examples"], length: int) -> None:
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < length:
        raise ValueError(f"round {number} has rows beyond the pool's {length} examples")


def _refuse_strange_shifts(
    who: Party, shifted: tuple[int, ...], clients: tuple[Party, ...], rounds: int
) -> None:
    if who not in clients:
        raise ValueError(f"clients shift, got {who}, who is none of {len(clients)}")
    if list(shifted) != sorted({*shifted}.intersection(range(1, rounds))):
        raise ValueError(
            f"{who} shifts in rounds from 1 to {rounds - 1}, in order, got {shifted}"
        )


def _refuse_strange_labels(examples: Examples, classes: int) -> None:
    labels = examples.labels
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise ValueError(
            f"labels lie between 0 and {classes - 1}, got {int(labels.min())} to "
            f"{int(labels.max())}"
        )


def _refuse_other_inputs(background: Examples, pool: Examples) -> None:
    """They are to be learned from as if they were a client's own."""
    there, wanted = background.inputs, pool.inputs
    if there.shape[1:] != wanted.shape[1:] or there.dtype != wanted.dtype:
        raise ValueError(
            f"background inputs are as the pool's, {tuple(wanted.shape[1:])} of "
            f"{wanted.dtype}, got {tuple(there.shape[1:])} of {there.dtype}"
        )
