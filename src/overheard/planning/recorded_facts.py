"""What a recording says of its run: parties, rounds, tensors, and who can read what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from overheard.archive.layout import transcript_folder
from overheard.archive.manifest import Manifest, read_manifest
from overheard.archive.reader import open_transcript
from overheard.archive.run_config import Setting, read_run_config
from overheard.archive.truth import has_truth
from overheard.archive.weights import tensor_shapes
from overheard.auditing.recorded_tensors.model_tensors import common_shapes
from overheard.auditing.recording import rounds_between_models
from overheard.core.errors import PlanError
from overheard.core.messages import Aggregate, Broadcast, DistilledSet, Update
from overheard.core.parties import SERVER, Party, is_client, late_joiner, party_sort_key
from overheard.core.task import TaskKind
from overheard.core.transcript import Transcript

NO_RUN_CONFIG: Mapping[str, Setting] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RecordedFacts:
    """The facts of a recorded run that a plan depends on.

    Args:
        folder: the folder of the recording.
        manifest: its manifest.
        shapes: shape of each broadcast tensor by name, in the order of the model.
        clients: number of clients.
        rounds: number of rounds with a reply, 1 or more; of global models alone, the number of
            changes between them.
        observer: the party whose view the recording holds.
        reads_updates: whether the observer reads the updates of single clients.
        has_truth: whether claims can be compared with a ground truth.
        is_global_only: whether there are global models, and nothing that clients sent.
        configs: the different configurations that its broadcasts carry.
        run_config: settings of the training in the configuration of the run.
        head_outputs: the number of outputs, if each client keeps the last layer; None = the
            last layer was sent.

    """

    folder: Path
    manifest: Manifest
    shapes: dict[str, tuple[int, ...]]
    clients: int
    rounds: int
    observer: Party
    reads_updates: bool
    has_truth: bool
    is_global_only: bool = False
    configs: tuple[Mapping[str, str], ...] = ()
    run_config: Mapping[str, Setting] = field(default_factory=lambda: NO_RUN_CONFIG)
    head_outputs: int | None = None

    @property
    def outputs(self) -> int:
        """The number of outputs: as stated, or the length of the last tensor."""
        if self.manifest.task is not None:
            return self.manifest.task.outputs
        if self.head_outputs is not None:
            return self.head_outputs
        last = list(self.shapes.values())[-1]
        return last[0] if last else 1

    @property
    def task_kind(self) -> TaskKind:
        """The kind of task: stated by the manifest, or else derived.

        A binary cross-entropy means several labels or, of a single output, two classes. With
        another loss or none, a single output means a regression.
        """
        manifest = self.manifest
        if manifest.task is not None:
            return manifest.task.kind
        if manifest.recipe is not None and manifest.recipe.loss == "binary_cross_entropy":
            return "classification" if self.outputs == 1 else "multi_label"
        return "regression" if self.outputs == 1 else "classification"


def read_recorded_facts(folder: Path) -> RecordedFacts:
    """Read the facts of a recording for a first plan; no weight is read.

    Raises:
        TranscriptError: if there is no recording, or it is damaged.
        PlanError: if there is neither a reply nor a change of the model, or Overheard simulated
            the run.

    """
    facts = read_checked_recording(folder)
    if facts.manifest.data:
        raise PlanError(
            f"{folder}: was simulated by Overheard: audit it with the plan that simulated it, "
            "plan.toml in the folder of its audit"
        )
    return facts


def read_checked_recording(folder: Path) -> RecordedFacts:
    """Read the facts of any recording; raises as `read_recorded_facts`, whoever recorded it."""
    if not folder.is_dir():
        raise PlanError(f"{folder}: no such folder: name the folder that contains transcript/")
    manifest = read_manifest(folder)
    transcript = open_transcript(folder)
    shapes = _broadcast_shapes(transcript)
    rounds = {
        message.round
        for message in transcript.messages
        if isinstance(message.body, Update | DistilledSet | Aggregate)
    }
    is_global_only = not rounds
    if is_global_only:
        rounds = set(rounds_between_models(transcript))
    if not rounds or not shapes:
        raise PlanError(f"{folder}: {_describe_emptiness(transcript)}")
    observer, reads_updates = (
        (late_joiner(0), False) if is_global_only else _choose_observer(transcript)
    )
    return RecordedFacts(
        folder,
        manifest,
        shapes,
        sum(map(is_client, transcript.parties())),
        len(rounds),
        observer,
        reads_updates,
        has_truth(folder),
        is_global_only,
        _broadcast_configs(transcript),
        read_run_config(_run_folder(folder)),
    )


def _describe_emptiness(transcript: Transcript) -> str:
    """Return why nothing can be asked of a recording, and what to do."""
    models = sum(isinstance(message.body, Broadcast) for message in transcript.messages)
    if models:
        return (
            f"has {models} global model{'s' if models > 1 else ''} and no update of a client, "
            "and no two models of rounds that follow each other, so there is no change to ask "
            "about: keep the models of all rounds or, better, the clients' updates"
        )
    return (
        "has no global model and no update, so nothing can be asked: if the run is still going "
        "on, wait for its first round; else record it again"
    )


def _run_folder(folder: Path) -> Path:
    """Return the folder of the run, given it or its transcript."""
    transcript = transcript_folder(folder)
    return folder if transcript != folder else folder.parent


def _broadcast_configs(transcript: Transcript) -> tuple[Mapping[str, str], ...]:
    """Return the different configurations, in the order of their first broadcasts."""
    found = {
        tuple(sorted(message.body.config.items())): message.body.config
        for message in transcript.messages
        if isinstance(message.body, Broadcast) and message.body.config
    }
    return tuple(found.values())


def _broadcast_shapes(transcript: Transcript) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that all broadcasts have, as an audit matches them."""
    bodies = (message.body for message in transcript.messages)
    sent = [tensor_shapes(body.weights) for body in bodies if isinstance(body, Broadcast)]
    return dict(common_shapes(sent))


def _choose_observer(transcript: Transcript) -> tuple[Party, bool]:
    """Return the server if it reads replies, else the first client that sent one."""
    bodies = [one for one in transcript.messages if isinstance(one.body, Update | DistilledSet)]
    sent = [one for one in bodies if one.sender != SERVER]
    if any(SERVER in one.readers for one in sent):
        return SERVER, True
    if any(isinstance(one.body, Aggregate) for one in transcript.messages):
        return SERVER, False
    return sorted({one.sender for one in sent}, key=party_sort_key)[0], False
