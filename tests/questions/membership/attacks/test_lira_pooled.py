from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.lira_pooled import LiraPooled
from tests.questions.membership.attacks.test_lira import figure
from tests.simulation.world import Spy


@pytest.mark.parametrize("models", [4, 8])
def test_with_few_models_it_tells_more_than_lira(by_heart, models: int) -> None:
    for score in ("membership_auc", "membership_accuracy"):
        pooled = figure(by_heart, LiraPooled(models=models), score)
        assert pooled > figure(by_heart, Lira(models=models), score)


def test_above_0_says_learned(by_heart) -> None:
    assert figure(by_heart, LiraPooled(), "membership_accuracy") > 0.9


def test_where_nobody_saw_the_records_few_models_mislead_it_no_more(never_seen) -> None:
    told = figure(never_seen, LiraPooled(models=4), "membership_auc")
    assert told == pytest.approx(0.5, abs=0.15)


def test_its_shadow_models_are_those_of_lira(by_heart) -> None:
    shelf = Spy()
    known = replace(by_heart.knowledge, means=replace(by_heart.knowledge.means, shelf=shelf))
    view = by_heart.transcript.seen_by(SERVER)
    Lira().infer(view, (client(0),), known, Seed(0))
    saved = len(shelf.saved)
    LiraPooled().infer(view, (client(0),), known, Seed(1))
    assert len(shelf.saved) == saved == 2


def test_one_record_has_no_others_to_borrow_from(by_heart) -> None:
    one = by_heart.knowledge.candidates.take(torch.tensor([0]))
    known = replace(by_heart.knowledge, candidates=one)
    with pytest.raises(NeedsError, match="two records or more"):
        LiraPooled().infer(by_heart.transcript.seen_by(SERVER), (client(0),), known, Seed(0))


@pytest.mark.parametrize("settings", [{"models": 3}, {"most_rounds": 0}])
def test_settings_that_tell_nothing_are_refused(settings) -> None:
    with pytest.raises(ValueError, match="models are 4 or more"):
        LiraPooled(**settings)
