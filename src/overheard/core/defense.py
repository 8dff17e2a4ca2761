"""The contract of a defense."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import nn

from overheard.core.examples import Examples
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed

BuildModel = Callable[[], nn.Module]

Site = Literal["client", "server", "protocol"]

TrainingPart = Literal["model", "loss", "steps"]
"""A part of how clients train. "steps": optimizer, rate, epochs and batch."""


@dataclass(frozen=True, slots=True)
class Former:
    """What a client held before it last exchanged its examples.

    Args:
        examples: the chunk that it held until then, before any defense changed it.
        since: the first round in which it held what it holds now.

    """

    examples: Examples
    since: int


@dataclass(frozen=True, slots=True)
class Moment:
    """When and where a defense acts; its seed is its own.

    Args:
        round: which, from 0.
        party: where.
        seed: of what the defense draws.
        former: told where data are changed; None = the client has exchanged nothing so far, as
            the virtual clients of an attacker never do.
        background: public examples of the task, which the party has besides its own; None =
            there are none.
        lasting: of what the defense draws once for the party, to be the same in every round.

    """

    round: int
    party: Party
    seed: Seed
    former: Former | None = None
    background: Examples | None = None
    lasting: Seed = field(default_factory=lambda: Seed(0))

    def __post_init__(self) -> None:
        """Refuse an exchange that is yet to come."""
        if self.former is not None and not 1 <= self.former.since <= self.round:
            raise ValueError(
                f"a client may hold its examples since round 1 to {self.round}, got "
                f"{self.former.since}"
            )


@dataclass(frozen=True, slots=True)
class Training:
    """What a client is about to do: build this model, follow this recipe."""

    build_model: BuildModel
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Run:
    """As much of a run as an accountant of privacy must know.

    Args:
        rounds: how many there are.
        participation: share of the clients asked in a round, as planned.
        sampling_rate: the largest chance that a client was asked in a round, as any other
            client may reckon it; 1, the worst, where nobody worked it out.

    """

    rounds: int
    participation: float
    sampling_rate: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a chance that is none."""
        if not 0 < self.sampling_rate <= 1:
            raise ValueError(f"a sampling rate lies in (0, 1], got {self.sampling_rate}")


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
    changes_training: ClassVar[frozenset[TrainingPart]] = frozenset()
    """What `on_training` changes."""
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

    def mechanism(self) -> Mechanism | None:
        """What it adds noise to, and how much, for an accountant; None = it has none."""
        return None

    def promise(self, run: Run) -> str:
        """What is formally promised for such a run, with all that the promise hangs on."""
        return "no formal promise"
