import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import truth_path
from overheard.core.defense import Defense, DefenseContext
from overheard.core.errors import OutputError
from overheard.core.examples import Examples
from overheard.core.messages import Update
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.class_balanced import ClassBalanced
from overheard.federation.federation import Federation
from overheard.federation.run import run, run_federations
from overheard.learning.workers import processes

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"


class Noise(Defense):
    name = "noise"
    source = "this test"
    enforced_at = "client"
    switched_off_by = "the client"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        generator = context.seed.generator()
        delta = {
            name: tensor + torch.randn(tensor.shape, generator=generator)
            for name, tensor in update.delta.items()
        }
        return Update(delta, update.examples, update.metrics)

    def __repr__(self) -> str:
        return "Noise()"


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def workers_of_each_round(federation: Federation, folder: Path) -> list[list[int]]:
    """Process ids of the one idle worker after each round."""
    ready = list[list[int]]()

    def look(_: int) -> None:
        worker_pool = processes.acquire(1)
        ready.append([worker.process.pid for worker in worker_pool._workers])
        worker_pool.release()

    run(federation, folder, look)
    return ready


def modified(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.skipif(not processes.are_supported(), reason="workers inherit a connection")
def test_the_same_workers_train_every_round_to_the_same_bytes(
    crowd: Federation, tmp_path: Path
) -> None:
    there = replace(crowd, engine="processes", workers=1)
    ready = workers_of_each_round(there, tmp_path / "there")
    assert len(ready) == 3
    assert ready[0] == ready[1] == ready[2]
    run(crowd, tmp_path / "here")
    updates = [
        sorted((tmp_path / name / "transcript").rglob("*.safetensors"))
        for name in ("here", "there")
    ]
    assert len(updates[0]) > 3 * 20
    for one, other in zip(*updates, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_each_round_starts_from_the_model_of_the_round_before(
    small: Federation, tmp_path: Path
) -> None:
    transcript, _ = run(small, tmp_path)
    weights = transcript.seen_by(client(0)).broadcasts()
    assert weights[0]["weight"].flatten().tolist() == [0.0, 0.0]
    assert weights[1]["weight"].flatten().tolist() == [-1.25, 1.25]
    assert not torch.equal(weights[2]["weight"], weights[1]["weight"])


def test_a_resumed_run_has_the_files_of_an_uninterrupted_one(
    crowd: Federation, tmp_path: Path
) -> None:
    def stop(number: int) -> None:
        if number == 1:
            raise KeyboardInterrupt

    noisy = replace(crowd, failure_rate=0.2, defenses=(Noise(),))
    run(noisy, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(noisy, tmp_path / "stopped", stop)
    reported: list[int] = []
    run(noisy, tmp_path / "stopped", reported.append)
    assert reported == [2]
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


def test_opens_a_complete_run_without_running_it(small: Federation, tmp_path: Path) -> None:
    _, truth = run(small, tmp_path)
    times = modified(tmp_path)
    _, again = run(small, tmp_path)
    assert modified(tmp_path) == times
    assert again.accuracy == truth.accuracy


def test_writes_a_missing_truth_again(small: Federation, tmp_path: Path) -> None:
    run(small, tmp_path)
    before = files(tmp_path)
    truth_path(tmp_path).unlink()
    run(small, tmp_path)
    assert files(tmp_path) == before


def test_replaces_the_truth_of_another_run(small: Federation, tmp_path: Path) -> None:
    run(small, tmp_path / "a")
    (tmp_path / "b").mkdir()
    truth_path(tmp_path / "b").write_text('{"counts": [], "accuracy": []}')
    run(small, tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_refuses_the_folder_of_another_run_and_does_not_change_it(
    small: Federation, tmp_path: Path
) -> None:
    run(small, tmp_path)
    before = files(tmp_path)
    for other, what in (
        (replace(small, seed=Seed(6)), "seed"),
        (replace(small, test=small.pool.take(torch.tensor([0]))), "data"),
        (replace(small, failure_rate=0.1), "failure_rate"),
        (replace(small, defenses=(Noise(),)), "defenses"),
        (replace(small, rounds=1, rows=small.rows[:1]), "rounds"),
    ):
        with pytest.raises(OutputError, match=f"differs in .*{what} .stored"):
            run(other, tmp_path)
    assert files(tmp_path) == before


def neighbours(crowd: Federation) -> list[Federation]:
    """Federations of 20, 10 and 20 clients: the first two fit into one stack, the third not."""
    shuffled = torch.arange(199, -1, -1)
    noisy = replace(crowd, engine="stacked", defenses=(Noise(),))
    return [
        replace(noisy, failure_rate=0.2, pool=crowd.pool.take(shuffled)),
        replace(noisy, seed=Seed(6), rows=[rows[:10] for rows in crowd.rows], defenses=()),
        replace(noisy, seed=Seed(7), defenses=(Noise(), ClassBalanced())),
    ]


def folders_in(folder: Path) -> list[Path]:
    return [folder / name for name in "abc"]


@pytest.mark.slow
def test_federations_run_at_once_write_what_each_writes_alone(
    crowd: Federation, tmp_path: Path
) -> None:
    federations = neighbours(crowd)
    together = run_federations(federations, folders_in(tmp_path / "together"))
    for one, folder, (transcript, truth) in zip(
        federations, folders_in(tmp_path), together, strict=True
    ):
        alone, truth_alone = run(one, folder)
        left, left_alone = files(tmp_path / "together" / folder.name), files(folder)
        assert left.keys() == left_alone.keys()
        assert left["transcript/manifest.json"] == left_alone["transcript/manifest.json"]
        assert truth.accuracy == truth_alone.accuracy
        for message, message_alone in zip(transcript.messages, alone.messages, strict=True):
            assert (message.round, message.sender) == (
                message_alone.round,
                message_alone.sender,
            )
            if isinstance(message.body, Update) and isinstance(message_alone.body, Update):
                assert message.body.examples == message_alone.body.examples
                for name, tensor in message_alone.body.delta.items():
                    assert torch.allclose(message.body.delta[name], tensor, atol=1e-5)


@pytest.mark.parametrize("updates", [0, 3, 5, 6, 11])
def test_federations_resumed_within_a_round_have_the_files_of_uninterrupted_ones(
    small: Federation, tmp_path: Path, updates: int
) -> None:
    # Three federations of two clients: six updates a round.
    class Stops(Noise):
        def on_update(self, update: Update, moment: DefenseContext) -> Update:
            if not left:
                raise KeyboardInterrupt
            left.pop()
            return super().on_update(update, moment)

    federations = [
        replace(small, seed=Seed(number), engine="stacked", defenses=(Stops(),))
        for number in range(3)
    ]
    left = list(range(12))
    run_federations(federations, folders_in(tmp_path / "whole"))
    left = list(range(updates))
    with pytest.raises(KeyboardInterrupt):
        run_federations(federations, folders_in(tmp_path / "stopped"))
    left = list(range(12))
    run_federations(federations, folders_in(tmp_path / "stopped"))
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


@pytest.mark.slow
def test_runs_missing_rounds_of_one_federation_to_the_same_files(
    crowd: Federation, tmp_path: Path
) -> None:
    # As after a kill while one round after the other was being closed.
    run_federations(neighbours(crowd), folders_in(tmp_path))
    before, times = files(tmp_path), modified(tmp_path)
    for number in (1, 2, 3):
        shutil.rmtree(tmp_path / "b" / "transcript" / "rounds" / f"r{number:04d}")
    reported: list[int] = []
    run_federations(neighbours(crowd), folders_in(tmp_path), reported.append)
    assert reported == [1, 2]
    assert files(tmp_path) == before
    untouched = [path for path in times if path.relative_to(tmp_path).parts[0] != "b"]
    assert {path: modified(tmp_path)[path] for path in untouched} == {
        path: times[path] for path in untouched
    }


def test_does_not_train_stacks_without_missing_rounds(
    crowd: Federation, tmp_path: Path
) -> None:
    class Watches(Noise):
        def on_data(self, data: Examples, moment: DefenseContext) -> Examples:
            trained.append(moment.seed)
            return data

    def trained_seeds(number: int) -> set[Seed]:
        seed = federations[number].seed
        return {
            seed.child("defense", "noise", 2, party) for party in federations[number].clients
        }

    federations = [
        replace(one, failure_rate=0.0, defenses=(Watches(),)) for one in neighbours(crowd)
    ]
    trained: list[Seed] = []
    run_federations(federations, folders_in(tmp_path))
    for number in (2, 3):
        shutil.rmtree(tmp_path / "b" / "transcript" / "rounds" / f"r{number:04d}")
    trained = []
    run_federations(federations, folders_in(tmp_path))
    assert set(trained) == trained_seeds(0) | trained_seeds(1)


def test_no_federations_give_no_results() -> None:
    assert run_federations((), ()) == ()


def test_refuses_federations_with_shared_or_missing_folders(
    small: Federation, tmp_path: Path
) -> None:
    for folders in ([tmp_path, tmp_path], [tmp_path]):
        with pytest.raises(ValueError, match="its own folder, got 2 federations and 1 folders"):
            run_federations([small, replace(small, seed=Seed(6))], folders)
    assert not any(tmp_path.iterdir())


def test_refuses_federations_that_cannot_train_at_once_before_writing(
    small: Federation, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="federation 1 differs from federation 0 in model"):
        run_federations(
            [small, replace(small, model="other")], [tmp_path / "a", tmp_path / "b"]
        )
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")
def test_a_run_killed_at_random_times_ends_with_the_same_bytes() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--kills", "5"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 equal byte for byte, 0 not" in done.stdout
