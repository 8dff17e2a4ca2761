"""Proofs of clients that train with Opacus itself, and what `record_dp` reads of its engine."""

from pathlib import Path

import pytest

pytest.importorskip("opacus", reason="the extra opacus is not installed")

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager

from overheard.core.accounting.stated_steps import read_stated_steps
from overheard.doctor.criticism import Diagnosis
from overheard.doctor.replay.clients import Code
from overheard.doctor.replay.prove import prove_here
from overheard.recorders.client_side.opacus import record_dp
from tests.doctor.replay import opacus_trainers
from tests.doctor.replay.opacus_trainers import load_data, make_net

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

HERE = Path(__file__).parent

FAULTS = {
    "no noise": "without-noise",
    "seed in each message": "noise-repeats",
    "less noise than stated": "noise-scale",
    "steps past the engine": "without-noise",
    "loss in the reply": "metrics",
}


def prove(model: str = "make_net", **config: object) -> Diagnosis:
    place = "tests.doctor.replay.opacus_trainers"
    code = Code(f"{place}:train", HERE, f"{place}:{model}", config=config)
    return prove_here(code).diagnosis


def critical(diagnosis: Diagnosis) -> set[str]:
    return {one.rule.id.removeprefix("proof-") for one in diagnosis.alarms}


@pytest.mark.parametrize("fault", ["", pytest.param("shuffled", marks=pytest.mark.nightly)])
def test_a_client_with_an_engine_in_each_message_has_right_steps(fault: str):
    found = prove(fault=fault)
    assert critical(found) == set()
    # Opacus adds up what is not finite.
    assert {one.rule.id for one in found.criticisms} == {"proof-non-finite"}


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_finds_faults_around_the_engine(fault: str):
    stated = {"noise_multiplier": opacus_trainers.NOISE_MULTIPLIER}
    assert FAULTS[fault] in critical(prove(fault=fault, **stated))


@pytest.mark.nightly
def test_finds_that_records_of_a_batch_are_normalised_together():
    assert critical(prove("make_norm_net")) == {"sensitivity"}


def test_a_layer_that_the_engine_refuses_proves_nothing():
    found = prove("make_layer_of_batch_norm")
    assert found.passed == ()
    assert any("BatchNorm" in one.why for one in found.unseen)


@pytest.mark.parametrize("is_split", [False, True])
def test_states_the_steps_of_the_engine(is_split: bool):
    model = make_net()
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=load_data(0),
        noise_multiplier=1.1,
        max_grad_norm=0.5,
    )

    def epoch(batches: object) -> None:
        for x, y in batches:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    for message in range(2):
        if is_split:
            with BatchMemoryManager(
                data_loader=loader, max_physical_batch_size=3, optimizer=optimizer
            ) as parts:
                epoch(parts)
                stated = record_dp(engine, optimizer, parts)
        else:
            epoch(loader)
            stated = record_dp(engine, optimizer, loader)
        (steps,) = read_stated_steps(stated).steps
        found = (steps.noise_multiplier, steps.sampling, steps.steps)
        # 24 records in batches of 8: three steps an epoch, each with a third of the records.
        assert found == (1.1, "poisson", 3), message
        assert steps.rate == pytest.approx(1 / 3)
