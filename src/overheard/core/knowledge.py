"""What an attacker knows besides its view."""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.compute_settings import ComputeSettings
from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import Examples
from overheard.core.known_users import KnownUsers
from overheard.core.prior import Prior
from overheard.core.recipe import Recipe
from overheard.core.task import TaskKind, TokenWords


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What an attacker knows besides its view; None = unknown.

    Args:
        classes: number of classes of the task; 1 if its examples have none.
        build_model: builds the model with fresh weights, to be replaced by a broadcast's.
        auxiliary: labelled examples of the task, disjoint from clients' and test examples.
        recipe: how clients train.
        defenses: the defenses of the run, for an adaptive attacker; () = there are none.
        prior: assumptions about clients, made without the view.
        compute: the compute settings.
        known_users: what is known of single users; empty = nothing.
        candidate_records: records whose membership is asked; None = none.
        algorithm: the algorithm of the run, which belongs to the recipe.
        background: public examples of the task that everyone has, clients included; defenses
            may mix them into clients' examples (see `core.defense.DefenseContext`).
        token_words: the words of the tokens; None if inputs are no texts.
        kind: what the model predicts of an example.

    """

    classes: int
    build_model: BuildModel | None = None
    auxiliary: Examples | None = None
    recipe: Recipe | None = None
    defenses: tuple[Defense, ...] | None = None
    prior: Prior = field(default_factory=Prior)
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    known_users: KnownUsers = field(default_factory=KnownUsers)
    background: Examples | None = None
    candidate_records: Examples | None = None
    algorithm: Algorithm | None = None
    token_words: TokenWords | None = None
    kind: TaskKind = "classification"

    def __post_init__(self) -> None:
        """Check that there are 2 classes or more, or that examples have none."""
        if self.has_classes and self.classes < 2:
            raise ValueError(f"a task needs 2 classes or more, got {self.classes}")
        if not self.has_classes and self.classes != 1:
            raise ValueError(f"a {self.kind} task has no classes, got {self.classes}")

    @property
    def has_classes(self) -> bool:
        """Whether each example is of one class."""
        return self.kind == "classification"

    def candidate_recipes(self) -> tuple[Recipe, ...]:
        """Return the recipes that clients may follow: the known one, or the prior's."""
        return self.prior.recipes if self.recipe is None else (self.recipe,)

    def auxiliary_label_shares(self) -> Float[Tensor, " classes"] | None:
        """Return the label shares of the auxiliary examples, as an uninformed guess."""
        if self.auxiliary is None or not len(self.auxiliary):
            return None
        counts = self.auxiliary.label_counts(self.classes).float()
        return counts / counts.sum()
