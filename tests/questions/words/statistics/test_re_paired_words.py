"""Claims about words, compared with permuted clients."""

from dataclasses import replace
from math import factorial

import pytest

from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.questions.words.statistics.other_clients import mean_against_others
from overheard.questions.words.statistics.re_paired_words import re_pair_words
from overheard.statistics.max_t import adjusted_p_values
from tests.questions.words.findings import CLIENTS, about, finding, leaking, silent


def test_true_pairing_fits_best_where_claims_leak():
    fits = re_pair_words(leaking(), Seed(0))
    assert fits.why_none == ""
    # Own less the mean of the run, (0.9 + 5 x 0.1) / 6, for each of six clients in two runs.
    assert fits.fits[0] == pytest.approx(12 * 2 / 3)
    assert fits.fits[0, 0] == fits.fits.max()
    assert fits.smallest_p_value == pytest.approx(1 / factorial(CLIENTS))
    assert adjusted_p_values(fits.fits)[0] == pytest.approx(1 / factorial(CLIENTS))


def test_all_pairings_fit_alike_where_claims_say_nothing_of_their_client():
    fits = re_pair_words(silent(), Seed(0))
    assert fits.fits == pytest.approx(0)
    # All clients use the same words as far as claims can tell.
    assert fits.smallest_p_value == 1


def test_pseudonyms_of_one_client_are_permuted_together():
    # Client 0 has the targets 0 and 1, client 1 the next two, client 2 the last.
    found = [
        replace(one, client=f"client/{number // 2}")
        for number, one in enumerate(leaking()[:CLIENTS])
    ]
    fits = re_pair_words(found, Seed(0))
    assert len(fits.fits) == factorial(3)
    assert fits.smallest_p_value == pytest.approx(1 / factorial(3))


def test_users_are_permuted_alike_in_all_runs():
    # User u0 is client 0 in the first run and client 1 in the second.
    found = [
        finding(
            seed,
            number,
            [0.9 if other == number else 0.1 for other in range(CLIENTS)],
            user=f"u{(number + seed) % CLIENTS}",
        )
        for seed in (0, 1)
        for number in range(CLIENTS)
    ]
    fits = re_pair_words(found, Seed(0))
    assert len(fits.fits) == factorial(CLIENTS)
    assert fits.fits[0, 0] == fits.fits.max()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "no claim was checked"),
        ([replace(leaking()[0], true=None)], "no claim was checked"),
        ([about(leaking()[0], COHORT)], "a claim about all clients together"),
        (leaking()[:3], "some clients have no claim"),
        ([replace(one, fits=()) for one in leaking()], "some clients have no claim"),
    ],
)
def test_states_why_there_is_no_test(found, why):
    assert re_pair_words(found, Seed(0)).why_none.startswith(why)


def test_mean_against_others_leaves_out_the_own_client():
    assert mean_against_others(leaking()) == pytest.approx(0.1)
    assert mean_against_others([replace(leaking()[0], fits=())]) is None


def test_order_of_clients_is_by_number():
    # With 11 clients, client/10 is the last column and not the third.
    numbers = range(11)
    found = [
        finding(0, number, [1.0 if other == number else 0.0 for other in numbers])
        for number in numbers
    ]
    assert found[10].target == client(10)
    fits = re_pair_words(found, Seed(0))
    assert fits.fits[0, 0] == fits.fits.max() == pytest.approx(11 * (1 - 1 / 11))
