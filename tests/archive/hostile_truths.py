"""A recording with canaries, whose ground truth is damaged in many ways."""

import json
import math
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from overheard.archive.layout import transcript_folder, truth_path
from overheard.archive.manifest import DefenseRecord, read_manifest, write_manifest
from overheard.auditing.canaries import draw_canaries
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.data.datasets.own import Own
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.iid import Iid
from overheard.defenses.local_dp import LocalDp
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.learning.models.logistic import Logistic
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.membership.attacks.loss_membership import LossMembership
from tests.archive.hostile import (
    CONTROL,
    MARKUP,
    TRUTH,
    VALUES,
    CaseResults,
    Files,
    contents,
    files_in,
    rename_key,
    replace_value,
    value_paths,
)

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
    "[-1]", "[24]", "[9223372036854775807]", "[9223372036854775808]", f"[{'9' * 300}]",
    f"[{'9' * 5000}]", "[1.0]", "[1e3]", "[NaN]", "[true]", "[null]", '["1"]', "[[1]]", "[{}]",
    "[0, 0]", "[5, 6, 5]", "[0, -0]", '{"0": 1}', "null", "7", '"0"', "[[[[[[0]]]]]]", "[]",
    f"[{','.join(map(str, range(24)))}]", f"[{','.join(['0'] * 99999)}]",
    "[" * 9999 + "]" * 9999, '{"a":' * 9999 + "0" + "}" * 9999,
)  # fmt: skip
"""Replacements for the indices of a client's canaries."""

NAMES = (
    CONTROL, MARKUP, "", "server", "cohort", "client/3", "client/00", "Client/0", "client/0 ",
    "client", "shadow/0", "../client/0", "client\\0", "x" * 3000, "\ud800", "client/\u0660",
    "client/0\n",
)  # fmt: skip
"""Replacements for a client's name."""

DIGESTS = (
    '""', '"0"', f'"{"0" * 24}"', f'"{"f" * 200}"', f'"{"f" * 201}"', '"F00D"', '"\\n"',
    '"0a\\n"', '"0x0a"', '" "', "24", "null", "[]", "{}", "NaN", '["00"]', json.dumps(CONTROL),
    json.dumps(MARKUP), '"\\ud800"', '"\u0660"', '"/etc/passwd"',
)  # fmt: skip
"""Replacements for the digest of the canaries."""

COUNTS = (
    "[]", "{}", "null", "[NaN]", "[[]]", "[{}]",
    *(
        f'[{{"round": {number}, "party": {json.dumps(who)}, "labels": {labels}}}]'
        for number, who, labels in (
            (0, "client/0", "[NaN, 1, 1]"), (0, "client/0", "[]"), (0, "client/0", "[1, 1, 1]"),
            (0, "client/0", "[9223372036854775808, 0, 0]"), (0, "client/0", "[-1, 2, 3]"),
            (0, CONTROL, "[1, 1, 1]"), (0, "nobody", "[1, 1, 1]"),
            (-1, "client/0", "[1, 1, 1]"), ("NaN", "client/0", "[1, 1, 1]"),
            ("1e400", "client/0", "[1, 1, 1]"),
        )
    ),
)  # fmt: skip
"""Replacements for the label counts."""


def truths(truth: dict[str, object], rng: random.Random) -> Iterator[bytes]:
    """Iterate over damaged truths, as JSON."""
    members = truth["members"]
    assert isinstance(members, dict)
    for place, values in (
        (("members", "client/1"), INDICES),
        (("members",), (*INDICES, "{}", '{"client/0": {"places": [0]}}')),
        (("canaries",), DIGESTS),
        (("counts",), COUNTS),
    ):
        for value in values:
            yield replace_value(truth, place, value)
    for name in NAMES:
        yield rename_key(truth, ("members", "client/2"), name)
        yield json.dumps(truth | {"members": members | {name: []}}).encode()
    # One canary of two clients, and of all.
    yield json.dumps(truth | {"members": members | {"client/1": members["client/0"]}}).encode()
    yield json.dumps(truth | {"members": {who: [3] for who in members}}).encode()
    # One client has the canaries of two, and two have those of one.
    both = [*members["client/0"], *members["client/1"]]
    yield json.dumps(truth | {"members": {"client/0": both}}).encode()
    parts = {"client/0": members["client/0"][:2], "client/1": members["client/0"][2:]}
    yield json.dumps(truth | {"members": parts}).encode()
    # Counts of all clients, and of an unknown party.
    every = [{"round": 0, "party": who, "labels": [1, 2, 3]} for who in members]
    stranger = {"round": 0, "party": "nobody", "labels": [1, 1, 1]}
    for counts in (every, [*every, stranger], [*every, every[0]], every[:2]):
        yield json.dumps(truth | {"counts": counts}).encode()
    # Members in reverse order of clients, and given twice: the last one takes effect.
    yield json.dumps(
        truth | {"members": dict(zip(members, [*members.values()][::-1], strict=True))}
    ).encode()
    yield json.dumps(truth).replace('"members": {', '"members": {"client/0": [-1], ').encode()
    yield json.dumps(truth)[:-1].encode() + b', "members": {}}'
    for name in ("members", "canaries", "counts", "accuracy"):
        yield json.dumps({key: value for key, value in truth.items() if key != name}).encode()
    for path in value_paths(truth):
        yield replace_value(truth, path, rng.choice(VALUES))


def audited(run: Path, out: Path) -> None:
    """Run an audit and check that every figure is finite."""
    found = audit(PLAN, out, recording=run, resources=HERE)
    assert found.findings or found.refusals
    for finding in found.findings:
        assert all(map(math.isfinite, finding.claimed.numbers))
        assert all(math.isfinite(score.value) for score in finding.scores)
    assert all(
        line.lower_bound is None or line.lower_bound.epsilon >= 0
        for line in epsilon_results(found)
    )


def canaries(home: Path, _: Files) -> CaseResults:
    """Run all changes of the canaries in a ground truth."""
    results, rng = CaseResults(), random.Random(22)
    run, out = with_canaries(home), home / "out"
    intact = contents(run)
    read = partial(audited, out=out)
    results.expect(not results.run_case("whole", run, [read]), "the intact run is refused")
    for number, damaged in enumerate(truths(json.loads(intact[TRUTH]), rng)):
        shutil.rmtree(out, ignore_errors=True)
        truth_path(run).write_bytes(damaged)
        case = f"canaries {number}: {damaged[:60]!a}"
        is_refused = results.run_case(case, run, [read])
        # A refused truth leaves no files; an audited one only those of the audit.
        results.expect(out.exists() is not is_refused, f"{case}: out is wrong")
        left = {name for name in files_in(home) if not name.startswith("out/")}
        results.expect(left == {f"run/{name}" for name in intact}, f"{case}: {left} are there")
    return results
