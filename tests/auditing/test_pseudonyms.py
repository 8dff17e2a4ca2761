"""Round pseudonyms hide client names and order, and the ground truth follows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.auditing.pseudonyms import draw_pseudonyms
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    MissingReply,
    Update,
)
from overheard.core.parties import (
    COHORT,
    SERVER,
    Party,
    client,
    is_shadow_device,
    parse_party,
    shadow_device,
)
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth, Partition

TO_SERVER = frozenset({SERVER})


def said(rounds: int, clients: int, absent: Sequence[tuple[int, int]] = ()) -> Transcript:
    """The update of client c in round r is 100 r + c; one shadow device says -1 - r."""
    messages = []
    everyone = frozenset([*map(client, range(clients)), shadow_device(0)])
    for number in range(rounds):
        start = Broadcast({"w": torch.tensor([float(number)])})
        messages.append(Message(number, SERVER, everyone, start))
        messages += [
            Message(number, client(who), TO_SERVER, MissingReply("late"))
            for who in range(clients)
            if (number, who) in absent
        ]
        messages += [
            Message(number, client(who), TO_SERVER, update(100 * number + who))
            for who in range(clients)
            if (number, who) not in absent
        ]
        messages.append(Message(number, shadow_device(0), TO_SERVER, update(-1 - number)))
    return Transcript(tuple(messages))


def update(value: float) -> Update:
    return Update({"w": torch.tensor([float(value)])}, 7, {"loss": 0.5})


def truth_of(transcript: Transcript) -> GroundTruth:
    """Client c is "user c", and has c examples of label 0 and one of label 1."""
    counts = {
        (message.round, message.sender): torch.tensor([number_of(message.sender), 1])
        for message in transcript.messages
        if isinstance(message.body, Update) and not is_shadow_device(message.sender)
    }
    who = {sender for _, sender in counts} | {client(99)}
    return GroundTruth(
        Facts(
            (
                LabelCounts(counts),
                UsersOfClients({sender: f"user {number_of(sender)}" for sender in who}),
                Attributes({"hand": {"user 0": "left"}}),
                Shifts({client(0): (1,)}),
            )
        ),
        {0: 0.25},
    )


def number_of(who: Party) -> int:
    return int(who.rpartition("/")[2])


@dataclass(frozen=True)
class Hidden:
    """A run under pseudonyms."""

    transcript: Transcript
    truth: GroundTruth
    clients: Mapping[Party, Party]


def hidden(transcript: Transcript, seed: int = 0, truth: GroundTruth | None = None) -> Hidden:
    pseudonyms = draw_pseudonyms(transcript, Seed(seed))
    known = truth_of(transcript) if truth is None else truth
    return Hidden(
        pseudonyms.rename_senders(transcript),
        known.renamed(pseudonyms),
        pseudonyms.clients(),
    )


def counts_of(found: Hidden) -> LabelCounts:
    return found.truth.facts.need(LabelCounts)


def users_of(found: Hidden) -> Mapping[Party, str]:
    return found.truth.facts.need(UsersOfClients).users


def values(found: Hidden) -> dict[Party, float]:
    return {
        message.sender: float(message.body.delta["w"])
        for message in found.transcript.messages
        if isinstance(message.body, Update)
    }


def order_of(found: Hidden, number: int) -> list[int]:
    """The clients in the order in which their updates of a round come."""
    return [
        int(value) % 100
        for sender, value in values(found).items()
        if sender.startswith(f"anon/{number}-")
    ]


@given(
    rounds=st.integers(1, 4),
    clients=st.integers(1, 6),
    absent=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=6),
    seed=st.integers(0, 999),
)
def test_every_update_gets_its_own_pseudonym_in_messages_and_truth(
    rounds: int, clients: int, absent: list[tuple[int, int]], seed: int
) -> None:
    transcript = said(rounds, clients, absent)
    found = hidden(transcript, seed)
    senders = [message.sender for message in found.transcript.messages]
    assert not any(who.startswith("client/") for who in senders)
    answered = sum(
        (number, who) not in absent for number in range(rounds) for who in range(clients)
    )
    mine = {who: value for who, value in values(found).items() if not is_shadow_device(who)}
    assert len(mine) == answered == len(users_of(found)) == len(counts_of(found).counts)
    for name, value in mine.items():
        assert parse_party(name) == name
        number, who = divmod(int(value), 100)
        assert users_of(found)[name] == f"user {who}"
        assert counts_of(found).counts[number, name].tolist() == [who, 1]
        assert counts_of(found).rounds_of(name) == {number}
        assert found.clients[name] == client(who)


def test_removes_missing_updates_and_shifts_and_keeps_everything_else() -> None:
    transcript = said(2, 3, absent=[(1, 2)])
    found = hidden(transcript)
    assert found.truth.accuracy == {0: 0.25}
    assert found.truth.facts.need(Attributes).attributes == {"hand": {"user 0": "left"}}
    assert found.truth.facts.get(Shifts) is None
    bodies = [message.body for message in found.transcript.messages]
    assert not any(isinstance(body, MissingReply) for body in bodies)
    # Two broadcasts, five updates of clients and two of the device.
    assert len(bodies) == 2 + 5 + 2
    for message in found.transcript.messages:
        if isinstance(message.body, Update):
            assert (message.body.examples, message.body.metrics) == (7, {"loss": 0.5})
            assert message.readers == TO_SERVER
    assert found.transcript.messages[0] == transcript.messages[0]


def test_shadow_devices_keep_their_names() -> None:
    found = hidden(said(3, 2))
    sent = found.transcript.seen_by(SERVER).updates(shadow_device(0))
    assert {number: float(one.delta["w"]) for number, one in sent.items()} == {
        0: -1.0,
        1: -2.0,
        2: -3.0,
    }


def test_pseudonyms_and_order_do_not_link_rounds() -> None:
    found = hidden(said(4, 12))
    orders = [order_of(found, number) for number in range(4)]
    assert all(sorted(order) == list(range(12)) for order in orders)
    # Four equal orders have probability (1 / 12!) cubed.
    assert len({tuple(order) for order in orders}) == 4
    assert list(range(12)) not in orders
    # A pseudonym contains its round and the random position of the update.
    names = [name for name in values(found) if name.startswith("anon/2-")]
    assert names == [f"anon/2-{place}" for place in range(12)]


def test_every_client_is_equally_likely_at_every_position() -> None:
    transcript = said(1, 4)
    first = [order_of(hidden(transcript, seed), 0)[0] for seed in range(80)]
    # Twenty times each in the mean, with a deviation of sqrt(80 * 3 / 16) = 3.9.
    assert all(8 <= first.count(who) <= 32 for who in range(4))


def test_pseudonyms_depend_on_the_seed_only() -> None:
    transcript = said(2, 8)
    one, same, other = (hidden(transcript, seed) for seed in (3, 3, 4))
    assert one.transcript == same.transcript
    assert users_of(one) == users_of(same)
    assert order_of(one, 0) != order_of(other, 0)


def test_a_secure_aggregate_stays_an_aggregate() -> None:
    summed = Aggregate({"w": torch.tensor([2.0])}, frozenset({client(0), client(1)}), 14)
    transcript = Transcript(
        (
            Message(0, client(0), frozenset(), update(1)),
            Message(0, client(1), frozenset(), update(3)),
            Message(0, COHORT, TO_SERVER, summed),
        )
    )
    heard = hidden(transcript).transcript.seen_by(SERVER)
    assert heard.senders() == ()
    assert heard.updates(COHORT)[0].delta["w"].tolist() == [2.0]


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_run_without_updates_has_no_pseudonyms(rounds: int) -> None:
    found = hidden(said(rounds, 2, absent=[(0, 0), (0, 1)]))
    assert users_of(found) == {}
    assert {message.sender for message in found.transcript.messages} <= {
        SERVER,
        shadow_device(0),
    }


def test_a_distilled_set_and_its_derived_update_share_a_pseudonym() -> None:
    messages = []
    for message in said(2, 4).messages:
        if isinstance(message.body, Update) and not is_shadow_device(message.sender):
            number = float(number_of(message.sender))
            messages.append(replace(message, body=distilled(number)))
        messages.append(message)
    whole = Transcript((Message(0, SERVER, TO_SERVER, distilled(9.0)), *messages))
    told = hidden(whole, 3).transcript.messages
    sets = {m.sender: m.body.rates for m in told if isinstance(m.body, DistilledSet)}
    assert float(sets.pop(SERVER)) == 9
    updates = {
        m.sender: m.body.delta["w"]
        for m in told
        if isinstance(m.body, Update) and not is_shadow_device(m.sender)
    }
    assert sets.keys() == updates.keys()
    assert all(float(sets[who]) == float(updates[who]) % 100 for who in sets)
    assert not any(who.startswith("client") for who in sets)


def distilled(number: float) -> DistilledSet:
    one = torch.tensor([number])
    return DistilledSet(torch.zeros(1, 2), torch.zeros(1, 2), one, torch.ones(1))


def test_the_partition_is_indexed_by_pseudonym() -> None:
    transcript = said(2, 3)
    truth = truth_of(transcript)
    pool = Examples(torch.arange(200.0)[:, None], torch.zeros(200, dtype=torch.int64))
    # Client c holds example 100 r + c in round r, as is its update.
    rows = {
        (number, who): torch.tensor([100 * number + number_of(who)])
        for number, who in truth.facts.need(LabelCounts).counts
    }
    found = hidden(transcript, truth=replace(truth, partition=Partition(pool, rows)))
    sent = {who: value for who, value in values(found).items() if not is_shadow_device(who)}
    assert len(sent) == 6
    for who, value in sent.items():
        assert found.truth.examples_of(who, (0, 1)).inputs.tolist() == [[value]]
    assert hidden(transcript).truth.partition is None


def test_redrawn_counts_follow_the_pseudonyms() -> None:
    counts = {(0, client(who)): torch.tensor([who, 1]) for who in (0, 1)}
    redrawn = {key: torch.stack([held, held + 5]) for key, held in counts.items()}
    truth = GroundTruth(Facts((LabelCounts(counts, redrawn),)))
    found = hidden(said(1, 2), truth=truth).truth
    renamed = found.facts.need(LabelCounts)
    assert len(renamed.redrawn) == 2
    for key, held in renamed.counts.items():
        assert renamed.redrawn[key].tolist() == [held.tolist(), (held + 5).tolist()]
