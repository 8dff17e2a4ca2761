from dataclasses import replace
from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.doctor.criticism import Diagnosis
from overheard.doctor.replay.app import describe_code, find_code, prove_app
from overheard.doctor.replay.clients import Code
from overheard.doctor.replay.prove import prove_here

HERE = Path(__file__).parent

FAULTS = {
    "no clip": "sensitivity",
    "noise for a mean": "noise-scale",
    "seed in each message": "noise-repeats",
    "no noise in a bias": "without-noise",
    "loss in the reply": "metrics",
    "skips non-finite batches": "control-flow",
    "normalised by its data": "cross-records",
    "divides by the drawn batch": "batch-sizes",
}
"""A fault for each critical rule."""

MORE_FAULTS = {
    "clip of a batch": "sensitivity",
    "bias is not clipped": "sensitivity",
    "clip of each layer": "sensitivity",
    "momentum before noise": "sensitivity",
    "clip after noise": "sensitivity",
    "less noise in the last layer": "noise-scale",
    "noise is cut": "noise-scale",
    "seed in each step": "noise-repeats",
    "noise once": "noise-repeats",
    "a second loss": "without-noise",
    "rate by loss": "without-noise",
    "array without noise": "without-noise",
    "cache of a message": "without-noise",
    "digest of the data": "metrics",
    "count of drawn records": "batch-sizes",
    "a last step without noise": "without-noise",
    "stops early": "control-flow",
    "steps by the data": "control-flow",
}


def prove(client: str, **config: str) -> Diagnosis:
    return prove_here(Code(f"tests.doctor.replay.{client}", HERE, config=config)).diagnosis


def critical(diagnosis: Diagnosis) -> set[str]:
    return {one.rule.id.removeprefix("proof-") for one in diagnosis.alarms}


def test_a_right_trainer_has_no_critical_fault_and_all_is_seen():
    found = prove("trainers:train", fault="exact count")
    assert critical(found) == set()
    assert found.unseen == ()
    assert {one.rule.id for one in found.criticisms} == {
        "proof-non-finite",
        "proof-record-count",
    }
    assert len(found.passed) == 8


@pytest.mark.parametrize("fault", FAULTS)
def test_finds_each_kind_of_fault(fault: str):
    assert FAULTS[fault] in critical(prove("trainers:train", fault=fault))


@pytest.mark.nightly
@pytest.mark.parametrize("fault", MORE_FAULTS)
def test_finds_more_faults(fault: str):
    assert MORE_FAULTS[fault] in critical(prove("trainers:train", fault=fault))


def test_an_optimizer_with_the_steps_of_opacus_has_no_critical_fault():
    found = prove("optimizers:train")
    assert critical(found) == set()
    assert found.unseen == ()


def test_an_app_of_flower_runs_in_a_process_of_its_own_once_this_was_said():
    code = find_code(HERE / "flower_app")
    assert "clients.message_api:app" in describe_code(code)
    found = prove_app(replace(code, config={**code.config, "sends-loss": True}))
    assert critical(found) == {"metrics"}
    assert [one.rule.id for one in found.unseen] == ["proof-batch-sizes"]
    assert "core seconds" in found.notes[0]


@pytest.mark.nightly
def test_a_client_function_of_flower_with_noise_of_numpy_has_no_critical_fault():
    code = find_code(HERE / "flower_app", client="clients.numpy_client:app")
    assert critical(prove_app(code)) == set()


def test_no_code_runs_if_it_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OVERHEARD_NO_CODE", "1")
    with pytest.raises(PlanError, match="--no-code"):
        prove_app(find_code(HERE / "flower_app"))


@pytest.mark.parametrize("end", ["os._exit(2)", "os.kill(os.getpid(), 9)"])
def test_a_client_that_ends_its_process_is_told_and_proves_nothing(tmp_path: Path, end: str):
    (tmp_path / "client.py").write_text(
        f"import os\n\n\ndef train(model, data, config):\n    {end}\n\n\n"
        "def load_data(client):\n    return ()\n\n\n"
        "def make_model():\n    import torch\n    return torch.nn.Linear(2, 2)\n"
    )
    with pytest.raises(PlanError, match="ended its process before the proof was done"):
        prove_app(find_code(tmp_path / "client.py"))


def test_a_handler_that_is_named_train_is_run_by_its_app(tmp_path: Path) -> None:
    file = tmp_path / "client.py"
    file.write_text("app = ClientApp()\n@app.train()\ndef train(msg, context): ...\n")
    assert find_code(file).client == "client:app"
    file.write_text("app = make()\ndef train(model, data, config): ...\n")
    assert find_code(file).client == "client:train"
