"""Canaries to insert into a federation before it is recorded, and their ground truth."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from overheard.archive.truth import write_truth
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.parties import Party
from overheard.core.true_facts.record_owners import (
    BoundDigest,
    OfferedCanaries,
    RecordOwners,
    RecordsDigest,
)
from overheard.core.truth import GroundTruth
from overheard.disk.folder_lock import lock_folder
from overheard.disk.writing import write_bytes
from overheard.federation.digest import examples_digest
from overheard.plans.plan import Plan


@dataclass(frozen=True, slots=True)
class DrawnCanaries:
    """The files of drawn canaries, and how many each client gets.

    Args:
        files: by client, the file with the canaries to add to its own examples.
        counts: by client, the number of its canaries; 0 if the random assignment gave it none.
        held_out: the number of held-out canaries, which no client gets.

    """

    files: Mapping[Party, Path]
    counts: Mapping[Party, int]
    held_out: int


def draw_canaries(
    plan: Plan, folder: Path, *, resources: Resources | None = None
) -> DrawnCanaries:
    """Draw a plan's canaries; write a file for each client, and the ground truth.

    `client-3.npz` has `x` (canaries x the axes of an example) in the form that the plan's model
    reads, and `y`, the label numbers, or the rows of labels of a task without classes. After
    the run, put `truth.json` beside the recorded transcript, with the client names that the
    transcript uses.

    Args:
        plan: its `[data]` and first seed determine the canaries; audit the recording with the
            same ones, and with the same `[training]`, `[epsilon]` and membership attacks.
        folder: for the files.
        resources: where the data are.

    Raises:
        PlanError: if the plan has no canaries, or too few records for them.
        OutputError: if the folder holds the canaries of another plan, or other files.

    """
    if plan.data.candidates is not None and plan.data.candidates.canaries == "crafted":
        raise PlanError(
            "canaries with crafted gradients can only be simulated: set canaries = "
            '"labelled" or "mislabelled" in [data.candidates]'
        )
    if plan.data.candidates is None or not plan.data.candidates.are_canaries:
        raise PlanError(
            'the plan has no canaries: set canaries = "labelled" or "mislabelled" in '
            "[data.candidates]"
        )
    dataset = load_data(plan, resources or Resources())
    partition = partition_for_plan(plan, dataset, plan.seeds[0])
    records = partition.candidates
    assert records is not None
    files = {party: folder / f"{party.replace('/', '-')}.npz" for party in partition.members}
    facts = (
        RecordOwners(partition.members),
        RecordsDigest(examples_digest(records)),
        OfferedCanaries(partition.offered),
        BoundDigest(plan.bound_settings().digest),
    )
    home, claim = AuditFolder(folder), f"# canaries of overheard {version('overheard')}\n"
    home.check_plan(claim + plan.toml())
    with lock_folder(folder):
        home.reserve(claim + plan.toml())
        for party, rows in partition.members.items():
            write_bytes(files[party], _npz_bytes(records, rows), inside=folder)
        write_truth(folder, GroundTruth(Facts(*facts)))
    counts = {party: len(rows) for party, rows in partition.members.items()}
    return DrawnCanaries(files, counts, len(records) - sum(counts.values()))


def _npz_bytes(records: Examples, rows: tuple[int, ...]) -> bytes:
    selected, file = list(rows), io.BytesIO()
    np.savez(file, x=records.inputs[selected].numpy(), y=records.loss_labels[selected].numpy())
    return file.getvalue()
