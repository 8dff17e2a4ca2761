"""Bytes are counted by who sent them and who could read them."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from overheard.archive.manifest import Manifest
from overheard.archive.reader import open_transcript
from overheard.archive.recorder import Recorder
from overheard.archive.weights import StoredWeights
from overheard.core.errors import TranscriptError
from overheard.core.examples import Examples
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    Missing,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, SERVER, client, shadow
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.transcript import Transcript
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.federation.run import Federation, run
from overheard.findings.traffic import Traffic, traffic_of
from overheard.learning.models.logistic import Logistic

TWO = frozenset({client(0), client(1)})
TO_SERVER = frozenset({SERVER})

WEIGHTS: Weights = {"weight": torch.zeros(1, 2), "bias": torch.zeros(1)}
"""Three numbers of four bytes: 12 bytes."""

SAID = (
    Message(0, SERVER, TWO, Broadcast(WEIGHTS)),
    Message(0, client(0), TO_SERVER, Update(WEIGHTS, 5, {"loss": 0.5})),
    Message(0, client(1), TO_SERVER, Missing("late")),
    Message(1, SERVER, TWO, Broadcast(WEIGHTS)),
    Message(1, client(0), TO_SERVER, Update(WEIGHTS)),
    Message(1, client(1), TO_SERVER, Update(WEIGHTS)),
    Message(2, SERVER, TWO, Broadcast(WEIGHTS)),
)

COUNTED = Traffic(up=3 * 12, down=3 * 2 * 12, answers=3, heard=6)
"""Three answers; three broadcasts to two clients."""


def recorded(folder: Path, said: tuple[Message, ...]) -> Transcript:
    manifest = Manifest(Task((2,), ("a", "b")), "linear", None, (), (SERVER, *TWO), rounds=2)
    recorder = Recorder(folder, manifest)
    for number in range(1 + max(message.round for message in said)):
        with recorder.round() as now:
            for message in said:
                if message.round == number:
                    now.send(message)
    return open_transcript(folder)


def test_each_answer_counts_once_and_each_broadcast_for_every_client_that_hears_it() -> None:
    assert traffic_of(Transcript(SAID)) == COUNTED
    assert (COUNTED.up_each, COUNTED.down_each) == (12, 12)


def test_what_is_on_the_disk_counts_as_what_was_sent(tmp_path: Path) -> None:
    assert traffic_of(recorded(tmp_path, SAID)) == COUNTED


@pytest.mark.parametrize(("kind", "size"), [(torch.float64, 24), (torch.bfloat16, 6)])
def test_numbers_count_at_their_own_width(tmp_path: Path, kind: torch.dtype, size: int) -> None:
    weights = {name: tensor.to(kind) for name, tensor in WEIGHTS.items()}
    said = (SAID[0], replace(SAID[1], body=Update(weights)))
    for transcript in (Transcript(said), recorded(tmp_path, said)):
        assert traffic_of(transcript).up == size
        assert traffic_of(transcript).down == 24


def test_a_distilled_set_counts_by_its_four_tensors(tmp_path: Path) -> None:
    # 5 x 7 inputs, 5 x 2 labels, 5 rates, 5 counts: 55 numbers, 220 bytes.
    drawn = DistilledSet(torch.zeros(5, 7), torch.zeros(5, 2), torch.zeros(5), torch.zeros(5))
    said = (
        SAID[0],
        Message(0, SERVER, TWO, drawn),
        Message(0, client(1), TO_SERVER, drawn),
    )
    found = traffic_of(recorded(tmp_path, said))
    # In this round each client hears the first weights and the set.
    assert found == Traffic(up=220, down=2 * (12 + 220), answers=1, heard=2)


def test_a_sum_was_sent_by_nobody_where_the_masked_updates_are_there() -> None:
    masked = replace(SAID[1], readers=frozenset())
    summed = Message(0, COHORT, TO_SERVER, Aggregate(WEIGHTS, frozenset({client(0)})))
    for said in ((SAID[0], masked, summed), (SAID[0], summed, masked)):
        assert traffic_of(Transcript(said)) == Traffic(12, 24, 1, 2)


def test_of_a_sum_alone_each_of_its_cohort_sent_as_much() -> None:
    summed = Message(0, COHORT, TO_SERVER, Aggregate(WEIGHTS, TWO))
    assert traffic_of(Transcript((SAID[0], summed))) == Traffic(24, 24, 2, 2)


def test_what_shadow_devices_send_and_hear_costs_no_network() -> None:
    said = (
        replace(SAID[0], readers=TWO | {shadow(0)}),
        replace(SAID[1], sender=shadow(0)),
    )
    assert traffic_of(Transcript(said)) == Traffic(0, 24, 0, 2)


def test_where_nobody_answered_there_is_no_mean() -> None:
    found = traffic_of(Transcript(SAID[2:3]))
    assert found == Traffic(0, 0, 0, 0)
    assert found.up_each is found.down_each is None


@pytest.mark.parametrize("head", [b"\xff" * 8, (0).to_bytes(8, "little"), b""])
def test_a_file_whose_head_lies_is_refused(tmp_path: Path, head: bytes) -> None:
    transcript = recorded(tmp_path, SAID)
    body = transcript.messages[1].body
    assert isinstance(body, Update)
    assert isinstance(body.delta, StoredWeights)
    content = body.delta.path.read_bytes()
    body.delta.path.write_bytes(head + content[8:] if head else b"")
    with pytest.raises(TranscriptError, match="no room for the 3 numbers"):
        traffic_of(transcript)


def federation(*defenses: SecureAggregation) -> Federation:
    task = Task((3,), ("a", "b"))
    pool = Examples(torch.randn(8, 3, generator=Seed(0).generator()), torch.arange(8) % 2)
    return Federation(
        build_model=partial(Logistic().build, task),
        model="logistic",
        task=task,
        recipe=Recipe(rate=0.1, epochs=1, batch=4),
        pool=pool,
        rows=[list(torch.arange(8).split(4))] * 2,
        test=pool,
        rounds=2,
        seed=Seed(1),
        defenses=defenses,
        engine="sequential",
    )


def test_two_clients_of_a_tiny_model_send_as_much_in_the_open_as_masked(tmp_path: Path) -> None:
    # 3 inputs x 2 classes and 2 biases: 8 numbers, 32 bytes. Two clients answer in two rounds;
    # two broadcasts and the closing one go to both.
    due = Traffic(up=4 * 32, down=3 * 2 * 32, answers=4, heard=6)
    for number, defenses in enumerate([(), (SecureAggregation(),)]):
        transcript, _ = run(federation(*defenses), tmp_path / str(number))
        assert traffic_of(transcript) == due
