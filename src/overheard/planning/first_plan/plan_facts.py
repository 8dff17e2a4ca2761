"""What the text of a first plan depends on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import final

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.defense import Defense
from overheard.core.parties import Party
from overheard.core.recipe import LossName
from overheard.data.dataset import DataSource
from overheard.learning.model import Model
from overheard.learning.models.unknown import Unknown
from overheard.planning.training_facts import TrainingFacts

NOTHING_MISSING: Mapping[str, str] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class ThreatText:
    """A threat of a first plan.

    Args:
        attacks: names or inline tables of TOML.
        virtual: number of virtual clients; None = the attacks simulate none.
        is_about_cohort: whether claims are about all clients, as owners of records are unknown.

    """

    attacks: tuple[str, ...]
    virtual: int | None = None
    is_about_cohort: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """Everything that the text of a first plan depends on.

    Args:
        recording: folder of the recording; None = a simulation.
        observer: who observes.
        is_about_cohort: whether no update of a single client can be read.
        source: the data set.
        model: the model, and `model_origin` where it comes from.
        rounds: number of rounds.
        training: how clients train, as far as it is known.
        defenses: the recorded defenses.
        unparsed_defenses: recorded defenses that a plan cannot name.
        clients: number of clients.
        first_attacks: attacks of the first threat.
        has_truth: whether claims can be checked.
        networks: networks of the Flower app that were not taken, with the reason.
        app: the folder of the Flower app from which the network is imported; None = from none.
        has_users: whether the data name users.
        auxiliary_per_class: auxiliary examples; None = none.
        sizes: smallest and largest number of examples of a client.
        split: how the data are split, as TOML.
        threats: the threats.
        missing: by attack that is left out, what is missing.
        is_shape_known: whether the shape of an input is stated.
        has_classes: whether examples have classes; else auxiliary examples are counted in all.
        is_language_model: whether the model predicts the tokens of its inputs.
        loss: the loss that is minimized.
        candidates: candidate records of each client, and of nobody; None = none.
        algorithm: the recorded algorithm; None = not recorded, or the plan cannot name it.
        at_home: the sentence on layers that clients keep, by which the algorithm was
            recognised; "" = there are none.
        is_head_at_home: whether the last layer is among them.
        proposal: "package.module:name" of the network that the recording names, which is code
            and so not the model; None = it names none.
        is_global_only: whether only global models were recorded.
        data_notes: sentences on how the data fit the recorded model.

    """

    recording: Path | None
    observer: Party
    is_about_cohort: bool
    source: DataSource
    model: Model
    model_origin: str
    rounds: int
    training: TrainingFacts
    defenses: tuple[Defense, ...]
    unparsed_defenses: tuple[str, ...]
    clients: int
    first_attacks: tuple[str, ...]
    has_truth: bool
    networks: Mapping[str, str]
    has_users: bool
    app: Path | None = None
    auxiliary_per_class: int | None = None
    sizes: tuple[int, int] | None = None
    split: str = ""
    threats: tuple[ThreatText, ...] = (ThreatText(("shift",)),)
    missing: Mapping[str, str] = field(default_factory=lambda: NOTHING_MISSING)
    is_shape_known: bool = True
    has_classes: bool = True
    is_language_model: bool = False
    loss: LossName = "cross_entropy"
    candidates: tuple[int, int] | None = None
    algorithm: Algorithm | None = None
    at_home: str = ""
    is_head_at_home: bool = False
    proposal: str | None = None
    is_global_only: bool = False
    data_notes: tuple[str, ...] = ()

    @property
    def is_model_known(self) -> bool:
        """Whether the code of the model is at hand."""
        return not isinstance(self.model, Unknown)

    @property
    def is_recipe_known(self) -> bool:
        """Whether the attacker is to know how clients train; a simulation defines it."""
        return self.recording is None or self.training.is_complete
