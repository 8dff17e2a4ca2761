"""Attacks in worker processes give the same results, and start only where they save time."""

import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from overheard.archive.value_codec import Json
from overheard.auditing import audited_run, inputs, runs_ahead
from overheard.auditing.cells.claim_store import read_cell_claims
from overheard.auditing.inputs import Resources
from overheard.auditing.progress import ProgressStep
from overheard.auditing.run import audit
from overheard.auditing.runs_ahead import (
    AttackRun,
    _available_workers,
    _can_workers_attack,
    _encode_data,
)
from overheard.core import compute_settings
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.devices import choice
from overheard.learning.devices.choice import DeviceName, Host
from overheard.learning.devices.machine import USUAL_CORE, USUAL_GPU, GpuCosts, Machine
from overheard.learning.models.mlp import Mlp
from overheard.learning.workers import processes
from overheard.learning.workers.job import TensorBundle, WorkerTask
from overheard.plans.plan import ArmPlan, ThreatPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.label_shares.claim import LabelShares
from tests.auditing.conftest import FinishedAudit, inputs_for
from tests.auditing.plans import SMALL, TINY, TRAINING, replace_tables
from tests.auditing.shift_attack import Pull

pytestmark = pytest.mark.slow

TWO = Resources(device="cpu", workers=2)
FIVE_RUNS = replace_tables(TINY, seeds=tuple(range(5)))


def cells_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "cells").iterdir()}


def attack_again(folder: Path, encoded: tuple[Json, TensorBundle]) -> None:
    """Let a worker's job attack the last run of the small audit in this process."""
    data, bundle = encoded
    assert AttackRun(folder, 3, replace(TWO, workers=1), data).run(bundle.tensors) == {}


def test_a_job_stores_the_claims_of_its_run_again(small: FinishedAudit, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(small.folder, folder)
    for path in cells_of_run(folder, "secure aggregation", 1):
        path.unlink()
    attack_again(folder, _encode_data(inputs_for(SMALL), 1))
    assert cells_of(folder) == cells_of(small.folder)


def cells_of_run(folder: Path, arm: str, seed: int) -> list[Path]:
    found = []
    for path in (folder / "cells").iterdir():
        cell = read_cell_claims(path, LabelShares).cell
        if (cell.arm, cell.seed) == (arm, seed):
            found.append(path)
    assert found
    return found


def test_a_job_reads_the_messages_of_its_run_and_neither_truth_nor_data(
    small: FinishedAudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(small.folder, folder)
    shutil.rmtree(folder / "cells")
    for path in folder.glob("runs/*/truth.json"):
        path.unlink()
    for other in folder.glob("runs/*"):
        if other.name != "secure_aggregation-seed1":
            shutil.rmtree(other)
    encoded = _encode_data(inputs_for(SMALL), 1)
    for name in ("run_federations", "with_partition", "simulated_run_record"):
        monkeypatch.setattr(audited_run, name, None)
    monkeypatch.setattr(inputs, "load_data", None)
    monkeypatch.setattr(inputs, "partitions_of_seed", None)
    attack_again(folder, encoded)
    for path in cells_of_run(folder, "secure aggregation", 1):
        assert path.read_bytes() == (small.folder / "cells" / path.name).read_bytes()


@pytest.mark.slow
def test_workers_attack_all_runs_but_the_first_to_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    infer, here, steps = MeanSoftmax.infer, list[Seed](), list[ProgressStep]()

    def counted(
        self: MeanSoftmax,
        view: View,
        targets: Sequence[Party],
        knowledge: Knowledge,
        seed: Seed,
    ) -> Mapping[Party, LabelShares]:
        here.append(seed)
        return infer(self, view, targets, knowledge, seed)

    monkeypatch.setattr(MeanSoftmax, "infer", counted)
    alone = audit(FIVE_RUNS, tmp_path / "alone", resources=replace(TWO, workers=1))
    # Over both rounds and over each of them, in every run.
    assert len(here) == 15
    here.clear()
    monkeypatch.setattr(runs_ahead, "MIN_SECONDS_SAVED", 0.0)
    together = audit(FIVE_RUNS, tmp_path / "two", resources=TWO, on_step=steps.append)
    assert len(here) == 3
    assert "attacks on the other runs: run 4 of 4" in [step.description for step in steps]
    assert steps[-1].done == steps[-1].total
    assert together.findings == alone.findings
    assert together.refusals == alone.refusals


def test_a_short_audit_starts_no_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "acquire", None)
    # On a busy machine the audit takes longer than what is worth starting workers for.
    monkeypatch.setattr(runs_ahead, "MIN_SECONDS_SAVED", 300.0)
    assert audit(FIVE_RUNS, tmp_path / "short", resources=TWO).findings


def test_a_few_runs_are_attacked_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_ahead, "MIN_SECONDS_SAVED", 0.0)
    monkeypatch.setattr(processes, "acquire", None)
    # After the first run one is left, fewer than two for each worker.
    assert audit(replace_tables(TINY, seeds=(0, 1)), tmp_path / "few", resources=TWO).findings


def take_all(
    tasks: Iterable[tuple[int, WorkerTask]], workers: int
) -> Generator[int, None, None]:
    """Finish all tasks in another order than they began, without running them."""
    yield from reversed([number for number, _ in tasks])


def test_progress_counts_the_rounds_of_every_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_ahead, "MIN_SECONDS_SAVED", 0.0)
    monkeypatch.setattr(runs_ahead, "_run_tasks", take_all)
    arms, steps = tuple(ArmPlan(name=name) for name in "abcde"), list[ProgressStep]()
    audit(replace_tables(TINY, arms=arms), tmp_path / "x", resources=TWO, on_step=steps.append)
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert done[-1] == steps[-1].total


def test_workers_attack_every_run_if_attacks_train_virtual_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_over = list[int]()

    def take(
        tasks: Iterable[tuple[int, WorkerTask]], workers: int
    ) -> Generator[int, None, None]:
        handed_over.append(len(numbers := [number for number, _ in tasks]))
        yield from numbers

    monkeypatch.setattr(runs_ahead, "_run_tasks", take)
    # Refused for lack of knowledge, which takes no time.
    plan = replace_tables(
        FIVE_RUNS, threats=(ThreatPlan(attacks=(Amortised(),), knows=("model",)),)
    )
    first = audit(plan, tmp_path / "x", resources=TWO)
    assert handed_over == [5]
    # Its results are stored, so that workers have nothing to do.
    assert audit(plan, tmp_path / "x", resources=TWO).refusals == first.refusals
    assert handed_over == [5]


def test_a_worker_leaves_attacks_that_need_a_gpu_to_the_main_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual = VirtualPlan(clients=8, examples=(20, 20))
    attacks = (Whispers(), BiasInversion())
    threat = ThreatPlan(attacks=attacks, by_round=False, virtual=virtual)
    plan = replace_tables(TINY, threats=(threat,))
    audit(plan, tmp_path, resources=replace(TWO, workers=1))
    stored = cells_of(tmp_path)
    free = Machine(1, USUAL_CORE, GpuCosts(*[0.0] * len(fields(GpuCosts))))
    data, bundle = _encode_data(inputs_for(plan), 0)
    monkeypatch.setattr(choice, "SMALL", 0.0)
    monkeypatch.setattr(choice, "_HOST", [])
    monkeypatch.setattr(compute_settings, "_IS_WORKER", [True])

    def attacked(device: DeviceName, machine: Machine | None) -> set[str]:
        """Return the attacks whose claims a worker stores."""
        shutil.rmtree(tmp_path / "cells")
        host = Host(1, is_measured=True, machine=machine)
        resources = Resources(device=device, workers=1)
        AttackRun(tmp_path, 0, resources, data, host).run(bundle.tensors)
        found = cells_of(tmp_path)
        assert found.items() <= stored.items()
        cells = (read_cell_claims(tmp_path / "cells" / one, LabelShares).cell for one in found)
        return {cell.part for cell in cells}

    both = {"whispers", "bias_inversion"}
    assert attacked("auto", None) == both
    assert attacked("auto", Machine(1, USUAL_CORE, USUAL_GPU)) == both
    assert attacked("auto", free) == {"bias_inversion"}
    assert attacked("cuda", None) == {"bias_inversion"}


def test_workers_attack_only_what_fits_and_what_they_can_build() -> None:
    fits = inputs_for(TINY)
    assert _can_workers_attack(fits)
    # 6 MB of weights; 256 models of them have more than a GiB.
    large = TRAINING.model_copy(update={"model": Mlp(hidden=(20_000,))})
    assert not _can_workers_attack(replace(fits, plan=replace_tables(TINY, training=large)))
    unknown = replace_tables(TINY, threats=(ThreatPlan(attacks=(Pull(),)),))
    assert not _can_workers_attack(replace(fits, plan=unknown))


def test_a_cluster_and_a_single_worker_leave_the_attacks_here() -> None:
    assert _available_workers(TWO) == 2
    assert _available_workers(replace(TWO, workers=1)) == 1
    assert _available_workers(replace(TWO, cluster="local")) == 1
