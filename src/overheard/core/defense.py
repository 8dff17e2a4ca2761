"""The contract of a defense."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import nn

from overheard.core.examples import Examples
from overheard.core.mechanism import ClientSampling, Mechanism, Site
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive, PositiveShare, Settings

BuildModel = Callable[[], nn.Module]

HOOKS = ("on_data", "on_training", "on_update", "on_aggregate")
"""The methods that a defense may override."""

TrainingPart = Literal["model", "loss", "steps"]
"""A part of how clients train. "steps": optimizer, rate, epochs, batches and clipping."""


@dataclass(frozen=True, slots=True)
class PreviousData:
    """The data that a client held before its examples were last replaced.

    Args:
        examples: the chunk held until then, before any defense changed it.
        replaced_in_round: the first round with the current examples.

    """

    examples: Examples
    replaced_in_round: int


@dataclass(frozen=True, slots=True)
class DefenseContext:
    """When and where a defense acts, with the randomness that it may use.

    Args:
        round: round number, from 0.
        party: the party that applies the defense.
        seed: for random draws of this defense in this round.
        previous_data: given to `Defense.on_data`; None = the client's examples were never
            replaced, as is always so for an attacker's virtual clients.
        background: public examples of the task, available to every party; None = none.
        persistent_seed: for random draws that must be the same in every round for this party.

    """

    round: int
    party: Party
    seed: Seed
    previous_data: PreviousData | None = None
    background: Examples | None = None
    persistent_seed: Seed = field(default_factory=lambda: Seed(0))

    def __post_init__(self) -> None:
        """Check that the previous data were replaced in round 1 to the current one."""
        if (
            self.previous_data is not None
            and not 1 <= self.previous_data.replaced_in_round <= self.round
        ):
            raise ValueError(
                f"the examples must have been replaced in round 1 to {self.round}, got round "
                f"{self.previous_data.replaced_in_round}"
            )


@dataclass(frozen=True, slots=True)
class LocalTraining:
    """The local training of a client: its model and its recipe."""

    build_model: BuildModel
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class RunParameters(Settings):
    """The parameters of a run that privacy accounting needs.

    Args:
        rounds: number of rounds of the whole run: those that are planned, or those asked of
            clients if it is more.
        participation: share of the clients selected in each round.
        sampling_rate: the largest probability that a client was selected in a round, given
            what any other client knows; 1, the worst case, where it was not computed.
        sampling: how clients are sampled; None = not stated.
        asked: number of rounds that are known to have been asked of one client, or for which
            it may have been sampled; None = all.
        recorded: number of rounds asked of clients in an incomplete recording; None = all.
        is_open: whether more rounds than `rounds` may follow, as nobody stated the end.
        epochs: the most epochs for which a client trains in a round.
        repeats_examples: whether a defense of the data may repeat examples.

    """

    rounds: int
    participation: float
    sampling_rate: PositiveShare = 1.0
    sampling: ClientSampling | None = "fixed"
    asked: int | None = None
    recorded: int | None = None
    is_open: bool = False
    epochs: Positive = 1
    repeats_examples: bool = False

    @property
    def samples_clients(self) -> bool:
        """Whether a client may have been left out of a round by chance."""
        return self.sampling != "none" and self.participation < 1

    @property
    def rounds_text(self) -> str:
        """The number of rounds in words, such as "3 of 300 rounds"."""
        words = f"{self.rounds:,} round{'' if self.rounds == 1 else 's'}"
        if self.recorded is not None:
            return f"{self.recorded:,} of {words} recorded"
        return f"{words} so far" if self.is_open else words


class Defense(Settings):
    """Changes training data, local training, updates or aggregates.

    A concrete defense is a final frozen dataclass: its fields are its settings. It overrides
    the hooks where it acts; the other hooks change nothing.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    enforced_at: ClassVar[Site]
    switched_off_by: ClassVar[str]
    """Which party could skip the defense without being noticed."""
    changes_training: ClassVar[frozenset[TrainingPart]] = frozenset()
    """The parts of local training that `on_training` changes."""
    repeats_examples: ClassVar[bool] = False
    """True if `on_data` may return an example of the client several times."""
    masks_updates: ClassVar[bool] = False
    """True if only the sender can read its update; others can read the aggregate alone."""

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        """Return the examples that a client trains on; called before it trains."""
        return data

    def on_training(self, training: LocalTraining) -> LocalTraining:
        """Return the local training; it is the same for all clients of a cohort."""
        return training

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        """Return the update that a client sends; called before it sends."""
        return update

    def on_aggregate(self, aggregate: Aggregate, context: DefenseContext) -> Aggregate:
        """Return the aggregate that the server uses; called after aggregation."""
        return aggregate

    def is_canary(self, party: Party) -> bool:
        """Return whether a client sends a canary in place of an update, in every round.

        It is `draw_canary_direction` of the client's `DefenseContext.persistent_seed`.
        """
        return False

    def mechanism(self) -> Mechanism | None:
        """Return the noise mechanism, for privacy accounting; None = the defense has none.

        If it samples records, its steps are those of an epoch (`Mechanism.in_round`).
        """
        return None

    def promise(self, run: RunParameters) -> str:
        """Describe the formal guarantee for such a run, with all its conditions."""
        return "no formal promise"


def clear_metrics(loss: float, defenses: Sequence[Defense]) -> dict[str, float]:
    """Return the measures of its training data that a simulated client sends in clear text.

    It sends its mean loss, as most apps do. It sends none if it adds the noise of a mechanism:
    an exact loss would not be covered by that noise, and would break the promise.

    Args:
        loss: the mean training loss of the client.
        defenses: the defenses of the client.

    """
    mechanisms = (defense.mechanism() for defense in defenses)
    is_promised = any(
        one is not None and one.noised_at == "client" and one.noise_multiplier > 0
        for one in mechanisms
    )
    return {} if is_promised else {"loss": loss}
