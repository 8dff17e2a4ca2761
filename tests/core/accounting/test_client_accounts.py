"""Accountants of single clients."""

import math

import pytest
import torch

from overheard.core.accounting.client_accounts import (
    ClientSteps,
    account_clients,
    equal_clients,
    lower_epsilon,
    stated_clients,
)
from overheard.core.accounting.composed_steps import NoisySteps, steps_epsilon
from overheard.core.accounting.stated_steps import (
    MAX_KINDS,
    OTHER_SAMPLING,
    read_stated_steps,
    write_steps,
)
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Evaluation, Message, MessageBody, MissingReply, Update
from overheard.core.parties import SERVER, Party
from tests.core.closed_form_epsilon import closed_epsilon

DELTA = 1e-5
DAY = NoisySteps(1.0, "poisson", 1 / 125, 125)
FACTS = write_steps([DAY], 1, 1.5, "prv")
A, B, C = Party("client/a"), Party("client/b"), Party("client/c")


def reply(round: int, sender: Party, metrics: dict[str, float] | None) -> Message:
    body: MessageBody = MissingReply("late")
    if metrics is not None:
        body = Update({"w": torch.zeros(1)}, 4000, metrics)
    return Message(round, sender, frozenset({SERVER}), body)


def spent(client: Party, *steps: NoisySteps) -> ClientSteps:
    return ClientSteps(client, tuple((one,) for one in steps))


NO_SAMPLING = NoisySteps(4.0, "none", 1.0, 1)


def test_the_largest_epsilon_is_that_of_the_run_and_an_absent_client_spent_nothing() -> None:
    found = account_clients(
        [spent(A), spent(B, *[NO_SAMPLING] * 4), spent(C, NO_SAMPLING)], DELTA
    )
    assert found is not None
    assert [one.client for one in found.accounts] == [B, C, A]
    assert found.largest.epsilon == pytest.approx(closed_epsilon(0.5, DELTA))
    assert (found.median.client, found.smallest.epsilon) == (C, 0.0)


def test_units_of_a_client_stand_side_by_side() -> None:
    one = ClientSteps(A, ((NO_SAMPLING,),), records=30)
    found = account_clients([one], DELTA)
    assert found is not None
    assert [(unit.unit, unit.records) for unit in found.units] == [
        ("record", 1),
        ("user", 2),
        ("user", 10),
        ("client", 30),
    ]
    epsilons = [unit.epsilon for unit in found.units]
    assert epsilons == [
        pytest.approx(closed_epsilon(count / 4, DELTA)) for count in (1, 2, 10, 30)
    ]


def test_shuffled_batches_are_no_poisson_samples_and_both_figures_are_known() -> None:
    shuffled = NoisySteps(1.0, "shuffled", 1 / 125, 125)
    found = account_clients([spent(A, shuffled)], DELTA)
    assert found is not None
    assert found.largest.epsilon == pytest.approx(4.38, rel=0.01)  # one Gaussian
    assert found.as_poisson == pytest.approx(0.615, rel=0.01)
    drawn = account_clients([spent(A, NO_SAMPLING)], DELTA)
    assert drawn is not None
    assert drawn.as_poisson is None


def test_a_message_without_noise_or_without_a_statement_makes_epsilon_infinite() -> None:
    messages = [reply(0, A, FACTS), reply(0, B, {}), reply(1, A, FACTS), reply(1, B, FACTS)]
    found = account_clients(stated_clients(messages, (A, B, C)), DELTA)
    assert found is not None
    b, a, c = found.accounts
    assert (b.client, b.epsilon) == (B, math.inf)
    assert b.problem == "it states no DP-SGD in 1 of 2 messages"
    assert (a.messages, a.steps, a.problem) == (2, 250, "")
    assert (c.client, c.epsilon, c.messages) == (C, 0.0, 0)


def test_missing_replies_and_evaluations_spend_nothing() -> None:
    evaluation = Message(0, A, frozenset({SERVER}), Evaluation(FACTS))
    messages = [reply(0, A, FACTS), reply(1, A, None), evaluation]
    (one,) = stated_clients(messages, ())
    assert (one.messages, one.records, one.clips) == (((DAY,),), 4000, {1.5})


def test_a_recording_in_which_nobody_states_steps_has_none() -> None:
    assert stated_clients([reply(0, A, {"loss": 1.0})], (A, B)) == ()
    assert account_clients((), DELTA) is None


def test_clients_with_one_mechanism_differ_by_the_rounds_they_took_part_in() -> None:
    messages = [reply(0, A, {}), reply(1, A, {}), reply(1, B, {})]
    found = equal_clients(messages, (A, B, C), lambda _round, _client: DAY)
    assert [(one.client, len(one.steps)) for one in found] == [(A, 2), (B, 1), (C, 0)]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"dp-kinds": 1e9}, "no steps with noise"),
        ({"dp-kinds": math.nan}, "no steps with noise"),
        ({"dp-kinds": 2}, r"impossible steps \(kind 2\)"),
        ({"dp-max-grad-norm": 0.0}, "no clip above 0"),
        ({"dp-sampling": OTHER_SAMPLING}, "no sampling that accounting covers"),
        ({"dp-sampling": 0.5}, "no sampling that accounting covers"),
        ({"dp-noise-multiplier-1": -1.0}, "impossible steps"),
        ({"dp-noise-multiplier-1": math.inf}, "impossible steps"),
        ({"dp-sample-rate-1": 1.5}, "impossible steps"),
        ({"dp-sample-rate-1": 0.0}, "impossible steps"),
        ({"dp-steps-1": 1e12}, "impossible steps"),
        ({"dp-steps-1": 2.5}, "impossible steps"),
    ],
)
def test_impossible_facts_are_a_problem_of_their_client_alone(
    changed: dict[str, float], problem: str
) -> None:
    found = read_stated_steps({**FACTS, **changed})
    assert found is not None
    assert not found.steps
    assert problem.replace("\\", "") in found.problem
    messages = [reply(0, A, FACTS), reply(0, B, {**FACTS, **changed})]
    accounts = account_clients(stated_clients(messages, ()), DELTA)
    assert accounts is not None
    assert (accounts.largest.client, accounts.smallest.epsilon < 1) == (B, True)


def test_what_is_written_is_read_and_a_long_history_is_bounded() -> None:
    found = read_stated_steps(FACTS)
    assert found is not None
    assert (found.steps, found.clip, found.accountant) == ((DAY,), 1.5, "prv")
    long = [NoisySteps(1.0 + place, "poisson", 0.1, 1) for place in range(2 * MAX_KINDS)]
    read = read_stated_steps(write_steps(long, 1, 1.0, ""))
    assert read is not None
    assert len(read.steps) == MAX_KINDS
    assert sum(one.steps for one in read.steps) == 2 * MAX_KINDS
    assert read.steps[-1].noise_multiplier == MAX_KINDS


def test_many_different_clients_are_rounded_up_but_not_the_largest() -> None:
    # No sampling: in closed form, so that the test is fast.
    noises = [1.0 + place / 200 for place in range(60)]
    clients = [
        spent(Party(f"client/{place}"), NoisySteps(noise, "none", 1.0, 1))
        for place, noise in enumerate(noises)
    ]
    found = account_clients(clients, DELTA)
    assert found is not None
    exact = {client.client: steps_epsilon(client.steps, DELTA) for client in clients}
    assert found.largest.epsilon == max(exact.values())
    assert all(
        exact[one.client] <= one.epsilon <= 1.3 * exact[one.client] for one in found.accounts
    )


@pytest.mark.parametrize("sampling", [0, 1, 2])
@pytest.mark.parametrize(
    ("noise", "rate"), [(1e308, 0.5), (1e20, 0.01), (1e6, 1e-9), (1.0, 5e-324)]
)
def test_extreme_facts_of_one_client_leave_the_account_of_another_as_it_is(
    noise: float, rate: float, sampling: int
) -> None:
    metrics = write_steps([NoisySteps(noise, "poisson", rate, 10)], sampling, 1.0, "rdp")
    stated = read_stated_steps(metrics)
    assert stated is not None
    hostile = ClientSteps(A, (stated.steps,), stated.problem, records=4000)
    honest = ClientSteps(B, ((NoisySteps(1.0, "poisson", 0.01, 1),),))
    alone = account_clients([hostile], 1e-5)
    both = account_clients([hostile, honest], 1e-5)
    assert alone is not None
    assert both is not None
    assert 0 <= alone.largest.epsilon < 20  # ten steps without sampling at noise 1 have 19.9
    (of_honest,) = (one for one in both.accounts if one.client == B)
    assert of_honest.epsilon == steps_epsilon(honest.steps, 1e-5)
    assert 0 <= lower_epsilon(hostile.steps, 1e-5) <= alone.largest.epsilon


def test_a_mechanism_with_next_to_no_rate_is_refused_in_place_of_a_crash() -> None:
    with pytest.raises(ValueError, match="record_rate"):
        Mechanism(
            1.0,
            1.0,
            DELTA,
            "client",
            "client",
            1.0,
            "record",
            record_sampling="poisson",
            record_rate=5e-324,
        )
