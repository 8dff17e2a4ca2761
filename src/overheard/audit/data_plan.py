"""Whose data a federation is trained on, and when they change."""

from typing import Annotated

from pydantic import Field, model_validator

import overheard.data.datasets
import overheard.data.splits
from overheard.audit.part import PartOf
from overheard.audit.table import Positive, Table
from overheard.core.errors import PlanError
from overheard.core.split import Split
from overheard.data.dataset import DataSource
from overheard.data.schedule import Shift

MOST_CLIENTS = 1_000_000
"""More than any data set could be shared out among; the list of them would fill the memory."""


class ShiftPlan(Table):
    """One client's data change in kind; what is left out stays as it is.

    Args:
        client: its number, from 0.
        round: the first with new examples, 1 or later.
        shares: of each label from then on, or
        weights: one a label, by which the shares that it holds are multiplied.
        over: rounds that the change takes, a like part of the examples in each.
        distortion: how much inputs are distorted from then on, from 0 to 1.
        new_user: whether the client is another person from then on, where clients are persons.

    """

    client: Annotated[int, Field(ge=0, lt=MOST_CLIENTS)]
    round: Positive
    shares: tuple[float, ...] | None = None
    weights: tuple[float, ...] | None = None
    over: Positive = 1
    distortion: Annotated[float, Field(ge=0, le=1)] | None = None
    new_user: bool = False

    @model_validator(mode="after")
    def _a_shift(self) -> "ShiftPlan":
        try:
            self.shift  # noqa: B018 - a shift checks itself when it is made
        except PlanError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def shift(self) -> Shift:
        """The change of data."""
        return Shift(
            self.client,
            self.round,
            self.shares,
            self.weights,
            self.over,
            self.distortion,
            self.new_user,
        )


class DataPlan(Table):
    """Whose data are trained on.

    Args:
        source: the data set.
        split: how its examples are shared out among the clients.
        clients: how many there are.
        examples: of each client: one number, or the ends of a range to draw from.
        auxiliary_per_class: examples of each class that attackers may have, or
        auxiliary: examples in all that attackers may have, as the population has them.
        test: examples to measure the accuracy on; left out: all that the data set has.
        refresh_every: rounds after which each client gets new examples of the same make-up.
        shifts: clients whose data change in kind, when and how. Attacks that ask about shifts
            listen besides to a control of each run: the same exchanges, and nothing shifts.

    """

    source: Annotated[DataSource, PartOf(overheard.data.datasets, DataSource)]
    split: Annotated[Split, PartOf(overheard.data.splits, Split)]
    clients: Annotated[int, Field(ge=1, le=MOST_CLIENTS)]
    examples: Positive | tuple[Positive, Positive]
    auxiliary_per_class: Positive | None = None
    auxiliary: Positive | None = None
    test: Positive | None = None
    refresh_every: Positive | None = None
    shifts: tuple[ShiftPlan, ...] = ()

    @property
    def sizes(self) -> tuple[int, int]:
        """The smallest and the largest client."""
        return self.examples if isinstance(self.examples, tuple) else (self.examples,) * 2

    @model_validator(mode="after")
    def _one_auxiliary(self) -> "DataPlan":
        if self.auxiliary_per_class is not None and self.auxiliary is not None:
            raise ValueError("give auxiliary_per_class or auxiliary, not both")
        if self.sizes[0] > self.sizes[1]:
            raise ValueError(f"examples: the range {list(self.sizes)} runs backwards")
        return self
