"""The contract of a defense."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from overheard.core.examples import Examples
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed

BuildModel = Callable[[], nn.Module]

Site = Literal["client", "server", "protocol"]


@dataclass(frozen=True, slots=True)
class Moment:
    """When and where a defense acts; its seed is its own."""

    round: int
    party: Party
    seed: Seed


@dataclass(frozen=True, slots=True)
class Training:
    """What a client is about to do: build this model, follow this recipe."""

    build_model: BuildModel
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Run:
    """As much of a run as an accountant of privacy must know."""

    rounds: int
    participation: float


class Defense:
    """Changes what is learned from or said; override the steps where it acts.

    A concrete defense is a final frozen dataclass: its fields are its settings. A hook that is
    not overridden changes nothing.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    enforced_at: ClassVar[Site]
    switched_off_by: ClassVar[str]
    """Who could leave it out without anybody noticing."""
    masks_updates: ClassVar[bool] = False
    """True if no single update can be read by anyone but its sender, only their aggregate."""

    def on_data(self, data: Examples, moment: Moment) -> Examples:
        """Before a client trains."""
        return data

    def on_training(self, training: Training) -> Training:
        """Before clients train; alike for all of them, so that a cohort trains together."""
        return training

    def on_update(self, update: Update, moment: Moment) -> Update:
        """Before a client sends."""
        return update

    def on_aggregate(self, aggregate: Aggregate, moment: Moment) -> Aggregate:
        """Before the server uses what it summed."""
        return aggregate

    def promise(self, run: Run) -> str:
        """What is formally promised for such a run, with all that the promise hangs on."""
        return "no formal promise"
