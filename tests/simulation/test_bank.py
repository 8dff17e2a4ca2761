from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.means import MemoryShelf, Shelf
from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.prior import Prior
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.splits.quantity import Quantity
from overheard.defenses.noise import Noise
from overheard.simulation.answers import Answers, accuracies
from overheard.simulation.bank import (
    build_bank,
    cohort_members,
    read_broadcasts,
    read_updates,
    rounds_heard,
)
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.parting import part
from tests.simulation.world import CLASSES, CLIENTS, Raw, blobs, broadcast, knowledge, run


class TestBank:
    def test_says_what_each_virtual_client_held(self) -> None:
        bank = build_bank(
            run(), knowledge(prior=Prior((Quantity(2),), (10, 10))), (0,), [Raw()]
        )
        assert bank.counts.shape == (40, CLASSES)
        assert bank.sizes.tolist() == [10] * 40
        # Two labels of three, five each.
        assert bank.shares.sort(1).values.tolist() == [[0.0, 0.5, 0.5]] * 40
        assert bank.shares.dtype == torch.float64
        assert bank.rounds == (0,)

    def test_says_of_a_cohort_what_all_members_held(self) -> None:
        prior = Prior((Quantity(2),), (10, 10))
        bank = build_bank(run(), knowledge(prior=prior), (0,), [Raw()], members=4)
        assert bank.sizes.tolist() == [40] * 40
        assert bank.read[Raw()].shape == (40, 1, 43)

    def test_hangs_on_the_seed_of_the_means_and_on_no_attack(self) -> None:
        known = knowledge()
        other = replace(known, means=replace(known.means, seed=Seed(1)))
        first, again, second = (
            build_bank(run(), k, (0,), [Raw()]) for k in (known, knowledge(), other)
        )
        assert first.read[Raw()].equal(again.read[Raw()])
        assert not first.counts.equal(second.counts)

    def test_is_another_one_for_an_attacker_who_adapts_to_noise(self) -> None:
        known = knowledge()
        plain = build_bank(run(), known, (0,), [Raw()]).read[Raw()]
        noisy = build_bank(run(), replace(known, defenses=(Noise(3.0),)), (0,), [Raw()])
        # Updates of a deviation well below 1, and noise of 3: its deviation prevails.
        assert float(plain.std()) < 1
        assert float(noisy.read[Raw()].std()) == pytest.approx(3.0, rel=0.1)

    def test_clients_of_one_half_learn_nothing_of_the_other(self) -> None:
        # Examples of half 1 and those held out are 0: who learns from them alone moves no
        # weight of the first layer; of half 0 everyone does.
        plain = blobs(20)
        seed = (
            knowledge()
            .means.seed.child(
                "bank",
            )
            .child("parting")
        )
        parting = part(plain.labels, CLASSES, seed)
        inputs = torch.zeros_like(plain.inputs)
        inputs[parting.halves[0]] = plain.inputs[parting.halves[0]]
        known = knowledge(auxiliary=Examples(inputs, plain.labels))
        bank = build_bank(run(), known, (0,), [Raw()])
        moved = bank.read[Raw()][:, 0, :20].abs().sum(1) > 0
        assert moved.equal(bank.halves == 0)

    def test_too_few_examples_are_refused(self) -> None:
        with pytest.raises(NeedsError, match="grant more auxiliary examples"):
            build_bank(run(), knowledge(auxiliary=blobs(2)), (0,), [Raw()])

    @pytest.mark.parametrize(("probes", "members"), [([], None), ([Raw()], 0)])
    def test_wants_something_to_read_and_somebody_to_read_it_off(self, probes, members) -> None:
        with pytest.raises(ValueError, match="1 probe or more"):
            build_bank(run(), knowledge(), (0,), probes, members=members)

    def test_tells_clients_apart_by_what_they_hold(self) -> None:
        # It leaks: whoever holds one class alone raises that class's bias most.
        known = knowledge(prior=Prior((Quantity(1),)), virtual=30)
        bank = build_bank(run(), known, (0,), [LastLayerChange()])
        bias = bank.read[LastLayerChange()][:, 0, :, -1]
        assert bias.argmax(1).equal(bank.counts.argmax(1))

    def test_tells_nothing_apart_where_all_hold_the_same(self) -> None:
        known = knowledge(prior=Prior((Quantity(CLASSES),), (30, 30)), virtual=30)
        bank = build_bank(run(), known, (0,), [LastLayerChange()])
        assert bank.counts.unique(dim=0).tolist() == [[10, 10, 10]]


class TestReadUpdates:
    def test_reads_what_the_target_sent(self) -> None:
        # Everybody sends 0.1 everywhere.
        read = read_updates(run(), CLIENTS[1], knowledge(), (1, 0), [LastLayerChange(), Raw()])
        assert torch.allclose(read[Raw()], torch.full((2, 43), 0.1))
        assert read[LastLayerChange()].shape == (2, CLASSES, 6)

    def test_an_update_is_read_as_a_virtual_client_of_the_same_update_is(self) -> None:
        known, view = knowledge(), run()
        bank = build_bank(view, known, (0,), [Raw(), Answers()])
        start, flat = broadcast(0), bank.read[Raw()][5, 0]
        parts = flat.split([weight.numel() for weight in start.values()])
        delta = {
            name: part.view_as(weight)
            for (name, weight), part in zip(start.items(), parts, strict=True)
        }
        said = Message(0, client(9), frozenset({SERVER}), Update(delta, 5))
        heard = View(view.observers, (*view.messages, said))
        read = read_updates(heard, client(9), known, (0,), [Answers()])[Answers()]
        assert torch.allclose(read[0], bank.read[Answers()][5, 0], atol=1e-5)

    def test_a_round_in_which_it_was_silent_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"client/7 was not heard in the rounds \[0\]"):
            read_updates(run(), client(7), knowledge(), (0,), [Raw()])

    def test_the_broadcast_is_read_as_an_update_of_nothing(self) -> None:
        read = read_broadcasts(run(), knowledge(), (0, 1), [Raw(), Answers()])
        assert read[Raw()].eq(0).all()
        assert accuracies(read[Answers()]).shape == (2, CLASSES)


class TestWhoIsHeard:
    def test_rounds_without_a_broadcast_do_not_count(self) -> None:
        view = run(3)
        kept = [
            m for m in view.messages if not (m.round == 1 and isinstance(m.body, Broadcast))
        ]
        assert rounds_heard(View(view.observers, kept), CLIENTS[0]) == (0, 2)

    def test_rounds_in_which_the_target_is_silent_do_not_count(self) -> None:
        view = run(2)
        kept = [m for m in view.messages if not (m.round == 1 and m.sender == CLIENTS[0])]
        assert rounds_heard(View(view.observers, kept), CLIENTS[0]) == (0,)


class TestCohortMembers:
    def test_are_those_whom_the_aggregate_names(self) -> None:
        cohort = frozenset(map(client, range(7)))
        said = Message(0, COHORT, frozenset({SERVER}), Aggregate({}, cohort))
        assert cohort_members(View(frozenset({SERVER}), (said,)), (0,)) == 7

    def test_are_those_whose_updates_are_read(self) -> None:
        assert cohort_members(run(), (0, 1)) == 3

    def test_are_the_median_over_rounds(self) -> None:
        # 3, 3 and 1.
        view = run(3)
        kept = [m for m in view.messages if m.round != 2 or m.sender in (SERVER, CLIENTS[0])]
        assert cohort_members(View(view.observers, kept), (0, 1, 2)) == 3
        assert cohort_members(View(view.observers, kept), (2,)) == 1

    def test_are_the_other_readers_for_a_client_who_reads_neither(self) -> None:
        said = [m for m in run().messages if isinstance(m.body, Broadcast)]
        assert cohort_members(View(frozenset({CLIENTS[0]}), said), (0,)) == 2

    def test_an_observer_is_none_of_them(self) -> None:
        view = run()
        own = View(frozenset({CLIENTS[0], SERVER}), view.messages)
        assert cohort_members(own, (0,)) == 2

    def test_a_round_in_which_nobody_is_heard_of_is_refused(self) -> None:
        with pytest.raises(ValueError, match="nobody is heard of"):
            cohort_members(run(), (9,))


class CountingShelf(Shelf):
    def __init__(self) -> None:
        self._kept = MemoryShelf()
        self.saved = 0

    def load(self, key):
        return self._kept.load(key)

    def save(self, key, tensors) -> None:
        self.saved += 1
        self._kept.save(key, tensors)


def test_an_attack_that_reads_otherwise_trains_no_virtual_client_again() -> None:
    shelf = CountingShelf()
    means = replace(knowledge().means, shelf=shelf)
    build_bank(run(), replace(knowledge(), means=means), (0,), [Answers()])
    before = shelf.saved
    bank = build_bank(run(), replace(knowledge(), means=means), (0,), [LastLayerChange()])
    assert shelf.saved == before > 0
    assert len(bank.read[LastLayerChange()]) == means.virtual_clients
