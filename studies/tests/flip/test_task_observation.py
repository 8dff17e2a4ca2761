import pytest
import torch

from overheard.core.messages import Broadcast, DistilledSet, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.view import View
from overheard_studies.flip.attribute_tests import MAX_MODELS, TaskObservation

ONE, TWO = client(0), client(1)

TO_SERVER = frozenset({SERVER})


def observation(rounds: int) -> TaskObservation:
    """Send in each round a set filled with the round's number, and the weight 10."""
    messages = []
    for number in range(rounds):
        inputs = torch.full((2, 3), float(number))
        body = DistilledSet(inputs, torch.eye(2), torch.ones(2), torch.ones(2))
        readers = frozenset({ONE, TWO})
        messages.append(
            Message(number, SERVER, readers, Broadcast({"w": torch.tensor([10.0])}))
        )
        messages.append(Message(number, SERVER, readers, body))
        for party, change in ((ONE, 3.0), (TWO, -4.0)):
            update = Update({"w": torch.tensor([change * (number + 1)])})
            messages.append(Message(number, party, TO_SERVER, update))
    return TaskObservation(View(TO_SERVER, messages))


def test_the_sets_of_all_rounds_but_the_initial_noise_are_read() -> None:
    # Two inputs of three numbers in each of the rounds 1 and 2.
    assert observation(3).synthetic_inputs()[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0]


def test_updates_are_normalized_to_length_1() -> None:
    assert observation(2).normalized_updates().flatten().tolist() == pytest.approx(
        [1.0, 1.0, -1.0, -1.0]
    )


def test_models_are_the_trained_models_of_a_client() -> None:
    observed = observation(2)
    assert observed.clients() == (ONE, TWO)
    assert [float(one["w"]) for one in observed.client_models(TWO)] == [6.0, 2.0]


def test_of_many_rounds_some_are_read_from_the_first_to_the_last() -> None:
    models = list(observation(3 * MAX_MODELS).client_models(ONE))
    assert len(models) == MAX_MODELS
    assert [float(models[place]["w"]) for place in (0, -1)] == [13.0, 10.0 + 9 * MAX_MODELS]
