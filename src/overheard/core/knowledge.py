"""What an attacker knows besides its view."""

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.compute_settings import ComputeSettings
from overheard.core.defense import BuildModel, Defense
from overheard.core.examples import Examples
from overheard.core.facts import Fact, Facts
from overheard.core.recipe import Recipe
from overheard.core.split import Split
from overheard.core.task import TaskKind


@dataclass(frozen=True, slots=True)
class Prior:
    """An attacker's assumptions about clients, made without its view.

    Virtual clients are drawn from it. Wrong assumptions bias the estimates and make intervals
    too narrow.

    Args:
        splits: possible splits of labels over clients, all equally likely; () = the default
            mixture of the simulation, from one class per client to equal shares.
        sizes: smallest and largest number of examples of a client, log-uniform in between;
            None = the sizes sent in clear text, else `simulation.client_sizes.DEFAULT_SIZES`.
        recipes: possible recipes, all equally likely, for an attacker without the recipe.
        with_replacement: whether a virtual client draws examples with replacement (bootstrap,
            Efron 1979). Virtual clients then differ by their examples as clients drawn from one
            population do, but each has fewer distinct examples. Otherwise no example is drawn
            again before all were drawn.

    """

    splits: tuple[Split, ...] = ()
    sizes: tuple[int, int] | None = None
    recipes: tuple[Recipe, ...] = ()
    with_replacement: bool = False

    def __post_init__(self) -> None:
        """Check that sizes are an ascending range from 1."""
        if self.sizes is not None and not 1 <= self.sizes[0] <= self.sizes[1]:
            raise ValueError(f"sizes must be 1 or more, smallest first, got {self.sizes}")


class KnownFact(Fact):
    """A fact that an attacker knows besides its view: see `core.known_facts`.

    A concrete fact is a final frozen dataclass of values that can be stored, as a claim is. Its
    module is imported by attacks, so it must not import the truth.
    """


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
        algorithm: the algorithm of the run, which belongs to the recipe.
        background: public examples of the task that everyone has, clients included; defenses
            may mix them into clients' examples (see `core.defense.DefenseContext`).
        kind: what the model predicts of an example.
        facts: what is known of single subjects, such as users.

    """

    classes: int
    build_model: BuildModel | None = None
    auxiliary: Examples | None = None
    recipe: Recipe | None = None
    defenses: tuple[Defense, ...] | None = None
    prior: Prior = field(default_factory=Prior)
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    background: Examples | None = None
    algorithm: Algorithm | None = None
    kind: TaskKind = "classification"
    facts: Facts[KnownFact] = field(default_factory=Facts)

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
