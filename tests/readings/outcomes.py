"""What the product makes of a run that is read wrongly."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from overheard.archive.manifest import read_manifest
from overheard.consistency.check import RecordingCheck, check_recording
from overheard.consistency.proof import RecordingProof
from overheard.consistency.statement import StatedStep, state_step
from overheard.core.errors import AuditError
from overheard.core.messages import Broadcast, Message, MissingReply, Update
from overheard.core.parties import SERVER, Party
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.findings.threat_verdict import NO_LEAK
from overheard.recorders.replies.differences import read_update
from tests.readings.audited import Outcome, audit_recording, auxiliary, plan_for
from tests.readings.channels import Options, record
from tests.readings.federations import CLIP, NOISE, Reply, Round, SavedRun, federations
from tests.readings.more_spoils import MORE_SPOILS
from tests.readings.spoils import SPOILS, Spoil
from tests.readings.truth_spoils import TRUTH_SPOILS

ALL_SPOILS = (*SPOILS, *MORE_SPOILS, *TRUTH_SPOILS)
"""Every way to read a run wrongly."""

TOLERANCE = 0.02
"""Largest difference of a claimed share or a score, as replies of 16 bits may change it."""

SILENT = "silently wrong"
SAME = "same claims"
FALSELY_SAFE = "silently wrong: no leak"
FALSE_CLAIM = "silently wrong: a true claim of DP called false"


@dataclass(frozen=True)
class Reading:
    """What a recording proves, what an audit of it comes to, and what both say."""

    proof: RecordingProof | None
    outcome: Outcome

    @property
    def is_doubted(self) -> bool:
        """Whether the check does more than say that the replies follow."""
        return self.proof is not None and not is_silent(self.proof)

    @property
    def said(self) -> frozenset[str]:
        """All sentences on what is wrong, or assumed."""
        found = self.outcome.audit
        return frozenset(
            (
                *(self.proof.sentences if self.proof is not None and self.is_doubted else ()),
                *self.outcome.refusals,
                *(() if found is None else found.data_warnings),
            )
        )


def is_silent(proof: RecordingProof) -> bool:
    """Return whether a check says nothing but that the replies follow."""
    return proof.outcome == "follows" and not proof.faults


def check_in_memory(run: SavedRun, spoil: Spoil | None = None) -> RecordingProof:
    """Return what the messages of a run prove, spoiled or not, without files.

    Raises:
        ValueError: if a message cannot be stored, which a recorder or an import would say.

    """
    options = {} if spoil is None else dict(spoil.options)
    changed = run if spoil is None else spoil.change(run)
    noise = NOISE * CLIP if run.about.get("defenses") else 0.0
    check = RecordingCheck(StatedStep(noise=noise))
    for number, one in enumerate((*changed.rounds, Round(changed.final, {}))):
        readers = frozenset(Party(f"client/{name}") for name in one.replies)
        messages = [Message(number, SERVER, readers, Broadcast(dict(one.start)))]
        for name, reply in one.replies.items():
            body = MissingReply("failed") if reply is None else _update(reply, one, options)
            messages.append(Message(number, Party(f"client/{name}"), frozenset({SERVER}), body))
        check.add(messages)
    return check.result()


def _update(reply: Reply, one: Round, options: Mapping[str, object]) -> Update:
    kind, rate = options.get("kind", "weights"), options.get("rate")
    delta = read_update(dict(reply.weights), dict(one.start), kind, rate).delta  # type: ignore[arg-type]
    return Update(delta, reply.examples)


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
def plain_reading(name: str) -> Reading:
    """Return the reading of a federation that nobody spoiled."""
    return read(next(run for run in federations() if run.name == name))


def judge(run: SavedRun, spoil: Spoil) -> tuple[str, Reading]:
    """Return what became of a run that is read wrongly, in words, and its reading."""
    found, plain = read(run, spoil), plain_reading(run.name)
    if _calls_a_true_claim_false(found, plain):
        return FALSE_CLAIM, found
    if found.outcome.verdict in NO_LEAK and plain.outcome.verdict not in NO_LEAK:
        return FALSELY_SAFE, found
    return _describe(spoil, found, plain), found


def _describe(spoil: Spoil, found: Reading, plain: Reading) -> str:
    proof, audit = found.proof, found.outcome.audit
    if found.outcome.distance(plain.outcome) <= TOLERANCE:
        return SAME
    if proof is not None and proof.outcome == "contradicts":
        return _describe_mend(spoil, proof)
    if audit is None or audit.refusals:
        return "refused elsewhere"
    if proof is not None and proof.reason is not None:
        return f"cannot tell: {proof.reason.name}"
    return "warned" if found.said - plain.said else _describe_rate(proof)


def _describe_mend(spoil: Spoil, proof: RecordingProof) -> str:
    if spoil.mend is None:
        return "contradicts"
    return f"contradicts, {'right' if re.search(spoil.says, proof.mend) else 'other'} mend"


def _describe_rate(proof: RecordingProof | None) -> str:
    """Return that a server's rate was fitted and told, or that nothing was said."""
    step = None if proof is None or proof.best is None else proof.best.step
    is_told = step is not None and abs(step.fitted.get("rate", 1.0) - 1) > TOLERANCE
    return "tells a server's rate" if is_told else SILENT


def _calls_a_true_claim_false(found: Reading, plain: Reading) -> bool:
    bad = {"false", "violated"}
    return bool(_epsilon_verdicts(found) & bad) and not _epsilon_verdicts(plain) & bad


def _epsilon_verdicts(reading: Reading) -> set[str]:
    found = reading.outcome.audit
    return set() if found is None else {str(one.verdict) for one in epsilon_results(found)}
