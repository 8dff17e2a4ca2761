"""Bounds by guesses at canaries: worked by hand, and rarely above what is true."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.parties import SERVER, client
from overheard.epsilon.bound import GuessEvidence, Tally
from overheard.epsilon.guesses import bound_by_guesses, proven_by_guesses
from overheard.findings.finding import Cell, Finding


def findings(
    scores: np.ndarray, held: np.ndarray, *, seed: int = 0, attack: str = "lira"
) -> list[Finding]:
    """Of each client, a row of scores; `held` says by canary whose it is, -1 = nobody's."""
    cell = Cell("arm", seed, (SERVER,), attack, "Lira()", "membership", (0,))
    return [
        Finding(
            cell,
            client(who),
            tuple(row.tolist()),
            tuple(np.where(held == who, 1.0, np.where(held < 0, -1.0, 0.0)).tolist()),
            (),
        )
        for who, row in enumerate(scores)
    ]


def test_all_right_proves_what_makes_all_right_once_in_twenty_times() -> None:
    chance = 0.05 ** (1 / 20)
    odds_of_right = chance / (1 - chance)
    for guessed in (Tally(20, 20, 0, 20), Tally(20, 0, 20, 20), Tally(20, 7, 13, 20)):
        assert proven_by_guesses(guessed, 1.0, 0.0) == pytest.approx(log(odds_of_right))
    # Three times as many go in as out: to say in is then easy, and to say out hard.
    said_in = proven_by_guesses(Tally(20, 20, 0, 20), 3.0, 0.0)
    said_out = proven_by_guesses(Tally(20, 0, 20, 20), 3.0, 0.0)
    assert said_in == pytest.approx(log(odds_of_right / 3))
    assert said_out == pytest.approx(log(odds_of_right * 3))


def test_a_delta_makes_one_guess_right_as_often_as_it_may() -> None:
    # 2 * 1/2 * 1/2 * 20 * 0.001 = 0.01 of the 0.05 are spent on it.
    chance = 0.04 ** (1 / 20)
    found = proven_by_guesses(Tally(20, 20, 0, 20), 1.0, 0.001)
    assert found == pytest.approx(log(chance / (1 - chance)))
    assert proven_by_guesses(Tally(20, 20, 0, 20), 1.0, 0.005) == 0.0


def test_guesses_no_better_than_the_die_prove_nothing() -> None:
    assert proven_by_guesses(Tally(0, 0, 0, 20), 1.0, 0.0) == 0.0
    assert proven_by_guesses(Tally(55, 100, 0, 100), 1.0, 0.0) == 0.0
    assert proven_by_guesses(Tally(80, 100, 0, 100), 3.0, 0.0) == 0.0
    assert proven_by_guesses(Tally(80, 100, 0, 100), 1.0, 0.0) > 0.9


@given(st.integers(0, 12), st.integers(0, 12), st.floats(0.1, 10), st.floats(0, 0.01))
@settings(max_examples=20)
def test_one_more_right_never_proves_less(
    inside: int, outside: int, odds: float, delta: float
) -> None:
    proven = [
        proven_by_guesses(Tally(right, inside, outside, 60), odds, delta)
        for right in range(inside + outside + 1)
    ]
    assert proven == sorted(proven)


def test_the_bound_is_that_of_known_guesses_on_the_half_that_chose_nothing() -> None:
    # One client: canaries at even places part the kinds by 1 and 0; of those at odd places 18
    # of 20 that score 1 are in, and 17 of 20 that score 0 are out.
    scores = np.repeat([1.0, 0.0], 40)
    held = np.repeat([0, -1], 40)
    held[[1, 3]], held[[41, 43, 45]] = -1, 0
    told = findings(scores[None], held)
    bound = bound_by_guesses(told, odds=1.0, delta=0.0)
    assert bound is not None
    assert bound.evidence == GuessEvidence(0.0, 1.0, Tally(35, 20, 20, 40))
    assert (bound.members, bound.outsiders) == (21, 19)
    assert bound.epsilon == proven_by_guesses(Tally(35, 20, 20, 40), 1.0, 0.0)


def test_canaries_of_others_are_left_out_and_those_of_nobody_are_asked_of_one() -> None:
    held = np.array([0, 1, 2, -1] * 30)
    scores = np.stack([np.where(held == who, 1.0, 0.0) for who in range(2)])
    bound = bound_by_guesses(findings(scores, held), odds=1.0, delta=0.0)
    assert bound is not None
    # Of 120 the third client's 30 are of no finding; half of the others chose.
    assert bound.members + bound.outsiders == 45
    assert isinstance(bound.evidence, GuessEvidence)
    tally = bound.evidence.tally
    assert tally.right == tally.inside + tally.outside == 45
    # Two clients: a canary of nobody is asked of either, so two go in for one that does not.
    assert bound.epsilon == proven_by_guesses(
        Tally(45, bound.members, bound.outsiders, 45), 2.0, 0.0
    )


def test_the_better_attack_is_taken_and_runs_are_put_together() -> None:
    held, random = np.array([0, 0, -1, -1] * 20), np.random.default_rng(0)
    told = (held == 0)[None].astype(float)
    asked = [
        *findings(random.random((1, 80)), held, attack="coin"),
        *(one for seed in (0, 1) for one in findings(told, held, seed=seed)),
    ]
    bound = bound_by_guesses(asked, odds=1.0, delta=1e-5)
    assert bound is not None
    assert (bound.attack, bound.members, bound.outsiders) == ("lira", 40, 40)


def test_a_run_in_which_fewer_clients_were_heard_does_not_count() -> None:
    held = np.array([0, 1, -1, -1] * 20)
    both = np.stack([(held == who).astype(float) for who in range(2)])
    fewer = findings(both, held, seed=1)[:1]
    alone = bound_by_guesses(findings(both, held), odds=0.5, delta=0.0)
    assert bound_by_guesses([*findings(both, held), *fewer], odds=0.5, delta=0.0) == alone


def test_a_single_canary_is_too_few_to_choose_and_to_reckon_on() -> None:
    assert bound_by_guesses(findings(np.ones((1, 1)), np.array([0])), 1.0, 0.0) is None
    assert bound_by_guesses([], 1.0, 0.0) is None


@pytest.mark.slow
@given(
    epsilon=st.floats(0.0, 3.0), odds=st.sampled_from([0.25, 1.0, 2.0]), start=st.integers(0)
)
@settings(max_examples=3, deadline=None)
def test_of_answers_at_random_of_known_epsilon_the_bound_exceeds_it_in_5_percent_at_most(
    epsilon: float, odds: float, start: int
) -> None:
    # Two clients: of each canary is said where it is by randomized response. Of 100 bounds 13
    # or more would be above epsilon with a chance of .001 if 5 % were.
    random, teller = np.random.default_rng(start), exp(epsilon) / (1 + exp(epsilon))
    dice = np.array([odds, odds, 1.0]) / (2 * odds + 1)
    above = 0
    for _ in range(100):
        held = random.choice([0, 1, -1], size=120, p=dice)
        tells = random.random((2, 120)) < teller
        scores = np.stack([held == who for who in range(2)]) == tells
        bound = bound_by_guesses(findings(scores.astype(float), held), odds, delta=0.0)
        assert bound is not None
        above += bound.epsilon > epsilon
    assert above < 13
