"""Attacks of a threat are asked together, but only about rounds on which they are run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, final

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.auditing.attack_runner import ThreatCells, draw_pseudonyms
from overheard.auditing.cells.claim_store import ClaimStore, FolderClaimStore, NoClaimStore
from overheard.auditing.cells.contributors import find_contributors
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import AttackSpec, RunSpec
from overheard.auditing.progress import Progress
from overheard.auditing.run_kinds import PLANNED
from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    MissingReply,
    Update,
)
from overheard.core.needs import Need
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
from overheard.core.view import View
from overheard.findings.finding import Cell
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.question import LabelSharesQuestion
from tests.auditing.conftest import inputs_for
from tests.auditing.plans import NO_DEFENSE, TINY

CALLS: list[tuple[str, tuple[int, ...]]] = []
"""Which attack was asked about which rounds."""

ROUNDS = (0, 1)
TARGET = client(0)
MESSAGES = tuple(Message(one, TARGET, frozenset({SERVER}), Update({}, 4)) for one in ROUNDS)
NO_STORE = NoClaimStore()


@final
@dataclass(frozen=True, slots=True)
class Asked(Attack[LabelShares]):
    """An attack that remembers the rounds that it was asked about."""

    label: str
    is_missing_something: bool = False
    labels: int = 10
    lacks_size_of: str = ""

    name: ClassVar[str] = "asked"
    claim_type: ClassVar[type[LabelShares]] = LabelShares
    needs: ClassVar[frozenset[Need]] = frozenset()
    source: ClassVar[str] = "a test"

    def has_separate_targets(self) -> bool:
        """Return True: it looks at nothing."""
        return True

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim the same of every target, if nothing is missing."""
        CALLS.append((self.label, tuple(view.rounds())))
        if self.is_missing_something:
            raise NeedsError("a size")
        if self.lacks_size_of in targets:
            raise NeedsError(f"a size of {self.lacks_size_of}")
        shares = torch.full((self.labels,), 1 / self.labels)
        return dict.fromkeys(targets, LabelShares(shares))


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def asked(
    attacks: Mapping[Asked, tuple[int, ...]],
    messages: Sequence[Message],
    store: ClaimStore = NO_STORE,
) -> tuple[ThreatCells, list[AttackSpec]]:
    """Return the cells of attacks on a run, given the rounds that each attacks alone."""
    question, threat = LabelSharesQuestion(), ThreatPlan(attacks=tuple(attacks))
    cells = [
        AttackSpec(
            *(0, threat, attack, question),
            Cell("no defense", 0, (SERVER,), attack.label, repr(attack), question.name, ROUNDS),
            single,
            *("code", "code"),
        )
        for attack, single in attacks.items()
    ]
    run = RunSpec(NO_DEFENSE, "no defense", 0, PLANNED, ROUNDS, tuple(cells))
    seen = ObservedRun(run, Transcript(tuple(messages)), inputs_for(TINY).for_attackers(0))
    view, contributors = View(frozenset({SERVER}), messages), find_contributors(messages, ())
    return ThreatCells(seen, view, contributors, cells, store, Progress(None)), cells


def run_first(second: Asked, single: tuple[int, ...] = ROUNDS) -> None:
    """Run the first of two attacks on both rounds, and on each."""
    cells, (first, _) = asked({Asked("a"): ROUNDS, second: single}, MESSAGES)
    for rounds in (ROUNDS, (0,), (1,)):
        assert cells.claims(first, rounds, (TARGET,)).claims


def test_attacks_are_asked_together_about_all_rounds_and_each():
    run_first(Asked("b"))
    assert [(label, rounds) for rounds in (ROUNDS, (0,), (1,)) for label in "ab"] == CALLS


def test_an_attack_that_needs_all_rounds_is_not_asked_about_single_ones():
    run_first(Asked("b"), ())
    assert [rounds for label, rounds in CALLS if label == "b"] == [ROUNDS]


def test_an_attack_without_claims_is_not_asked_again_about_each_round():
    run_first(Asked("b", is_missing_something=True))
    assert {rounds for label, rounds in CALLS if label == "b"} == {ROUNDS}


def test_an_attack_whose_stored_cell_has_no_claims_is_not_asked_about_each_round(
    tmp_path: Path,
):
    attacks = {Asked("a"): ROUNDS, Asked("b", is_missing_something=True): ROUNDS}
    for wanted in (ROUNDS, (0,)):  # as if the audit was interrupted in between
        cells, (first, _) = asked(attacks, MESSAGES, FolderClaimStore(tmp_path))
        assert cells.claims(first, wanted, (TARGET,)).claims
    assert {rounds for label, rounds in CALLS if label == "b"} == {ROUNDS}


def test_claims_that_are_refused_hide_no_other_reason():
    targets = (client(0), client(1))
    messages = tuple(
        Message(number, target, frozenset({SERVER}), Update({}, 4))
        for number in ROUNDS
        for target in targets
    )
    # The run has ten labels.
    attack = Asked("a", labels=3, lacks_size_of=client(1))
    cells, (only,) = asked({attack: ROUNDS}, messages)
    made = cells.claims(only, ROUNDS, targets)
    assert made.claims == {}
    assert "the claim has 3 labels, the task has 10" in made.refusals[client(0)][0]
    assert made.refusals[client(1)] == ("a size of client/1",)


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
            LabelCounts(counts),
            UsersOfClients({sender: f"user {number_of(sender)}" for sender in who}),
            Attributes({"hand": {"user 0": "left"}}),
            Shifts({client(0): (1,)}),
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
    rounds=st.integers(0, 4),
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
    truth = GroundTruth(Facts(LabelCounts(counts, redrawn)))
    found = hidden(said(1, 2), truth=truth).truth
    renamed = found.facts.need(LabelCounts)
    assert len(renamed.redrawn) == 2
    for key, held in renamed.counts.items():
        assert renamed.redrawn[key].tolist() == [held.tolist(), (held + 5).tolist()]
