"""Accountants of the clients of a run, by its messages."""

import math
from dataclasses import replace

import pytest
import torch

from overheard.auditing.client_accounting import (
    STATED_NAME,
    with_equal_accounts,
    with_stated_accounts,
)
from overheard.core.accounting.accountant import account_mechanism
from overheard.core.accounting.composed_steps import NoisySteps
from overheard.core.accounting.stated_steps import write_steps
from overheard.core.defense import RunParameters
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Message, Update
from overheard.core.parties import SERVER, Party
from overheard.findings.finding import ArmDefense
from tests.core.closed_form_epsilon import closed_epsilon

A, B, LATE = Party("client/a"), Party("client/b"), Party("client/late")
RUN = RunParameters(3, 1.0, sampling="none")
# Without sampling, epsilon has a closed form, so that the tests are fast.
DAY = NoisySteps(8.0, "none", 1.0, 10)
STATED = Mechanism(
    8.0, 1.0, 1e-5, "client", "client", 1.0, "record", 10, record_sampling="none"
)


def reply(round: int, sender: Party, *steps: NoisySteps) -> Message:
    metrics = write_steps(steps, 0, 1.5, "prv") if steps else {"loss": 0.5}
    body = Update({"w": torch.zeros(1)}, 400, metrics)
    return Message(round, sender, frozenset({SERVER}), body)


def defense(mechanism: Mechanism, run: RunParameters = RUN) -> ArmDefense:
    accounted = account_mechanism(mechanism, run)
    return ArmDefense("Opacus()", "client", "each client", "as recorded", accounted)


def stated_epsilon(found: ArmDefense) -> float:
    assert found.accounted is not None
    assert found.accounted.recomputed is not None
    return found.accounted.recomputed.pld


def test_clients_that_state_their_steps_have_accountants_and_the_run_the_largest_epsilon() -> (
    None
):
    noisier = replace(DAY, noise_multiplier=16.0)
    messages = [reply(0, A, DAY), reply(1, A, DAY), reply(1, B, noisier)]
    (found,) = with_stated_accounts((), RUN, messages, (A, B, LATE))
    assert found.settings == (
        f"{STATED_NAME}(noise_multiplier=8 to 16, max_grad_norm=1.5, sample_rate=1, "
        "sampling=none)"
    )
    assert found.clients is not None
    assert [one.client for one in found.clients.accounts] == [A, B, LATE]
    assert [one.messages for one in found.clients.accounts] == [2, 1, 0]
    two = defense(STATED, replace(RUN, rounds=2))
    assert stated_epsilon(found) == pytest.approx(stated_epsilon(two))
    assert found.accounted is not None
    mechanism = found.accounted.mechanism
    assert (mechanism.noise_multiplier, mechanism.clip, mechanism.steps) == (8.0, 1.5, 10)


def test_a_late_joiner_without_dp_makes_the_run_infinite_and_is_named() -> None:
    messages = [reply(0, A, DAY), reply(1, A, DAY), reply(1, LATE)]
    claim = defense(replace(STATED, stated=5.0))
    (found,) = with_stated_accounts((claim,), RUN, messages, (A, LATE))
    assert stated_epsilon(found) == math.inf
    assert found.accounted is not None
    assert found.accounted.claim == "not confirmed"
    assert found.accounted.doubt == "client/late: it states no DP-SGD in 1 of 1 messages"


def test_a_claim_for_one_round_is_false_for_the_steps_that_clients_state() -> None:
    # Three rounds have mu = sqrt(30) / 8.
    three = closed_epsilon(30**0.5 / 8, 1e-5)
    claim = replace(STATED, stated=closed_epsilon(10**0.5 / 8, 1e-5))
    messages = [reply(number, A, DAY) for number in range(3)]
    (found,) = with_stated_accounts((defense(claim),), RUN, messages, (A,))
    assert found.accounted is not None
    assert (found.settings, found.accounted.claim) == ("Opacus()", "false")
    claim = replace(STATED, stated=three)
    (found,) = with_stated_accounts((defense(claim),), RUN, messages, (A,))
    assert found.accounted is not None
    assert found.accounted.claim == "holds"


def test_rounds_to_come_count_as_the_worst_message_so_far() -> None:
    run = RunParameters(3, 1.0, sampling="none", recorded=1)
    messages = [reply(0, A, DAY), reply(0, B, replace(DAY, noise_multiplier=16.0))]
    (found,) = with_stated_accounts((), run, messages, (A, B))
    assert stated_epsilon(found) == pytest.approx(stated_epsilon(defense(STATED)))


def test_steps_that_cannot_be_give_no_epsilon_and_are_told() -> None:
    broken = write_steps([DAY], 0, -1.0, "prv")
    body = Update({"w": torch.zeros(1)}, 400, broken)
    messages = [Message(0, A, frozenset({SERVER}), body)]
    (found,) = with_stated_accounts((), RUN, messages, (A,))
    assert found.accounted is None
    assert found.promise == (
        "no formal promise: client/a: it states no clip above 0 in 1 of 1 messages"
    )


def test_without_stated_steps_all_clients_have_the_mechanism_that_the_recording_states() -> (
    None
):
    messages = [reply(0, A), reply(1, A), reply(1, B)]
    (found,) = with_stated_accounts((defense(STATED),), RUN, messages, (A, B))
    assert found.clients is not None
    assert [(one.client, one.steps) for one in found.clients.accounts] == [(A, 20), (B, 10)]
    # Noise on all data of a client, or with other neighbors, has no accountants of records.
    for other in (
        replace(STATED, moves=2.0),
        Mechanism(2.0, 1.0, 1e-5, "client", "client"),
    ):
        (found,) = with_equal_accounts([defense(other)], messages, (A, B))
        assert found.clients is None
