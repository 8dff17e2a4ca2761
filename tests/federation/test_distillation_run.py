"""Three clients, each with three clusters of points, one per class."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import round_folder
from overheard.archive.reader import open_transcript
from overheard.core.errors import OutputError, PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Broadcast, DistilledSet, Message, MissingReply, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.federation import distillation_run
from overheard.federation.distillation_run import DIVERGED
from overheard.federation.federation import Federation
from overheard.federation.run import run
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.models.mlp import Mlp
from tests.federation.conftest import files

CLIENTS, CLASSES, ROUNDS, SIZE = 3, 3, 4, 60

TASK = Task((4,), ("a", "b", "c"))


def clusters(seed: int, labels: torch.Tensor) -> Examples:
    generator = Seed(seed).generator()
    centres = 2 * torch.eye(CLASSES, 4)
    return Examples(
        centres[labels] + 0.3 * torch.randn(len(labels), 4, generator=generator), labels
    )


def federation(
    rounds: int = ROUNDS, flip: Flip | None = None, without: int | None = None
) -> Federation:
    """Three clients; client 0 has no example of the class `without`."""
    labels = torch.arange(CLIENTS * SIZE) % CLASSES
    if without is not None:
        labels[:SIZE][labels[:SIZE] == without] = (without + 1) % CLASSES
    return Federation(
        build_model=partial(Mlp(hidden=(8,)).build, TASK),
        model="mlp of 8",
        task=TASK,
        recipe=Recipe(rate=0.1, epochs=1, batch=8),
        pool=clusters(0, labels),
        rows=[list(torch.arange(CLIENTS * SIZE).split(SIZE))] * rounds,
        test=clusters(1, torch.arange(90) % CLASSES),
        rounds=rounds,
        seed=Seed(5),
        distillation=flip or Flip(samples=2, batch=20, first_rate=0.2, rate_rate=0.01),
    )


def sets(messages, number: int) -> dict[str, DistilledSet]:
    return {
        message.sender: message.body
        for message in messages
        if message.round == number and isinstance(message.body, DistilledSet)
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run; tests must not change it."""
    folder = tmp_path_factory.mktemp("done")
    run(federation(), folder)
    return folder


@pytest.mark.slow
def test_trains_a_model_without_sending_trained_weights(tmp_path: Path) -> None:
    flip = Flip(samples=2, batch=20, input_rate=0.2, first_rate=0.2, rate_rate=0.02)
    _, truth = run(federation(rounds=20, flip=flip), tmp_path)
    assert truth.accuracy[20] > 0.9
    assert truth.accuracy[0] < 0.8
    messages = open_transcript(tmp_path).messages
    kinds = [type(message.body) for message in messages]
    # The initial weights, and a set from the server and each client.
    assert kinds.count(Broadcast) == 1
    assert Update not in kinds
    assert kinds.count(DistilledSet) == 21 + 20 * CLIENTS


def test_the_server_sends_the_mean_of_the_clients_sets(done: Path) -> None:
    messages = open_transcript(done).messages
    for number in range(ROUNDS):
        client_sets = sets(messages, number)
        after = sets(messages, number + 1)[SERVER]
        for name in ("inputs", "labels", "rates"):
            mean = torch.stack(
                [getattr(client_sets[client(k)], name) for k in range(CLIENTS)]
            ).mean(0)
            assert getattr(after, name).allclose(mean, atol=1e-6)
        assert not client_sets[client(0)].inputs.allclose(
            client_sets[client(1)].inputs, atol=1e-4
        )


def test_only_the_server_reads_a_clients_set(done: Path) -> None:
    for message in open_transcript(done).messages:
        if message.sender != SERVER:
            assert message.readers == {SERVER}


@pytest.mark.slow
def test_with_mask_a_client_without_a_class_does_not_count_for_it(tmp_path: Path) -> None:
    run(federation(rounds=1, without=1), tmp_path)
    messages = open_transcript(tmp_path).messages
    client_sets, after = sets(messages, 0), sets(messages, 1)[SERVER]
    # Examples are of the classes 0, 1, 2, 0, 1, 2.
    assert client_sets[client(0)].counts.tolist() == [1, 0, 1, 1, 0, 1]
    assert client_sets[client(1)].counts.tolist() == [1] * 6
    others = torch.stack([client_sets[client(k)].inputs for k in (1, 2)]).mean(0)
    everyone = torch.stack([client_sets[client(k)].inputs for k in range(CLIENTS)]).mean(0)
    assert after.inputs[1].allclose(others[1], atol=1e-6)
    assert after.inputs[0].allclose(everyone[0], atol=1e-6)


@pytest.mark.slow
def test_with_average_a_client_without_a_class_counts_for_it(tmp_path: Path) -> None:
    flip = Flip(samples=2, batch=20, lacking="average")
    run(federation(rounds=1, flip=flip, without=1), tmp_path)
    client_sets = sets(open_transcript(tmp_path).messages, 0)
    assert client_sets[client(0)].counts.tolist() == [1] * 6


@pytest.mark.slow
def test_examples_of_a_class_without_holders_do_not_change(tmp_path: Path) -> None:
    whole = federation(rounds=1)
    labels = whole.pool.labels.clone()
    labels[labels == 2] = 0
    run(replace(whole, pool=Examples(whole.pool.inputs, labels)), tmp_path)
    messages = open_transcript(tmp_path).messages
    before, after = sets(messages, 0)[SERVER], sets(messages, 1)[SERVER]
    assert after.inputs[2].equal(before.inputs[2])
    assert not after.inputs[0].equal(before.inputs[0])


@pytest.mark.slow
def test_a_resumed_run_has_the_same_files(done: Path, tmp_path: Path) -> None:
    def stop(number: int) -> None:
        if number == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(federation(), tmp_path, stop)
    run(federation(), tmp_path)
    assert files(tmp_path) == files(done)


def test_refuses_to_resume_without_the_optimizer_state(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    for number in range(2, ROUNDS + 1):
        shutil.rmtree(round_folder(tmp_path / "transcript", number))
    shutil.rmtree(tmp_path / "distillation")
    with pytest.raises(
        OutputError, match="after round 1, because the optimizer state of clients is lost"
    ):
        run(federation(), tmp_path)


@pytest.mark.slow
def test_a_client_without_examples_sends_a_missing(tmp_path: Path) -> None:
    whole = federation()
    rows = [[torch.tensor([], dtype=torch.long), *clients[1:]] for clients in whole.rows]
    _, truth = run(replace(whole, rows=rows), tmp_path)
    messages = open_transcript(tmp_path).messages
    assert (
        Message(0, client(0), frozenset({SERVER}), MissingReply("the client held no examples"))
        in messages
    )
    assert (0, client(0)) not in truth.facts.need(LabelCounts).counts


class TestDivergence:
    WILD = Flip(samples=2, batch=20, first_rate=0.2, input_rate=1e30)

    @pytest.mark.slow
    def test_sends_a_missing_and_keeps_the_last_good_set(self, tmp_path: Path) -> None:
        run(federation(flip=self.WILD), tmp_path)
        messages = open_transcript(tmp_path).messages
        diverged = [
            message.round for message in messages if message.body == MissingReply(DIVERGED)
        ]
        # Inputs of 1e30 are finite, but training on them diverges.
        assert diverged.count(1) == CLIENTS
        assert sets(messages, 2)[SERVER].inputs.equal(sets(messages, 0)[SERVER].inputs)

    @pytest.mark.slow
    def test_halves_the_rates_of_later_rounds(self, tmp_path: Path) -> None:
        run(federation(flip=self.WILD), tmp_path)
        messages = open_transcript(tmp_path).messages
        first, third = (
            (sets(messages, n)[client(0)].labels - sets(messages, n)[SERVER].labels).abs().max()
            for n in (0, 2)
        )
        assert float(third) == pytest.approx(float(first) / 2, rel=0.05)


def test_refuses_a_distillation_larger_than_memory_before_the_first_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distillation_run, "free_bytes", lambda device: 1000)
    with pytest.raises(PlanError, match="6 examples with 3 clients"):
        run(federation(), tmp_path)
    assert not (tmp_path / "transcript" / "rounds").exists()
