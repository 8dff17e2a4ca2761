from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.facts import Facts
from overheard.core.known_facts.candidate_records import CandidateRecords, candidate_records
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.lira import Lira, LiraPooled
from tests.questions.membership.attacks.test_lira import figure
from tests.simulation.small_run import CountingCache


@pytest.mark.parametrize("models", [4, 8])
def test_is_better_than_lira_with_few_models(by_heart, models: int) -> None:
    for score in ("membership_auc", "membership_accuracy"):
        pooled = figure(by_heart, LiraPooled(models=models), score)
        assert pooled > figure(by_heart, Lira(models=models), score)


def test_is_at_chance_with_few_models_if_no_record_was_trained_on(never_seen) -> None:
    auc = figure(never_seen, LiraPooled(models=4), "membership_auc")
    assert auc == pytest.approx(0.5, abs=0.15)


def test_reuses_the_shadow_models_of_lira(by_heart) -> None:
    shelf = CountingCache()
    known = replace(
        by_heart.knowledge, compute=replace(by_heart.knowledge.compute, cache=shelf)
    )
    view = by_heart.transcript.seen_by(SERVER)
    Lira(models=32).infer(view, (client(0),), known, Seed(0))
    saved = len(shelf.saved)
    LiraPooled(models=32).infer(view, (client(0),), known, Seed(1))
    assert len(shelf.saved) == saved == 2


def test_refuses_a_single_record(by_heart) -> None:
    one = candidate_records(by_heart.knowledge).take(torch.tensor([0]))
    known = replace(by_heart.knowledge, facts=Facts(CandidateRecords(one)))
    with pytest.raises(NeedsError, match="two or more records"):
        LiraPooled().infer(by_heart.transcript.seen_by(SERVER), (client(0),), known, Seed(0))
