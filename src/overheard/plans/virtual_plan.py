"""An attacker's virtual clients: their number and the assumptions about clients."""

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from overheard.core.compute_settings import HELD_OUT_PER_CLASS
from overheard.core.knowledge import Prior
from overheard.core.recipe import Decay, LossName, OptimizerName, Rate, Recipe
from overheard.core.settings import Positive
from overheard.core.split import Split
from overheard.plans.plugin_field import PluginField, plugin_label
from overheard.plans.registries import SPLITS
from overheard.plans.strict_model import StrictModel

_BelowOne = Annotated[float, Field(ge=0, lt=1)]


class RecipePlan(StrictModel):
    """The local training of clients.

    Args:
        rate: local learning rate.
        epochs: local passes over the data per round.
        batch: examples per local step.
        optimizer: the optimizer of the clients.
        momentum: the momentum of SGD.
        weight_decay: factor of the L2 penalty, added to the gradient as in PyTorch; of "adamw",
            each step instead multiplies the weights by 1 - rate * weight_decay.
        label_smoothing: s in the target (1 - s) one-hot + s / classes of the cross-entropy;
            omitted: none.
        loss: the loss function; "squared_error" treats classes as ordered ratings, and is the
            loss of a regression. "binary_cross_entropy" is the loss of several labels per
            example (multi-label).

    """

    rate: Rate
    epochs: Positive = 1
    batch: Positive = 32
    optimizer: OptimizerName = "sgd"
    momentum: _BelowOne = 0.0
    weight_decay: Decay = 0.0
    label_smoothing: _BelowOne | None = None
    loss: LossName = "cross_entropy"

    @model_validator(mode="after")
    def _check_recipe(self) -> "RecipePlan":
        self.recipe  # noqa: B018 - a recipe validates itself when created
        return self

    @property
    def recipe(self) -> Recipe:
        """The local training."""
        return Recipe(
            self.rate,
            self.epochs,
            self.batch,
            self.optimizer,
            self.momentum,
            self.weight_decay,
            self.label_smoothing or 0.0,
            loss=self.loss,
        )


class VirtualPlan(StrictModel):
    """The virtual clients of an attacker that simulates clients.

    Args:
        clients: number of virtual clients to train, for fitting and calibration.
        smallest_gain: attacks on label shares train virtual clients in portions, until twice as
            many lower the attacker's own error by a smaller part than this; 0 = they train all
            at once.
        held_out: the most auxiliary examples of each class that are kept from virtual clients,
            to test updates on them; at most a fifth of all. More of them tell accuracies more
            precisely, and cost more time.
        splits: possible splits of labels, all equally likely; omitted: a mixture from one class
            per client to equal shares.
        examples: smallest and largest number of examples of a client, log-uniform in between;
            omitted: the sizes sent in clear text or, if there are none, a wide default range.
        recipes: possible recipes, all equally likely, for an attacker without the recipe.

    """

    clients: Positive = 1200
    smallest_gain: Annotated[float, Field(ge=0, lt=1)] = 0.0
    held_out: Positive = HELD_OUT_PER_CLASS
    splits: tuple[Annotated[Split, PluginField(SPLITS)], ...] = ()
    examples: tuple[Positive, Positive] | None = None
    recipes: tuple[RecipePlan, ...] = ()

    @field_validator("splits")
    @classmethod
    def _check_splits(cls, splits: tuple[Split, ...]) -> tuple[Split, ...]:
        for split in splits:
            if split.has_one_user_per_client:
                raise ValueError(
                    f"{split.name} splits by users, but auxiliary examples have none: choose a "
                    "split by labels"
                )
        return splits

    @field_validator("examples")
    @classmethod
    def _check_examples(cls, examples: tuple[int, int] | None) -> tuple[int, int] | None:
        if examples is not None and examples[0] > examples[1]:
            raise ValueError(f"the range {list(examples)} is reversed")
        return examples

    @property
    def prior(self) -> Prior:
        """The assumptions about clients."""
        return Prior(self.splits, self.examples, tuple(plan.recipe for plan in self.recipes))

    def name_words(self) -> tuple[str, ...]:
        """Return the parts of an attack's name for settings that differ from the defaults."""
        words = []
        if self.clients != VirtualPlan().clients:
            words.append(f"with {self.clients} virtual clients")
        if self.smallest_gain:
            words.append(f"stopping at a gain below {self.smallest_gain}")
        if self.held_out != VirtualPlan().held_out:
            words.append(f"testing on {self.held_out} examples per class")
        if self.splits:
            words.append(f"expecting {' or '.join(map(plugin_label, self.splits))}")
        if self.examples is not None:
            words.append(f"expecting {self.examples[0]} to {self.examples[1]} examples")
        if self.recipes:
            words.append(f"guessing {' or '.join(map(_recipe_name, self.recipes))}")
        return tuple(words)


def _recipe_name(plan: RecipePlan) -> str:
    """Return a recipe's part of an attack's name: the rate and all non-default settings."""
    given = plan.model_dump(exclude_defaults=True)
    return f"recipe({', '.join(f'{name}={value}' for name, value in given.items())})"
