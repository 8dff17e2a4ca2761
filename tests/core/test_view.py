"""What attacks see."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from overheard.core.attack import Attack, check_needs, missing_needs
from overheard.core.compute_settings import ComputeSettings
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge, Prior
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    MessageBody,
    MissingReply,
    Update,
)
from overheard.core.needs import (
    AUXILIARY,
    BROADCASTS,
    CANDIDATES,
    CROSS_ENTROPY,
    DISTILLED,
    METADATA,
    MODEL,
    NEEDS,
    RECIPE,
    TEXTS,
    TRAINED_MODEL,
    UPDATES,
    USERS,
    VIRTUAL_CLIENTS,
    Need,
)
from overheard.core.parties import COHORT, SERVER, Party, client, late_joiner
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View, mean_update
from overheard.questions.label_shares.claim import LabelShares

ONE, TWO = client(1), client(2)


NOBODY = frozenset[Party]()


def message(number: int, sender: Party, readers: set[Party], body: MessageBody) -> Message:
    return Message(number, sender, frozenset(readers), body)


def update(value: float, examples: int | None = None) -> Update:
    return Update({"w": torch.tensor([value])}, examples)


def broadcast(number: int) -> Message:
    return message(number, SERVER, {ONE, TWO}, Broadcast({"w": torch.tensor([float(number)])}))


OPEN = Transcript(
    (
        broadcast(0),
        message(0, ONE, {SERVER}, update(1.0, 1)),
        message(0, TWO, {SERVER}, update(5.0, 3)),
        broadcast(1),
        message(1, TWO, {SERVER}, MissingReply("late")),
        message(1, ONE, {SERVER}, update(2.0, 1)),
        broadcast(2),
    )
)
"""Two rounds and the closing broadcast; client 2 replies in the first only."""


MASKED = Transcript(
    (
        broadcast(0),
        Message(0, ONE, NOBODY, update(1.0, 1)),
        Message(0, TWO, NOBODY, update(5.0, 3)),
        message(
            0,
            COHORT,
            {SERVER},
            Aggregate({"w": torch.tensor([4.0])}, frozenset({ONE, TWO})),
        ),
    )
)


def test_the_cohorts_update_is_the_size_weighted_mean_of_readable_updates():
    cohort = OPEN.seen_by(SERVER).updates(COHORT)
    # round 0: (1 * 1 + 3 * 5) / 4 = 4; round 1: client 1 alone
    assert cohort[0].delta["w"].item() == 4.0
    assert cohort[0].examples == 4
    assert cohort[1].delta["w"].item() == 2.0
    assert cohort[1].examples == 1


def test_changes_of_models_that_name_no_reader_are_updates_of_an_unknown_number_of_clients():
    models = [replace(broadcast(number), readers=NOBODY) for number in (0, 1, 3)]
    view = Transcript(tuple(models)).seen_by(late_joiner(0))
    assert view.rounds_with_updates(COHORT) == (0,)
    assert view.updates(COHORT)[0].delta["w"].item() == 1.0
    assert not view.cohort_sizes()
    assert not Transcript(tuple(models)).seen_by(SERVER).rounds_with_updates(COHORT)


def test_the_cohorts_update_is_the_aggregate_if_readable():
    cohort = MASKED.seen_by(SERVER).updates(COHORT)
    assert cohort[0].delta["w"].item() == 4.0
    assert cohort[0].examples is None


def test_an_observers_update_is_subtracted_from_the_aggregate():
    # The server colludes with client 2, which sent 5. Sizes hidden: 4 is the plain mean of two,
    # so the other sent 2 * 4 - 5 = 3.
    cohort = MASKED.seen_by(SERVER, TWO).updates(COHORT)
    assert cohort[0].delta["w"].item() == 3.0
    assert cohort[0].examples is None


def test_updates_are_subtracted_by_size_if_the_aggregate_has_the_total():
    # 4 of 4 examples, 3 of them with 5: the other sent (4 * 4 - 3 * 5) / 1 = 1.
    *earlier, last = MASKED.messages
    assert isinstance(last.body, Aggregate)
    with_total = replace(last, body=replace(last.body, examples=4))
    cohort = Transcript((*earlier, with_total)).seen_by(SERVER, TWO).updates(COHORT)
    assert cohort[0].delta["w"].item() == pytest.approx(1.0)
    assert cohort[0].examples == 1


def test_an_observers_update_is_left_out_of_the_mean_of_updates():
    cohort = OPEN.seen_by(SERVER, TWO).updates(COHORT)
    assert {n: update.delta["w"].item() for n, update in cohort.items()} == {0: 1.0, 1: 2.0}
    # In round 1 only client 1 replied, so that it can read no other update.
    assert OPEN.seen_by(SERVER, ONE).rounds_with_updates(COHORT) == (0,)


def test_updates_of_hidden_size_have_equal_weight():
    # one size hidden: (1 + 5) / 2 = 3, and the total is unknown
    mean = mean_update([update(1.0, 1), update(5.0, None)])
    assert mean.delta["w"].item() == 3.0
    assert mean.examples is None


def test_updates_have_equal_weight_if_all_sizes_are_zero():
    mean = mean_update([update(1.0, 0), update(5.0, 0)])
    assert mean.delta["w"].item() == 3.0
    assert mean.examples == 0


def test_refuses_the_mean_of_no_updates():
    with pytest.raises(ValueError, match="at least one client"):
        mean_update([])


SENT_UPDATES = st.lists(
    st.tuples(
        st.lists(st.floats(-1e3, 1e3, width=32), min_size=3, max_size=3), st.integers(1, 1000)
    ),
    min_size=1,
    max_size=8,
)


@given(SENT_UPDATES)
def test_the_mean_is_the_float64_one_rounded_once(sent: list[tuple[list[float], int]]):
    total = sum(size for _, size in sent)
    exact = sum(
        (torch.tensor(values, dtype=torch.float64) * (size / total) for values, size in sent),
        start=torch.zeros(3, dtype=torch.float64),
    )
    mean = mean_update([Update({"w": torch.tensor(v)}, n) for v, n in sent])
    assert mean.delta["w"].dtype == torch.float32
    assert torch.equal(mean.delta["w"], exact.float())
    assert mean.examples == total


PARTIES = st.sampled_from([SERVER, ONE, TWO, client(3)])


MESSAGES = st.lists(
    st.builds(
        Message,
        st.integers(0, 3),
        PARTIES,
        st.frozensets(PARTIES),
        st.just(MissingReply("no answer")),
    )
)


@given(MESSAGES, st.frozensets(PARTIES, min_size=1))
def test_observers_read_what_one_of_them_sent_or_can_read(
    messages: list[Message], pool: frozenset[Party]
):
    view = Transcript(messages).seen_by(*pool)
    expected = [m for m in messages if any(who == m.sender or who in m.readers for who in pool)]
    assert list(view.messages) == expected
    assert view == View(pool, view.messages)


@given(MESSAGES, st.frozensets(PARTIES, min_size=1), st.frozensets(PARTIES, min_size=1))
def test_more_colluders_never_read_less(messages, few, more):
    transcript = Transcript(messages)
    ids = {id(m) for m in transcript.seen_by(*few).messages}
    assert ids <= {id(m) for m in transcript.seen_by(*few, *more).messages}


def test_a_client_infers_the_others_mean_from_two_broadcasts():
    view = OPEN.seen_by(ONE)
    # The model goes 0, 1, 2: a mean of 1 each round, of two clients of equal weight. Its own
    # updates are 1 and 2, so the other sent 2 * 1 - 1 = 1 and 2 * 1 - 2 = 0.
    rest = view.updates(COHORT)
    assert {n: update.delta["w"].item() for n, update in rest.items()} == {0: 1.0, 1: 0.0}
    assert {update.examples for update in rest.values()} == {None}
    # The model after round 2 was never broadcast.
    assert view.rounds_with_updates(COHORT) == (0, 1)
    assert view.cohort_sizes() == {0: 1, 1: 1}


THREE = client(3)


AMONG_THREE = Transcript(
    (
        Message(0, SERVER, frozenset({ONE, TWO, THREE}), Broadcast({"w": torch.tensor([1.0])})),
        message(0, ONE, {SERVER}, update(1.0, 1)),
        message(0, TWO, {SERVER}, update(4.0, 1)),
        message(0, THREE, {SERVER}, update(4.0, 1)),
        Message(1, SERVER, frozenset({ONE, TWO}), Broadcast({"w": torch.tensor([4.0])})),
    )
)
"""One round, whose mean is 3; client 3 does not take part again."""


def test_colluding_clients_subtract_all_their_updates():
    # The mean of three is 3. Client 1 alone subtracts 1: 8 for two, or 4 each. With client 2
    # it subtracts 1 and 4: 4 for one.
    for observers, others in (((ONE,), 2), ((ONE, TWO), 1)):
        view = AMONG_THREE.seen_by(*observers)
        assert view.updates(COHORT)[0].delta["w"].item() == 4.0
        assert view.cohort_sizes() == {0: others}


def test_if_all_clients_observe_there_is_no_other_update():
    assert AMONG_THREE.seen_by(ONE, TWO, THREE).updates(COHORT) == {}


def test_without_the_next_broadcast_a_client_infers_nothing():
    assert AMONG_THREE.seen_by(THREE).rounds_with_updates(COHORT) == ()
    assert AMONG_THREE.seen_by(THREE).updates(COHORT) == {}


def test_the_sender_of_broadcasts_infers_nothing_from_them():
    broadcasts = Transcript((broadcast(0), broadcast(1)))
    assert broadcasts.seen_by(SERVER).rounds_with_updates(COHORT) == ()
    # An observer that reads them and sent no update infers the mean of all.
    assert broadcasts.seen_by(ONE).updates(COHORT)[0].delta["w"].item() == 1.0


def test_a_view_of_one_round_includes_its_closing_broadcast():
    alone = OPEN.seen_by(ONE).during((0,))
    assert alone.updates(COHORT)[0].delta["w"].item() == 1.0
    # The closing broadcast is not among the messages of the view.
    assert alone.rounds() == (0,)
    assert list(alone.broadcasts()) == [0]
    assert alone.during((0,)).rounds_with_updates(COHORT) == (0,)
    assert alone.during((1,)).rounds_with_updates(COHORT) == ()


def test_only_the_requested_tensors_are_read_from_disk():
    @final
    class Watched(Mapping[str, torch.Tensor]):
        read: ClassVar = list[str]()

        def __getitem__(self, name: str) -> torch.Tensor:
            self.read.append(name)
            return torch.ones(1)

        def __iter__(self) -> Iterator[str]:
            return iter(("a", "b"))

        def __len__(self) -> int:
            return 2

    both = frozenset({ONE, TWO})
    view = Transcript(
        (
            Message(0, SERVER, both, Broadcast(Watched())),
            Message(0, ONE, frozenset({SERVER}), Update(Watched(), 1)),
            Message(1, SERVER, both, Broadcast(Watched())),
        )
    ).seen_by(ONE)
    delta = view.updates(COHORT)[0].delta
    # In tests the runtime type checker reads the first tensor of a mapping, and no other.
    assert (list(delta), len(delta), "b" in Watched.read) == (["a", "b"], 2, False)
    assert delta["b"].item() == -1.0  # 2 * (1 - 1) - 1


@given(
    st.lists(
        st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=2), min_size=2, max_size=6
    )
)
def test_for_equal_sizes_the_inferred_update_is_the_others_mean(sent: list[list[float]]):
    everyone = [client(number) for number in range(len(sent))]
    updates = [Update({"w": torch.tensor(numbers)}, 5) for numbers in sent]
    start, readers = torch.tensor([0.5, -0.5]), frozenset(everyone)
    end = start + mean_update(updates).delta["w"]
    view = Transcript(
        (
            Message(0, SERVER, readers, Broadcast({"w": start})),
            *(
                Message(0, who, frozenset({SERVER}), update_)
                for who, update_ in zip(everyone, updates, strict=True)
            ),
            Message(1, SERVER, readers, Broadcast({"w": end})),
        )
    ).seen_by(everyone[0])
    rest = view.updates(COHORT)[0].delta["w"]
    assert torch.allclose(rest, mean_update(updates[1:]).delta["w"], atol=1e-4)


def test_rounds_with_updates_are_the_rounds_of_readable_updates():
    views = (
        *(OPEN.seen_by(*who) for who in ((SERVER,), (ONE,), (SERVER, ONE), (ONE, TWO))),
        *(MASKED.seen_by(*who) for who in ((SERVER,), (SERVER, TWO), (TWO,))),
    )
    for view in views:
        for sender in (ONE, TWO, COHORT):
            assert view.rounds_with_updates(sender) == tuple(sorted(view.updates(sender)))


def test_rounds_are_in_order_whatever_the_order_of_the_messages():
    backwards = Transcript(tuple(reversed(OPEN.messages))).seen_by(SERVER)
    assert backwards.rounds_with_updates(ONE) == (0, 1)
    assert backwards == View(backwards.observers, backwards.messages)


def test_updates_come_by_round_with_the_broadcast_they_belong_to() -> None:
    sent = [
        broadcast(0),
        message(0, ONE, {SERVER}, update(1.0)),
        message(0, TWO, {SERVER}, update(2.0)),
        broadcast(1),
        message(1, TWO, {SERVER}, update(3.0)),
        message(2, TWO, {SERVER}, update(4.0)),  # whose broadcast is not known
    ]
    view = Transcript(sent).seen_by(SERVER)
    found = [
        (number, float(start["w"]), {one: float(u.delta["w"]) for one, u in updates.items()})
        for number, start, updates in view.updates_by_round([ONE, TWO])
    ]
    assert found == [(0, 0.0, {ONE: 1.0, TWO: 2.0}), (1, 1.0, {TWO: 3.0})]


PRIOR = Examples(torch.zeros(1, 1), torch.tensor([0]))


WEIGHTS = {"w": torch.zeros(1)}


KNOWN_USERS, RECORDS, WORDS = (
    KnownUsers({"ann": PRIOR, "bob": PRIOR}),
    CandidateRecords(PRIOR),
    TokenWords(3),
)


ALL = Knowledge(
    2,
    build_model=lambda: nn.Linear(1, 2),
    auxiliary=Examples(torch.zeros(2, 1), torch.tensor([0, 1])),
    recipe=Recipe(rate=0.1, epochs=1, batch=1),
    facts=Facts(KNOWN_USERS, RECORDS, WORDS),
)


GUESSING = Prior(recipes=(Recipe(rate=0.2, epochs=1, batch=1),))
"""An attacker without the recipe that has one candidate recipe."""


@dataclass(frozen=True, slots=True)
class Greedy(Attack[LabelShares]):
    """Has every need except distilled sets, and those that updates meet as well."""

    name: ClassVar[str] = "greedy"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset(NEEDS) - {DISTILLED, METADATA, TRAINED_MODEL}
    source: ClassVar[str] = "test"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        return {}


def server_view(*messages: Message) -> View:
    return Transcript(messages).seen_by(SERVER)


BROADCAST = Message(0, SERVER, frozenset({ONE}), Broadcast(WEIGHTS))


UPDATE = Message(0, ONE, frozenset({SERVER}), Update(WEIGHTS, 1))


WHOLE = server_view(BROADCAST, UPDATE)


def test_all_needs_can_be_met():
    assert missing_needs(Greedy(), WHOLE, ONE, ALL) == ()
    check_needs(Greedy(), WHOLE, ONE, ALL)


@pytest.mark.parametrize(
    ("knowledge", "need"),
    [
        (replace(ALL, auxiliary=None), AUXILIARY),
        (
            replace(ALL, auxiliary=Examples(torch.zeros(1, 1), torch.tensor([0]))),
            AUXILIARY,
        ),
        (replace(ALL, build_model=None), MODEL),
        (replace(ALL, recipe=None, prior=GUESSING), RECIPE),
        (
            replace(ALL, recipe=Recipe(0.1, 1, 8, loss="squared_error")),
            CROSS_ENTROPY,
        ),
        (replace(ALL, compute=ComputeSettings(virtual_clients=7)), VIRTUAL_CLIENTS),
        (replace(ALL, facts=Facts(KNOWN_USERS, WORDS)), CANDIDATES),
        (replace(ALL, facts=Facts(RECORDS, WORDS)), USERS),
        (
            replace(ALL, facts=ALL.facts.having(KnownUsers({"ann": PRIOR}, {"cem": PRIOR}))),
            USERS,
        ),
        (replace(ALL, facts=Facts(KNOWN_USERS, RECORDS)), TEXTS),
    ],
    ids=[
        "no examples",
        "no examples of class 1",
        "no model",
        "no recipe",
        "another loss",
        "seven virtual clients",
        "no records",
        "no users",
        "one candidate",
        "no texts",
    ],
)
def test_names_the_one_need_that_is_not_met(knowledge: Knowledge, need: Need):
    assert missing_needs(Greedy(), WHOLE, ONE, knowledge) == (need.description,)


class OnSets(Greedy):
    """Reads distilled sets."""

    needs: ClassVar = frozenset({DISTILLED})


def test_a_distilled_set_needs_the_servers_of_the_same_round():
    body = DistilledSet(torch.ones(1, 1), torch.ones(1, 2), torch.ones(1), torch.ones(1))
    from_client = Message(1, ONE, frozenset({SERVER}), body)
    for round, missing in ((1, ()), (0, (DISTILLED.description,))):
        shared = Message(round, SERVER, frozenset({ONE}), body)
        assert missing_needs(OnSets(), server_view(from_client, shared), ONE, ALL) == missing
    assert missing_needs(OnSets(), server_view(UPDATE), ONE, ALL) == (DISTILLED.description,)


def test_needs_the_broadcast_of_a_round_with_an_update():
    another = Message(1, SERVER, frozenset({ONE}), Broadcast(WEIGHTS))
    assert missing_needs(Greedy(), server_view(UPDATE), ONE, ALL) == (BROADCASTS.description,)
    assert missing_needs(Greedy(), server_view(another, UPDATE), ONE, ALL) == (
        BROADCASTS.description,
    )


def test_an_aggregate_counts_as_an_update_of_the_cohort_only():
    summed = Aggregate(WEIGHTS, frozenset({ONE, client(2)}))
    view = server_view(BROADCAST, Message(0, COHORT, frozenset({SERVER}), summed))
    assert missing_needs(Greedy(), view, COHORT, ALL) == ()
    assert missing_needs(Greedy(), view, ONE, ALL) == (UPDATES.description,)


def test_the_refusal_names_attack_target_and_every_missing_need():
    with pytest.raises(NeedsError) as refused:
        check_needs(Greedy(), server_view(), ONE, Knowledge(2))
    message = str(refused.value)
    assert message.startswith("greedy on client/1 needs ")
    for need in (UPDATES, AUXILIARY, MODEL, RECIPE, USERS):
        assert need.description in message
