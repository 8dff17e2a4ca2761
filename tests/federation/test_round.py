"""One round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import nn

from overheard.archive.manifest import Manifest
from overheard.archive.reader import read_round
from overheard.archive.recorder import Recorder
from overheard.core.algorithm.algorithm import ServerState
from overheard.core.defense import Defense, DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    MissingReply,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, SERVER, Party, client, shadow_device
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.transcript import Transcript
from overheard.federation.cohort import sample_cohort
from overheard.federation.federation import Federation
from overheard.federation.round import FederationRound, run_round
from overheard.federation.round_messages import RoundMessages
from overheard.federation.run import build_manifest
from overheard.federation.server import broadcast_weights, next_state, received_updates
from overheard.learning.initialization import initial_weights
from tests.federation.conftest import ClientDefense


class Masks(Defense):
    name = "masks"
    source = "this test"
    enforced_at = "protocol"
    switched_off_by = "nobody"
    masks_updates = True


@dataclass(frozen=True)
class Scale(Defense):
    """Multiplies updates and aggregates; by 1 it changes nothing."""

    of_update: float = 1.0
    of_aggregate: float = 1.0

    name = "scale"
    source = "this test"
    enforced_at = "server"
    switched_off_by = "the server"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        delta = {name: self.of_update * tensor for name, tensor in update.delta.items()}
        return Update(delta, update.examples, update.metrics)

    def on_aggregate(self, aggregate: Aggregate, context: DefenseContext) -> Aggregate:
        delta = {name: self.of_aggregate * tensor for name, tensor in aggregate.delta.items()}
        return Aggregate(delta, aggregate.cohort, aggregate.examples)


class ScaleTogether(Scale):
    name = "scale together"
    enforced_at = "protocol"


class AddOne(ClientDefense):
    """Adds 1 to every update; hides its size."""

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        return Update({name: tensor + 1 for name, tensor in update.delta.items()})


class TakeFive(AddOne):
    """Takes 5 from every running variance."""

    name = "take five"

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        delta = dict(update.delta)
        return replace(update, delta=delta | {"0.running_var": delta["0.running_var"] - 5})


def messages_of(federation: Federation, folder: Path) -> Sequence[Message]:
    """The messages of round 0."""
    weights = initial_weights(federation.build_model, Seed(0))
    with Recorder(folder, build_manifest(federation, "none")).open_round() as record:
        run_round([FederationRound(federation, ServerState(weights), record)], 0)
    return read_round(folder, 0)


def deltas(messages: Sequence[Message], *observers: Party) -> dict[Party, list[float]]:
    view = Transcript(messages).seen_by(*observers)
    return {
        one: view.updates(one)[0].delta["weight"].flatten().tolist() for one in view.senders()
    }


def test_messages_of_a_round_have_their_order_and_readers(
    small: Federation, tmp_path: Path
) -> None:
    messages = messages_of(small, tmp_path)
    assert [(m.sender, m.readers, type(m.body)) for m in messages] == [
        (SERVER, frozenset({client(0), client(1)}), Broadcast),
        (client(0), frozenset({SERVER}), Update),
        (client(1), frozenset({SERVER}), Update),
    ]


def next_weights(federation: Federation, number: int, messages: Sequence[Message]) -> Weights:
    """The global model after a round of an algorithm without memory."""
    state = ServerState(broadcast_weights(messages))
    received = received_updates(federation, number, messages)
    return next_state(federation, number, state, messages, received).weights


def test_updates_and_their_mean_equal_those_computed_by_hand(
    small: Federation, tmp_path: Path
) -> None:
    messages = messages_of(small, tmp_path)
    assert deltas(messages, SERVER) == {client(0): [1.0, -1.0], client(1): [-2.0, 2.0]}
    after = next_weights(small, 0, messages)
    assert after["weight"].flatten().tolist() == [-1.25, 1.25]


def test_sends_size_and_loss_in_the_clear(small: Federation, tmp_path: Path) -> None:
    body = messages_of(small, tmp_path)[2].body
    assert isinstance(body, Update)
    assert body.examples == 3
    # Two classes held equally likely: ln 2.
    assert body.metrics == {"loss": pytest.approx(0.693147, abs=1e-6)}


def test_a_failed_client_is_missing_and_not_a_zero_update(
    small: Federation, tmp_path: Path
) -> None:
    failing = next(
        one
        for one in (replace(small, failure_rate=0.5, seed=Seed(number)) for number in range(99))
        if list(sample_cohort(one, 0).missing) == [client(1)]
    )
    messages = messages_of(failing, tmp_path)
    (absence,) = (m for m in messages if isinstance(m.body, MissingReply))
    assert (absence.sender, absence.readers) == (client(1), frozenset({SERVER}))
    assert "failed" in absence.body.reason
    # The mean of client 0 alone is its own update; a zero would have made it smaller.
    assert next_weights(failing, 0, messages)["weight"].flatten().tolist() == [1.0, -1.0]


@pytest.mark.parametrize("defenses", [(), (Masks(),)])
def test_if_all_clients_fail_the_model_is_unchanged(
    small: Federation, tmp_path: Path, defenses: tuple[Defense, ...]
) -> None:
    failing = replace(small, defenses=defenses, failure_rate=0.999999)
    messages = messages_of(failing, tmp_path)
    # Without updates there is no aggregate, either.
    assert [type(m.body) for m in messages] == [Broadcast, MissingReply, MissingReply]
    assert next_weights(failing, 0, messages)["weight"].flatten().tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("defenses", "read", "after"),
    [
        ((), 1.25, 1.25),
        # The server reads the aggregate before its own defense, but after one of the protocol.
        ((Scale(of_aggregate=4.0),), 1.25, 5.0),
        ((ScaleTogether(of_aggregate=4.0),), 5.0, 5.0),
    ],
    ids=["no other", "of the server", "of the protocol"],
)
def test_no_party_reads_masked_updates_and_the_server_reads_their_mean(
    small: Federation,
    tmp_path: Path,
    defenses: tuple[Defense, ...],
    read: float,
    after: float,
) -> None:
    masked = replace(small, defenses=(Masks(), *defenses))
    messages = messages_of(masked, tmp_path)
    assert deltas(messages, SERVER) == {}
    assert deltas(messages, client(0)) == {client(0): [1.0, -1.0]}
    aggregate = messages[-1]
    assert (aggregate.sender, aggregate.readers) == (COHORT, frozenset({SERVER}))
    assert isinstance(aggregate.body, Aggregate)
    assert aggregate.body.delta["weight"].flatten().tolist() == [-read, read]
    assert aggregate.body.cohort == {client(0), client(1)}
    assert aggregate.body.examples == 4
    assert next_weights(masked, 0, messages)["weight"].flatten().tolist() == [-after, after]


def test_the_server_reads_updates_before_its_own_defense(
    small: Federation, tmp_path: Path
) -> None:
    defended = replace(small, defenses=(Scale(of_aggregate=4.0),))
    messages = messages_of(defended, tmp_path)
    assert deltas(messages, SERVER)[client(0)] == [1.0, -1.0]
    # Four times the mean worked by hand.
    assert next_weights(defended, 0, messages)["weight"].flatten().tolist() == [-5.0, 5.0]


def test_defenses_of_updates_act_in_order_and_sizes_can_be_hidden(
    small: Federation, tmp_path: Path
) -> None:
    # (x + 1) * 2 and x * 2 + 1, of the updates (1, -1) and (-2, 2).
    first = messages_of(replace(small, defenses=(AddOne(), Scale(2.0))), tmp_path / "a")
    assert deltas(first, SERVER) == {client(0): [4.0, 0.0], client(1): [-2.0, 6.0]}
    other = replace(small, defenses=(Scale(2.0), AddOne()))
    last = messages_of(other, tmp_path / "b")
    assert deltas(last, SERVER) == {client(0): [3.0, -1.0], client(1): [-3.0, 5.0]}
    # Sizes being hidden, all weigh alike: ((3, -1) + (-3, 5)) / 2.
    assert next_weights(other, 0, last)["weight"].flatten().tolist() == [0.0, 2.0]


def test_a_shadow_device_sends_its_plain_update_unless_it_is_defended(
    small: Federation, tmp_path: Path
) -> None:
    # Client 1, whose update is (-2, 2), is now the server's device.
    shadowed = replace(small, shadows=1, defenses=(AddOne(),))
    plain = messages_of(shadowed, tmp_path / "plain")
    assert deltas(plain, SERVER) == {client(0): [2.0, 0.0], shadow_device(0): [-2.0, 2.0]}
    adaptive = messages_of(replace(shadowed, are_shadows_defended=True), tmp_path / "adaptive")
    assert deltas(adaptive, SERVER) == {client(0): [2.0, 0.0], shadow_device(0): [-1.0, 3.0]}
    # It takes part in the mean, where both weigh alike, as client 0 hides its size.
    assert next_weights(shadowed, 0, plain)["weight"].flatten().tolist() == [0.0, 1.0]


def test_refuses_a_diverged_training_and_names_the_cause(
    small: Federation, tmp_path: Path
) -> None:
    wild = replace(small, recipe=Recipe(rate=2.9e38, epochs=3, batch=1))
    with pytest.raises(PlanError, match=r"training of client/\d diverged in round 0.*rate"):
        messages_of(wild, tmp_path)
    assert Recorder(tmp_path, build_manifest(wild, "none")).committed_rounds() == 0


def test_weights_keep_their_dtype_after_a_defense(small: Federation, tmp_path: Path) -> None:
    class Doubles(Scale):
        def on_aggregate(self, aggregate: Aggregate, moment: DefenseContext) -> Aggregate:
            delta = {name: tensor.double() for name, tensor in aggregate.delta.items()}
            return Aggregate(delta, aggregate.cohort, aggregate.examples)

    precise = replace(small, defenses=(Doubles(),))
    after = next_weights(precise, 0, messages_of(precise, tmp_path))
    assert after["weight"].dtype == torch.float32


def test_a_federation_whose_round_is_recorded_trains_but_sends_nothing(
    small: Federation, tmp_path: Path
) -> None:
    class Watches(Scale):
        name = "watches"

        def on_data(self, data: Examples, moment: DefenseContext) -> Examples:
            trained.append((moment.party, moment.seed))
            return data

        def on_update(self, update: Update, moment: DefenseContext) -> Update:
            sent.append((moment.party, moment.seed))
            return update

    trained: list[tuple[Party, Seed]] = []
    sent: list[tuple[Party, Seed]] = []
    watched = replace(small, defenses=(Watches(),))
    other = replace(watched, seed=Seed(6))
    weights = initial_weights(small.build_model, Seed(0))
    with Recorder(tmp_path, build_manifest(other, "none")).open_round() as record:
        run_round(
            [
                FederationRound(watched, ServerState(weights), None),
                FederationRound(other, ServerState(weights), record),
            ],
            0,
        )
    assert len(set(trained)) == 4
    assert sent == trained[2:]
    # The updates of the other federation were recorded, not those of the first.
    assert deltas(read_round(tmp_path, 0), SERVER) == {
        client(0): [1.0, -1.0],
        client(1): [-2.0, 2.0],
    }


def test_a_running_variance_that_noise_made_negative_becomes_0(
    small: Federation, tmp_path: Path
) -> None:
    def normed() -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(1, momentum=1.0), nn.Linear(1, 2, bias=False))

    noisy = replace(
        small, build_model=normed, rows=[[torch.arange(4)]] * 2, defenses=(TakeFive(),)
    )
    messages = messages_of(noisy, tmp_path)
    (sent,) = (one.body for one in messages if isinstance(one.body, Update))
    # The inputs are 2, 4, 4, 4: mean 3.5, unbiased variance 1, which is the built one.
    assert sent.delta["0.running_mean"].tolist() == [3.5]
    assert sent.delta["0.running_var"].tolist() == [-5.0]
    assert next_weights(noisy, 0, messages)["0.running_var"].tolist() == [0.0]


MANIFEST = Manifest(Task((2,), ("a", "b")), "linear", None, (), (SERVER,), rounds=1)


def weights(dtype: torch.dtype) -> Weights:
    # A third has no exact value in any of these types.
    return {"b": torch.full((3,), 1 / 3, dtype=dtype), "a": torch.ones(2, dtype=dtype)}


def messages(dtype: torch.dtype) -> list[Message]:
    reader = frozenset({SERVER})
    update = Update(weights(dtype), 5, {"loss": 0.5}, weights(dtype))
    return [
        Message(0, SERVER, reader, Broadcast(weights(dtype), {}, weights(dtype))),
        Message(0, client(0), reader, MissingReply("late")),
        Message(0, client(1), reader, update),
        Message(0, COHORT, reader, Aggregate(weights(dtype), frozenset({client(1)}), 5)),
    ]


def tensors(message: Message) -> list[torch.Tensor]:
    body = message.body
    match body:
        case Broadcast():
            found = [body.weights, body.control]
        case Update():
            found = [body.delta, body.control]
        case Aggregate():
            found = [body.delta]
        case _:
            found = []
    return [tensor for one in found for tensor in (one or {}).values()]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_kept_messages_equal_those_on_the_disk(tmp_path: Path, dtype: torch.dtype) -> None:
    with Recorder(tmp_path, MANIFEST).open_round() as open_round:
        record = RoundMessages(open_round)
        for message in messages(dtype):
            record.record(message)
    kept, read = record.in_memory(), read_round(tmp_path, 0)
    assert kept is not None
    assert len(kept) == len(read) == 4
    for ours, theirs in zip(kept, read, strict=True):
        assert (ours.sender, ours.readers) == (theirs.sender, theirs.readers)
        assert type(ours.body) is type(theirs.body)
        assert len(tensors(ours)) == len(tensors(theirs))
        for one, other in zip(tensors(ours), tensors(theirs), strict=True):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)


def test_nothing_is_kept_beyond_the_limit_and_the_disk_answers(tmp_path: Path) -> None:
    # The broadcast takes 2 x 5 numbers of 4 bytes; the update would take as many again.
    with Recorder(tmp_path, MANIFEST).open_round() as open_round:
        record = RoundMessages(open_round, most_bytes=79)
        recorded = [record.record(message) for message in messages(torch.float32)]
    assert record.in_memory() is None
    assert len(tensors(recorded[2])) == 4
    assert [one.sender for one in recorded] == [one.sender for one in read_round(tmp_path, 0)]
