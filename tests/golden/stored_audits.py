"""What is stored of an audit, from which its judgement follows, as files.

This is the one place that knows the format of these files: an archive of the claims of each
cell, as the product writes them, and of one more file with the runs, their truths and what is
audited. What differs between two runs of an audit without a change of its results is left out
here: times and digests, of code and of files.
"""

import io
import json
import lzma
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from jaxtyping import Float, Int, Shaped
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from overheard.archive.run_time import RunTime
from overheard.archive.value_codec import ValueDecoder, ValueEncoder
from overheard.auditing.cells.cell_claims import CellClaims
from overheard.auditing.cells.claim_store import FolderClaimStore
from overheard.auditing.judging.judge import AttackedRun, AuditSubject, ClaimsOfThreat
from overheard.auditing.judging.run_truth import ThreatTruth
from overheard.core.facts import Facts
from overheard.core.parties import Party
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners, RecordsDigest
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth, Partition
from overheard.disk.digests import TRUST_VARIABLE
from overheard.findings.finding import ArmRun, Cell
from overheard.plans.plan import parse_plan
from overheard.plans.registries import questions

FOLDER = Path(__file__).parent / "inputs"

END = ".tar.xz"

CELLS, REST = "cells", "rest.safetensors"
"""The folder of claims in an archive, and the file beside it."""


@dataclass(frozen=True)
class AttackedAudit:
    """What is audited, and its runs after their attacks: all that a judgement needs."""

    subject: AuditSubject
    runs: tuple[AttackedRun, ...]


@dataclass(frozen=True)
class _Truth:
    """A `GroundTruth` as values that can be stored."""

    counts: Mapping[tuple[int, Party], Int[Tensor, " classes"]]
    accuracy: Mapping[int, float]
    shifts: Mapping[Party, tuple[int, ...]]
    users: Mapping[Party, str]
    attributes: Mapping[str, Mapping[str, str]]
    members: Mapping[Party, tuple[int, ...]]
    excluded_records: tuple[int, ...]
    candidates_digest: str
    has_label_counts: bool
    drawn_from: Mapping[tuple[int, Party], Float[Tensor, " classes"]]
    partition: Partition | None
    redrawn_counts: Mapping[tuple[int, Party], Int[Tensor, "partitions classes"]]


@dataclass(frozen=True)
class _Threat:
    rounds: tuple[int, ...]
    cells: tuple[Cell, ...]
    truth: _Truth | None
    clients: Mapping[Party, Party]


@dataclass(frozen=True)
class _Run:
    record: ArmRun
    threats: tuple[_Threat, ...]


@dataclass(frozen=True)
class _Rest:
    plan: str
    description: str
    class_names: tuple[str, ...]
    is_recorded: bool
    is_auxiliary_separate: bool
    runs: tuple[_Run, ...]


def stored_names() -> list[str]:
    """Return the names of all stored audits."""
    return sorted(path.name.removesuffix(END) for path in FOLDER.glob(f"*{END}"))


def store_packed(name: str, packed: bytes) -> None:
    """Write the file of an audit."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}{END}").write_bytes(packed)


def load_audit(name: str) -> AttackedAudit:
    """Read the stored audit with this name."""
    return read_audit((FOLDER / f"{name}{END}").read_bytes())


def pack_audit(audit: AttackedAudit) -> bytes:
    """Return the content of the file of an audit."""
    subject = audit.subject
    with TemporaryDirectory(prefix="golden-") as name:
        store = FolderClaimStore(Path(name, CELLS))
        for claims in (one for run in audit.runs for one in run.claims):
            for cell in claims.cells:
                store.save(replace(cell, code=""))
        rest = _Rest(
            subject.plan.toml(),
            subject.description,
            subject.class_names,
            subject.is_recorded,
            subject.is_auxiliary_separate,
            tuple(_stored_run(number, run) for number, run in enumerate(audit.runs)),
        )
        encoder = ValueEncoder()
        document = {"content": encoder.encode(rest), "texts": encoder.texts}
        tensors = {str(place): tensor for place, tensor in enumerate(encoder.tensors)}
        Path(name, REST).write_bytes(save(tensors, {"rest": json.dumps(document)}))
        return lzma.compress(_archive(Path(name)), preset=9 | lzma.PRESET_EXTREME)


def read_audit(packed: bytes) -> AttackedAudit:
    """Read an audit from the bytes of its file."""
    with _extracted(packed) as folder:
        document, tensors = _read_tensors(folder / REST)
        rest: _Rest = ValueDecoder(tensors, document["texts"]).decode(
            document["content"], _Rest
        )
        plan = parse_plan(rest.plan, "a golden audit")
        subject = AuditSubject(
            plan,
            rest.description,
            rest.class_names,
            rest.is_recorded,
            rest.is_auxiliary_separate,
            bound_settings=plan.bound_settings(),
        )
        store = FolderClaimStore(folder / CELLS)
        runs = tuple(
            AttackedRun(run.record, tuple(_claims(one, store) for one in run.threats))
            for run in rest.runs
        )
        return AttackedAudit(subject, runs)


def plain_values(packed: bytes) -> dict[str, object]:
    """Return all that the file of an audit holds as JSON, by attack and name of the file."""
    found = dict[str, object]()
    with _extracted(packed) as folder:
        for path in sorted(folder.rglob("*.safetensors")):
            document, tensors = _read_tensors(path)
            document = {name: one for name, one in document.items() if name != "sha256"}
            attack = document["content"].get("cell", {}).get("attack", "")
            found[f"{attack} {path.stem}".lstrip()] = {
                **document,
                "tensors": [one.tolist() for one in tensors],
            }
    return found


def _stored_run(number: int, run: AttackedRun) -> _Run:
    seconds = None if run.record.seconds is None else RunTime(10.0 + number, None)
    threats = tuple(
        _Threat(
            one.rounds,
            tuple(cell.cell for cell in one.cells),
            _stored_truth(one),
            one.truth.clients,
        )
        for one in run.claims
    )
    return _Run(replace(run.record, seconds=seconds), threats)


def _stored_truth(claims: ClaimsOfThreat) -> _Truth | None:
    truth = claims.truth.truth
    if truth is None:
        return None
    facts = truth.facts
    # Only their words are compared with claims; pictures would need many bytes.
    has_words = any(cell.cell.question == "words" for cell in claims.cells)
    counts = facts.get(LabelCounts) or LabelCounts({})
    drawn = facts.get(DrawnShares) or DrawnShares({})
    shares = {key: drawn.shares_of(key[1], key[0]) for key in counts.counts}
    owners = facts.get(RecordOwners) or RecordOwners({})
    return _Truth(
        counts.counts,
        truth.accuracy,
        (facts.get(Shifts) or Shifts({})).shifts,
        (facts.get(UsersOfClients) or UsersOfClients({})).users,
        (facts.get(Attributes) or Attributes({})).attributes,
        owners.members,
        tuple(sorted(owners.excluded)),
        (facts.get(RecordsDigest) or RecordsDigest("")).digest,
        bool(counts.counts),
        {key: one for key, one in shares.items() if one is not None},
        truth.partition if has_words else None,
        {key: held.short() for key, held in counts.redrawn.items()},
    )


def _claims(threat: _Threat, store: FolderClaimStore) -> ClaimsOfThreat:
    cells = tuple(_cell_claims(cell, store) for cell in threat.cells)
    return ClaimsOfThreat(threat.rounds, cells, _threat_truth(threat))


def _cell_claims(cell: Cell, store: FolderClaimStore) -> CellClaims:
    with pytest.MonkeyPatch.context() as patch:
        # Most were packed before files of cells had digests.
        patch.setenv(TRUST_VARIABLE, "1")
        claims = store.load(cell, questions()[cell.question].scorer.claim_type)
    assert claims is not None, f"no claims of {cell}"
    return claims


def _threat_truth(threat: _Threat) -> ThreatTruth:
    if threat.truth is None:
        return ThreatTruth(None, threat.clients)
    stored = threat.truth
    shares = defaultdict[Party, dict[int, Tensor]](dict)
    for (number, party), one in stored.drawn_from.items():
        shares[party][number] = one
    facts = [
        DrawnShares(shares),
        Shifts(stored.shifts),
        UsersOfClients(stored.users),
        Attributes(stored.attributes),
        RecordOwners(stored.members, frozenset(stored.excluded_records)),
        RecordsDigest(stored.candidates_digest),
    ]
    if stored.has_label_counts:
        redrawn = {key: counts.long() for key, counts in stored.redrawn_counts.items()}
        facts.append(LabelCounts(stored.counts, redrawn))
    truth = GroundTruth(Facts(*facts), stored.accuracy, stored.partition)
    return ThreatTruth(truth, threat.clients)


def _archive(folder: Path) -> bytes:
    """Return an archive of the files in a folder, without times and owners."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path in sorted(folder.rglob("*.safetensors")):
            info = tarfile.TarInfo(path.relative_to(folder).as_posix())
            info.size = path.stat().st_size
            archive.addfile(info, io.BytesIO(path.read_bytes()))
    return content.getvalue()


@contextmanager
def _extracted(packed: bytes) -> Iterator[Path]:
    with (
        TemporaryDirectory(prefix="golden-") as folder,
        tarfile.open(fileobj=io.BytesIO(lzma.decompress(packed))) as archive,
    ):
        # Python before 3.11.4 has no filters.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safe)
        yield Path(folder)


# Any: JSON.
def _read_tensors(path: Path) -> tuple[Mapping[str, Any], list[Shaped[Tensor, "..."]]]:
    """Return the document and the tensors of a file."""
    with safe_open(path, framework="pt") as file:
        (document,) = file.metadata().values()
        tensors = [file.get_tensor(str(place)) for place in range(len(file.keys()))]
    return json.loads(document), tensors
