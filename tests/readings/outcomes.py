"""What the product makes of a run that is read wrongly."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import torch

from overheard.archive.manifest import read_manifest
from overheard.consistency.check import check_recording
from overheard.consistency.proof import RecordingProof
from overheard.consistency.statement import state_step
from overheard.core.errors import AuditError
from tests.readings.audited import Outcome, audit_recording, auxiliary, plan_for
from tests.readings.channels import Options, record
from tests.readings.federations import SavedRun, federations
from tests.readings.spoils import Spoil

Kind = Literal["same claims", "says what is wrong", "silently wrong"]

TOLERANCE = 0.02
"""Largest difference of a claimed share, as replies of 16 bits may change it."""


@dataclass(frozen=True)
class Reading:
    """What a recording proves, what an audit of it comes to, and what both say."""

    proof: RecordingProof | None
    outcome: Outcome

    @property
    def said(self) -> str:
        """All sentences on what is wrong."""
        proof = self.proof
        is_silent = proof is None or (proof.outcome == "follows" and not proof.faults)
        sentences = () if proof is None or is_silent else proof.sentences
        return " ".join((*sentences, *self.outcome.refusals))


def read(run: SavedRun, spoil: Spoil | None = None, options: Options | None = None) -> Reading:
    """Record a run, spoiled or not, check the recording and audit it.

    Args:
        run: the run.
        spoil: how it is read wrongly; None = rightly.
        options: given to the import or the recorder in place of the spoil's.

    """
    with TemporaryDirectory() as name:
        return _read_in(Path(name), run, spoil, options)


def _read_in(
    folder: Path, run: SavedRun, spoil: Spoil | None, options: Options | None
) -> Reading:
    given = spoil.options if options is None and spoil is not None else options
    changed = run if spoil is None else spoil.change(run)
    try:
        recording = record(changed, folder, given)
    except AuditError as error:
        return Reading(None, Outcome(refusals=(str(error),)))
    examples = auxiliary(folder)
    if spoil is not None:
        truth = recording / "truth.json"
        stated = spoil.truth(json.loads(truth.read_text(encoding="utf-8")))
        truth.write_text(spoil.truth_text(json.dumps(stated)), encoding="utf-8")
        with np.load(examples) as arrays:
            inputs, labels = (torch.from_numpy(arrays[one]) for one in ("x", "y"))
        inputs, labels = spoil.examples(inputs, labels)
        np.savez(examples, x=inputs.numpy(), y=np.asarray(labels))
    outcome = audit_recording(run, recording, plan_for(run, examples))
    return Reading(check_recording(recording, state_step(read_manifest(recording))), outcome)


@cache
def plain_readings() -> Mapping[str, Reading]:
    """Return the reading of each federation that nobody spoiled, by name."""
    return {run.name: read(run) for run in federations()}


def judge(run: SavedRun, spoil: Spoil) -> tuple[Kind, Reading]:
    """Return what became of a run that is read wrongly."""
    found, plain = read(run, spoil), plain_readings()[run.name]
    if found.said:
        return "says what is wrong", found
    is_same = found.outcome.distance(plain.outcome) <= TOLERANCE
    same_verdict = found.outcome.verdict == plain.outcome.verdict
    return ("same claims" if is_same and same_verdict else "silently wrong"), found
