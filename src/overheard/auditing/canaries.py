"""Records to put into a federation before it is recorded, and the truth of who got which."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from overheard.archive.atomic import write_bytes
from overheard.archive.truth import write_truth
from overheard.auditing.folder import AuditFolder
from overheard.auditing.supplies import Resources, deal_examples, load_data
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import Party
from overheard.core.truth import GroundTruth
from overheard.federation.digest import examples_digest
from overheard.plans.plan import Plan


@dataclass(frozen=True, slots=True)
class DrawnCanaries:
    """What came of drawing canaries.

    Args:
        files: by client, what it is to learn from besides its own examples.
        counts: by client, how many these are; none where the die gave it none.
        outsiders: how many nobody gets.

    """

    files: Mapping[Party, Path]
    counts: Mapping[Party, int]
    outsiders: int


def draw_canaries(
    plan: Plan, folder: Path, *, resources: Resources | None = None
) -> DrawnCanaries:
    """Draw a plan's canaries, and write a file for each client and the truth of who got which.

    `client-3.npz` has `x` (canaries x the axes of an example) as the plan's model reads them,
    and `y`, the numbers of their labels. `truth.json` goes beside the transcript when the run
    is recorded, with the names that clients have there.

    Args:
        plan: whose `[data]` and first seed say which canaries; an audit of the recording takes
            the same.
        folder: for the files.
        resources: where the data lie.

    Raises:
        PlanError: if the plan has no canaries, or too few records for them.
        OutputError: if the folder holds those of another plan, or other things.

    """
    if plan.data.candidates is None or not plan.data.candidates.are_canaries:
        raise PlanError(
            'the plan draws no canaries: give [data.candidates] with canaries = "labelled" or '
            '"mislabelled"'
        )
    dataset = load_data(plan, resources or Resources())
    dealt = deal_examples(plan, dataset, plan.seeds[0])
    records = dealt.candidates
    assert records is not None
    AuditFolder(folder).claim(f"# canaries of overheard {version('overheard')}\n{plan.toml()}")
    files = {who: folder / f"{who.replace('/', '-')}.npz" for who in dealt.members}
    for who, own in dealt.members.items():
        write_bytes(files[who], _packed(records, own))
    truth = GroundTruth({}, {}, members=dealt.members, canaries=examples_digest(records))
    write_truth(folder, truth)
    counts = {who: len(own) for who, own in dealt.members.items()}
    return DrawnCanaries(files, counts, len(records) - sum(counts.values()))


def _packed(records: Examples, places: tuple[int, ...]) -> bytes:
    own, file = list(places), io.BytesIO()
    np.savez(file, x=records.inputs[own].numpy(), y=records.labels[own].numpy())
    return file.getvalue()
