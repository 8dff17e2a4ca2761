"""A recorded model without classes: attacks on updates alone run, the others say why not."""

from pathlib import Path

import pytest
import torch

from overheard.auditing.run import audit
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.data.datasets.no_examples import NoExamples
from overheard.learning.models.unknown import Unknown
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.registries import ATTACKS
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from tests.auditing.conftest import HERE

SHAPES = {"body.weight": (4, 6), "body.bias": (4,), "head.weight": (14, 4), "head.bias": (14,)}
"""Fourteen labels at once."""

TENSORS = tuple(f"{name} {'x'.join(map(str, shape))}" for name, shape in SHAPES.items())
CLIENTS = tuple(client(number) for number in range(3))
ROUNDS = 8


@pytest.fixture(scope="module")
def many_labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording whose messages also have a running mean."""
    folder = tmp_path_factory.mktemp("heads") / "recording"
    generator = Seed(0).generator()
    shapes = SHAPES | {"norm.running_mean": (4,)}

    def draw() -> dict[str, torch.Tensor]:
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    writer = AsyncWriter(folder, RunInfo("flower 1.41"))
    for _ in range(ROUNDS):
        writer.begin_round([SERVER])
        start = draw()
        writer.write(SERVER, frozenset(CLIENTS), lambda start=start: Broadcast(start))
        for party in CLIENTS:
            delta = draw()
            writer.write(party, frozenset({SERVER}), lambda delta=delta: Update(delta, 9))
        writer.commit()
    writer.close()
    return folder


def test_every_attack_on_it_runs_or_says_what_it_lacks(many_labels: Path, tmp_path: Path):
    names = [name for name in ATTACKS.plugins() if name != "distilled_labels"]
    attacks = tuple(ATTACKS.plugins()[name]() for name in names)
    threats = tuple(
        ThreatPlan(attacks=attacks, knows=("recipe",), by_round=False, pseudonyms=kept)
        for kept in ("run", "round")
    )
    plan = Plan(
        data=DataPlan(source=NoExamples(class_names=("a", "b"))),
        training=TrainingPlan(model=Unknown(tensors=TENSORS), rounds=ROUNDS, rate=0.1, batch=4),
        threats=threats,
    )
    found = audit(plan, tmp_path / "out", recording=many_labels, resources=HERE)
    claimed = {one.cell.attack.partition(",")[0] for one in found.findings}
    refused = {one.cell.attack.partition(",")[0] for one in found.refusals}
    assert claimed == {"shift", "metadata_link"}
    assert {name for name in names if name not in claimed} <= refused
    assert all(reason.strip() for one in found.refusals for reason in one.missing)
