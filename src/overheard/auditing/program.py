"""The program of an audit: its plan resolved into runs, and into the attacks on each run."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, final

from overheard.auditing.folder import DATA, run_folder
from overheard.auditing.run_kinds import PLANNED, RunKind, run_kinds
from overheard.core.attack import Attack
from overheard.core.errors import PlanError
from overheard.core.parties import (
    EXTERNAL_NAMES,
    SERVER,
    Party,
    client,
    is_external,
    party_sort_key,
)
from overheard.core.seeds import Seed
from overheard.data.dataset import DataSource
from overheard.disk.digests import mark_of_trust, sha256_of
from overheard.findings.finding import Cell
from overheard.findings.question import Question
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, check_unique_threats
from overheard.plans.registries import question_of_attack
from overheard.plans.source_code import code_digest, file_digests, simulation_digest
from overheard.statistics.evenly_spaced import select_evenly_spaced

RECORDED = "recorded"
"""Name of the single arm in the audit of a recording."""

TRAINING_MODULES = ("overheard.auditing.simulate", "overheard.federation.run")

ATTACK_MODULES = ("overheard.auditing.attack_runner", *TRAINING_MODULES)


@final
@dataclass(frozen=True, slots=True, eq=False)
class AttackSpec:
    """An attack on a run: its cell of all rounds, and which rounds it attacks alone too.

    Args:
        number: the number of the threat among those of the run, from 0.
        threat: the threat; its observers are parties of the run.
        attack: the attack.
        question: the question that it answers.
        cell: the cell of all rounds.
        single_rounds: the rounds that are also attacked one by one, in order.
        code: digest of the code and the data that the claims depend on.
        simulation_code: the same, of the simulations of the attack.

    Both digests end in `disk.digests.NOT_COMPARED` if the store is trusted.

    """

    number: int
    threat: ThreatPlan
    # Any: an attack answers a question of its own.
    attack: Attack[Any]
    question: Question[Any]
    cell: Cell
    single_rounds: tuple[int, ...]
    code: str
    simulation_code: str

    def __len__(self) -> int:
        """Return the number of cells."""
        return 1 + len(self.single_rounds)

    @property
    def seed(self) -> Seed:
        """The seed of the attack."""
        return Seed(self.cell.seed).child("attack", self.cell.attack)

    def of_rounds(self, rounds: tuple[int, ...]) -> Cell:
        """Return the cell of the attack on these rounds."""
        return replace(self.cell, rounds=rounds)

    def describe(self, rounds: tuple[int, ...], *, is_single: bool = False) -> str:
        """Return the attack and its run, for a line of progress."""
        run = f"seed {self.cell.seed}{_control_name(self.cell)}"
        round_name = f", round {rounds[0]}" if is_single else ""
        return f"{self.cell.arm}, {run}: {self.cell.attack}{round_name}"

    def is_in(self, run: "RunSpec") -> bool:
        """Return whether the same attack is made on a run of the same arm."""
        return self.cell.arm == run.name and run.kind.allows(self.question)

    def in_run(self, seed: int, kind: RunKind) -> "AttackSpec":
        """Return the same attack on another run of the arm."""
        cell = replace(
            self.cell,
            seed=seed,
            is_control=kind.is_control,
            control=kind.draws,
            control_number=kind.number,
        )
        return replace(self, cell=cell)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RunSpec:
    """One run, and the attacks on it.

    Args:
        arm: the arm of the plan, with the defenses in force.
        name: the name of the arm in the report; "recorded" for a recording.
        seed: its seed.
        kind: whether it is the planned run or one of its controls.
        rounds: the rounds with updates, in order.
        attacks: the attacks on it, threat by threat.
        folder: its folder within that of the audit; None = it was recorded.
        origin: digests of all that the run depends on: code by module, data by name.

    """

    arm: ArmPlan
    name: str
    seed: int
    kind: RunKind
    rounds: tuple[int, ...]
    attacks: tuple[AttackSpec, ...]
    folder: Path | None = None
    origin: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of work items: rounds to train, and cells."""
        return sum(map(len, self.attacks)) + self.rounds_to_train

    @property
    def rounds_to_train(self) -> int:
        """The number of rounds that are simulated."""
        return 0 if self.folder is None else len(self.rounds)

    def path_in(self, audit: Path) -> Path:
        """Return its folder, given that of the audit."""
        assert self.folder is not None, "it is simulated"
        return audit / self.folder

    def by_threat(self) -> Iterator[tuple[AttackSpec, ...]]:
        """Yield the attacks of each threat."""
        for _, attacks in groupby(self.attacks, attrgetter("number")):
            yield tuple(attacks)


@final
@dataclass(frozen=True, slots=True, eq=False)
class AuditProgram:
    """All that an audit does, in order.

    Args:
        plan: the plan.
        runs: its runs, arm by arm; controls follow their planned run.

    """

    plan: Plan
    runs: tuple[RunSpec, ...]

    def __len__(self) -> int:
        """Return the number of work items."""
        return sum(map(len, self.runs))

    @property
    def rounds_to_train(self) -> int:
        """The number of rounds that are simulated."""
        return sum(run.rounds_to_train for run in self.runs)


def resolve_plan(plan: Plan, data: Mapping[str, str]) -> AuditProgram:
    """Resolve a plan whose runs are simulated.

    Args:
        plan: the plan.
        data: the digest of each data set by its name, the audited one first.

    Raises:
        PlanError: if a threat names an observer that is no party of the runs, or attacks need
            different controls.

    """
    parties = (SERVER, *map(client, range(plan.data.clients)))
    threats = name_observers_of_run(plan, parties)
    audited, *_ = data.items()
    origins = [run_origin(plan, arm, dict([audited])) for arm in plan.arms]
    kinds = run_kinds(plan)
    runs = list[RunSpec]()
    for arm, origin in zip(plan.arms, origins, strict=True):
        rounds = tuple(range(plan.rounds_of(arm)))
        attacks = tuple(_attacks_of_arm(plan, arm, arm.name, rounds, threats, data))
        runs += (
            RunSpec(
                arm,
                arm.name,
                seed,
                kind,
                rounds,
                tuple(one.in_run(seed, kind) for one in attacks if kind.allows(one.question)),
                run_folder(arm.name, seed, kind.folder_suffix),
                origin,
            )
            for seed in plan.seeds
            for kind in kinds
        )
    return AuditProgram(plan, tuple(runs))


def resolve_recording(
    plan: Plan,
    arm: ArmPlan,
    rounds: tuple[int, ...],
    parties: Collection[Party],
    data: Mapping[str, str],
    recording: str,
) -> RunSpec:
    """Return the run of a recording that a plan audits, and the attacks on it.

    Args:
        plan: the plan.
        arm: the arm with the recorded defenses.
        rounds: the rounds with updates, in order.
        parties: the parties of the run.
        data: the digest of each data set by its name.
        recording: a digest of its messages; "" = the run goes on.

    Raises:
        PlanError: if a threat names an observer that is no party of the run.

    """
    threats = name_observers_of_run(plan, parties)
    attacks = tuple(_attacks_of_arm(plan, arm, RECORDED, rounds, threats, data, recording))
    return RunSpec(arm, RECORDED, plan.seeds[0], PLANNED, rounds, attacks)


def name_observers_of_run(plan: Plan, parties: Collection[Party]) -> tuple[ThreatPlan, ...]:
    """Return the threats of a plan with the observers that they stand for in a run.

    Raises:
        PlanError: if a threat names an observer that is no party of the run, or two threats
            stand for the same one.

    """
    threats = tuple(one for threat in plan.threats for one in threat.in_run(parties))
    try:
        check_unique_threats(threats)
    except ValueError as error:
        raise PlanError(
            f"threats: {error}: remove the observers that another threat covers"
        ) from error
    refuse_unknown_observers(threats, parties)
    return threats


def refuse_unknown_observers(threats: Sequence[ThreatPlan], parties: Collection[Party]) -> None:
    """Refuse observers that are not parties: their empty view would look like no leak.

    Raises:
        PlanError: if a threat names such an observer.

    """
    known = sorted(parties, key=party_sort_key)
    for number, threat in enumerate(threats):
        for observer in threat.observer_parties:
            if observer not in known and not is_external(observer):
                raise PlanError(
                    f"threats.{number}.observers: {observer} is not a party of the run: choose "
                    f"from {', '.join(known)}, or {EXTERNAL_NAMES}"
                )


def _attacks_of_arm(
    plan: Plan,
    arm: ArmPlan,
    name: str,
    rounds: tuple[int, ...],
    threats: Sequence[ThreatPlan],
    data: Mapping[str, str],
    recording: str = "",
) -> Iterator[AttackSpec]:
    """Yield the attacks on the planned run of an arm and the first seed."""
    settings = plan.without_release().model_copy(update={"seeds": (), "arms": (arm,)}).toml()
    digest, mark = combined_digest(data), mark_of_trust()
    run = blake2b(repr((digest, recording, settings)).encode(), digest_size=12).hexdigest()
    # Threats that only differ by their observers share the code of their attacks.
    codes = dict[str, tuple[str, str]]()
    for number, threat in enumerate(threats):
        for attack in threat.attacks:
            question = question_of_attack(attack)
            plugins = attack_plugins(plan, arm, threat, attack)
            key = repr(plugins)
            if key not in codes:
                codes[key] = (
                    f"{cell_code(question, plugins)}, run {run}{mark}",
                    f"{simulation_digest(plugins)}, data {digest}{mark}",
                )
            single = single_rounds(threat, question, rounds)
            cell = Cell(
                arm=name,
                seed=plan.seeds[0],
                observers=threat.observer_parties,
                attack=threat.attack_name(attack),
                settings=repr(attack),
                question=question.name,
                rounds=rounds,
                part=attack.name,
                label=threat.attack_label(attack, arm),
                is_adaptive=threat.adapts_to_defenses(attack, arm),
            )
            yield AttackSpec(number, threat, attack, question, cell, single, *codes[key])


# Any: a question has claims of its own.
def single_rounds(
    threat: ThreatPlan, question: Question[Any], rounds: Sequence[int]
) -> tuple[int, ...]:
    """Return the rounds that are also attacked one by one, in order.

    There are none if a single round cannot answer the question, as for shifts. Single rounds of
    a user are covered by threats with one pseudonym a round, whose attackers learn from all.
    """
    if not threat.by_round or question.needs_all_rounds:
        return ()
    return (
        tuple(rounds)
        if threat.by_round is True
        else select_evenly_spaced(rounds, threat.by_round)
    )


def combined_digest(digests: Mapping[str, str]) -> str:
    """Return one digest of named digests, 24 hexadecimal digits."""
    return blake2b(repr(sorted(digests.items())).encode(), digest_size=12).hexdigest()


def run_origin(plan: Plan, arm: ArmPlan, data: Mapping[str, str]) -> Mapping[str, str]:
    """Return digests of all that the runs of an arm depend on: code by module, data by name.

    Args:
        plan: the plan.
        arm: the arm.
        data: the digest of the plan's data set, by its name.

    """
    plugins = training_plugins(plan, arm)
    named = {**data, **_named_files(plugins)}
    return {
        **file_digests(TRAINING_MODULES, plugins),
        **{f"{DATA}{name}": digest for name, digest in named.items()},
    }


def cell_code(question: Question[Any], plugins: Sequence[object]) -> str:
    """Return the digest of the code that an attack's claims depend on.

    The scorer is among it, as uninformed guesses are its own, and so are a question that makes
    facts for its attackers, and whether it needs classes, without which the attack is refused.

    Args:
        question: the question that the attack answers.
        plugins: those of `attack_plugins`.

    """
    makes_known_facts = type(question).make_known_facts is not Question.make_known_facts
    used = (*plugins, question.scorer, question if makes_known_facts else None)
    files = (f"{digest} of {name}" for name, digest in _named_files(used).items())
    named = ", ".join([code_digest(ATTACK_MODULES, used), *files])
    return f"{named}, of classes" if question.needs_classes else named


def attack_plugins(
    plan: Plan, arm: ArmPlan, threat: ThreatPlan, attack: Attack[Any]
) -> tuple[object, ...]:
    """Return the plugins that the claims of an attack in an arm depend on."""
    assumed = (threat.auxiliary_from, *threat.virtual.splits)
    return (*training_plugins(plan, arm), *assumed, attack)


def training_plugins(plan: Plan, arm: ArmPlan) -> tuple[object, ...]:
    """Return the plugins that the runs of an arm depend on; None is no plugin."""
    data, model = plan.data, plan.training.model
    return (
        *(data.source, data.split, model),
        *(*arm.defenses, arm.distillation, plan.algorithm_of(arm)),
    )


def _named_files(plugins: Iterable[object]) -> Mapping[str, str]:
    """Return the SHA-256 of each file that a setting of a plugin names, by the setting.

    The file of a data source is left out: it counts by what was read of it.
    """
    found = dict[str, str]()
    for plugin in plugins:
        if isinstance(plugin, DataSource) or not is_dataclass(plugin):
            continue
        for setting in (getattr(plugin, one.name) for one in fields(plugin)):
            if isinstance(setting, str) and _is_file(setting):
                found[setting] = sha256_of(Path(setting))
    return found


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # no text that can be a path
        return False


def _control_name(cell: Cell) -> str:
    """Name the control of a cell for a line of progress; nothing for a planned run."""
    if not cell.is_control:
        return ""
    number = f" {cell.control_number + 1}" if cell.control_number else ""
    return f", {cell.control} control{number}" if cell.control else ", control"
