"""Whatever Overheard itself simulates is no contradiction."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from overheard.archive.manifest import read_manifest
from overheard.consistency.check import check_recording
from overheard.consistency.proof import RecordingProof
from overheard.consistency.statement import StatedStep, state_step
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.federation.federation import Federation
from overheard.federation.run import run
from overheard.plans.registries import ALGORITHMS, DEFENSES

pytestmark = pytest.mark.slow

TASK = Task((1, 6, 6), ("a", "b", "c"))


def build_model() -> nn.Module:
    """A network of 471 numbers, with batch norm."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(36, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 3)
    )


def federation(algorithm: Algorithm | None = None) -> Federation:
    """Five clients of four to twelve examples; five rounds."""
    draw = torch.Generator().manual_seed(0)
    pool = Examples(torch.rand(40, 1, 6, 6, generator=draw), torch.arange(40) % 3)
    rows = torch.arange(40).split([4, 6, 8, 10, 12])
    planned = Federation(
        build_model=build_model,
        model="mlp",
        task=TASK,
        recipe=Recipe(rate=0.1, epochs=1, batch=4),
        pool=pool,
        rows=[list(rows)] * 5,
        test=pool,
        rounds=5,
        seed=Seed(5),
        engine="sequential",
        background=pool,
    )
    return planned if algorithm is None else replace(planned, algorithm=algorithm)


def proofs(planned: Federation, folder: Path) -> tuple[RecordingProof, RecordingProof]:
    """Return what the run proves if it states its server's step, and if it states nothing."""
    run(planned, folder)
    stated = state_step(read_manifest(folder))
    return check_recording(folder, stated), check_recording(folder, StatedStep())


@pytest.mark.parametrize("name", ALGORITHMS.plugins())
def test_no_algorithm_contradicts_itself(name: str, tmp_path: Path) -> None:
    planned = federation(ALGORITHMS.plugins()[name]())
    if planned.algorithm.schedule(1, 1, Seed(0)) is None:
        planned = replace(planned, participation=0.6, failure_rate=0.1)
    stated, unstated = proofs(planned, tmp_path)
    assert stated.outcome == ("cannot tell" if name == "fed_buff" else "follows"), stated
    assert stated.allows_no_leak("updates")
    assert unstated.outcome != "contradicts", unstated
    assert not [one for one in (*stated.faults, *unstated.faults) if one.is_refusal]


@pytest.mark.parametrize("name", DEFENSES.plugins())
def test_no_defense_makes_a_run_contradict_itself(name: str, tmp_path: Path) -> None:
    defense = DEFENSES.plugins()[name]()
    if isinstance(defense, DpFedavg):
        # With more noise nothing else of a model of 471 numbers can be seen.
        defense = DpFedavg(noise_multiplier=0.1)
    stated, unstated = proofs(replace(federation(), defenses=(defense,)), tmp_path)
    assert stated.outcome == "follows", stated
    assert unstated.outcome != "contradicts", unstated
    assert unstated.allows_no_leak("updates")


@pytest.mark.parametrize("sampling", ["poisson", "with_replacement"])
def test_sampling_does_not_make_a_run_contradict_itself(sampling: str, tmp_path: Path) -> None:
    planned = replace(federation(), sampling=sampling, participation=0.6)
    for proof in proofs(planned, tmp_path):
        assert proof.outcome != "contradicts", proof
        assert proof.allows_no_leak("updates")
