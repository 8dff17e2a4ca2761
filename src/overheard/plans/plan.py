"""The plan of an audit: data, training, arms of defenses, threats and seeds."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import Field, FiniteFloat, field_validator, model_validator

from overheard.algorithms.fed_avg import FedAvg
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.attack import Attack, adapts_to_defenses
from overheard.core.defense import Defense
from overheard.core.errors import PlanError
from overheard.core.knowledge import KnownFact
from overheard.core.parties import (
    NETWORK,
    SERVER,
    Party,
    is_client,
    parse_party,
    party_sort_key,
)
from overheard.core.recipe import Precision, Recipe
from overheard.core.settings import Positive
from overheard.core.true_facts.record_owners import OfferedCanaries
from overheard.data.dataset import DataSource
from overheard.data.partition.schedule import Schedule
from overheard.federation.sampling import Sampling
from overheard.findings.html import html_table
from overheard.findings.names import COHORTS_KNOWN, name_observers
from overheard.findings.privacy.bound_settings import BoundSettings
from overheard.findings.question import Question
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.model import Model
from overheard.plans.data_plan import DataPlan
from overheard.plans.epsilon_plan import EpsilonPlan
from overheard.plans.plugin_field import PluginField, plugin_label
from overheard.plans.recording_plan import RecordingPlan
from overheard.plans.registries import (
    ALGORITHMS,
    ATTACKS,
    DATASETS,
    DEFENSES,
    DISTILLATIONS,
    MODELS,
    question_of_attack,
    questions,
)
from overheard.plans.release_plan import ReleasePlan, ReportPlan
from overheard.plans.strict_model import StrictModel, check_unique, parse_toml, read_toml
from overheard.plans.virtual_plan import RecipePlan, VirtualPlan

UNDEFENDED = "no defense"
"""Name of the arm without defenses, which every audit has as the reference for the others."""

EACH_CLIENT = "client/*"
"""Names each client of a run in turn as an observer."""

FIRST_CLIENT = "client/first"
"""Names the first client of a run as an observer."""

OBSERVER_WORDS = {EACH_CLIENT: "each client in turn", FIRST_CLIENT: "the first client"}

RunSeed = Annotated[int, Field(ge=0, lt=2**31)]

Margin = Annotated[FiniteFloat, Field(gt=0)]


class TrainingPlan(RecipePlan):
    """The training of the federation: one recipe for all clients, and the algorithm.

    Args:
        model: the architecture.
        rounds: number of rounds.
        participation: fraction of the clients selected in a round.
        failure_rate: probability that a selected client does not reply.
        algorithm: how the server uses updates, and what clients add to their training.
        sampling: how clients are selected: a fixed number of different ones; "poisson": each by
            itself, with the probability `participation`; "with_replacement": a fixed number of
            draws, where a client that is drawn twice counts twice.
        epochs_range: smallest and largest number of epochs, in place of `epochs`; each client
            draws its own once. Omitted: all clients train for the same epochs.
        straggler_rate: probability that a selected client is slow in a round, and trains for
            fewer epochs than its own: 1 or more, drawn evenly.
        precision: how far a GPU may round the factors of products while clients, and attackers'
            virtual clients, train: "tf32" to 10 bits, "bf16" to 7, to save time. Either changes
            updates. Omitted: "float32", not at all, as on a CPU.
        record: in a recording of messages with several records of arrays, the name of the one
            that is the model, such as "arrays". Omitted: the one with the model's tensors.

    """

    model: Annotated[Model, PluginField(MODELS)]
    rounds: Positive
    participation: Annotated[float, Field(gt=0, le=1)] = 1.0
    failure_rate: Annotated[float, Field(ge=0, lt=1)] = 0.0
    algorithm: Annotated[Algorithm, PluginField(ALGORITHMS)] = FedAvg()
    sampling: Sampling = "fixed"
    epochs_range: tuple[Positive, Positive] | None = None
    straggler_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    precision: Precision | None = None
    record: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("epochs_range")
    @classmethod
    def _check_epochs_range(cls, epochs: tuple[int, int] | None) -> tuple[int, int] | None:
        if epochs is not None and epochs[0] > epochs[1]:
            raise ValueError(f"the range {list(epochs)} is reversed")
        return epochs

    @property
    def recipe(self) -> Recipe:
        """The local training."""
        return replace(super().recipe, precision=self.precision or "float32")

    @property
    def possible_epochs(self) -> range:
        """Return the numbers of epochs for which a client may train in a round."""
        low, high = self.epochs_range or (self.epochs, self.epochs)
        return range(1 if self.straggler_rate else low, high + 1)


class ArmPlan(StrictModel):
    """A variant of the federation, with these defenses in this order.

    Args:
        name: the name of the arm.
        defenses: applied in this order.
        shadows_defended: whether the attacker's shadow devices apply the defenses to their data
            and updates as clients do, as an adaptive attacker would. They always follow a
            defense's changes of local training.
        distillation: how clients distil, if they send distilled data in place of weights.
        rounds: number of rounds, in place of the training's; distillation needs more.
        algorithm: the algorithm, in place of the training's.

    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]{0,63}$")]
    defenses: tuple[Annotated[Defense, PluginField(DEFENSES)], ...] = ()
    shadows_defended: bool = False
    distillation: Annotated[Distillation, PluginField(DISTILLATIONS)] | None = None
    rounds: Positive | None = None
    algorithm: Annotated[Algorithm, PluginField(ALGORITHMS)] | None = None

    @property
    def is_reference(self) -> bool:
        """Whether the arm is the plan's training alone, without defense or other protocol."""
        return not self.defenses and self.distillation is None and self.algorithm is None

    @model_validator(mode="after")
    def _check_distillation(self) -> "ArmPlan":
        if self.distillation is not None and self.algorithm is not None:
            raise ValueError("distillation is an algorithm of its own: make two arms")
        if self.distillation is not None and self.defenses:
            raise ValueError(
                "defenses act on weights, which distillation does not send: make two arms"
            )
        return self

    @field_validator("defenses")
    @classmethod
    def _check_unique_defenses(cls, defenses: tuple[Defense, ...]) -> tuple[Defense, ...]:
        check_unique([defense.name for defense in defenses])
        return defenses


KnownPart = Literal["auxiliary", "model", "recipe", "defenses", "cohorts"]


def _defense_words(attack: Attack[Any]) -> str:
    """Return what an attack does with known defenses, in words of its name."""
    if attack.training_source() in ("virtual clients", "known users", "shadow models"):
        return "knowing the defenses"
    if attack.used_training_parts():
        return "knowing defenses of training"
    return "not using the known defenses"


class ThreatPlan(StrictModel):
    """A threat model: observers, their knowledge, targets and attacks.

    Args:
        observers: parties that pool what they read, such as "server" and "client/0". Where the
            names of a run's clients are not known in advance, "client/first" is the first of
            them, and "client/*" each of them in turn, as a threat model of its own. Three
            observers are no party of the run: "release" has the final model alone, "late/3"
            reads the broadcasts from round 3 on, and "network" sees who sends how much when.
        attacks: each is run by itself.
        about: the targets: each client, or all clients of a round as a cohort.
        pseudonyms: how long a sender keeps its name: for the run, so that evidence of its
            rounds can be combined, or for a round, with updates in random order.
        knows: the attacker's knowledge; attacks that need more are refused. "cohorts" is who
            took part in each round, for observers that read broadcasts and no updates.
        by_round: whether attacks also run on each round alone, for the error by round; a number
            = on this number of rounds, evenly spaced from the first to the last.
        virtual: the virtual clients of attacks that simulate clients.
        auxiliary_from: another data set to draw auxiliary examples from, of the same shape,
            classes and vocabulary.
        auxiliary_shift: how much the auxiliary examples are distorted, from 0 to 1.

    """

    observers: Annotated[tuple[str, ...], Field(min_length=1)] = ("server",)
    attacks: Annotated[
        # Any: an attack answers a question of its own.
        tuple[Annotated[Attack[Any], PluginField(ATTACKS)], ...],
        Field(min_length=1),
    ]
    about: Literal["clients", "cohort"] = "clients"
    pseudonyms: Literal["run", "round"] = "run"
    knows: tuple[KnownPart, ...] = ("auxiliary", "model", "recipe")
    by_round: bool | Positive = True
    virtual: VirtualPlan = VirtualPlan()
    auxiliary_from: Annotated[DataSource, PluginField(DATASETS)] | None = None
    auxiliary_shift: Annotated[float, Field(ge=0, le=1)] = 0.0

    def questions(self) -> tuple[Question[Any], ...]:
        """Return the questions that its attacks answer, each once."""
        return tuple(dict.fromkeys(map(question_of_attack, self.attacks)))

    def attack_name(self, attack: Attack[Any]) -> str:
        """Return the full name of an attack in this threat, which findings and policies use.

        It is unique among the threats of a plan, even if they do not differ for the attack: it
        says what the attack does not use. Reports show `attack_label`.
        """
        knows = [_defense_words(attack)] if "defenses" in self.knows else []
        words = [*self._attack_words(attack), *knows, *self._knowledge_words()]
        virtual = self.virtual.name_words()
        if virtual and attack.training_source() != "virtual clients":
            virtual = (f"not simulating ({', '.join(virtual)})",)
        return ", ".join([*words, *virtual])

    def attack_label(self, attack: Attack[Any], arm: ArmPlan) -> str:
        """Return the displayed name of an attack, with what affects it in this arm."""
        adaptive = ["adapting to the defenses"] if self.adapts_to_defenses(attack, arm) else []
        words = [*self._attack_words(attack), *adaptive, *self._knowledge_words()]
        simulates = attack.training_source() == "virtual clients"
        return ", ".join([*words, *(self.virtual.name_words() if simulates else ())])

    def adapts_to_defenses(self, attack: Attack[Any], arm: ArmPlan) -> bool:
        """Return whether an attack of this threat adapts to the defenses of an arm."""
        known = arm.defenses if "defenses" in self.knows else ()
        return adapts_to_defenses(attack, known, arm.defenses, arm.shadows_defended)

    def _attack_words(self, attack: Attack[Any]) -> list[str]:
        words = [plugin_label(attack)]
        if self.about == "cohort":
            has_client = any(map(is_client, self.observer_parties))
            words.append(f"about the {'other clients' if has_client else 'cohort'}")
        if self.pseudonyms == "round":
            words.append("one pseudonym a round")
        return words

    def _knowledge_words(self) -> list[str]:
        words = []
        unknown = [part for part in ("auxiliary", "model", "recipe") if part not in self.knows]
        if unknown:
            words.append(f"without {' and '.join(unknown)}")
        # The server knows it anyway.
        if "cohorts" in self.knows and SERVER not in self.observer_parties:
            words.append(COHORTS_KNOWN)
        if self.auxiliary_from is not None:
            words.append(f"auxiliary examples from {plugin_label(self.auxiliary_from)}")
        if self.auxiliary_shift:
            words.append(f"auxiliary examples distorted by {self.auxiliary_shift}")
        return words

    @model_validator(mode="after")
    def _check_consistency(self) -> "ThreatPlan":
        if self.pseudonyms == "round" and self.about == "cohort":
            raise ValueError(
                "pseudonyms by round are for single clients: set about = 'clients'"
            )
        if self.pseudonyms == "round" and self.observer_parties not in ((SERVER,), (NETWORK,)):
            raise ValueError(
                "pseudonyms by round hide clients from the server or from the network only: "
                "set observers = ['server'], or ['network'] if their addresses change"
            )
        about_users = [
            one.name for one in self.attacks if question_of_attack(one).is_about_users
        ]
        if about_users and self.about == "cohort":
            raise ValueError(
                f"{', '.join(about_users)}: a cohort has no identity: set about = 'clients'"
            )
        changes_auxiliary = self.auxiliary_from is not None or self.auxiliary_shift
        if changes_auxiliary and "auxiliary" not in self.knows:
            raise ValueError(
                "auxiliary_from and auxiliary_shift need auxiliary examples: add 'auxiliary' "
                "to knows"
            )
        if self.virtual.recipes and "recipe" in self.knows:
            raise ValueError(
                "virtual.recipes are for attackers that do not know the recipe: remove "
                "'recipe' from knows"
            )
        return self

    @field_validator("observers")
    @classmethod
    def _parse_observers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        check_unique(names)
        return tuple(name if name == EACH_CLIENT else parse_party(name) for name in names)

    @property
    def observer_parties(self) -> tuple[Party, ...]:
        """The observers as parties; those of a threat `in_run` are parties of the run."""
        return tuple(map(Party, self.observers))

    @property
    def shown_observers(self) -> tuple[Party, ...]:
        """The observers with words for those that a run will name."""
        return tuple(Party(OBSERVER_WORDS.get(name, name)) for name in self.observers)

    def in_run(self, parties: Collection[Party]) -> "tuple[ThreatPlan, ...]":
        """Return this threat with the observers that its names stand for in a run.

        There is one threat for each client if it names each client in turn.

        Args:
            parties: all parties of the run.

        """
        clients = sorted(filter(is_client, parties), key=party_sort_key)
        names = [
            clients[0] if name == FIRST_CLIENT and clients and name not in parties else name
            for name in self.observers
        ]
        if EACH_CLIENT not in names:
            return (self.model_copy(update={"observers": tuple(dict.fromkeys(names))}),)
        return tuple(
            self.model_copy(
                update={
                    "observers": tuple(one if name == EACH_CLIENT else name for name in names)
                }
            )
            for one in clients
            if one not in names
        )


_WITHOUT_CLAIMS: Mapping[str, StrictModel] = {
    "report": ReportPlan(),
    "release": ReleasePlan(),
    "recording": RecordingPlan(),
}
"""The tables of a plan that change no claim, with their defaults."""


class Plan(StrictModel):
    """The plan of an audit: every arm is simulated with every seed and audited by every threat.

    An arm without defenses is added if there is none. The same seed gives the same data
    partition and initial weights in every arm, so that arms differ only by their defenses.

    Args:
        title: the title of the report.
        seeds: one run of every arm for each.
        data: the data of the clients and of attackers.
        training: the training of the federation.
        arms: the variants of the federation to compare.
        threats: the threat models.
        margins: by score, the gain over an uninformed guess below which a leak does not matter
            to you. Where every attack's gain is shown to be below it, the verdict is "no leak
            above" this margin. Such a margin never hides a leak that is found. Scores that are
            not given keep the margin of their question: see docs/statistics.md.
        report: what the report shows; it changes no result.
        release: who answers for the results, and what they are for; it changes no result.
        recording: what you state of the recording that is audited.
        epsilon: how epsilon is bounded from canaries.

    """

    title: Annotated[str, Field(max_length=200)] = "Audit"
    seeds: Annotated[tuple[RunSeed, ...], Field(min_length=1)] = (0,)
    data: DataPlan
    training: TrainingPlan
    arms: Annotated[tuple[ArmPlan, ...], Field(validate_default=True)] = ()
    threats: Annotated[tuple[ThreatPlan, ...], Field(min_length=1)]
    margins: Mapping[str, Margin] = Field(default_factory=dict)
    report: ReportPlan = ReportPlan()
    release: ReleasePlan = ReleasePlan()
    recording: RecordingPlan = RecordingPlan()
    epsilon: EpsilonPlan = EpsilonPlan()

    @field_validator("arms")
    @classmethod
    def _add_undefended_arm(cls, arms: tuple[ArmPlan, ...]) -> tuple[ArmPlan, ...]:
        undefended = [arm.is_reference for arm in arms]
        named_so = [arm.name.casefold() == UNDEFENDED for arm in arms]
        if any(name and not one for name, one in zip(named_so, undefended, strict=True)):
            raise ValueError(f"{UNDEFENDED!r} is the arm without defenses: rename this arm")
        if not any(undefended):
            arms = (ArmPlan(name=UNDEFENDED), *arms)
        # Names of run folders must differ on case-insensitive disks too.
        check_unique([arm.name.casefold().replace(" ", "_") for arm in arms])
        return arms

    @field_validator("seeds")
    @classmethod
    def _check_unique_seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        check_unique([str(seed) for seed in seeds])
        return seeds

    @field_validator("threats")
    @classmethod
    def _check_unique_threats(cls, threats: tuple[ThreatPlan, ...]) -> tuple[ThreatPlan, ...]:
        check_unique_threats(threats)
        return threats

    @field_validator("margins")
    @classmethod
    def _check_known_margins(cls, margins: Mapping[str, float]) -> Mapping[str, float]:
        known = sorted({score for one in questions().values() for score in one.margins})
        unknown = sorted(margins.keys() - set(known))
        if unknown:
            raise ValueError(
                f"no question has a margin for {', '.join(unknown)}; known: {', '.join(known)}"
            )
        return margins

    @model_validator(mode="after")
    def _check_consistency(self) -> "Plan":
        for shift in self.data.shifts:
            if shift.client >= self.data.clients or shift.round >= self.training.rounds:
                raise ValueError(
                    f"data.shifts: client {shift.client} or round {shift.round} is out of "
                    f"range: there are {self.data.clients} clients and "
                    f"{self.training.rounds} rounds, both counted from 0"
                )
        try:
            self.schedule  # noqa: B018 - a schedule validates itself when created
        except PlanError as error:
            raise ValueError(f"data.shifts: {error}") from error
        if any(arm.rounds for arm in self.arms) and (
            self.data.shifts or self.data.refresh_every is not None
        ):
            raise ValueError(
                "arms.rounds cannot be combined with changing data: remove arms.rounds, or "
                "data.shifts and data.refresh_every"
            )
        users = self.data.people
        if (
            users is not None
            and users.shadow_devices
            and any(arm.distillation for arm in self.arms)
        ):
            raise ValueError(
                "data.people.shadow_devices cannot take part in distillation: remove them, or "
                "the arms with distillation"
            )
        wanted, names = self.epsilon.attack, [one.name for _, one in self._canary_attacks()]
        if wanted is not None and wanted not in names:
            raise ValueError(
                f"epsilon.attack: no threat has the membership attack {wanted}; there are "
                f"{', '.join(sorted({*names})) or 'none'}"
            )
        count = self.data.auxiliary_per_class or self.data.auxiliary
        for number, threat in enumerate(self.threats):
            if threat.auxiliary_from is not None and count is None:
                raise ValueError(
                    f"threats.{number}.auxiliary_from: give the number of auxiliary examples "
                    "by data.auxiliary_per_class or data.auxiliary"
                )
        return self

    def algorithm_of(self, arm: ArmPlan) -> Algorithm:
        """Return the algorithm of an arm."""
        return arm.algorithm or self.training.algorithm

    def rounds_of(self, arm: ArmPlan) -> int:
        """Return the number of rounds of an arm."""
        return arm.rounds or self.training.rounds

    @property
    def schedule(self) -> Schedule:
        """When clients' examples are replaced, and which clients' data shift."""
        data = self.data
        return Schedule(
            self.training.rounds,
            data.refresh_every,
            data.shifts,
            draws=data.exchanges,
            first_draws=data.exchanges,
        )

    def _repr_html_(self) -> str:
        data, training = self.data, self.training
        split = "" if data.split is None else f", partitioned by {plugin_label(data.split)}"
        rows = [
            ("data", f"{plugin_label(data.source)}, {data.clients} clients{split}"),
            ("training", f"{plugin_label(training.model)}, {training.rounds} rounds"),
            ("seeds", ", ".join(map(str, self.seeds))),
        ]
        rows += [(f"arm {one.name}", _describe_arm(one)) for one in self.arms]
        rows += [
            (
                f"threat by {name_observers(one.shown_observers)}",
                "; ".join(map(one.attack_name, one.attacks)),
            )
            for one in self.threats
        ]
        return html_table(self.title, (), rows)

    def questions(self) -> tuple[Question[Any], ...]:
        """Return the questions that the attacks answer, each once."""
        return tuple(
            dict.fromkeys(one for threat in self.threats for one in threat.questions())
        )

    def bound_settings(self, stated_digest: str | None = None) -> BoundSettings:
        """Return how epsilon is bounded from canaries.

        Args:
            stated_digest: the digest that was stated when the canaries were drawn; "" = none
                was stated, which stands for the defaults; None = the audit draws them itself.

        """
        epsilon, attacks = self.epsilon, list(self._canary_attacks())
        by_name = [
            {"observers": sorted(threat.observers), "attack": threat.attack_name(attack)}
            for threat, attack in attacks
        ]
        # What attackers suppose and have: another rate or more examples is another try. The
        # source may move to another folder; the digest of its canaries is stated apart.
        training = self.training.model_dump(mode="json", exclude={"record"})
        data = self.data.model_dump(mode="json", exclude={"source"})
        supposed: list[dict[str, Any]] = [{"training": training, "data": data}, *by_name]
        return BoundSettings(
            epsilon.attack or "",
            epsilon.guesses,
            epsilon.level,
            epsilon.digest(supposed),
            EpsilonPlan().digest(supposed) if stated_digest == "" else stated_digest,
        )

    def _canary_attacks(self) -> Iterator[tuple[ThreatPlan, Attack[Any]]]:
        """Yield the attacks that are scored by canaries, with their threats."""
        for threat in self.threats:
            for attack in threat.attacks:
                if OfferedCanaries in question_of_attack(attack).reads:
                    yield threat, attack

    def known_kinds(self) -> tuple[type[KnownFact], ...]:
        """Return the kinds of facts that attackers may know, each once."""
        return tuple(dict.fromkeys(kind for one in self.questions() for kind in one.gives))

    def without_release(self) -> "Plan":
        """Return the plan without what changes no claim: report, release, the recording's.

        The same claims may be released anew, to somebody else, or be accepted after all.
        """
        return self.model_copy(update=_WITHOUT_CLAIMS)

    def toml(self) -> str:
        """Return the plan as TOML with all defaults, which is read back as the same plan."""
        content = self.model_dump(exclude_none=True)
        for name, default in {**_WITHOUT_CLAIMS, "epsilon": EpsilonPlan()}.items():
            if getattr(self, name) == default:
                del content[name]
        return tomli_w.dumps(content)


def check_unique_threats(threats: Sequence[ThreatPlan]) -> None:
    """Raise `ValueError` if the same observers run the same attack in two threats."""
    check_unique(
        [
            f"{threat.attack_name(attack)} by {' and '.join(sorted(threat.observers))}"
            for threat in threats
            for attack in threat.attacks
        ]
    )


def _describe_arm(arm: ArmPlan) -> str:
    """Describe the defenses or the distillation of an arm."""
    if arm.distillation is not None:
        return f"distilled by {plugin_label(arm.distillation)}"
    parts = [*([] if arm.algorithm is None else [arm.algorithm]), *arm.defenses]
    return ", ".join(map(plugin_label, parts)) or "no defense"


def read_plan(path: Path) -> Plan:
    """Read a plan from a TOML file.

    Raises:
        PlanError: if the file cannot be read or is no plan; it lists all errors with their
            locations.

    """
    return read_toml(Plan, path, "plan")


def parse_plan(text: str, place: str) -> Plan:
    """Parse a plan from TOML text; errors name `place` as its source."""
    return parse_toml(Plan, text, place, "plan")
