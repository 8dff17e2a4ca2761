from dataclasses import replace

import pytest
import torch

from overheard.core.compute_settings import MemoryTensorCache, TensorCache
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Prior
from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.splits.quantity import Quantity
from overheard.defenses.noise import Noise
from overheard.simulation.auxiliary_logits import AuxiliaryLogits, accuracies
from overheard.simulation.auxiliary_split import split_auxiliary
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.simulation import (
    median_cohort_size,
    read_broadcasts,
    read_updates,
    readable_rounds,
    run_simulation,
)
from tests.simulation.small_run import (
    CLASSES,
    CLIENTS,
    Raw,
    blobs,
    broadcast,
    knowledge,
    server_view,
)


class TestSimulation:
    def test_has_the_label_counts_of_each_virtual_client(self) -> None:
        simulation = run_simulation(
            server_view(), knowledge(prior=Prior((Quantity(2),), (10, 10))), (0,), [Raw()]
        )
        assert simulation.counts.shape == (40, CLASSES)
        assert simulation.sizes.tolist() == [10] * 40
        # Two labels of three, five each.
        assert simulation.shares.sort(1).values.tolist() == [[0.0, 0.5, 0.5]] * 40
        assert simulation.shares.dtype == torch.float64
        assert simulation.rounds == (0,)

    def test_has_the_label_counts_of_whole_cohorts(self) -> None:
        prior = Prior((Quantity(2),), (10, 10))
        simulation = run_simulation(
            server_view(), knowledge(prior=prior), (0,), [Raw()], cohort_size=4
        )
        assert simulation.sizes.tolist() == [40] * 40
        assert simulation.readings[Raw()].shape == (40, 1, 43)

    def test_depends_on_the_seed_of_the_means_and_on_no_attack(self) -> None:
        attacker = knowledge()
        other = replace(attacker, compute=replace(attacker.compute, seed=Seed(1)))
        first, again, second = (
            run_simulation(server_view(), k, (0,), [Raw()])
            for k in (attacker, knowledge(), other)
        )
        assert first.readings[Raw()].equal(again.readings[Raw()])
        assert not first.counts.equal(second.counts)

    def test_differs_for_an_attacker_who_knows_of_noise(self) -> None:
        attacker = knowledge()
        without_noise = run_simulation(server_view(), attacker, (0,), [Raw()]).readings[Raw()]
        noisy = run_simulation(
            server_view(), replace(attacker, defenses=(Noise(3.0),)), (0,), [Raw()]
        )
        # Updates have a deviation well below 1, so the noise of deviation 3 dominates.
        assert float(without_noise.std()) < 1
        assert float(noisy.readings[Raw()].std()) == pytest.approx(3.0, rel=0.1)

    def test_clients_of_one_half_never_train_on_the_other(self) -> None:
        # Examples of half 1 and held-out ones are 0: training on them changes no weight of the
        # first layer. Training on half 0 does.
        examples = blobs(20)
        seed = (
            knowledge()
            .compute.seed.child(
                "bank",
            )
            .child("parting")
        )
        split = split_auxiliary(examples.labels, CLASSES, seed)
        inputs = torch.zeros_like(examples.inputs)
        inputs[split.halves[0]] = examples.inputs[split.halves[0]]
        attacker = knowledge(auxiliary=Examples(inputs, examples.labels))
        simulation = run_simulation(server_view(), attacker, (0,), [Raw()])
        has_changed = simulation.readings[Raw()][:, 0, :20].abs().sum(1) > 0
        assert has_changed.equal(simulation.halves == 0)

    def test_refuses_too_few_examples(self) -> None:
        with pytest.raises(NeedsError, match="grant more auxiliary examples"):
            run_simulation(server_view(), knowledge(auxiliary=blobs(2)), (0,), [Raw()])

    @pytest.mark.parametrize(("probes", "members"), [([], None), ([Raw()], 0)])
    def test_refuses_no_probes_and_empty_cohorts(self, probes, members) -> None:
        with pytest.raises(ValueError, match="1 probe or more"):
            run_simulation(server_view(), knowledge(), (0,), probes, cohort_size=members)

    def test_readings_reveal_the_label_of_a_client(self) -> None:
        # Leakage: a client with a single class raises the bias of that class most.
        attacker = knowledge(prior=Prior((Quantity(1),)), virtual=30)
        simulation = run_simulation(server_view(), attacker, (0,), [LastLayerChange()])
        bias = simulation.readings[LastLayerChange()][:, 0, :, -1]
        assert bias.argmax(1).equal(simulation.counts.argmax(1))

    def test_counts_do_not_differ_if_all_clients_hold_the_same(self) -> None:
        attacker = knowledge(prior=Prior((Quantity(CLASSES),), (30, 30)), virtual=30)
        simulation = run_simulation(server_view(), attacker, (0,), [LastLayerChange()])
        assert simulation.counts.unique(dim=0).tolist() == [[10, 10, 10]]


class TestReadUpdates:
    def test_reads_the_updates_of_the_target(self) -> None:
        # All updates are 0.1 everywhere.
        read = read_updates(
            server_view(), CLIENTS[1], knowledge(), (1, 0), [LastLayerChange(), Raw()]
        )
        assert torch.allclose(read[Raw()], torch.full((2, 43), 0.1))
        assert read[LastLayerChange()].shape == (2, CLASSES, 6)

    def test_real_and_virtual_clients_are_read_alike(self) -> None:
        attacker, view = knowledge(), server_view()
        simulation = run_simulation(view, attacker, (0,), [Raw(), AuxiliaryLogits()])
        start, flat = broadcast(0), simulation.readings[Raw()][5, 0]
        parts = flat.split([weight.numel() for weight in start.values()])
        delta = {
            name: part.view_as(weight)
            for (name, weight), part in zip(start.items(), parts, strict=True)
        }
        message = Message(0, client(9), frozenset({SERVER}), Update(delta, 5))
        view_with_update = View(view.observers, (*view.messages, message))
        read = read_updates(view_with_update, client(9), attacker, (0,), [AuxiliaryLogits()])[
            AuxiliaryLogits()
        ]
        assert torch.allclose(read[0], simulation.readings[AuxiliaryLogits()][5, 0], atol=1e-5)

    def test_refuses_a_round_without_an_update(self) -> None:
        with pytest.raises(ValueError, match=r"no update of client/7 in the rounds \[0\]"):
            read_updates(server_view(), client(7), knowledge(), (0,), [Raw()])

    def test_broadcasts_are_read_as_updates_of_zeros(self) -> None:
        read = read_broadcasts(server_view(), knowledge(), (0, 1), [Raw(), AuxiliaryLogits()])
        assert read[Raw()].eq(0).all()
        assert accuracies(read[AuxiliaryLogits()]).shape == (2, CLASSES)


class TestReadableRounds:
    def test_rounds_without_a_broadcast_do_not_count(self) -> None:
        view = server_view(3)
        remaining = [
            m for m in view.messages if not (m.round == 1 and isinstance(m.body, Broadcast))
        ]
        assert readable_rounds(View(view.observers, remaining), CLIENTS[0]) == (0, 2)

    def test_rounds_without_an_update_do_not_count(self) -> None:
        view = server_view(2)
        remaining = [m for m in view.messages if not (m.round == 1 and m.sender == CLIENTS[0])]
        assert readable_rounds(View(view.observers, remaining), CLIENTS[0]) == (0,)


class TestMedianCohortSize:
    def test_is_taken_from_the_aggregate(self) -> None:
        cohort = frozenset(map(client, range(7)))
        message = Message(0, COHORT, frozenset({SERVER}), Aggregate({}, cohort))
        assert median_cohort_size(View(frozenset({SERVER}), (message,)), (0,)) == 7

    def test_is_taken_from_the_updates(self) -> None:
        assert median_cohort_size(server_view(), (0, 1)) == 3

    def test_is_the_median_over_rounds(self) -> None:
        # Cohort sizes are 3, 3 and 1.
        view = server_view(3)
        remaining = [
            m for m in view.messages if m.round != 2 or m.sender in (SERVER, CLIENTS[0])
        ]
        assert median_cohort_size(View(view.observers, remaining), (0, 1, 2)) == 3
        assert median_cohort_size(View(view.observers, remaining), (2,)) == 1

    def test_is_taken_from_the_readers_of_broadcasts_otherwise(self) -> None:
        messages = [m for m in server_view().messages if isinstance(m.body, Broadcast)]
        assert median_cohort_size(View(frozenset({CLIENTS[0]}), messages), (0,)) == 2

    def test_does_not_include_observers(self) -> None:
        view = server_view()
        view_of_observers = View(frozenset({CLIENTS[0], SERVER}), view.messages)
        assert median_cohort_size(view_of_observers, (0,)) == 2

    def test_refuses_a_round_without_a_cohort(self) -> None:
        with pytest.raises(ValueError, match="no cohort size in the rounds"):
            median_cohort_size(server_view(), (9,))


class CountingShelf(TensorCache):
    def __init__(self) -> None:
        self._kept = MemoryTensorCache()
        self.saved = 0

    def load(self, key):
        return self._kept.load(key)

    def save(self, key, tensors) -> None:
        self.saved += 1
        self._kept.save(key, tensors)


def test_another_attack_with_other_probes_trains_no_virtual_client_again() -> None:
    shelf = CountingShelf()
    means = replace(knowledge().compute, cache=shelf)
    run_simulation(
        server_view(), replace(knowledge(), compute=means), (0,), [AuxiliaryLogits()]
    )
    before = shelf.saved
    simulation = run_simulation(
        server_view(), replace(knowledge(), compute=means), (0,), [LastLayerChange()]
    )
    assert shelf.saved == before > 0
    assert len(simulation.readings[LastLayerChange()]) == means.virtual_clients
