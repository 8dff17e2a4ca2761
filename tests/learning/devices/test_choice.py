"""Training goes to the GPU only where that saves time, whichever process asks."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from overheard.core import compute_settings
from overheard.core.compute_settings import LeftToMainProcess, become_worker
from overheard.core.errors import PlanError
from overheard.core.recipe import Recipe
from overheard.learning.devices import calibration, choice
from overheard.learning.devices.choice import (
    Host,
    check_device,
    current_host,
    forget_parts,
    may_have_gpu,
    sentence_on_devices,
    settle_device,
    use_host,
)
from overheard.learning.devices.machine import USUAL_CORE, USUAL_GPU, Machine
from overheard.learning.devices.training_work import TrainingWork, count_step
from overheard.learning.evaluate import logits_of_models
from overheard.learning.train import describe_training, train_cohort
from tests.learning.cases import (
    CLIENTS,
    CONVOLUTIONS,
    IMAGES,
    MLP,
    READING,
    RECIPES,
    SEED,
    TABLE,
    TEXTS,
    pool_of,
    start_of,
)

MACHINE = Machine(4, USUAL_CORE, USUAL_GPU)


@pytest.fixture(autouse=True)
def unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_HOST", [])
    monkeypatch.setattr(compute_settings, "_IS_WORKER", [])


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A machine with a GPU; how often it was measured."""
    measured: list[int] = []

    def measure(cores: int) -> Machine:
        measured.append(cores)
        return replace(MACHINE, cores=cores)

    monkeypatch.setattr(choice, "may_have_gpu", lambda: True)
    monkeypatch.setattr(choice, "measured_machine", measure)
    return measured


def work(clients: int, **changes: Any) -> TrainingWork:
    described = describe_training(
        CONVOLUTIONS,
        pool_of(IMAGES, torch.float32).inputs,
        Recipe(rate=0.1, epochs=1, batch=32),
        clients=clients,
        examples=600,
        steps=19,
    )
    assert described is not None
    return replace(described, **changes)


def test_large_training_goes_to_a_gpu_and_small_training_does_not(gpu: list[int]) -> None:
    assert settle_device("auto", lambda: work(10)) == "cpu"
    assert gpu == []  # nothing was measured for it
    assert settle_device("auto", lambda: work(100_000)) == "cuda"
    assert len(gpu) == 1
    assert settle_device("auto", lambda: work(100, times=1000)) == "cuda"
    assert len(gpu) == 1


def test_training_that_a_gpu_does_not_speed_up_stays_on_the_cpu(gpu: list[int]) -> None:
    assert settle_device("auto", lambda: work(100_000, on_gpu="one by one")) == "cpu"
    assert len(gpu) == 1


def test_unknown_work_stays_on_the_cpu(gpu: list[int]) -> None:
    assert settle_device("auto", lambda: None) == "cpu"


def test_a_named_device_is_taken_as_it_is() -> None:
    def describe() -> TrainingWork:
        raise AssertionError("the work does not matter")

    assert settle_device("cpu", describe) == "cpu"
    assert settle_device("cuda", describe) == "cuda"


def test_without_a_gpu_nothing_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "may_have_gpu", lambda: False)

    def describe() -> TrainingWork:
        raise AssertionError("the work does not matter")

    assert settle_device("auto", describe) == "cpu"


def test_torch_is_not_asked_for_a_gpu_without_its_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(choice, "DRIVER_FILES", ("/dev/null",))
    assert may_have_gpu()
    monkeypatch.setattr(choice, "DRIVER_FILES", ("/no/such/driver",))
    assert not may_have_gpu()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: 1 / 0)
    with pytest.raises(PlanError, match="torch finds no GPU; choose 'auto' or 'cpu'"):
        check_device("cuda")


def test_a_worker_leaves_to_the_main_process_what_a_gpu_is_for(gpu: list[int]) -> None:
    settle_device("auto", lambda: work(100_000))
    known = current_host()
    become_worker()
    use_host(known)
    assert settle_device("auto", lambda: work(10)) == "cpu"
    assert settle_device("auto", lambda: work(100_000, on_gpu="one by one")) == "cpu"
    for name in ("auto", "cuda"):
        with pytest.raises(LeftToMainProcess):
            settle_device(name, lambda: work(100_000))
    assert len(gpu) == 1


def test_a_worker_measures_nothing(gpu: list[int]) -> None:
    become_worker()
    use_host(Host(4, is_measured=False, machine=None))
    with pytest.raises(LeftToMainProcess):
        settle_device("auto", lambda: work(100_000))
    assert gpu == []


def test_small_cohorts_and_readings_stay_on_the_cpu(gpu: list[int]) -> None:
    pool, start = pool_of(TABLE, torch.float32), start_of(MLP, torch.float32)
    on_cpu, chosen = (
        train_cohort(
            MLP, start, pool, CLIENTS, RECIPES["sgd"], seed=SEED, round=0, device=device
        )
        for device in ("cpu", "auto")
    )
    for one, other in zip(on_cpu, chosen, strict=True):
        assert all(torch.equal(one.delta[name], other.delta[name]) for name in start)
    (here,) = logits_of_models(MLP, [start], pool.inputs)
    (there,) = logits_of_models(MLP, [start], pool.inputs, device="auto")
    assert torch.equal(here, there)
    assert gpu == []


def test_many_models_are_read_on_a_gpu(gpu: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    start, inputs = start_of(CONVOLUTIONS, torch.float32), torch.zeros(10_000, 2, 8, 8)
    monkeypatch.setattr(choice, "SMALL", 0.0)
    become_worker()
    use_host(Host(1, is_measured=True, machine=MACHINE))
    logits_of_models(CONVOLUTIONS, [start], inputs, device="auto")
    logits_of_models(CONVOLUTIONS, iter([start]), inputs, device="auto")  # of unknown number
    with pytest.raises(LeftToMainProcess):
        logits_of_models(CONVOLUTIONS, iter([start]), inputs, device="auto", count=10**9)


def test_steps_are_counted_for_one_example_and_for_all() -> None:
    table = count_step(MLP, pool_of(TABLE, torch.float32).inputs)
    assert table is not None
    # Layers 6-5-4-3: products and sums of a forward and a backward pass; the gradient of the
    # inputs is not needed.
    assert table.operations == 2 * (2 * 30 + 3 * 20 + 3 * 12)
    weights = 4 * (30 + 20 + 12 + 12)
    assert table.fixed_bytes == pytest.approx(weights, abs=8)
    texts = count_step(READING, pool_of(TEXTS, torch.float32).inputs)
    assert texts is not None
    assert texts.calls > table.calls > 8
    assert (
        count_step(MLP, pool_of(IMAGES, torch.float32).inputs) is None
    )  # it cannot run on them


def test_counting_leaves_the_state_of_random_numbers_alone() -> None:
    state = torch.random.get_rng_state()
    count_step(CONVOLUTIONS, torch.ones(1, 2, 16, 16))
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_gpu_that_cannot_be_measured_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(cores: int) -> Machine:
        raise RuntimeError("CUDA error: no kernel image is available")

    monkeypatch.setattr(choice, "may_have_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(calibration, "machine_with_gpu", fail)
    assert settle_device("auto", lambda: work(100_000)) == "cpu"
    assert "the GPU is not used, as it could not be measured: CUDA error" in caplog.text


def test_a_sentence_says_what_a_gpu_computed(
    gpu: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "available_cores", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    forget_parts()
    settle_device("auto", lambda: work(10), "clients of the federation")
    assert sentence_on_devices() == (
        "Computed on 4 cores of the CPU: the GPU would have saved no time."
    )
    for part in ("virtual clients", "shadow models", "virtual clients"):
        settle_device("auto", lambda: work(100_000), part)
    assert sentence_on_devices() == (
        "Computed on the GPU: virtual clients and shadow models; everything else on 4 cores of "
        "the CPU."
    )
    forget_parts()
    use_host(Host(4, is_measured=True, machine=None))
    assert sentence_on_devices() == (
        "Computed on 4 cores of the CPU: the GPU could not be measured."
    )
    # The file of a driver alone, as in WSL, is no GPU.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert sentence_on_devices() is None
