"""Whole runs and their truth."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import truth_path
from overheard.core.algorithm.canary_direction import draw_canary_direction
from overheard.core.defense import DefenseContext
from overheard.core.errors import OutputError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.messages import MissingReply, Update
from overheard.core.parties import COHORT, client, is_shadow_device, shadow_device
from overheard.core.seeds import Seed
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.defenses.canary_clients import CanaryClients
from overheard.defenses.class_balanced import ClassBalanced
from overheard.federation.federation import Federation
from overheard.federation.run import run, run_federations
from overheard.learning.workers import processes
from tests.federation.conftest import ClientDefense, files

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"


class Noise(ClientDefense):
    name = "noise"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        generator = context.seed.generator()
        delta = {
            name: tensor + torch.randn(tensor.shape, generator=generator)
            for name, tensor in update.delta.items()
        }
        return Update(delta, update.examples, update.metrics)

    def __repr__(self) -> str:
        return "Noise()"


def workers_of_each_round(federation: Federation, folder: Path) -> list[list[int | None]]:
    """Process ids of the one idle worker after each round."""
    ready = list[list[int | None]]()

    def look(_: int) -> None:
        worker_pool = processes.acquire(1)
        ready.append([worker.pid for worker in worker_pool._context.workers])
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


HANDS = {"ann": "left", "bob": "right"}


class OnlyZeros(ClientDefense):
    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        return Examples(data.inputs, torch.zeros_like(data.labels))


def counts_of(truth: GroundTruth) -> LabelCounts:
    return truth.facts.need(LabelCounts)


def test_counts_the_labels_of_each_client_in_each_round(
    small: Federation, tmp_path: Path
) -> None:
    shifted = replace(
        small,
        rows=[
            [torch.tensor([0]), torch.tensor([1, 2, 3])],
            [torch.tensor([0, 1]), torch.tensor([2, 3])],
        ],
    )
    _, truth = run(shifted, tmp_path)
    assert {key: counts.tolist() for key, counts in counts_of(truth).counts.items()} == {
        (0, client(0)): [1, 0],
        (0, client(1)): [0, 3],
        (1, client(0)): [1, 1],
        (1, client(1)): [0, 2],
    }
    assert counts_of(truth).counts_of(COHORT, (0, 1)).tolist() == [2, 6]


def test_a_long_run_is_tested_at_evenly_spaced_rounds(
    small: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = replace(small, rounds=4, rows=[small.rows[0]] * 4)
    _, whole = run(long, tmp_path / "whole")
    assert list(whole.accuracy) == [0, 1, 2, 3, 4]
    monkeypatch.setattr("overheard.federation.run.MAX_TESTED_BROADCASTS", 3)
    _, sampled = run(long, tmp_path / "sampled")
    assert sampled.accuracy == {number: whole.accuracy[number] for number in (0, 2, 4)}


def test_counts_labels_before_any_defense(small: Federation, tmp_path: Path) -> None:
    _, truth = run(replace(small, defenses=(OnlyZeros(),)), tmp_path)
    assert counts_of(truth).counts[0, client(1)].tolist() == [0, 3]


def test_counts_only_clients_with_an_update(crowd: Federation, tmp_path: Path) -> None:
    transcript, truth = run(replace(crowd, participation=0.5, failure_rate=0.5), tmp_path)
    absent = {
        (m.round, m.sender) for m in transcript.messages if isinstance(m.body, MissingReply)
    }
    assert absent
    assert not absent & counts_of(truth).counts.keys()
    assert len(absent) + len(counts_of(truth).counts) == 30


def test_knows_the_accuracy_of_every_broadcast_and_of_the_final_model(
    small: Federation, tmp_path: Path
) -> None:
    _, truth = run(small, tmp_path)
    # At first both classes are tied and the first is predicted, which 1 of 4 has. After round 0
    # the weights are (-1.25, 1.25): every input, being positive, is predicted as class 1.
    assert truth.accuracy[0] == 0.25
    assert truth.accuracy[1] == 0.75
    assert list(truth.accuracy) == [0, 1, 2]


def test_records_users_and_attributes_but_nothing_of_shadow_devices(
    small: Federation, tmp_path: Path
) -> None:
    federation = replace(
        small,
        shadows=1,
        facts=Facts(UsersOfClients({client(0): "ann"}), Attributes({"hand": HANDS})),
    )
    transcript, truth = run(federation, tmp_path)
    assert all(fact in list(truth.facts) for fact in federation.facts)
    assert {party for _, party in counts_of(truth).counts} == {client(0)}
    assert counts_of(truth).counts_of(COHORT, (0, 1)).tolist() == [2, 0]
    senders = {m.sender for m in transcript.messages}
    assert [party for party in senders if is_shadow_device(party)] == [shadow_device(0)]
    # A complete run is opened with the same truth.
    again = run(federation, tmp_path)[1]
    assert all(fact in list(again.facts) for fact in federation.facts)


def test_records_shifts_which_do_not_change_the_run(small: Federation, tmp_path: Path) -> None:
    shifts = Facts(Shifts({client(1): (1,)}))
    plain, truth = run(small, tmp_path / "plain")
    transcript, shifted = run(replace(small, facts=shifts), tmp_path / "shifted")
    assert truth.facts.get(Shifts) is None
    assert shifted.facts.get(Shifts) == shifts.get(Shifts)
    assert truth.accuracy == shifted.accuracy
    assert [m.sender for m in plain.messages] == [m.sender for m in transcript.messages]


def test_canary_clients_send_directions_that_the_truth_can_draw_again(
    crowd: Federation, tmp_path: Path
) -> None:
    canaries = CanaryClients(count=3, clip=0.5)
    transcript, truth = run(replace(crowd, defenses=(canaries,)), tmp_path)
    fact = truth.facts.get(CanaryDirections)
    assert fact is not None
    assert fact.seeds.keys() == {client(0), client(1), client(2)}
    for message in transcript.messages:
        if isinstance(message.body, Update):
            delta = message.body.delta
            seed = fact.seeds.get(message.sender)
            # The same in every round, and no other client sends one.
            direction = draw_canary_direction(delta, Seed(seed or 0))
            sent = {name: one / 0.5 for name, one in delta.items()}
            is_same = all(torch.allclose(sent[name], one) for name, one in direction.items())
            assert is_same == (seed is not None)
    # A run that is opened again knows them, too.
    assert (
        run(replace(crowd, defenses=(canaries,)), tmp_path)[1].facts.get(CanaryDirections)
        == fact
    )
