import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import messages_path, truth_path
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import is_complete, verify
from overheard.core.defense import Defense, Moment
from overheard.core.errors import OutputError
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.federation.federation import Federation
from overheard.federation.run import run

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"


class Noise(Defense):
    name = "noise"
    source = "this test"
    enforced_at = "client"
    switched_off_by = "the client"

    def on_update(self, update: Update, moment: Moment) -> Update:
        generator = moment.seed.generator()
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


def test_a_run_leaves_a_whole_transcript_with_the_truth_outside_of_it(
    small: Federation, tmp_path: Path
) -> None:
    transcript, _ = run(small, tmp_path)
    assert is_complete(tmp_path)
    assert verify(tmp_path) == 7
    assert {path.name for path in tmp_path.iterdir()} == {"transcript", "truth.json"}
    assert read_manifest(tmp_path).parties == (SERVER, client(0), client(1))
    assert transcript.messages[-1].round == 2
    assert isinstance(transcript.messages[-1].body, Broadcast)


def test_each_round_starts_where_the_one_before_ended(
    small: Federation, tmp_path: Path
) -> None:
    transcript, _ = run(small, tmp_path)
    weights = transcript.seen_by(client(0)).broadcasts()
    assert weights[0]["weight"].flatten().tolist() == [0.0, 0.0]
    assert weights[1]["weight"].flatten().tolist() == [-1.25, 1.25]
    assert not torch.equal(weights[2]["weight"], weights[1]["weight"])


def test_the_same_seed_gives_the_same_files_and_another_seed_others(
    crowd: Federation, tmp_path: Path
) -> None:
    noisy = replace(crowd, participation=0.5, failure_rate=0.2, defenses=(Noise(),))
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(replace(noisy, seed=Seed(seed)), tmp_path / name)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert files(tmp_path / "a")["truth.json"] != files(tmp_path / "c")["truth.json"]


def test_tells_of_each_round_once_it_is_on_the_disk(small: Federation, tmp_path: Path) -> None:
    def look(number: int) -> None:
        assert messages_path(tmp_path / "transcript", number).exists()
        told.append(number)

    told: list[int] = []
    run(small, tmp_path, look)
    assert told == [0, 1]
    run(small, tmp_path, look)
    assert told == [0, 1]


def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(
    crowd: Federation, tmp_path: Path
) -> None:
    def stop(number: int) -> None:
        if number == 1:
            raise KeyboardInterrupt

    noisy = replace(crowd, failure_rate=0.2, defenses=(Noise(),))
    run(noisy, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(noisy, tmp_path / "stopped", stop)
    told: list[int] = []
    run(noisy, tmp_path / "stopped", told.append)
    assert told == [2]
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


def test_a_complete_run_is_opened_and_not_run_again(small: Federation, tmp_path: Path) -> None:
    _, truth = run(small, tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    _, again = run(small, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times
    assert again.accuracy == truth.accuracy


def test_a_truth_that_was_lost_is_worked_out_again(small: Federation, tmp_path: Path) -> None:
    run(small, tmp_path)
    before = files(tmp_path)
    truth_path(tmp_path).unlink()
    run(small, tmp_path)
    assert files(tmp_path) == before


def test_a_truth_left_by_another_run_is_not_believed(small: Federation, tmp_path: Path) -> None:
    run(small, tmp_path / "a")
    (tmp_path / "b").mkdir()
    truth_path(tmp_path / "b").write_text('{"counts": [], "accuracy": []}')
    run(small, tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_another_run_is_refused_and_the_folder_left_alone(
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
        with pytest.raises(OutputError, match=f"differs in .*{what} .there"):
            run(other, tmp_path)
    assert files(tmp_path) == before


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")
def test_a_run_killed_at_random_moments_ends_byte_for_byte_alike() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--kills", "5"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 equal byte for byte, 0 not" in done.stdout
