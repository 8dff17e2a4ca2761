"""Observers of broadcasts read sums of single clients only where they know who took part."""

from dataclasses import replace

import pytest
import torch

from overheard.algorithms.adaptive import FedAdam
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.algorithms.scaffold import Scaffold
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.deduced_view import (
    CORRECTED_UPDATES,
    UNKNOWN_COHORTS,
    UNRECORDED_COHORTS,
    UNSTORED_UPDATES,
    deduce_means,
    find_cohorts,
)
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    MessageBody,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import (
    COHORT,
    RELEASE,
    SERVER,
    Party,
    client,
    late_joiner,
    shadow_device,
)
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.participation.observed_sums import find_sums

SENT = {client(0): 1.0, client(1): 2.0, client(2): 6.0}
"""The update of each client, in every round."""

COHORTS = [(0, 1), (1, 2), (0, 2)]
"""Means of their updates: 1.5, 4 and 3.5."""

# Velocities with momentum 0.5: 1.5; 0.75 + 4 = 4.75; 2.375 + 3.5 = 5.875.
MODELS: dict[Algorithm, list[float]] = {
    FedAvg(): [0.0, 1.5, 5.5, 9.0],
    FedAvg(rate=0.5): [0.0, 0.75, 2.75, 4.5],
    FedAvgM(momentum=0.5): [0.0, 1.5, 6.25, 12.125],
}

SINGLE = {0: [2.0], 1: [4.0], 2: [6.0]}
"""What client 0 learns: 2 x 1.5 - 1 of client 1; the mean of both; 2 x 3.5 - 1 of client 2."""


def weights(value: float) -> dict[str, torch.Tensor]:
    return {"w": torch.tensor([value])}


def run_of(models: list[float]) -> Transcript:
    """Return a run whose broadcasts have these models."""
    messages = list[Message]()
    for number, model in enumerate(models):
        messages.append(Message(number, SERVER, frozenset(SENT), Broadcast(weights(model))))
        if number < len(COHORTS):
            messages += [
                Message(number, one, frozenset({SERVER}), Update(weights(SENT[one]), 10))
                for one in map(client, COHORTS[number])
            ]
    return Transcript(tuple(messages))


def heard(
    algorithm: Algorithm, *observers: Party, knows: bool = True, recipe: bool = True
) -> View:
    """Return what these observers can compute of the run under an algorithm."""
    transcript = run_of(MODELS.get(algorithm, MODELS[FedAvg()]))
    cohorts = find_cohorts(transcript.messages) if knows else None
    seen = transcript.seen_by(*observers)
    return deduce_means(seen, algorithm, is_known=recipe, cohorts=cohorts)


def named(view: View) -> set[Party]:
    """Return the clients that the sums of a view name."""
    bodies = [one.body for one in view.messages if isinstance(one.body, Aggregate)]
    return {party for one in bodies for party in one.cohort if party in SENT}


@pytest.mark.parametrize("algorithm", MODELS)
def test_a_client_that_knows_who_took_part_reads_the_sums_of_others(
    algorithm: Algorithm,
) -> None:
    found = find_sums(heard(algorithm, client(0)), 100)
    assert found is not None
    assert (found.clients, found.sizes) == ((client(1), client(2)), None)
    assert found.weights.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    told = dict(zip(found.rounds, (one["w"].tolist() for one in found.deltas), strict=True))
    assert told == {number: pytest.approx(value) for number, value in SINGLE.items()}


@pytest.mark.parametrize("algorithm", MODELS)
def test_without_that_knowledge_no_sum_names_another_client(algorithm: Algorithm) -> None:
    view = heard(algorithm, client(0), knows=False)
    assert named(view) <= {client(0)}
    assert view.hidden_cohorts == UNKNOWN_COHORTS
    assert not any(view.observed_rounds(one) for one in (client(1), client(2)))
    # The mean of the others is read as before, of as many clients as read the broadcast.
    assert view.cohort_sizes() == {0: 2, 1: 2, 2: 2}


def test_who_took_part_makes_the_mean_of_the_others_exact() -> None:
    # Without it the mean of round 0 counts for three: (3 x 1.5 - 1) / 2 = 1.75.
    guessed = heard(FedAvg(), client(0), knows=False).updates(COHORT)
    assert guessed[0].delta["w"].item() == 1.75
    view = heard(FedAvg(), client(0))
    assert view.updates(COHORT)[0].delta["w"].item() == 2.0
    assert view.cohort_sizes() == {0: 1, 1: 2, 2: 1}


def test_a_late_joiner_reads_no_earlier_round() -> None:
    found = find_sums(heard(FedAvg(), late_joiner(1)), 100)
    assert found is not None
    assert found.rounds == (1, 2)
    assert [one["w"].item() for one in found.deltas] == [4.0, 3.5]
    assert named(heard(FedAvg(), late_joiner(2))) == {client(0), client(2)}
    # It lacks the velocity at the start of round 1.
    late = find_sums(heard(FedAvgM(momentum=0.5), late_joiner(1)), 100)
    assert late is not None
    assert (late.rounds, late.deltas[0]["w"].item()) == ((2,), 3.5)


def test_colluding_clients_subtract_the_updates_of_all() -> None:
    found = find_sums(heard(FedAvg(), client(0), client(1)), 100)
    assert found is not None
    # Round 0 has their own updates alone. 2 x 4 - 2 and 2 x 3.5 - 1 are both of client 2.
    assert (found.clients, found.rounds) == ((client(2),), (1, 2))
    assert [one["w"].item() for one in found.deltas] == [6.0, 6.0]


def test_the_final_model_and_the_server_gain_nothing() -> None:
    view = heard(FedAvg(), RELEASE)
    assert (named(view), view.hidden_cohorts) == (set(), "")
    for observers in ((SERVER,), (SERVER, client(0))):
        assert heard(FedAvg(), *observers) == heard(FedAvg(), *observers, knows=False)


@pytest.mark.parametrize(("algorithm", "recipe"), [(FedAdam(), True), (FedAvgM(), False)])
def test_a_step_that_cannot_be_inverted_gives_no_sum(
    algorithm: Algorithm, recipe: bool
) -> None:
    view = heard(algorithm, client(0), recipe=recipe)
    assert named(view) == set()
    assert view.hidden_mean


def test_corrected_updates_are_no_sums_of_single_clients() -> None:
    messages = [
        replace(one, body=replace(one.body, control=weights(0.0)))
        if isinstance(one.body, Broadcast)
        else one
        for one in run_of(MODELS[FedAvg()]).messages
    ]
    view = deduce_means(
        Transcript(messages).seen_by(client(0)),
        Scaffold(),
        is_known=True,
        cohorts=find_cohorts(messages),
    )
    assert (named(view), view.hidden_cohorts) == (set(), CORRECTED_UPDATES)
    assert view.rounds_with_updates(COHORT) == (0, 1, 2)


def test_a_run_that_does_not_say_who_took_part_names_nobody() -> None:
    transcript = run_of(MODELS[FedAvg()])
    models = [one for one in transcript.messages if isinstance(one.body, Broadcast)]
    cohorts = find_cohorts(models)
    view = deduce_means(
        Transcript(models).seen_by(client(0)), FedAvg(), is_known=True, cohorts=cohorts
    )
    assert cohorts == {}
    assert (named(view), view.hidden_cohorts) == (set(), UNRECORDED_COHORTS)


@pytest.mark.parametrize("algorithm", MODELS)
def test_a_round_whose_cohort_is_not_known_is_in_no_sum(algorithm: Algorithm) -> None:
    transcript = run_of(MODELS[algorithm])
    cohorts = dict(find_cohorts(transcript.messages))
    del cohorts[1]
    view = transcript.seen_by(client(0))
    found = find_sums(deduce_means(view, algorithm, is_known=True, cohorts=cohorts), 100)
    assert found is not None
    assert (found.clients, found.rounds) == ((client(1), client(2)), (0, 2))


@pytest.mark.parametrize("algorithm", MODELS)
def test_a_sum_with_an_own_update_that_is_not_stored_is_of_nobody(algorithm: Algorithm) -> None:
    """It cannot be subtracted, as where a recording has masked replies."""
    transcript = run_of(MODELS[algorithm])
    cohorts = find_cohorts(transcript.messages)
    messages = [
        replace(one, body=UnstoredMessage("masked", "masked"))
        if isinstance(one.body, Update)
        else one
        for one in transcript.messages
    ]
    view = Transcript(messages).seen_by(client(0))
    # Client 0 took no part in round 1.
    found = find_sums(deduce_means(view, algorithm, is_known=True, cohorts=cohorts), 100)
    assert found is not None
    assert (found.clients, found.rounds) == ((client(1), client(2)), (1,))
    always = {number: one for number, one in cohorts.items() if client(0) in one}
    told = deduce_means(view, algorithm, is_known=True, cohorts=always)
    assert (named(told) - {client(0)}, told.hidden_cohorts) == (set(), UNSTORED_UPDATES)


def message(sender: Party, body: MessageBody) -> Message:
    return Message(0, sender, frozenset(), body)


def test_cohorts_are_those_whose_updates_were_averaged() -> None:
    sent = [message(one, Update(weights(1.0))) for one in SENT]
    assert find_cohorts(sent) == {0: frozenset(SENT)}
    # The server's own devices train beside the clients, and are in no mean.
    of_device = message(shadow_device(0), Update(weights(1.0)))
    assert find_cohorts([*sent, of_device]) == {0: frozenset(SENT)}
    # Client 2 dropped out after it had masked its update.
    pair = frozenset({client(0), client(1)})
    assert find_cohorts([*sent, message(COHORT, Aggregate(weights(1.0), pair))]) == {0: pair}
    unnamed = message(COHORT, Aggregate(weights(1.0), frozenset()))
    assert find_cohorts([unnamed]) == {}
    # The mean may have the reply that was not stored, or not.
    unstored = message(client(3), UnstoredMessage("weights", "other tensors"))
    assert find_cohorts([*sent, unstored]) == {}
    nothing = torch.zeros(0)
    distilled = message(client(0), DistilledSet(nothing, nothing, nothing, nothing))
    assert find_cohorts([*sent, distilled]) == {}
