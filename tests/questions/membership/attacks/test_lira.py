from dataclasses import replace

import pytest
import torch

from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from overheard.questions.membership.scorer import MembershipScorer
from overheard.testing.worlds.planted_membership import CLIENTS, EACH
from tests.simulation.world import Spy

SCORER, FIRST = MembershipScorer(), client(0)


def figure(run, attack, name: str, who=FIRST) -> float:
    claim = attack.infer(run.transcript.seen_by(SERVER), (who,), run.knowledge, Seed(0))[who]
    true = SCORER.truth(run.truth, who, (0, 1), claim)
    scores: tuple[Score, ...] = SCORER.score(claim, true, SCORER.guesses(true, Knowledge(2)))
    return next(score.value for score in scores if score.name == name)


@pytest.mark.parametrize("online", [True, False])
def test_few_of_nobodys_records_pass_for_learned_ones(by_heart, online: bool) -> None:
    assert figure(by_heart, Lira(online=online), "tpr_at_1_percent") > 0.3


def test_above_0_says_learned(by_heart) -> None:
    assert figure(by_heart, Lira(), "membership_accuracy") > 0.85


def test_it_is_no_worse_than_the_loss_alone(by_heart) -> None:
    alone = figure(by_heart, LossMembership(), "membership_auc")
    assert figure(by_heart, Lira(), "membership_auc") >= alone - 0.02


def test_all_clients_together_can_be_asked_about(by_heart) -> None:
    assert figure(by_heart, Lira(), "membership_auc", COHORT) > 0.7


def test_what_another_client_learned_is_not_taken_for_this_ones(by_heart) -> None:
    who = client(1)
    told = Lira().infer(
        by_heart.transcript.seen_by(SERVER), (who,), by_heart.knowledge, Seed(0)
    )
    scores = told[who].scores
    own = scores[EACH : 2 * EACH].mean()
    others = torch.cat([scores[:EACH], scores[2 * EACH : CLIENTS * EACH]]).mean()
    assert float(own) > float(others) + 1


def test_shadow_models_that_nearly_ran_away_do_not_settle_it(by_heart) -> None:
    view, known = by_heart.transcript.seen_by(SERVER), by_heart.knowledge
    shelf = Spy()
    known = replace(known, means=replace(known.means, shelf=shelf))
    Lira(models=32).infer(view, (FIRST,), known, Seed(0))
    # The first four of 32 are as sure of whatever they say as no number can tell apart.
    for key, kept in shelf.kept.items():
        answers = kept["answers"].clone()
        answers[:4] *= 1e6
        shelf.kept[key] = {**kept, "answers": answers}
    run = replace(by_heart, knowledge=known)
    assert figure(run, Lira(models=32), "membership_auc") > 0.65


def test_few_models_which_few_records_are_inside_of_still_tell(by_heart) -> None:
    # Of 300 examples each model learned from 20: of most records at most one of eight did.
    assert figure(by_heart, Lira(models=8), "membership_auc") > 0.9


@pytest.mark.parametrize("settings", [{"models": 3}, {"models": 0}, {"most_rounds": 0}])
def test_settings_that_tell_nothing_are_refused(settings) -> None:
    with pytest.raises(ValueError, match="models are 4 or more"):
        Lira(**settings)
    with pytest.raises(ValueError, match="1 or more"):
        ShadowMembership(stumps=0)
    with pytest.raises(ValueError, match="most_rounds is 1 or more"):
        LossMembership(most_rounds=0)
