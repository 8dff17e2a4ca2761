"""Traffic counts bytes sent by clients and by the server."""

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
    MissingReply,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, SERVER, client, shadow_device
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.transcript import Transcript
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.federation.run import Federation, run
from overheard.findings.traffic import Traffic, measure_traffic
from overheard.learning.models.logistic import Logistic

TWO = frozenset({client(0), client(1)})
TO_SERVER = frozenset({SERVER})

WEIGHTS: Weights = {"weight": torch.zeros(1, 2), "bias": torch.zeros(1)}
"""Three numbers of four bytes: 12 bytes."""

MESSAGES = (
    Message(0, SERVER, TWO, Broadcast(WEIGHTS)),
    Message(0, client(0), TO_SERVER, Update(WEIGHTS, 5, {"loss": 0.5})),
    Message(0, client(1), TO_SERVER, MissingReply("late")),
    Message(1, SERVER, TWO, Broadcast(WEIGHTS)),
    Message(1, client(0), TO_SERVER, Update(WEIGHTS)),
    Message(1, client(1), TO_SERVER, Update(WEIGHTS)),
    Message(2, SERVER, TWO, Broadcast(WEIGHTS)),
)

COUNTED = Traffic(up=3 * 12, down=3 * 2 * 12, answers=3, heard=6)
"""Three updates; three broadcasts to two clients."""


def record(folder: Path, messages: tuple[Message, ...]) -> Transcript:
    manifest = Manifest(Task((2,), ("a", "b")), "linear", None, (), (SERVER, *TWO), rounds=2)
    recorder = Recorder(folder, manifest)
    for number in range(1 + max(message.round for message in messages)):
        with recorder.open_round() as now:
            for message in messages:
                if message.round == number:
                    now.record(message)
    return open_transcript(folder)


def test_updates_count_once_and_broadcasts_once_for_each_reader() -> None:
    assert measure_traffic(Transcript(MESSAGES)) == COUNTED
    assert (COUNTED.up_per_client_round, COUNTED.down_per_client_round) == (12, 12)


def test_stored_messages_count_like_messages_in_memory(tmp_path: Path) -> None:
    assert measure_traffic(record(tmp_path, MESSAGES)) == COUNTED


@pytest.mark.parametrize(("kind", "size"), [(torch.float64, 24), (torch.bfloat16, 6)])
def test_numbers_count_at_their_own_width(tmp_path: Path, kind: torch.dtype, size: int) -> None:
    weights = {name: tensor.to(kind) for name, tensor in WEIGHTS.items()}
    messages = (MESSAGES[0], replace(MESSAGES[1], body=Update(weights)))
    for transcript in (Transcript(messages), record(tmp_path, messages)):
        assert measure_traffic(transcript).up == size
        assert measure_traffic(transcript).down == 24


def test_a_distilled_set_counts_with_its_four_tensors(tmp_path: Path) -> None:
    # 5 x 7 inputs, 5 x 2 labels, 5 rates, 5 counts: 55 numbers, 220 bytes.
    distilled = DistilledSet(
        torch.zeros(5, 7), torch.zeros(5, 2), torch.zeros(5), torch.zeros(5)
    )
    messages = (
        MESSAGES[0],
        Message(0, SERVER, TWO, distilled),
        Message(0, client(1), TO_SERVER, distilled),
    )
    found = measure_traffic(record(tmp_path, messages))
    # In this round each client receives the first weights and the set.
    assert found == Traffic(up=220, down=2 * (12 + 220), answers=1, heard=2)


def test_an_aggregate_does_not_count_beside_masked_updates() -> None:
    masked = replace(MESSAGES[1], readers=frozenset())
    summed = Message(0, COHORT, TO_SERVER, Aggregate(WEIGHTS, frozenset({client(0)})))
    for messages in ((MESSAGES[0], masked, summed), (MESSAGES[0], summed, masked)):
        assert measure_traffic(Transcript(messages)) == Traffic(12, 24, 1, 2)


def test_an_aggregate_alone_counts_once_for_each_client_of_its_cohort() -> None:
    summed = Message(0, COHORT, TO_SERVER, Aggregate(WEIGHTS, TWO))
    assert measure_traffic(Transcript((MESSAGES[0], summed))) == Traffic(24, 24, 2, 2)


def test_messages_of_shadow_devices_do_not_count() -> None:
    messages = (
        replace(MESSAGES[0], readers=TWO | {shadow_device(0)}),
        replace(MESSAGES[1], sender=shadow_device(0)),
    )
    assert measure_traffic(Transcript(messages)) == Traffic(0, 24, 0, 2)


@pytest.mark.parametrize("head", [b"\xff" * 8, (0).to_bytes(8, "little"), b""])
def test_refuses_a_file_with_a_wrong_header(tmp_path: Path, head: bytes) -> None:
    transcript = record(tmp_path, MESSAGES)
    body = transcript.messages[1].body
    assert isinstance(body, Update)
    assert isinstance(body.delta, StoredWeights)
    content = body.delta.path.read_bytes()
    body.delta.path.write_bytes(head + content[8:] if head else b"")
    with pytest.raises(TranscriptError, match="too small or too large for the 3 numbers"):
        measure_traffic(transcript)


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


def test_masked_and_open_updates_have_the_same_size(tmp_path: Path) -> None:
    # 3 inputs x 2 classes and 2 biases: 8 numbers, 32 bytes. Two clients answer in two rounds;
    # two broadcasts and the closing one go to both.
    due = Traffic(up=4 * 32, down=3 * 2 * 32, answers=4, heard=6)
    for number, defenses in enumerate([(), (SecureAggregation(),)]):
        transcript, _ = run(federation(*defenses), tmp_path / str(number))
        assert measure_traffic(transcript) == due
