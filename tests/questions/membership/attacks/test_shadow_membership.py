import sys
from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from overheard.questions.membership.claim import Membership
from overheard.testing.worlds.planted_membership import CLIENTS, EACH
from tests.simulation.world import Spy

EVERYONE = tuple(client(number) for number in range(CLIENTS))


def told(run, attack, shelf: Spy | None = None, rounds=(0, 1)) -> dict[str, Membership]:
    means = replace(run.knowledge.means, shelf=shelf or Spy())
    view = run.transcript.seen_by(SERVER).during(rounds)
    return dict(attack.infer(view, EVERYONE, replace(run.knowledge, means=means), Seed(0)))


def lead(claims: dict[str, Membership]) -> float:
    """How much higher own records score than those of nobody, the mean over clients."""
    leads = []
    for number, who in enumerate(EVERYONE):
        scores = claims[who].scores
        own = scores[number * EACH : (number + 1) * EACH]
        leads.append(float(own.mean() - scores[CLIENTS * EACH :].mean()))
    return sum(leads) / len(leads)


def test_own_records_score_above_0_and_those_of_nobody_below(by_heart) -> None:
    for number, claim in enumerate(told(by_heart, ShadowMembership()).values()):
        assert float(claim.scores[number * EACH : (number + 1) * EACH].mean()) > 0
        assert float(claim.scores[CLIENTS * EACH :].mean()) < 0


def test_both_boosters_say_the_same(by_heart) -> None:
    pytest.importorskip("catboost", reason="the extra membership is not installed")
    default = told(by_heart, ShadowMembership(stumps=100))
    other = told(by_heart, ShadowMembership(stumps=100, booster="catboost"))
    assert lead(default) > 1
    assert lead(other) > 1
    for who in EVERYONE:
        both = torch.stack([default[who].scores, other[who].scores])
        assert float(both.corrcoef()[0, 1]) > 0.9


def test_catboost_is_boosted_as_often_as_published() -> None:
    assert ShadowMembership(booster="catboost").boosted_stumps == 10_000
    assert ShadowMembership().boosted_stumps == 300
    assert ShadowMembership(booster="catboost", stumps=7).boosted_stumps == 7


def test_without_the_extra_nothing_is_trained_before_it_is_said(by_heart, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    shelf = Spy()
    with pytest.raises(NeedsError, match=r"overheard\[membership\]"):
        told(by_heart, ShadowMembership(booster="catboost"), shelf)
    assert not shelf.saved


def test_shadow_models_are_those_that_lira_has_had_trained(by_heart) -> None:
    shelf = Spy()
    told(by_heart, Lira(), shelf)
    trained = len(shelf.saved)
    assert trained == 2
    told(by_heart, ShadowMembership(stumps=10), shelf)
    # What is new are the log-odds of each client in each round.
    assert len(shelf.saved) == trained + 2 * CLIENTS


def test_a_round_alone_is_told_what_it_is_among_others_without_boosting(by_heart) -> None:
    shelf = Spy()
    both = told(by_heart, ShadowMembership(stumps=10), shelf)
    saved = len(shelf.saved)
    rounds = [told(by_heart, ShadowMembership(stumps=10), shelf, (n,)) for n in (0, 1)]
    assert len(shelf.saved) == saved
    for who in EVERYONE:
        mean = torch.stack([one[who].scores for one in rounds]).mean(0)
        torch.testing.assert_close(mean, both[who].scores)


def test_other_stumps_are_boosted_anew(by_heart) -> None:
    shelf = Spy()
    told(by_heart, ShadowMembership(stumps=10), shelf)
    saved = len(shelf.saved)
    told(by_heart, ShadowMembership(stumps=11), shelf)
    assert len(shelf.saved) == saved + 2 * CLIENTS
