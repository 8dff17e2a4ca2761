"""FedBuff aggregates late updates as its schedule says, with the discount of the paper."""

from collections import Counter
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest
import torch

from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_buff import FedBuff
from overheard.archive.reader import open_transcript
from overheard.core.errors import PlanError
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER
from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.federation.cohort import round_schedule
from overheard.federation.federation import Federation
from overheard.federation.run import run
from tests.algorithms.by_hand import received
from tests.algorithms.test_every_algorithm import federation

BUFF = FedBuff(buffer=2, concurrency=4)


@pytest.fixture(scope="module")
def planned() -> Federation:
    """Six clients in eight rounds, four of them at a time."""
    four = federation(BUFF)
    return replace(four, rounds=8, rows=[four.rows[0]] * 8)


def test_no_client_starts_while_it_trains_and_each_step_uses_a_full_buffer() -> None:
    schedule = BUFF.schedule(6, 40, Seed(1))
    running = set[int]()
    for number, starting in enumerate(schedule.starts):
        assert not running & set(starting)
        running |= set(starting)
        assert len(running) == 4
        done = [index for (_, index), step in schedule.steps.items() if step == number]
        assert len(done) == 2
        running -= set(done)
    delays = Counter(step - start for (start, _), step in schedule.steps.items())
    assert set(delays) >= {0, 1, 2, 3}


def test_late_updates_count_less() -> None:
    one, other = received(1.0, 1.0)
    late = (one, replace(other, delay=3))
    assert BUFF.factors(late) == pytest.approx((0.5, 0.5 / sqrt(4)))
    assert replace(BUFF, discount=False).factors(late) == (0.5, 0.5)


def test_each_model_is_the_one_before_plus_the_updates_that_arrived(
    planned: Federation, tmp_path: Path
) -> None:
    run(planned, tmp_path)
    transcript = open_transcript(tmp_path)
    schedule = round_schedule(planned)
    assert schedule is not None
    models = {
        message.round: message.body.weights
        for message in transcript.messages
        if isinstance(message.body, Broadcast)
    }
    name = next(iter(models[0]))
    for number in range(8):
        arrived = [
            (number - message.round, message.body.delta[name])
            for message in transcript.messages
            if isinstance(message.body, Update)
            and schedule.steps[message.round, int(message.sender[7:])] == number
        ]
        assert len(arrived) == 2
        step = sum(delta / 2 / sqrt(1 + delay) for delay, delta in arrived)
        assert torch.allclose(models[number + 1][name], models[number][name] + step, atol=1e-6)


def test_the_server_finds_every_update_in_the_round_of_its_broadcast(
    planned: Federation, tmp_path: Path
) -> None:
    """Under FedAvg's name for the same start, the update is the same."""
    transcript, truth = run(planned, tmp_path / "async")
    whole, _ = run(replace(planned, algorithm=FedAvg()), tmp_path / "sync")
    first = transcript.seen_by(SERVER)
    for party in first.senders():
        updates = first.updates(party)
        if 0 in updates:
            expected = whole.seen_by(SERVER).updates(party)[0].delta
            assert all(torch.equal(updates[0].delta[n], expected[n]) for n in expected)
    sent = {(m.round, m.sender) for m in transcript.messages if isinstance(m.body, Update)}
    assert set(truth.facts.need(LabelCounts).counts) == sent


def test_refuses_masks_and_a_share_of_clients(planned: Federation) -> None:
    with pytest.raises(PlanError, match="several rounds"):
        replace(planned, defenses=(SecureAggregation(),))
    with pytest.raises(PlanError, match="participation"):
        replace(planned, participation=0.5)
