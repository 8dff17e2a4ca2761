"""What an attacker takes clients to be like, and how many virtual ones it trains."""

from typing import Annotated

from pydantic import field_validator, model_validator

from overheard.core.prior import Prior
from overheard.core.recipe import LossName, OptimizerName, Recipe
from overheard.core.split import Split
from overheard.data.positive import Positive
from overheard.plans.kinds import SPLITS
from overheard.plans.part import PartOf, label
from overheard.plans.table import StrictTable


class RecipePlan(StrictTable):
    """How a client trains.

    Args:
        rate: local learning rate.
        epochs: local passes over the data a round.
        batch: examples a local step.
        optimizer: of the clients.
        momentum: of SGD.
        weight_decay: L2.
        loss: what is made small: "squared_error" takes labels for ratings in order.

    """

    rate: float
    epochs: Positive = 1
    batch: Positive = 32
    optimizer: OptimizerName = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    loss: LossName = "cross_entropy"

    @model_validator(mode="after")
    def _a_recipe(self) -> "RecipePlan":
        self.recipe  # noqa: B018 - a recipe checks itself when it is made
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
            loss=self.loss,
        )


class VirtualPlan(StrictTable):
    """The virtual clients of an attacker that trains its own, to learn from them.

    Args:
        clients: how many it trains, to learn from and to calibrate on.
        splits: how it takes labels to be shared out, each as likely; left out: from one class
            a client to all alike.
        examples: the smallest and the largest client that it thinks of, all scales between
            equally likely; left out: as told in clear or, where nothing is, any usual size.
        recipes: its guesses at how clients train, each as likely, if it does not know.

    """

    clients: Positive = 1200
    splits: tuple[Annotated[Split, PartOf(SPLITS)], ...] = ()
    examples: tuple[Positive, Positive] | None = None
    recipes: tuple[RecipePlan, ...] = ()

    @field_validator("splits")
    @classmethod
    def _need_no_users(cls, splits: tuple[Split, ...]) -> tuple[Split, ...]:
        for split in splits:
            if split.keeps_users:
                raise ValueError(
                    f"{split.name} goes by users, whom auxiliary examples do not tell: name a "
                    "split that goes by labels"
                )
        return splits

    @field_validator("examples")
    @classmethod
    def _run_forwards(cls, examples: tuple[int, int] | None) -> tuple[int, int] | None:
        if examples is not None and examples[0] > examples[1]:
            raise ValueError(f"the range {list(examples)} runs backwards")
        return examples

    @property
    def prior(self) -> Prior:
        """What clients are taken to be like."""
        return Prior(self.splits, self.examples, tuple(plan.recipe for plan in self.recipes))

    def words(self) -> tuple[str, ...]:
        """What sets these virtual clients apart from those by default, for a name."""
        words = []
        if self.clients != VirtualPlan().clients:
            words.append(f"with {self.clients} virtual clients")
        if self.splits:
            words.append(f"expecting {' or '.join(map(label, self.splits))}")
        if self.examples is not None:
            words.append(f"expecting {self.examples[0]} to {self.examples[1]} examples")
        if self.recipes:
            words.append(f"guessing {' or '.join(map(_told, self.recipes))}")
        return tuple(words)


def _told(plan: RecipePlan) -> str:
    """A recipe in a name: the rate, and whatever else is not as by default."""
    given = plan.model_dump(exclude_defaults=True)
    return f"recipe({', '.join(f'{name}={value}' for name, value in given.items())})"
