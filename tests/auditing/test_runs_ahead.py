"""Attacks in worker processes give the same results, and start only where they save time."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overheard.auditing import audited_run, runs_ahead
from overheard.auditing.inputs import Resources
from overheard.auditing.progress import Progress, ProgressStep
from overheard.auditing.run import audit
from overheard.auditing.runs_ahead import (
    AttackRun,
    _attack_in_workers,
    _available_workers,
    _can_be_shared,
    _load_once,
    _resources_of_workers,
)
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.federation.run import Federation, run_federations
from overheard.learning.models.mlp import Mlp
from overheard.learning.workers import processes
from overheard.learning.workers.job import TaskResult, WorkerTask
from overheard.plans.plan import ArmPlan, ThreatPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.claim import LabelShares
from tests.auditing.conftest import FinishedAudit, inputs_for
from tests.auditing.plans import SMALL, TINY, TRAINING, replace_tables
from tests.auditing.shift_attack import Pull

TWO = Resources(device="cpu", workers=2)
FIVE_RUNS = replace_tables(TINY, seeds=tuple(range(5)))


def cells_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "cells").iterdir()}


def test_a_job_stores_the_results_of_its_run_again(
    small: FinishedAudit, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(small.folder, folder)
    of_run = {
        path
        for path in (folder / "cells").iterdir()
        if b'"arm":"secure aggregation","seed":1' in path.read_bytes()
    }
    assert of_run
    for path in of_run:
        path.unlink()
    job = AttackRun(
        SMALL.toml(), folder, replace(TWO, workers=1), "secure aggregation", number=1
    )
    assert job.run({}) == {}
    assert cells_of(folder) == cells_of(small.folder)


def test_a_job_opens_its_own_run_alone_and_computes_nothing_for_the_report(
    small: FinishedAudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(small.folder, folder)
    opened = list[Path]()

    def run_and_note(
        federations: Sequence[Federation], folders: Sequence[Path], **others: Any
    ) -> list[tuple[Transcript, GroundTruth]]:
        opened.extend(folders)
        return run_federations(federations, folders, **others)

    monkeypatch.setattr(audited_run, "run_federations", run_and_note)
    monkeypatch.setattr(audited_run, "planned_defenses", None)
    monkeypatch.setattr(audited_run, "complete_run_record", None)
    job = AttackRun(
        SMALL.toml(), folder, replace(TWO, workers=1), "secure aggregation", number=1
    )
    job.run({})
    _load_once.cache_clear()
    assert [path.name for path in opened] == ["secure_aggregation-seed1"]


def test_no_process_remembers_the_data_of_an_audit(
    small: FinishedAudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(small.folder, folder)
    job = AttackRun(SMALL.toml(), folder, replace(TWO, workers=1), "no defense", number=0)
    stopped = list[int]()
    monkeypatch.setattr(processes, "acquire", lambda _: SimpleNamespace(run_tasks=run_here))
    monkeypatch.setattr(processes, "stop_idle", stopped.append)
    _attack_in_workers([job], 1, 3, Progress(None))
    assert stopped == [3]
    assert _load_once.cache_info().currsize == 0


def run_here(tasks: Iterable[tuple[int, WorkerTask]]) -> Iterator[TaskResult]:
    for number, task in tasks:
        result = task.run()
        assert _load_once.cache_info().currsize == 1
        yield TaskResult(number, result)


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
    monkeypatch.setattr(runs_ahead, "FEWEST_SECONDS", 0.0)
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
    monkeypatch.setattr(runs_ahead, "FEWEST_SECONDS", 300.0)
    assert audit(FIVE_RUNS, tmp_path / "short", resources=TWO).findings


def test_a_few_runs_are_attacked_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_ahead, "FEWEST_SECONDS", 0.0)
    monkeypatch.setattr(processes, "acquire", None)
    # After the first run one is left, fewer than two for each worker.
    assert audit(replace_tables(TINY, seeds=(0, 1)), tmp_path / "few", resources=TWO).findings


def test_progress_counts_the_rounds_of_every_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_ahead, "FEWEST_SECONDS", 0.0)
    monkeypatch.setattr(runs_ahead, "_attack_in_workers", lambda jobs, *_: list(jobs))
    arms, steps = tuple(ArmPlan(name=name) for name in "abcde"), list[ProgressStep]()
    audit(replace_tables(TINY, arms=arms), tmp_path / "x", resources=TWO, on_step=steps.append)
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert done[-1] == steps[-1].total


def test_workers_attack_every_run_if_attacks_train_virtual_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_over = list[int]()

    def take(jobs: Iterable[AttackRun], *_: object) -> None:
        handed_over.append(len(list(jobs)))

    monkeypatch.setattr(runs_ahead, "_attack_in_workers", take)
    # Refused for lack of knowledge, which takes no time.
    plan = replace_tables(
        FIVE_RUNS, threats=(ThreatPlan(attacks=(Amortised(),), knows=("model",)),)
    )
    first = audit(plan, tmp_path / "x", resources=TWO)
    assert handed_over == [5]
    # Its results are stored, so that workers have nothing to do.
    assert audit(plan, tmp_path / "x", resources=TWO).refusals == first.refusals
    assert handed_over == [5]


def test_workers_attack_only_what_fits_and_what_they_can_build() -> None:
    fits = inputs_for(TINY)
    assert _can_be_shared(fits)
    # 6 MB of weights; 256 models of them have more than a GiB.
    large = TRAINING.model_copy(update={"model": Mlp(hidden=(20_000,))})
    assert not _can_be_shared(replace(fits, plan=replace_tables(TINY, training=large)))
    unknown = replace_tables(TINY, threats=(ThreatPlan(attacks=(Pull(),)),))
    assert not _can_be_shared(replace(fits, plan=unknown))


def test_workers_read_the_folder_that_the_environment_names_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setenv("OVERHEARD_DATA", tmp_path.name)
    assert _resources_of_workers(TWO) == replace(TWO, workers=1, data=tmp_path)
    monkeypatch.delenv("OVERHEARD_DATA")
    assert _resources_of_workers(TWO).data is None


def test_a_cluster_and_a_single_worker_leave_the_attacks_here() -> None:
    assert _available_workers(TWO) == 2
    assert _available_workers(replace(TWO, workers=1)) == 1
    assert _available_workers(replace(TWO, cluster="local")) == 1
