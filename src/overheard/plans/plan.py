"""What to audit: data, clients, training, defenses (arms), threats, seeds."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import Field, field_validator, model_validator

from overheard.core.attack import Attack, adapts
from overheard.core.defense import Defense
from overheard.core.errors import PlanError
from overheard.core.parties import SERVER, Party, party
from overheard.data.dataset import DataSource
from overheard.data.partition.schedule import Schedule
from overheard.data.positive import Positive
from overheard.findings.html import html_table
from overheard.findings.names import together
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.model import Model
from overheard.plans.data_plan import DataPlan
from overheard.plans.kinds import (
    ATTACKS,
    DATASETS,
    DEFENSES,
    DISTILLATIONS,
    MODELS,
    question_of,
)
from overheard.plans.part import PartOf, label
from overheard.plans.table import StrictTable, parse_table, read_table, refuse_repeats
from overheard.plans.virtual import RecipePlan, VirtualPlan

UNDEFENDED = "no defense"
"""Name of the arm without defenses, which every audit has: all others are held against it."""

RunSeed = Annotated[int, Field(ge=0, lt=2**31)]


class TrainingPlan(RecipePlan):
    """How the federation learns: FedAvg over clients that each follow one recipe.

    Args:
        model: the architecture.
        rounds: how many.
        participation: fraction of the clients asked in a round.
        failure_rate: probability that a client which was asked does not answer.

    """

    model: Annotated[Model, PartOf(MODELS)]
    rounds: Positive
    participation: Annotated[float, Field(gt=0, le=1)] = 1.0
    failure_rate: Annotated[float, Field(ge=0, lt=1)] = 0.0


class ArmPlan(StrictTable):
    """A variant of the federation, with these defenses in this order.

    Args:
        name: what it is called.
        defenses: in force.
        shadows_defended: whether the attacker's shadow devices change what they learn from and
            send by the defenses as clients do: so does an attacker who adapts. What a defense
            makes of the training itself all follow.
        distillation: how clients distil, where distilled data travel in place of weights.
        rounds: how many, in place of the training's: distilled data take more of them.

    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]{0,63}$")]
    defenses: tuple[Annotated[Defense, PartOf(DEFENSES)], ...] = ()
    shadows_defended: bool = False
    distillation: Annotated[Distillation, PartOf(DISTILLATIONS)] | None = None
    rounds: Positive | None = None

    @model_validator(mode="after")
    def _has_weights_to_defend(self) -> "ArmPlan":
        if self.distillation is not None and self.defenses:
            raise ValueError(
                "defenses act on weights, and under distillation none travel: make two arms"
            )
        return self

    @field_validator("defenses")
    @classmethod
    def _act_once(cls, defenses: tuple[Defense, ...]) -> tuple[Defense, ...]:
        refuse_repeats([defense.name for defense in defenses])
        return defenses


Known = Literal["auxiliary", "model", "recipe", "defenses"]


class ThreatPlan(StrictTable):
    """Who listens, what they know beforehand, and what they try.

    Args:
        observers: parties that pool what they read.
        attacks: tried one by one.
        about: each client by itself, or all clients of a round as one.
        pseudonyms: how long a sender's name lasts: for the run, so that evidence of its rounds
            can be summed, or for a round, with updates in an order that tells nothing.
        knows: what the attacker knows; attacks that need more are refused.
        by_round: whether each round is also listened to alone, for error by round; a number =
            so many rounds, evenly from the first to the last.
        virtual: the clients that an attacker trains for itself, if it does.
        auxiliary_from: another data set, of the same shape, classes and vocabulary, that the
            auxiliary examples are drawn from in place of the audited one.
        auxiliary_shift: how much the auxiliary examples are distorted, from 0 to 1.

    """

    observers: Annotated[tuple[str, ...], Field(min_length=1)] = ("server",)
    attacks: Annotated[
        # Any: an attack answers a question of its own.
        tuple[Annotated[Attack[Any], PartOf(ATTACKS)], ...],
        Field(min_length=1),
    ]
    about: Literal["clients", "cohort"] = "clients"
    pseudonyms: Literal["run", "round"] = "run"
    knows: tuple[Known, ...] = ("auxiliary", "model", "recipe")
    by_round: bool | Positive = True
    virtual: VirtualPlan = VirtualPlan()
    auxiliary_from: Annotated[DataSource, PartOf(DATASETS)] | None = None
    auxiliary_shift: Annotated[float, Field(ge=0, le=1)] = 0.0

    def named(self, attack: Attack[Any]) -> str:
        """The full name of an attack in this threat, by which findings and policies know it.

        It tells apart all threats of a plan, whether or not the attack makes use of what sets
        them apart: `label` is what readers see.
        """
        knows = ["knowing the defenses"] if "defenses" in self.knows else []
        words = [*self._asked_words(attack), *knows, *self._known_words()]
        return ", ".join([*words, *self.virtual.words()])

    def label(self, attack: Attack[Any], arm: ArmPlan) -> str:
        """What readers see: the attack, and all that is true of it in this arm."""
        adapts = ["adapting to the defenses"] if self.adapts(attack, arm) else []
        words = [*self._asked_words(attack), *adapts, *self._known_words()]
        trains = attack.rehearsal() == "virtual clients"
        return ", ".join([*words, *(self.virtual.words() if trains else ())])

    def adapts(self, attack: Attack[Any], arm: ArmPlan) -> bool:
        """Whether an attack of this threat adapts to the defenses of an arm."""
        known = arm.defenses if "defenses" in self.knows else ()
        return adapts(attack, known, arm.defenses, arm.shadows_defended)

    def _asked_words(self, attack: Attack[Any]) -> list[str]:
        words = [label(attack)]
        if self.about == "cohort":
            rival = any(who != SERVER for who in self.listeners)
            words.append(f"about the {'other clients' if rival else 'cohort'}")
        if self.pseudonyms == "round":
            words.append("one pseudonym a round")
        return words

    def _known_words(self) -> list[str]:
        words = []
        unknown = [one for one in ("auxiliary", "model", "recipe") if one not in self.knows]
        if unknown:
            words.append(f"without {' and '.join(unknown)}")
        if self.auxiliary_from is not None:
            words.append(f"auxiliary examples from {label(self.auxiliary_from)}")
        if self.auxiliary_shift:
            words.append(f"auxiliary examples distorted by {self.auxiliary_shift}")
        return words

    @model_validator(mode="after")
    def _fits_what_it_knows(self) -> "ThreatPlan":
        if self.pseudonyms == "round" and self.about == "cohort":
            raise ValueError("pseudonyms a round hide single clients: take about = 'clients'")
        if self.pseudonyms == "round" and self.listeners != (SERVER,):
            raise ValueError(
                "pseudonyms a round are kept from the server, and a client knows its own: take "
                "observers = ['server']"
            )
        persons = [one.name for one in self.attacks if question_of(one).is_about_people]
        if persons and self.about == "cohort":
            raise ValueError(
                f"{', '.join(persons)}: a cohort is no person: take about = 'clients'"
            )
        elsewhere = self.auxiliary_from is not None or self.auxiliary_shift
        if elsewhere and "auxiliary" not in self.knows:
            raise ValueError(
                "auxiliary_from and auxiliary_shift are for who has auxiliary examples: add "
                "'auxiliary' to knows"
            )
        if self.virtual.recipes and "recipe" in self.knows:
            raise ValueError(
                "virtual.recipes are guesses of one who does not know how clients train: take "
                "'recipe' out of knows"
            )
        return self

    @field_validator("observers")
    @classmethod
    def _are_parties(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        refuse_repeats(names)
        return tuple(party(name) for name in names)

    @property
    def listeners(self) -> tuple[Party, ...]:
        """The observers as parties."""
        return tuple(party(name) for name in self.observers)


class Plan(StrictTable):
    """An audit: every arm is simulated under every seed and meets every threat.

    An arm without defenses is added where none is given. The same seed deals the same data and
    draws the same first weights in every arm, so arms differ by their defenses alone.
    """

    title: Annotated[str, Field(max_length=200)] = "Audit"
    seeds: Annotated[tuple[RunSeed, ...], Field(min_length=1)] = (0,)
    data: DataPlan
    training: TrainingPlan
    arms: Annotated[tuple[ArmPlan, ...], Field(validate_default=True)] = ()
    threats: Annotated[tuple[ThreatPlan, ...], Field(min_length=1)]

    @field_validator("arms")
    @classmethod
    def _with_undefended(cls, arms: tuple[ArmPlan, ...]) -> tuple[ArmPlan, ...]:
        bare = [not arm.defenses and arm.distillation is None for arm in arms]
        named = [arm.name.casefold() == UNDEFENDED for arm in arms]
        if any(name and not one for name, one in zip(named, bare, strict=True)):
            raise ValueError(f"{UNDEFENDED!r} is the arm without defenses: rename this one")
        if not any(bare):
            arms = (ArmPlan(name=UNDEFENDED), *arms)
        # As the folders of their runs are named, on a disk that does not tell "a" from "A".
        refuse_repeats([arm.name.casefold().replace(" ", "_") for arm in arms])
        return arms

    @field_validator("seeds")
    @classmethod
    def _are_different_seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        refuse_repeats([str(seed) for seed in seeds])
        return seeds

    @field_validator("threats")
    @classmethod
    def _are_different_threats(cls, threats: tuple[ThreatPlan, ...]) -> tuple[ThreatPlan, ...]:
        refuse_repeats(
            [
                f"{threat.named(attack)} by {' and '.join(sorted(threat.observers))}"
                for threat in threats
                for attack in threat.attacks
            ]
        )
        return threats

    @model_validator(mode="after")
    def _fits_itself(self) -> "Plan":
        for shift in self.data.shifts:
            if shift.client >= self.data.clients or shift.round >= self.training.rounds:
                raise ValueError(
                    f"data.shifts: client {shift.client} at round {shift.round} lies outside "
                    f"of {self.data.clients} clients and {self.training.rounds} rounds, "
                    "both counted from 0"
                )
        try:
            self.schedule  # noqa: B018 - a schedule checks itself when it is made
        except PlanError as error:
            raise ValueError(f"data.shifts: {error}") from error
        if any(arm.rounds for arm in self.arms) and (
            self.data.shifts or self.data.refresh_every is not None
        ):
            raise ValueError(
                "arms with rounds of their own: data that change do so in rounds of the "
                "training: leave out arms.rounds, or data.shifts and data.refresh_every"
            )
        people = self.data.people
        if (
            people is not None
            and people.shadow_devices
            and any(arm.distillation for arm in self.arms)
        ):
            raise ValueError(
                "data.people.shadow_devices: where distilled data travel no shadow device "
                "takes part: leave them out, or the arms that distil"
            )
        count = self.data.auxiliary_per_class or self.data.auxiliary
        for number, threat in enumerate(self.threats):
            if threat.auxiliary_from is not None and count is None:
                raise ValueError(
                    f"threats.{number}.auxiliary_from: say how many auxiliary examples there "
                    "are by data.auxiliary_per_class or data.auxiliary"
                )
        return self

    def rounds_of(self, arm: ArmPlan) -> int:
        """How many rounds an arm runs."""
        return arm.rounds or self.training.rounds

    @property
    def schedule(self) -> Schedule:
        """When clients exchange their examples, and which of them shift."""
        return Schedule(self.training.rounds, self.data.refresh_every, self.data.shifts)

    def _repr_html_(self) -> str:
        data, training = self.data, self.training
        split = "" if data.split is None else f", shared out by {label(data.split)}"
        rows = [
            ("data", f"{label(data.source)}, {data.clients} clients{split}"),
            ("training", f"{label(training.model)}, {training.rounds} rounds"),
            ("seeds", ", ".join(map(str, self.seeds))),
        ]
        rows += [(f"arm {one.name}", _distinction(one)) for one in self.arms]
        rows += [
            (f"threat by {together(one.listeners)}", "; ".join(map(one.named, one.attacks)))
            for one in self.threats
        ]
        return html_table(self.title, (), rows)

    def toml(self) -> str:
        """The plan as resolved, every default spelled out, to be read back the same."""
        return tomli_w.dumps(self.model_dump(exclude_none=True))


def _distinction(arm: ArmPlan) -> str:
    """What sets the arm apart."""
    if arm.distillation is not None:
        return f"distilled by {label(arm.distillation)}"
    return ", ".join(map(label, arm.defenses)) or "no defense"


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file.

    Raises:
        PlanError: if the file cannot be read or is no plan; every mistake is told at once, each
            with its place.

    """
    return read_table(Plan, path, "plan")


def parse_plan(text: str, place: str) -> Plan:
    """The plan that this TOML spells; `place` is named in errors."""
    return parse_table(Plan, text, place, "plan")
