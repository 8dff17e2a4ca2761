"""What an attacker knows before it listens."""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import Examples
from overheard.core.known_users import KnownUsers
from overheard.core.means import Means
from overheard.core.prior import Prior
from overheard.core.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What an attacker knows before it listens; None = does not know.

    Args:
        classes: how many labels the task has.
        build_model: gives the model with fresh weights, to be filled from a broadcast.
        auxiliary: labelled examples of the task, disjoint from every client's and the test.
        recipe: how clients train.
        defenses: those in force, for an attacker who adapts to them; () = none in force.
        prior: what clients are like, as far as the attacker can tell without listening.
        means: what it computes with.
        people: what is known of single users; empty = nothing.
        candidates: records of which it asks whether a target trained on them; None = none.
        background: public examples of the task that everyone has, clients too, who may mix
            them with their own (see `core.defense.Moment`).

    """

    classes: int
    build_model: BuildModel | None = None
    auxiliary: Examples | None = None
    recipe: Recipe | None = None
    defenses: tuple[Defense, ...] | None = None
    prior: Prior = field(default_factory=Prior)
    means: Means = field(default_factory=Means)
    people: KnownUsers = field(default_factory=KnownUsers)
    background: Examples | None = None
    candidates: Examples | None = None

    def __post_init__(self) -> None:
        """Refuse a task without a choice of labels."""
        if self.classes < 2:
            raise ValueError(f"a task has 2 labels or more, got {self.classes}")

    def recipes(self) -> tuple[Recipe, ...]:
        """How clients train: as known, else each guess; () = no idea."""
        return self.prior.recipes if self.recipe is None else (self.recipe,)

    def auxiliary_shares(self) -> Float[Tensor, " classes"] | None:
        """Class shares among the auxiliary examples: what one who hears nothing may expect."""
        if self.auxiliary is None or not len(self.auxiliary):
            return None
        counts = self.auxiliary.counts(self.classes).float()
        return counts / counts.sum()
