"""Quick attacks are repeated at each round; slow ones as often as half of the time allows."""

from overheard.auditing.following.pace import AttackKey, Pace
from overheard.core.parties import SERVER

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
