"""The tracked values, the alarm, and the refusals of shift_tracking."""

from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.messages import Update
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.shift.attacks.shift_tracking import (
    MIN_IMAGES_PER_LABEL,
    ShiftTracking,
)
from overheard.questions.shift.claim import Shift
from tests.runs.two_clients import (
    SHORT_SHIFT_ROUND,
    knowledge_of_many_steps,
    simulate_many_steps,
)

pytestmark = pytest.mark.slow

ATTACK = ShiftTracking(most_virtual=60)
EVEN = torch.arange(10) % 2 == 0
KNOWN = knowledge_of_many_steps()
TARGET = client(1)


def view_of(even: float | None, observer: Party = SERVER, seed: int = 0) -> View:
    return simulate_many_steps(even, seed).seen_by(observer)


def claim_on(view: View, target: Party = TARGET, attack: ShiftTracking = ATTACK) -> Shift:
    return attack.infer(view, (target,), KNOWN, Seed(0))[target]


@pytest.fixture(scope="module")
def shifted() -> Shift:
    """Return the server's claim if even digits rise from 50 % to 95 %."""
    return claim_on(view_of(0.95))


def test_the_alarm_names_the_round_of_the_shift(shifted) -> None:
    assert shifted.evidence.alarm in {SHORT_SHIFT_ROUND, SHORT_SHIFT_ROUND + 1}
    assert shifted.evidence.since == SHORT_SHIFT_ROUND


def test_estimates_the_share_of_the_labels_that_rose(shifted) -> None:
    assert float(shifted.change.value[EVEN].sum()) == pytest.approx(0.45, abs=0.15)
    after, low, high = shifted.shares_after.sum_over(EVEN)
    assert after == pytest.approx(0.95, abs=0.1)
    assert low < after < high
    assert shifted.doubt() is None


def test_the_alarm_is_the_first_round_above_the_threshold(shifted) -> None:
    evidence = shifted.evidence
    columns = zip(evidence.rounds, evidence.statistic, evidence.threshold, strict=True)
    assert evidence.alarm == next(number for number, value, bar in columns if value > bar)
    assert evidence.false_alarm_rate == ATTACK.false_alarm_rate


def test_a_client_that_keeps_its_examples_raises_no_alarm() -> None:
    assert all(claim_on(view_of(None, seed=n)).evidence.alarm is None for n in range(3))


def test_an_exchange_gives_less_evidence_than_half_a_shift() -> None:
    exchanged, shifted = (
        [max(claim_on(view_of(even, seed=n)).evidence.statistic) for n in range(3)]
        for even in (0.5, 0.75)
    )
    assert max(exchanged) < min(shifted)


def test_a_rival_with_one_other_client_tracks_that_client(shifted) -> None:
    rival = claim_on(view_of(0.95, client(0)), COHORT)
    assert rival.evidence.since == SHORT_SHIFT_ROUND
    # With two clients the target is the other one; only the virtual clients differ.
    assert torch.allclose(rival.change.value, shifted.change.value, atol=0.1)


def test_tracking_representations_claims_no_shares() -> None:
    looks = replace(ATTACK, follows="representations")
    claim = claim_on(view_of(0.95), attack=looks)
    assert claim.change is None
    assert claim.shares_after is None
    assert claim.numbers() == ()


def test_too_few_examples_of_a_label_leave_it_uncalibrated() -> None:
    labels = KNOWN.auxiliary.labels
    rare = (labels == 3).nonzero().flatten()[: MIN_IMAGES_PER_LABEL - 1]
    rows = torch.cat([(labels != 3).nonzero().flatten(), rare])
    few = replace(KNOWN, auxiliary=KNOWN.auxiliary.take(rows))
    claim = ATTACK.infer(view_of(0.95), (TARGET,), few, Seed(0))[TARGET]
    evidence = claim.evidence
    assert "a label has 15 auxiliary examples" in claim.doubt()
    assert evidence.threshold is None
    assert evidence.is_uncalibrated
    assert evidence.alarm is None
    assert evidence.since == SHORT_SHIFT_ROUND


def test_fewer_simulated_shifts_than_an_interval_needs_are_doubted() -> None:
    claim = claim_on(view_of(0.95), attack=replace(ATTACK, most_virtual=24))
    assert claim.doubt() == "errors are those of 8 simulated shifts, and intervals need 9"


def test_refuses_too_few_rounds_and_states_both_numbers() -> None:
    with pytest.raises(NeedsError, match="needs 3 or more rounds with updates, and has 2"):
        claim_on(view_of(0.95).during((3, 4)))


def test_refuses_an_update_with_nan_and_names_its_sender() -> None:
    view = view_of(0.95)
    said = [
        replace(m, body=Update({n: w * torch.nan for n, w in m.body.delta.items()}, 200))
        if isinstance(m.body, Update) and m.sender == TARGET and m.round == 4
        else m
        for m in view.messages
    ]
    with pytest.raises(NeedsError, match="client/1 sent an update with NaN"):
        claim_on(View(view.observers, tuple(said)))


def test_omits_rounds_that_were_not_recorded() -> None:
    view = view_of(0.95)
    claim = claim_on(view.during([number for number in view.rounds() if number not in (2, 3)]))
    assert not {2, 3} & set(claim.evidence.rounds)
    assert claim.evidence.since == SHORT_SHIFT_ROUND
