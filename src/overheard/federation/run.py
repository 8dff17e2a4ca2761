"""Runs of federations, each in its own folder; an interrupted run can be resumed."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.archive.reader import open_transcript, read_round
from overheard.archive.recorder import Recorder
from overheard.archive.truth import has_truth, read_truth, write_truth
from overheard.core.algorithm.algorithm import ServerState
from overheard.core.defense import Defense
from overheard.core.facts import Facts
from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.parties import SERVER, is_shadow_device
from overheard.core.transcript import Transcript
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.truth import GroundTruth, TrueFact
from overheard.federation.cohort import defense_context
from overheard.federation.derived_updates import derive_updates
from overheard.federation.digest import data_digests
from overheard.federation.distillation_run import DistillationRun
from overheard.federation.federation import Federation
from overheard.federation.local_tensors import LocalTensors, local_names
from overheard.federation.round import (
    FederationRound,
    broadcast_message,
    clients_at_once,
    run_round,
)
from overheard.federation.round_messages import MOST_BYTES, RoundMessages
from overheard.federation.sampling import clients_per_round
from overheard.federation.server import Server
from overheard.learning.evaluate import utility
from overheard.learning.initialization import initial_weights
from overheard.learning.precision import computing
from overheard.learning.threads import single_thread
from overheard.learning.train import prepare_workers
from overheard.statistics.evenly_spaced import select_evenly_spaced

MAX_TESTED_BROADCASTS = 51
"""Most broadcasts that are tested; with hundreds of short rounds, tests would dominate."""


__all__ = ["Federation", "run", "run_federations"]


def run(
    federation: Federation, folder: Path, on_round: Callable[[int], None] | None = None
) -> tuple[Transcript, GroundTruth]:
    """Run a federation, and return its transcript and ground truth.

    Every round starts from the files of the round before. So a run that is killed at any time
    and resumed ends with the same files, byte for byte, as an uninterrupted one. A complete run
    is only opened.

    Args:
        federation: the federation to run.
        folder: folder for `transcript/` and `truth.json`.
        on_round: called with the number of each round once it is on the disk.

    Raises:
        OutputError: if the folder holds another run, or cannot be written to.
        PlanError: if the training of a client diverges.

    """
    (done,) = run_federations((federation,), (folder,), on_round)
    return done


def run_federations(
    federations: Sequence[Federation],
    folders: Sequence[Path],
    on_round: Callable[[int], None] | None = None,
    *,
    inside: Path | None = None,
) -> tuple[tuple[Transcript, GroundTruth], ...]:
    """Run federations with one model and recipe at once, round by round.

    If the engine stacks, clients of several federations train as one stack. Each folder gets
    the files that `run` would write, up to the rounding of weights: the last bits depend on the
    other clients in the stack. The same federations in the same order, killed at any time and
    resumed, end with the same files byte for byte. For this, all federations of a stack train
    again if one of them is missing the round.

    120 federations of two clients with 2,000 examples (14 x 14 pixels, one layer of 64, 20
    rounds of two epochs) take about a minute of one core. One by one they take 110 s.

    Args:
        federations: the federations to run, see `check_stackable`.
        folders: folders for `transcript/` and `truth.json`, one per federation.
        on_round: called with the number of each round once all have it on the disk.
        inside: the output folder that all folders are in; None = each is one itself.

    Raises:
        OutputError: if a folder holds another run, or cannot be written to.
        PlanError: if the training of a client diverges.

    """
    if len(set(folders)) != len(federations):
        raise ValueError(
            f"each federation must have its own folder, got {len(federations)} federations "
            f"and {len(set(folders))} folders"
        )
    check_stackable(federations)
    if federations:
        first = federations[0]
        prepare_workers(first.build_model, first.engine, first.workers, first.device)
    with single_thread(), computing("float32"):
        runs = [
            _FederationRun(
                federation,
                folder,
                inside or folder,
                manifest,
                Recorder(folder, manifest, inside=inside),
                Server(federation, partial(read_round, folder)),
                _local_tensors(federation, folder, inside),
            )
            for federation, folder, manifest in zip(
                federations, folders, build_manifests(federations), strict=True
            )
        ]
        if any(one.distillation is not None for one in federations):
            return tuple(_run_distillation(run, on_round) for run in runs)
        were_complete = [run.is_complete() for run in runs]
        if not all(were_complete):
            _run_missing_rounds(runs, on_round)
        return tuple(map(_open_run, runs, were_complete))


def _run_distillation(
    run: "_FederationRun", on_round: Callable[[int], None] | None
) -> tuple[Transcript, GroundTruth]:
    """Run a federation that shares distilled data, and derive updates from them."""
    federation, folder = run.federation, run.folder
    was_complete = run.is_complete()
    distilling = DistillationRun(federation, folder, run.inside)
    distilling.run_missing_rounds(run.recorder, on_round)
    transcript = derive_updates(
        open_transcript(folder),
        distilling.distiller,
        distilling.start,
        run.manifest,
        folder,
        inside=run.inside,
    )
    if not (was_complete and has_truth(folder)):
        write_truth(folder, build_ground_truth(federation, transcript), inside=run.inside)
    return transcript, _read_truth(federation, folder)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _FederationRun:
    """A federation, and the folder in the output folder to which it is written."""

    federation: Federation
    folder: Path
    inside: Path
    manifest: Manifest
    recorder: Recorder
    server: Server
    home: LocalTensors | None

    def is_missing(self, number: int) -> bool:
        return self.recorder.committed_rounds() <= number

    def is_complete(self) -> bool:
        return not self.is_missing(self.federation.rounds)

    def state_at(self, number: int) -> ServerState:
        """Return the state of the server at the start of a round."""
        return self.server.state_at(number)


def _local_tensors(
    federation: Federation, folder: Path, inside: Path | None
) -> LocalTensors | None:
    names = local_names(federation.algorithm, federation.build_model)
    return LocalTensors(federation, names, folder, inside=inside) if names else None


def _run_missing_rounds(
    runs: Sequence[_FederationRun], on_round: Callable[[int], None] | None
) -> None:
    """Run the rounds that any run is missing, then record missing closing broadcasts."""
    federations = [run.federation for run in runs]
    first = federations[0]
    size = clients_at_once(initial_weights(first.build_model, first.seed.child("initial")))
    run_stacks = [
        [runs[index] for index in stack] for stack in split_into_stacks(federations, size)
    ]
    for number in range(min(run.recorder.committed_rounds() for run in runs), first.rounds):
        for stack in run_stacks:
            if any(run.is_missing(number) for run in stack):
                _run_stack_round(stack, number)
        if on_round is not None:
            on_round(number)
    for run in runs:
        if not run.is_complete():
            final = run.state_at(first.rounds)
            with run.recorder.open_round() as record:
                record.record(broadcast_message(run.federation, first.rounds, final))


def _run_stack_round(stack: Sequence[_FederationRun], number: int) -> None:
    """Run a round of the federations of one stack; it is committed for all of them at once."""
    recorded = dict[Path, RoundMessages]()
    with ExitStack() as rounds:
        sessions = []
        for run in stack:
            state = run.state_at(number)
            if run.is_missing(number):
                open_round = rounds.enter_context(run.recorder.open_round())
                recorded[run.folder] = RoundMessages(open_round, MOST_BYTES // len(stack))
            sessions.append(
                FederationRound(run.federation, state, recorded.get(run.folder), run.home)
            )
        run_round(sessions, number)
    for run in stack:
        if run.folder in recorded:
            run.server.remember(number, recorded[run.folder].in_memory())


def _open_run(run: _FederationRun, was_complete: bool) -> tuple[Transcript, GroundTruth]:
    """Open a complete run; write its ground truth if it is new or was missing."""
    transcript = open_transcript(run.folder)
    if not (was_complete and has_truth(run.folder)):
        truth = build_ground_truth(run.federation, transcript, run.home)
        write_truth(run.folder, truth, inside=run.inside)
    return transcript, _read_truth(run.federation, run.folder)


def _read_truth(federation: Federation, folder: Path) -> GroundTruth:
    """Return the stored ground truth, with what the federation states of its clients now."""
    facts = _stated_facts(federation)
    truth = read_truth(folder, (LabelCounts, *map(type, facts)))
    for fact in facts:
        truth = truth.having(fact)
    return truth


def build_manifests(federations: Sequence[Federation]) -> tuple[Manifest, ...]:
    """Build the manifest of each run."""
    return tuple(map(build_manifest, federations, data_digests(federations)))


def build_manifest(federation: Federation, data: str) -> Manifest:
    """Build the manifest of a run on data with this digest."""
    return Manifest(
        task=federation.task,
        model=federation.model,
        recipe=federation.recipe,
        defenses=tuple(
            record_defense(
                defense,
                federation.most_epochs,
                repeats_examples=any(one.repeats_examples for one in federation.defenses),
            )
            for defense in federation.defenses
        ),
        parties=(SERVER, *federation.clients),
        rounds=federation.rounds,
        participation=federation.participation,
        failure_rate=federation.failure_rate,
        are_shadows_defended=federation.are_shadows_defended,
        protocol=federation.protocol,
        seed=federation.seed.value,
        data=data,
    )


def record_defense(
    defense: Defense, epochs: int, *, repeats_examples: bool = False
) -> DefenseRecord:
    """Return the manifest entry of a defense.

    Args:
        defense: with its settings.
        epochs: the most epochs of a client in a round.
        repeats_examples: whether a defense of the data may repeat examples.

    """
    mechanism = defense.mechanism()
    if mechanism is not None:
        mechanism = mechanism.in_round(epochs, repeats_examples=repeats_examples)
    return DefenseRecord(
        defense.name,
        repr(defense),
        defense.enforced_at,
        defense.switched_off_by,
        mechanism,
    )


def build_ground_truth(
    federation: Federation, transcript: Transcript, home: LocalTensors | None = None
) -> GroundTruth:
    """Build the ground truth: label counts, accuracies, and what is true of the clients.

    Label counts are of the clients with an update, before any defense changes their examples,
    because such a defense is to protect them. Accuracies are of the broadcasts, the closing one
    included; without classes, they are the utility of the task. Of more than
    `MAX_TESTED_BROADCASTS` broadcasts, that many are tested, evenly spaced.

    Args:
        federation: the run.
        transcript: its messages.
        home: the tensors that stay with each client; the accuracy is then the mean over the
            models of clients, and known after the last round alone. None = all are sent.

    """
    rounds = [one.round for one in transcript.messages if isinstance(one.body, Broadcast)]
    tested = frozenset(select_evenly_spaced(sorted(rounds), MAX_TESTED_BROADCASTS))
    index_of = {party: index for index, party in enumerate(federation.clients)}
    counts, accuracies = {}, {}
    for message in transcript.messages:
        # The data of shadow devices are the server's, so they are no secret.
        if isinstance(message.body, Update) and not is_shadow_device(message.sender):
            rows = federation.rows[message.round][index_of[message.sender]]
            labels = federation.pool.labels[rows]
            held = labels.bincount(minlength=federation.task.classes)
            counts[message.round, message.sender] = held
        if isinstance(message.body, Broadcast) and message.round in tested:
            shared = message.body.weights
            if home is None:
                accuracies[message.round] = _mean_utility(federation, [shared])
            elif message.round == federation.rounds:
                clients = [one for one in federation.clients if not is_shadow_device(one)]
                models = [home.model_of(one, message.round, shared) for one in clients]
                accuracies[message.round] = _mean_utility(federation, models)
    label_counts = LabelCounts(counts)
    facts, drawn = _stated_facts(federation), federation.facts.get(DrawnShares)
    if drawn is not None:
        facts = facts.having(drawn.applying_to(label_counts))
    return GroundTruth(facts.having(label_counts), accuracies)


def _stated_facts(federation: Federation) -> Facts[TrueFact]:
    """Return what is true of the clients by the settings of the federation."""
    canaries = {
        party: defense_context(federation, defense, 0, party).persistent_seed.value
        for defense in federation.defenses
        for party in federation.clients
        if defense.is_canary(party)
    }
    facts = federation.facts
    return facts.having(CanaryDirections(canaries)) if canaries else facts


def _mean_utility(federation: Federation, models: Sequence[Weights]) -> float:
    """Return the mean utility of models on the test examples."""
    kind, device = federation.task.kind, federation.device
    found = [
        utility(federation.build_model, model, federation.test, kind, device)
        for model in models
    ]
    return sum(found) / len(found)


def check_stackable(federations: Sequence[Federation]) -> None:
    """Refuse federations that cannot train in one stack.

    They may differ in data, seed, participation and failures, and in defenses that do not
    change model or recipe. Federations with equal `model` texts must build the same model.
    """
    expected = _shared_settings(federations[0]) if federations else {}
    for index, federation in enumerate(federations):
        settings = _shared_settings(federation)
        differing = [name for name, value in settings.items() if value != expected[name]]
        if differing:
            raise ValueError(
                f"federation {index} differs from federation 0 in {', '.join(differing)}, so "
                "they cannot train at once; run it separately"
            )


def split_into_stacks(federations: Sequence[Federation], clients: int) -> tuple[range, ...]:
    """Split federations, in order, into stacks of at most `clients` clients per round.

    A federation with more clients is its own stack. The last bits of trained weights depend on
    the stack, so stacks depend only on the federations and their order.
    """
    cuts, total = [0], 0
    for index, federation in enumerate(federations):
        count = clients_per_round(len(federation.clients), federation.participation)
        if total and total + count > clients:
            cuts.append(index)
            total = 0
        total += count
    return tuple(map(range, cuts, [*cuts[1:], len(federations)]))


def _shared_settings(federation: Federation) -> Mapping[str, object]:
    """Return the settings that must be equal for federations to train in one stack."""
    return {
        "model": federation.model,
        "task": federation.task,
        "recipe": federation.recipe,
        "rounds": federation.rounds,
        "engine": federation.engine,
        "workers": federation.workers,
        "device": federation.device,
        "protocol": federation.protocol,
        "defenses of the training": tuple(
            defense
            for defense in federation.defenses
            if type(defense).on_training is not Defense.on_training
        ),
    }
