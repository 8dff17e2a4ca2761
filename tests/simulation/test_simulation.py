import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Prior
from overheard.core.messages import Aggregate, Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.view import View
from overheard.data.splits.quantity import Quantity
from overheard.simulation.auxiliary_logits import AuxiliaryLogits
from overheard.simulation.auxiliary_split import split_auxiliary
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.simulation import (
    median_cohort_size,
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


class TestReadUpdates:
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


class TestReadableRounds:
    def test_rounds_without_a_broadcast_do_not_count(self) -> None:
        view = server_view(3)
        remaining = [
            m for m in view.messages if not (m.round == 1 and isinstance(m.body, Broadcast))
        ]
        assert readable_rounds(View(view.observers, remaining), CLIENTS[0]) == (0, 2)


class TestMedianCohortSize:
    def test_is_taken_from_the_aggregate(self) -> None:
        cohort = frozenset(map(client, range(7)))
        message = Message(0, COHORT, frozenset({SERVER}), Aggregate({}, cohort))
        assert median_cohort_size(View(frozenset({SERVER}), (message,)), (0,)) == 7

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
        with pytest.raises(NeedsError, match="number of clients behind a mean update"):
            median_cohort_size(server_view(), (9,))
