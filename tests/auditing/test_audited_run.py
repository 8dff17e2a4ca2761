"""Runs are trained in batches and audited one by one."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from overheard.archive.layout import seconds_path
from overheard.archive.run_time import RunTime, read_run_time, write_run_time
from overheard.auditing import audited_run
from overheard.auditing.audited_run import AuditedRun, Stopwatch, core_seconds, simulate_runs
from overheard.auditing.folder import AuditFolder
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.program import resolve_plan
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.disk.writing import partial_path
from overheard.findings.finding import ArmRun
from overheard.findings.traffic import Traffic
from overheard.learning.distillation.methods.flip import Flip
from overheard.plans.plan import ArmPlan, Plan
from tests.archive.stored_truth import read_truth
from tests.auditing.conftest import inputs_for
from tests.auditing.plans import NO_DEFENSE, SECURE_AGGREGATION, TINY, replace_tables


def simulated(
    plan: Plan, folder: Path, on_round: Callable[[str, int], None] = lambda *_: None
) -> Iterator[AuditedRun]:
    """Train the runs of a plan in a folder."""
    inputs = inputs_for(plan)
    program = resolve_plan(plan, inputs.data_digests())
    return simulate_runs(program, inputs, AuditFolder(folder), on_round)


def test_runs_of_an_arm_train_in_batches_and_keep_the_order_of_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audited_run, "MAX_BATCH", 2)
    plan, told = (
        replace_tables(TINY, seeds=(5, 3, 4), arms=(SECURE_AGGREGATION, NO_DEFENSE)),
        list[tuple[str, int]](),
    )
    runs = list(simulated(plan, tmp_path, lambda what, done: told.append((what, done))))
    assert [(run.observed.spec.name, run.observed.spec.seed) for run in runs] == [
        (arm, seed) for arm in ("secure aggregation", "no defense") for seed in (5, 3, 4)
    ]
    # Two rounds: of two runs at once they are 2 and 4, of one 1 and 2.
    last = "secure aggregation, seed 4: training"
    assert told[4:8] == [(last, done) for done in (0, 1, 2, 2)]
    assert told[8:12] == [("no defense, seeds 5 to 3: training", done) for done in (0, 2, 4, 4)]


def test_each_run_of_a_batch_has_its_own_messages_and_knowledge(tmp_path: Path):
    plan = replace_tables(TINY, seeds=(0, 1))
    runs = simulated(plan, tmp_path)
    one, other = (run.observed for run in runs)
    assert one.spec.rounds == other.spec.rounds == (0, 1)
    (threat,) = plan.threats
    for name in one.transcript.seen_by(SERVER).broadcasts()[0]:
        starts = [run.transcript.seen_by(SERVER).broadcasts()[0][name] for run in (one, other)]
        # Biases start at nothing in every run.
        assert starts[0].equal(starts[1]) is (not bool(starts[0].any()))
    mine, theirs = (
        attacker_knowledge(run.spec.arm, threat, run.inputs).auxiliary for run in (one, other)
    )
    assert mine is not None
    assert theirs is not None
    assert not mine.inputs.equal(theirs.inputs)


def test_the_partition_is_in_the_truth_of_a_simulated_run_but_in_no_file(
    tmp_path: Path,
):
    for _ in ("trained", "opened again"):
        run = next(simulated(TINY, tmp_path))
        truth = run.truth.truth
        assert truth is not None
        for (number, who), counts in truth.facts.need(LabelCounts).counts.items():
            held = truth.examples_of(who, (number,))
            assert held.label_counts(len(counts)).equal(counts)
    folder = AuditFolder(tmp_path).run_path(run.observed.spec.name, run.observed.spec.seed)
    assert read_truth(folder).partition is None
    assert read_truth(folder).facts.need(LabelCounts).rounds_of(COHORT)


@pytest.mark.slow
def test_attacks_get_the_models_derived_from_distilled_data(tmp_path: Path):
    flip = ArmPlan(name="flip", distillation=Flip(samples=1, batch=10), rounds=3)
    plan = replace_tables(TINY, arms=(flip,))
    assert [arm.name for arm in plan.arms] == ["no defense", "flip"]
    weights, told = simulated(plan, tmp_path)
    assert weights.record.defenses == ()
    (record,) = told.record.defenses
    assert record.settings == repr(Flip(samples=1, batch=10))
    assert record.enforced_at == "client"
    view = told.observed.transcript.seen_by(SERVER)
    assert weights.observed.spec.rounds == (0, 1)
    assert told.observed.spec.rounds == view.rounds_with_updates(client(0)) == (0, 1, 2)
    assert told.record.answers == 9
    counts, told_counts = (
        one.truth.truth.facts.need(LabelCounts).counts for one in (weights, told)
    )
    assert told_counts[2, client(0)].tolist() == counts[0, client(0)].tolist()


@pytest.mark.slow
def test_counts_distilled_sets_as_traffic_and_times_each_run_alone(
    tmp_path: Path,
):
    flip = ArmPlan(name="flip", distillation=Flip(samples=1, batch=10), rounds=3)
    plan = replace_tables(TINY, arms=(NO_DEFENSE, flip), seeds=(0, 1))
    *weights, one, other = _records(plan, tmp_path)
    # Ten examples of 64 pixels, 10 soft labels, a rate and a count: 760 numbers, 3040 bytes.
    # Three clients send one in each of three rounds; three and the closing one go to all of
    # them, and in round 0 the first weights, 650 numbers.
    due = Traffic(9 * 3040, 3 * (4 * 3040 + 2600), answers=9, heard=12)
    assert one.traffic == other.traffic == due
    assert weights[0].seconds == weights[1].seconds
    assert one.seconds != other.seconds


def test_reopening_runs_does_not_change_their_time(tmp_path: Path):
    flip = ArmPlan(name="flip", distillation=Flip(samples=1, batch=10), rounds=3)
    plan = replace_tables(TINY, arms=(NO_DEFENSE, flip))
    first = [one.seconds for one in _records(plan, tmp_path)]
    assert None not in first
    assert [one.seconds for one in _records(plan, tmp_path)] == first


def _records(plan: Plan, folder: Path) -> list[ArmRun]:
    return [run.record for run in simulated(plan, folder)]


LINUX = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not tell of processes"
)


def wall(folder: Path) -> float:
    seconds = read_run_time(folder)
    assert seconds is not None
    return seconds.wall


def test_each_lap_adds_to_a_run_that_starts_at_zero(tmp_path: Path):
    watch = Stopwatch([tmp_path])
    assert read_run_time(tmp_path) == RunTime(0.0, 0.0)
    taken = []
    for _ in range(2):
        time.sleep(0.05)
        watch.lap()
        taken.append(wall(tmp_path))
    assert 0.05 <= taken[0] < taken[0] + 0.05 <= taken[1]


def test_an_interrupted_run_continues_its_time(recording: Path, tmp_path: Path):
    folder = shutil.copytree(recording, tmp_path / "run")
    write_run_time(folder, RunTime(100.0, 50.0))
    begun = time.perf_counter()
    watch = Stopwatch([folder])
    time.sleep(0.05)
    watch.lap()
    assert 100.05 <= wall(folder) <= 100 + time.perf_counter() - begun


def test_a_file_that_a_kill_left_unfinished_changes_nothing(recording: Path, tmp_path: Path):
    folder = shutil.copytree(recording, tmp_path / "run")
    taken, half = wall(folder), partial_path(seconds_path(folder))
    half.write_text('{"wa')
    Stopwatch([folder])
    assert wall(folder) == taken


def test_runs_that_train_together_share_the_time(tmp_path: Path):
    folders = [tmp_path / name for name in "abcd"]
    begun = time.perf_counter()
    watch = Stopwatch(folders)
    time.sleep(0.08)
    watch.lap()
    spent = time.perf_counter() - begun
    walls = [wall(folder) for folder in folders]
    assert len(set(walls)) == 1
    assert 0.08 / 4 <= walls[0] <= spent / 4


def test_unmeasured_rounds_leave_a_run_unmeasured(recording: Path, tmp_path: Path):
    folder = shutil.copytree(recording, tmp_path / "run")
    seconds_path(folder).unlink()
    Stopwatch([folder, tmp_path / "new"]).lap()
    assert read_run_time(folder) is None
    assert wall(tmp_path / "new") > 0


def test_removing_a_transcript_resets_its_time(recording: Path, tmp_path: Path):
    folder = shutil.copytree(recording, tmp_path / "run")
    shutil.rmtree(folder / "transcript")
    assert wall(folder) > 0
    Stopwatch([folder])
    assert wall(folder) == 0


def busy() -> float:
    taken = core_seconds()
    assert taken is not None
    return taken


@pytest.mark.slow
@LINUX
def test_counts_cpu_time_of_this_process_but_not_sleep():
    before = busy()
    time.sleep(0.3)
    slept = busy() - before
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    assert slept < 0.15
    assert busy() - before - slept == pytest.approx(0.3, abs=0.1)


@LINUX
def test_counts_running_and_ended_workers():
    work = (
        "import time\n"
        "end = time.process_time() + 0.4\n"
        "while time.process_time() < end: pass\n"
        "print(flush=True); input()"
    )
    before = busy()
    worker = subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdout is not None
    worker.stdout.readline()
    alive = busy() - before
    worker.communicate(b"\n")
    gone = busy() - before
    assert alive >= 0.38  # ticks are of 0.01 s
    assert gone >= alive
