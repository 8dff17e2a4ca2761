"""Runs a federation into a folder, or goes on where a run stopped."""

from collections.abc import Callable
from pathlib import Path

from overheard.archive.manifest import Manifest, record
from overheard.archive.reader import open_transcript, read_round
from overheard.archive.recorder import Recorder
from overheard.archive.truth import has_truth, read_truth, write_truth
from overheard.core.messages import Weights
from overheard.core.parties import SERVER
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.federation.digest import data_digest
from overheard.federation.federation import Federation
from overheard.federation.round import broadcast, hold, next_weights
from overheard.federation.truth import truth_of
from overheard.learning.initial import initial_weights
from overheard.learning.threads import one_thread

__all__ = ["Federation", "run"]


def run(
    federation: Federation, folder: Path, on_round: Callable[[int], None] | None = None
) -> tuple[Transcript, GroundTruth]:
    """Run a federation, and give what was said and what was the case.

    Every round starts from what the round before left on the disk, so a run that was killed
    at any moment and is run again ends with the same files, byte for byte, as one that was
    not. A complete run is opened, not run again.

    Args:
        federation: what to run.
        folder: for `transcript/` and `truth.json`.
        on_round: told each round's number once it is on the disk.

    Raises:
        OutputError: if the folder holds another run, or cannot be written to.
        PlanError: if the training of a client runs away.

    """
    with one_thread():
        recorder = Recorder(folder, manifest_of(federation))
        was_complete = recorder.committed() > federation.rounds
        for number in range(recorder.committed(), federation.rounds):
            weights = _start_of(federation, folder, number)
            with recorder.round() as said:
                hold(federation, said, number, weights)
            if on_round is not None:
                on_round(number)
        if recorder.committed() == federation.rounds:
            final = _start_of(federation, folder, federation.rounds)
            with recorder.round() as said:
                said.send(broadcast(federation, federation.rounds, final))
        transcript = open_transcript(folder)
        if not (was_complete and has_truth(folder)):
            write_truth(folder, truth_of(federation, transcript))
        return transcript, read_truth(folder)


def manifest_of(federation: Federation) -> Manifest:
    """What the transcript will say of this run."""
    return Manifest(
        task=federation.task,
        model=federation.model,
        recipe=federation.recipe,
        defenses=tuple(record(defense) for defense in federation.defenses),
        parties=(SERVER, *federation.clients),
        rounds=federation.rounds,
        participation=federation.participation,
        failure_rate=federation.failure_rate,
        seed=federation.seed.value,
        data=data_digest(federation),
    )


def _start_of(federation: Federation, folder: Path, number: int) -> Weights:
    """The global model at the start of a round."""
    if number == 0:
        return initial_weights(federation.build_model, federation.seed.child("initial"))
    before = number - 1
    return next_weights(federation, before, read_round(folder, before))
