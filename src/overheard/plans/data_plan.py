"""Whose data a federation is trained on, and when they change."""

from typing import Annotated

from pydantic import Field, model_validator

from overheard.core.split import Split
from overheard.data.dataset import DataSource
from overheard.data.partition.candidates import Candidates
from overheard.data.partition.deal import SharedOut
from overheard.data.partition.people import People
from overheard.data.partition.schedule import MOST_CLIENTS, DataShift
from overheard.data.positive import Positive
from overheard.plans.kinds import DATASETS, SPLITS
from overheard.plans.part import PartOf
from overheard.plans.table import CHECKS_ITSELF, StrictTable


class DataPlan(StrictTable):
    """Whose data are trained on.

    Args:
        source: the data set.
        split: how its examples are shared out among the clients; left out, as `examples` then
            is: a plan for audits of recordings, whose clients hold what they hold.
        clients: how many there are; of a recording, how many canaries are drawn for.
        examples: of each client: one number, or the ends of a range to draw from.
        auxiliary_per_class: examples of each class that attackers may have, or
        auxiliary: examples in all that attackers may have, as the population has them.
        test: examples to measure the accuracy on; left out: all that the data set has.
        refresh_every: rounds after which each client gets new examples of the same make-up.
        shifts: clients whose data change in kind, when and how. Attacks that ask about shifts
            listen besides to a control of each run: the same exchanges, and nothing shifts.
        people: what attackers have of the users whom clients stand for; left out: nothing.
            Attacks that ask who somebody is listen besides to a control of each run, in which
            private examples are dealt among the clients by chance.
        background: public examples that everyone has, for defenses that mix them in: as many
            at most of those that the data set has or, where it has none, of users who take no
            part; left out: all that the data set has.
        candidates: records of which attackers ask whether a client trained on them, from the
            first round on; left out: none.

    """

    source: Annotated[DataSource, PartOf(DATASETS)]
    split: Annotated[Split, PartOf(SPLITS)] | None = None
    clients: Annotated[int, Field(ge=1, le=MOST_CLIENTS)] = 1
    examples: Positive | tuple[Positive, Positive] | None = None
    auxiliary_per_class: Positive | None = None
    auxiliary: Positive | None = None
    test: Positive | None = None
    refresh_every: Positive | None = None
    shifts: tuple[Annotated[DataShift, CHECKS_ITSELF], ...] = ()
    people: Annotated[People, CHECKS_ITSELF] | None = None
    background: Positive | None = None
    candidates: Candidates | None = None

    @property
    def shared_out(self) -> SharedOut | None:
        """Who holds how much of which; None = the plan does not say, and simulates nothing."""
        return None if self.split is None else SharedOut(self.split, self.sizes)

    @property
    def sizes(self) -> tuple[int, int]:
        """The smallest and the largest client; 0 where nothing is shared out."""
        if isinstance(self.examples, tuple):
            return self.examples
        return (self.examples or 0,) * 2

    @model_validator(mode="after")
    def _fits_itself(self) -> "DataPlan":
        if self.auxiliary_per_class is not None and self.auxiliary is not None:
            raise ValueError("give auxiliary_per_class or auxiliary, not both")
        if (self.split is None) != (self.examples is None):
            raise ValueError("split and examples go together: give both, or neither")
        if self.split is not None and "clients" not in self.model_fields_set:
            raise ValueError("clients: say among how many the examples are shared out")
        if self.sizes[0] > self.sizes[1]:
            raise ValueError(f"examples: the range {list(self.sizes)} runs backwards")
        if self.people is not None and (self.split is None or not self.split.keeps_users):
            by = "without a split" if self.split is None else f"by {self.split.name}"
            raise ValueError(
                f"people: {by} a client stands for no user: take a split that goes by users, "
                "such as by_user"
            )
        if self.people is not None and any(shift.new_user for shift in self.shifts):
            raise ValueError(
                "people: a client is one person throughout: leave new_user out of the shifts"
            )
        return self
