import sys
from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from overheard.questions.membership.checks import CLIENTS, EXAMPLES_PER_CLIENT
from overheard.questions.membership.claim import Membership
from tests.simulation.small_run import CountingCache

EVERYONE = tuple(client(number) for number in range(CLIENTS))


def claims_of(
    run, attack, shelf: CountingCache | None = None, rounds=(0, 1)
) -> dict[str, Membership]:
    means = replace(run.knowledge.compute, cache=shelf or CountingCache())
    view = run.transcript.seen_by(SERVER).during(rounds)
    return dict(attack.infer(view, EVERYONE, replace(run.knowledge, compute=means), Seed(0)))


def of_members(number: int, claim: Membership) -> torch.Tensor:
    """Return the scores of the members of a client."""
    return claim.scores[number * EXAMPLES_PER_CLIENT : (number + 1) * EXAMPLES_PER_CLIENT]


def of_others(claim: Membership) -> torch.Tensor:
    """Return the scores of records that nobody trained on."""
    return claim.scores[CLIENTS * EXAMPLES_PER_CLIENT :]


def mean_advantage(claims: dict[str, Membership]) -> float:
    """Return by how much members score higher than non-members, averaged over clients."""
    leads = [
        float(of_members(number, claims[target]).mean() - of_others(claims[target]).mean())
        for number, target in enumerate(EVERYONE)
    ]
    return sum(leads) / len(leads)


def test_members_score_above_0_and_non_members_below(by_heart) -> None:
    for number, claim in enumerate(claims_of(by_heart, ShadowMembership()).values()):
        assert float(of_members(number, claim).mean()) > 0
        assert float(of_others(claim).mean()) < 0


def test_both_boosters_agree(by_heart) -> None:
    pytest.importorskip("catboost", reason="the extra membership is not installed")
    default = claims_of(by_heart, ShadowMembership(stumps=100))
    other = claims_of(by_heart, ShadowMembership(stumps=100, booster="catboost"))
    assert mean_advantage(default) > 1
    assert mean_advantage(other) > 1
    for target in EVERYONE:
        both = torch.stack([default[target].scores, other[target].scores])
        assert float(both.corrcoef()[0, 1]) > 0.9


def test_refuses_a_missing_extra_before_any_training(by_heart, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    shelf = CountingCache()
    with pytest.raises(NeedsError, match=r"'\.\[membership\]'"):
        claims_of(by_heart, ShadowMembership(booster="catboost"), shelf)
    assert not shelf.saved


def test_reuses_the_shadow_models_of_lira(by_heart) -> None:
    shelf = CountingCache()
    claims_of(by_heart, Lira(models=32), shelf)
    trained = len(shelf.saved)
    assert trained == 2
    claims_of(by_heart, ShadowMembership(stumps=10), shelf)
    # Only the log-odds of each client in each round are new.
    assert len(shelf.saved) == trained + 2 * CLIENTS


def test_reuses_cached_predictions_for_a_single_round(by_heart) -> None:
    shelf = CountingCache()
    both = claims_of(by_heart, ShadowMembership(stumps=10), shelf)
    saved = len(shelf.saved)
    rounds = [claims_of(by_heart, ShadowMembership(stumps=10), shelf, (n,)) for n in (0, 1)]
    assert len(shelf.saved) == saved
    for target in EVERYONE:
        mean = torch.stack([one[target].scores for one in rounds]).mean(0)
        torch.testing.assert_close(mean, both[target].scores)


def test_another_number_of_stumps_is_boosted_again(by_heart) -> None:
    shelf = CountingCache()
    claims_of(by_heart, ShadowMembership(stumps=10), shelf)
    saved = len(shelf.saved)
    claims_of(by_heart, ShadowMembership(stumps=11), shelf)
    assert len(shelf.saved) == saved + 2 * CLIENTS
