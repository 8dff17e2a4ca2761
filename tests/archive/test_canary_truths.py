"""A damaged ground truth of canaries is audited or refused."""

import json
import math
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from overheard.archive.layout import transcript_folder, truth_path
from overheard.archive.manifest import DefenseRecord, read_manifest, write_manifest
from overheard.auditing.canaries import draw_canaries
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.errors import AuditError
from overheard.data.datasets.custom import Own
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.iid import Iid
from overheard.defenses.local_dp import LocalDp
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.learning.models.logistic import Logistic
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.membership.attacks.loss_membership import LossMembership
from tests.hostile.changes import JSON, documents

HERE = Resources(device="cpu", workers=1)
NOISE = LocalDp(5.0, 20.0)
PLAN = Plan(
    data=DataPlan(
        source=Own(reference="tests.auditing.remembered:table"),
        split=Iid(),
        clients=3,
        examples=10,
        auxiliary=10,
        candidates=CandidateSettings(members=4, outsiders=12, canaries="mislabelled"),
    ),
    training=TrainingPlan(model=Logistic(), rounds=1, batch=10, rate=0.1, epochs=1),
    arms=(ArmPlan(name="noise", defenses=(NOISE,)),),
    threats=(
        ThreatPlan(attacks=(LossMembership(), BiasInversion()), by_round=False),
        ThreatPlan(attacks=(LossMembership(),), about="cohort", by_round=False),
    ),
)
"""Twenty-four canaries: 12 of three clients and 12 non-members."""


def with_canaries(home: Path) -> Path:
    """Record a run, with the canaries of each client in its ground truth."""
    draw_canaries(PLAN, home / "drawn", resources=HERE)
    audit(PLAN, home / "audit", resources=HERE)
    run = shutil.copytree(AuditFolder(home / "audit").run_path("noise", 0), home / "run")
    shutil.copy(truth_path(home / "drawn"), truth_path(run))
    stated = DefenseRecord("mod", repr(NOISE), "client", "each client", NOISE.mechanism())
    manifest = replace(read_manifest(run), data="", task=None, defenses=(stated,))
    write_manifest(transcript_folder(run), manifest)
    for name in ("drawn", "audit"):
        shutil.rmtree(home / name)
    return run


INDICES = (
    [24], [0, 0], [5, 6, 5], list(range(24)), [0] * 99_999, [True], [], [9223372036854775807],
)  # fmt: skip
"""Indices of a client's canaries, of which some are impossible."""

CLIENTS = (
    "server", "cohort", "client/3", "client/00", "Client/0", "client/0 ", "client", "shadow/0",
    "../client/0", "client\\0", "client/\u0660", "client/0\n",
)  # fmt: skip
"""Names that are no client of the run."""

DIGESTS = ("0", "0" * 24, "f" * 200, "f" * 201, "F00D", "\n", "0a\n", "0x0a", " ", "\u0660")
"""Digests of other canaries, or of none."""


def other_truths(truth: Mapping[str, Any]) -> Iterator[Mapping[str, object]]:
    """Iterate over truths that no change of a single value makes."""
    members = truth["members"]
    first, second = members["client/0"], members["client/1"]
    for indices in INDICES:
        yield truth | {"members": members | {"client/1": indices}}
    for name in CLIENTS:
        yield truth | {"members": members | {name: []}}
    for digest in DIGESTS:
        yield truth | {"canaries": digest}
        yield truth | {"bound": digest}
    for indices in INDICES:
        yield truth | {"offered": truth["offered"] | {"client/1": indices}}
    yield truth | {"offered": members}
    yield truth | {"offered": {}}
    # One canary of two clients, and of all.
    yield truth | {"members": members | {"client/1": first}}
    yield truth | {"members": {who: [3] for who in members}}
    # One client has the canaries of two, two have those of one, and all have others.
    yield truth | {"members": {"client/0": [*first, *second]}}
    yield truth | {"members": {"client/0": first[:2], "client/1": first[2:]}}
    reverse = {
        key: dict(zip(members, [*truth[key].values()][::-1], strict=True))
        for key in ("members", "offered")
    }
    yield truth | {"members": reverse["members"]}
    yield truth | reverse
    # Counts of all clients, of one of them twice, and of an unknown party.
    every = [{"round": 0, "party": who, "labels": [1, 2, 3]} for who in members]
    stranger = {"round": 0, "party": "nobody", "labels": [1, 1, 1]}
    for counts in (every, [*every, stranger], [*every, every[0]], every[:2]):
        yield truth | {"counts": counts}
    for name in truth:
        yield {key: value for key, value in truth.items() if key != name}


def is_refused(run: Path, out: Path) -> bool:
    """Audit the run, check what comes of it, and return whether it is refused."""
    before = files_in(run.parent)
    try:
        found = audit(PLAN, out, recording=run, resources=HERE)
    except AuditError as error:
        refused = str(error)
    else:
        refused = ""
        shutil.rmtree(out)
        assert found.findings or found.refusals
        for finding in found.findings:
            assert all(map(math.isfinite, finding.claimed.numbers))
            assert all(math.isfinite(score.value) for score in finding.scores)
        bounds = [line.lower_bound for line in epsilon_results(found)]
        assert all(bound is None or bound.epsilon >= 0 for bound in bounds)
    assert files_in(run.parent) == before
    assert not refused or str(run) in refused
    assert refused.isprintable()
    assert len(refused) < 20_000
    return bool(refused)


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.nightly
@pytest.mark.slow
def test_a_damaged_truth_of_canaries_is_audited_or_refused(tmp_path: Path) -> None:
    run, out = with_canaries(tmp_path), tmp_path / "out"
    path = truth_path(run)
    intact = path.read_bytes()
    assert not is_refused(run, out)
    others = list(other_truths(json.loads(intact)))
    read = 0
    for other in others:
        path.write_text(json.dumps(other))
        read += not is_refused(run, out)
    # Clients in reverse order, counts of all clients, no members at all, no statement of how
    # epsilon is bounded, and three digests of another one.
    assert read == 7
    for change in documents(intact, JSON):
        if change.kind != "many names":
            path.write_bytes(intact)
            change.apply(path)
            is_refused(run, out)
