"""What was measured of a machine is kept, and whatever else is found there is replaced."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from overheard.learning.devices import calibration
from overheard.learning.devices.calibration import (
    machine_with_gpu,
    measure_machine,
    read_machine,
    write_machine,
)
from overheard.learning.devices.machine import USUAL_CORE, USUAL_GPU, Machine

MACHINE = Machine(4, USUAL_CORE, USUAL_GPU)
GOOD = {"format": calibration.FORMAT, **asdict(MACHINE)}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a pretended GPU was measured."""
    cores: list[int] = []

    def measure(count: int) -> Machine:
        cores.append(count)
        return Machine(count, USUAL_CORE, USUAL_GPU)

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "../../NVIDIA <b>H200</b>")
    monkeypatch.setattr(calibration, "measure_machine", measure)
    return cores


def test_a_machine_is_measured_once(tmp_path: Path, measured: list[int]) -> None:
    assert machine_with_gpu(4, tmp_path / "new") == MACHINE
    assert machine_with_gpu(4, tmp_path / "new") == MACHINE
    assert measured == [4]
    assert machine_with_gpu(8, tmp_path / "new").cores == 8
    assert measured == [4, 8]
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert len(names) == 2
    assert all("/" not in name and "<" not in name for name in names)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{" * 100_000,
        json.dumps(GOOD)[:-3],
        json.dumps({**GOOD, "format": 0}),
        json.dumps({**GOOD, "cores": 5}),
        json.dumps({**GOOD, "core": {**asdict(USUAL_CORE), "more": 1.0}}),
        json.dumps({**GOOD, "core": [1.0, 1.0, 1.0]}),
        json.dumps({**GOOD, "gpu": {**asdict(USUAL_GPU), "start": float("nan")}}),
        json.dumps({**GOOD, "gpu": {**asdict(USUAL_GPU), "start": -1.0}}),
        json.dumps({**GOOD, "gpu": {**asdict(USUAL_GPU), "start": 1e9}}),
        json.dumps({**GOOD, "gpu": {**asdict(USUAL_GPU), "start": "1.0"}}),
        json.dumps({**GOOD, "gpu": {**asdict(USUAL_GPU), "start": True}}),
    ],
)
def test_a_damaged_file_is_replaced(tmp_path: Path, measured: list[int], content: str) -> None:
    machine_with_gpu(4, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    assert read_machine(path, 4) is None
    assert machine_with_gpu(4, tmp_path) == MACHINE
    assert measured == [4, 4]
    assert read_machine(path, 4) == MACHINE


def test_a_folder_that_cannot_be_written_costs_the_storing_alone(
    tmp_path: Path, measured: list[int]
) -> None:
    (tmp_path / "file").write_text("")
    assert machine_with_gpu(4, tmp_path / "file") == MACHINE
    assert measured == [4]


@pytest.mark.slow
def test_measured_costs_can_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "GPU", torch.device("cpu"))
    monkeypatch.setattr(calibration, "STACKED", 3)
    monkeypatch.setattr(calibration, "FEW", 2)
    monkeypatch.setattr(calibration, "STEPS", (2, 4))
    monkeypatch.setattr(calibration, "WIDTH", 8)
    monkeypatch.setattr(calibration, "SIDE", 8)
    monkeypatch.setattr(calibration, "FIRST_STEP", "print(0)")
    machine = measure_machine(3)
    assert machine.cores == 3
    assert min(machine.core.operation, machine.core.call, machine.gpu.stacked_call) > 0
    write_machine(tmp_path / "speed.json", machine)
    assert read_machine(tmp_path / "speed.json", 3) == machine


@pytest.mark.parametrize(
    ("code", "start"),
    [
        ("print(2.5)", 2.5),
        ("print(9)", 4.0),
        ("raise SystemExit(1)", 4.0),
        ("print('slow')", 4.0),
        ("print('nan')", 4.0),
        ("print(-1)", 4.0),
        ("pass", 4.0),
        ("import time; time.sleep(60)", 4.0),
    ],
)
def test_the_start_is_that_of_a_process_that_compiles_no_kernel(
    code: str, start: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "FIRST_STEP", code)
    monkeypatch.setattr(calibration, "MOST_START_SECONDS", 0.5 if "sleep" in code else 60)
    assert calibration._start_seconds(4.0) == start


def test_the_first_step_is_measured_by_the_code_that_a_process_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibration, "GPU", torch.device("cpu"))
    monkeypatch.setattr(calibration, "STACKED", 2)
    exec(calibration.FIRST_STEP, {})
    assert float(capsys.readouterr().out) > 0
