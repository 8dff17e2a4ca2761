from dataclasses import replace

import pytest
import torch

from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.checks import CLIENTS, EXAMPLES_PER_CLIENT
from overheard.questions.membership.scorer import MembershipScorer
from tests.simulation.small_run import CountingCache

SCORER, FIRST = MembershipScorer(), client(0)


def figure(run, attack, name: str, target=FIRST) -> float:
    claim = attack.infer(run.transcript.seen_by(SERVER), (target,), run.knowledge, Seed(0))[
        target
    ]
    true = SCORER.true_claim(run.truth, target, (0, 1), claim)
    scores: tuple[Score, ...] = SCORER.score(claim, true, SCORER.guesses(true, Knowledge(2)))
    return next(score.value for score in scores if score.name == name)


@pytest.mark.parametrize("online", [True, False])
def test_finds_most_members_at_few_false_positives(by_heart, online: bool) -> None:
    assert figure(by_heart, Lira(models=32, online=online), "tpr_at_1_percent") > 0.3


def test_finds_the_members_of_all_clients_together(by_heart) -> None:
    assert figure(by_heart, Lira(models=32), "membership_auc", COHORT) > 0.7


def test_does_not_claim_the_records_of_another_client(by_heart) -> None:
    target = client(1)
    claims = Lira(models=32).infer(
        by_heart.transcript.seen_by(SERVER), (target,), by_heart.knowledge, Seed(0)
    )
    scores = claims[target].scores
    members = scores[EXAMPLES_PER_CLIENT : 2 * EXAMPLES_PER_CLIENT].mean()
    others = torch.cat(
        [
            scores[:EXAMPLES_PER_CLIENT],
            scores[2 * EXAMPLES_PER_CLIENT : CLIENTS * EXAMPLES_PER_CLIENT],
        ]
    ).mean()
    assert float(members) > float(others) + 1


def test_nearly_diverging_shadow_models_do_not_dominate(by_heart) -> None:
    view, known = by_heart.transcript.seen_by(SERVER), by_heart.knowledge
    shelf = CountingCache()
    known = replace(known, compute=replace(known.compute, cache=shelf))
    Lira(models=32).infer(view, (FIRST,), known, Seed(0))
    # The first four of 32 models have extreme confidence in every prediction.
    for key, kept in shelf.entries.items():
        answers = kept["answers"].clone()
        answers[:4] *= 1e6
        shelf.entries[key] = {**kept, "answers": answers}
    run = replace(by_heart, knowledge=known)
    assert figure(run, Lira(models=32), "membership_auc") > 0.65


def test_works_with_few_models_and_few_members_in_each(by_heart) -> None:
    # Each model trains on 20 of 300 examples, so most records are in at most one of eight.
    assert figure(by_heart, Lira(models=8), "membership_auc") > 0.9
