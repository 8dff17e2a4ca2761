"""Slow attacks keep their last claims, and are told, while quick ones follow each round."""

from pathlib import Path

import pytest

from overheard.auditing.following import round_attacker as module
from overheard.auditing.following.growing_recording import GrowingRecording
from overheard.auditing.following.round_attacker import AttackKey, Pace, RoundAttacker
from overheard.core.parties import SERVER
from tests.auditing.conftest import inputs_for
from tests.auditing.following.growing_copy import GrowingCopy
from tests.auditing.plans import TINY


def test_a_slow_attack_keeps_its_claims_and_is_told(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = GrowingCopy(recording, tmp_path / "growing")
    copy.commit_round(0)
    growing = GrowingRecording(copy.folder, 10)
    growing.read_new_rounds()
    attacker = RoundAttacker(inputs_for(TINY), copy.folder, growing)
    # At 0 s the first round; the attacks take 1 s and 100 s. At 10 s the second round, after
    # which only the first attack is run, for 1 s.
    times = iter((0.0, 0.0, 1.0, 1.0, 101.0, 10.0, 10.0, 11.0))
    monkeypatch.setattr(module, "monotonic", lambda: next(times))
    first = attacker.attack_quickly()
    attacker.attack_slowly()
    assert first.notes == ()
    copy.commit_round(1)
    growing.read_new_rounds()
    second = attacker.attack_quickly()
    attacker.attack_slowly()
    assert next(times, None) is None
    # 100 s in half of the time, with 10 s a round: every 20 rounds.
    check, note = second.notes
    assert check == "The replies lead to the next broadcasts by the mean of the replies."
    assert note == "mean_softmax takes longer than a round: repeated every 20 rounds"
    claims = {(one.cell.part, one.cell.rounds) for one in second.audit.findings}
    assert claims == {("bias_inversion", (0, 1)), ("mean_softmax", (0,))}


QUICK: AttackKey = ((SERVER,), "quick")
QUICKER: AttackKey = ((SERVER,), "quicker")
SLOW: AttackKey = ((SERVER,), "slow")
SLOWER: AttackKey = ((SERVER,), "slower")
ALL = (SLOW, QUICK, SLOWER, QUICKER)


def make_pace(seconds: dict[AttackKey, float]) -> Pace:
    """Return the pace of a run with a round every 10 seconds, at its third round."""
    pace = Pace()
    for rounds in (1, 2, 3):
        pace.note_round(rounds, 10.0 * rounds)
    for attack, took in seconds.items():
        pace.note_attack(attack, 3, took)
    return pace


def test_every_attack_is_run_at_the_first_round() -> None:
    pace = Pace()
    pace.note_round(1, 5.0)
    assert pace.seconds_per_round is None
    assert set(pace.quick(ALL)) == set(ALL)
    assert pace.slow(ALL, 1) is None


def test_measures_the_time_of_a_round_over_rounds_that_arrived_together() -> None:
    pace = Pace()
    pace.note_round(4, 100.0)
    pace.note_round(9, 150.0)
    assert pace.seconds_per_round == 10.0


def test_attacks_that_together_take_a_round_are_repeated_at_each() -> None:
    pace = make_pace({QUICK: 6.0, QUICKER: 4.0})
    assert pace.quick(ALL) == (SLOW, SLOWER, QUICKER, QUICK)  # unknown ones first
    assert pace.slow((QUICK, QUICKER), 4) is None


def test_a_slow_attack_uses_half_of_the_time() -> None:
    # 25 s of 10 s a round: every 5 rounds, so it runs for 25 s of 50 s.
    pace = make_pace({QUICK: 1.0, SLOW: 25.0})
    assert pace.rounds_between(SLOW) == 5
    assert pace.quick((QUICK, SLOW)) == (QUICK,)
    assert [pace.slow((QUICK, SLOW), rounds) for rounds in (3, 7, 8)] == [None, None, SLOW]


def test_one_slow_attack_at_a_time_the_one_that_waited_longest() -> None:
    pace = make_pace({SLOW: 11.0, SLOWER: 12.0})
    pace.note_attack(SLOW, 5, 11.0)
    assert pace.slow((SLOW, SLOWER), 9) == SLOWER


def test_many_quick_attacks_do_not_take_longer_than_a_round_together() -> None:
    pace = make_pace({QUICKER: 4.0, QUICK: 5.0, SLOW: 6.0})
    assert pace.quick((QUICKER, QUICK, SLOW)) == (QUICKER, QUICK)
    assert pace.rounds_between(SLOW) == 2
