"""The data table of a plan: the clients' data and how they change over rounds."""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from overheard.core.settings import Positive
from overheard.core.split import Split
from overheard.data.dataset import DataSource
from overheard.data.datasets.custom import Own
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.first_round import SplitSettings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.reserved_examples import AuxiliarySize
from overheard.data.partition.schedule import MAX_CLIENTS, DataShift, Draws
from overheard.data.splits.iid import Iid
from overheard.plans.plugin_field import PluginField
from overheard.plans.registries import DATASETS, SPLITS
from overheard.plans.strict_model import SELF_VALIDATING, StrictModel

MAX_CONTROLS = 1000
"""More controls of one kind for each seed than any verdict needs."""


class DataPlan(StrictModel):
    """The clients' data and the attackers' auxiliary data.

    Args:
        source: the data set.
        split: how its examples are partitioned among the clients; omitted, together with
            `examples`, in a plan for recordings.
        clients: number of clients; for a recording, number of clients to draw canaries for.
        examples: per client: one number, or the ends of a range to draw from.
        auxiliary_per_class: number of auxiliary examples of each class for attackers; excludes
            `auxiliary`.
        auxiliary: total number of auxiliary examples, with the label shares of the data set.
        test: number of examples to measure the accuracy on; omitted: all of the data set.
        refresh_every: rounds after which clients get new examples of the same distribution.
        shifts: clients whose data distribution changes, when and how. Attacks on shifts also
            run on controls of each run, in which as many examples are replaced in the same
            rounds, but no distribution changes.
        exchanges: how the label counts of new examples are decided, wherever clients replace
            examples. "natural": all examples of a client, the first too, are random draws from
            its label shares. "exact": new examples have the label counts of those that they
            replace, or exactly the shares after a shift; only exact controls are then run.
        natural_controls: controls of each run whose examples are natural draws. With few
            seeds, more of them let a verdict be reached.
        exact_controls: controls of each run in which each exchange copies the label counts.
        people: what the attacker knows beforehand of the users whose data clients hold;
            omitted: nothing. Attacks on identity also run on a control of each run, in which
            private examples are partitioned among the clients at random.
        background: largest number of public examples, which everyone has, for defenses that
            mix them with a client's own. They come with the data set; if it has none, they are
            those of users who take no part. Omitted: all that come with the data set.
        candidates: records whose membership attackers infer. Members are trained on from the
            first round on. Omitted: none.

    """

    source: Annotated[DataSource, PluginField(DATASETS)]
    split: Annotated[Split, PluginField(SPLITS)] | None = None
    clients: Annotated[int, Field(ge=1, le=MAX_CLIENTS)] = 1
    examples: Positive | tuple[Positive, Positive] | None = None
    auxiliary_per_class: Positive | None = None
    auxiliary: Positive | None = None
    test: Positive | None = None
    refresh_every: Positive | None = None
    shifts: tuple[Annotated[DataShift, SELF_VALIDATING], ...] = ()
    exchanges: Draws = "natural"
    natural_controls: Annotated[int, Field(ge=0, le=MAX_CONTROLS)] = 1
    exact_controls: Annotated[int, Field(ge=0, le=MAX_CONTROLS)] = 1
    people: Annotated[KnownUserSettings, SELF_VALIDATING] | None = None
    background: Positive | None = None
    candidates: CandidateSettings | None = None

    # Any: a split as in TOML, or the object itself.
    @field_validator("split", mode="before")
    @classmethod
    def _follow_custom_data(cls, split: Any, checked: ValidationInfo) -> Any:
        """Let `iid` follow the label shares of custom data, if nothing else is said."""
        table = {"kind": split} if isinstance(split, str) else split
        is_own = isinstance(checked.data.get("source"), Own)
        if is_own and isinstance(table, dict) and table.get("kind") == Iid.name:
            return {"balanced": False} | table
        return split

    @property
    def split_settings(self) -> SplitSettings | None:
        """How examples are partitioned; None in a plan for recordings."""
        return None if self.split is None else SplitSettings(self.split, self.sizes)

    @property
    def lists_records(self) -> bool:
        """Whether the owner of a recording lists the candidate records, instead of a draw."""
        return isinstance(self.source, Own) and self.source.candidates is not None

    @property
    def auxiliary_size(self) -> AuxiliarySize:
        """The number of auxiliary examples."""
        return AuxiliarySize(self.auxiliary_per_class, self.auxiliary)

    @property
    def sizes(self) -> tuple[int, int]:
        """The smallest and the largest number of examples of a client; 0 for recordings."""
        if isinstance(self.examples, tuple):
            return self.examples
        return (self.examples or 0,) * 2

    @model_validator(mode="after")
    def _check_consistency(self) -> "DataPlan":
        if self.auxiliary_per_class is not None and self.auxiliary is not None:
            raise ValueError("give auxiliary_per_class or auxiliary, not both")
        if (self.split is None) != (self.examples is None):
            raise ValueError("split and examples go together: give both, or neither")
        if self.split is not None and "clients" not in self.model_fields_set:
            raise ValueError("clients: give the number of clients")
        if self.sizes[0] > self.sizes[1]:
            raise ValueError(f"examples: the range {list(self.sizes)} is reversed")
        if self.people is not None and (
            self.split is None or not self.split.has_one_user_per_client
        ):
            by = (
                "without a split" if self.split is None else f"with the split {self.split.name}"
            )
            raise ValueError(
                f"people: {by} clients do not stand for users: choose a split by users, such "
                "as by_user"
            )
        if self.people is not None and any(shift.new_user for shift in self.shifts):
            raise ValueError(
                "people: a client stands for one user in all rounds: remove new_user from the "
                "shifts"
            )
        return self
