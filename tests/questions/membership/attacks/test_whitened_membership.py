from dataclasses import replace

import pytest
import torch

from overheard.core.custom_code.attack_claims import make_claims
from overheard.core.known_facts.candidate_records import CandidateRecords, candidate_records
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.membership.attacks.whitened_membership import (
    WhitenedMembership,
    gradient_weight,
)
from overheard.simulation.gradient_evidence import compute_gradient_evidence
from overheard.testing.trial import PlantedRun
from tests.questions.membership.attacks.test_gradient_membership import mean_auc
from tests.questions.membership.attacks.test_lira import figure
from tests.runs.changed_updates import change_updates

ATTACK = WhitenedMembership()
CLIENTS = [client(number) for number in range(4)]


def known(run: PlantedRun, **changes: object) -> PlantedRun:
    """Return the run with an attacker that knows something else."""
    return replace(run, knowledge=replace(run.knowledge, **changes))


def test_ranks_members_first_and_claims_them_above_0(by_heart) -> None:
    assert mean_auc(by_heart, ATTACK) > 0.97
    assert figure(by_heart, ATTACK, "membership_accuracy") > 0.85


def test_needs_no_auxiliary_examples(by_heart) -> None:
    assert mean_auc(known(by_heart, auxiliary=None), ATTACK) > 0.9


def test_is_at_chance_if_no_record_was_trained_on(never_seen) -> None:
    # 80 members and 100 non-members: one standard error is about 0.04.
    assert mean_auc(never_seen, ATTACK) == pytest.approx(0.5, abs=0.13)


def test_finds_the_members_of_all_clients_together(by_heart) -> None:
    assert figure(by_heart, ATTACK, "membership_auc", COHORT) > 0.8


def test_a_client_is_claimed_alike_whichever_others_are_asked_about(by_heart) -> None:
    view = by_heart.transcript.seen_by(SERVER)
    both = ATTACK.infer(view, [client(0), client(2)], by_heart.knowledge, Seed(0))
    alone = ATTACK.infer(view, [client(2)], by_heart.knowledge, Seed(0))
    assert alone[client(2)].scores.equal(both[client(2)].scores)


def test_the_order_of_candidates_does_not_matter(by_heart) -> None:
    # So labels of records that are permuted, as in a null federation, are exchangeable.
    records = candidate_records(by_heart.knowledge)
    order = torch.randperm(len(records), generator=Seed(1).generator())
    facts = by_heart.knowledge.facts.having(CandidateRecords(records.take(order)))
    view = by_heart.transcript.seen_by(SERVER)
    plain = ATTACK.infer(view, [client(0)], by_heart.knowledge, Seed(0))[client(0)].scores
    knowledge = replace(by_heart.knowledge, facts=facts)
    moved = ATTACK.infer(view, [client(0)], knowledge, Seed(0))[client(0)].scores
    torch.testing.assert_close(moved, plain[order], rtol=1e-2, atol=1e-2)


def view_with_updates_times(run, factor: float) -> View:
    changed = change_updates(
        run.transcript.messages,
        lambda update: {"delta": {n: factor * w for n, w in update.delta.items()}},
        [client(0)],
    )
    return Transcript(changed).seen_by(SERVER)


def test_an_update_of_zeros_gives_all_records_one_finite_score(by_heart) -> None:
    view = view_with_updates_times(by_heart, 0.0)
    scores = ATTACK.infer(view, [client(0)], by_heart.knowledge, Seed(0))[client(0)].scores
    assert scores.isfinite().all()
    assert len(scores.unique()) == 1


def test_claims_record_by_record_find_no_more_and_are_finite_without_an_update(
    by_heart,
) -> None:
    single = WhitenedMembership(joint=False)
    assert mean_auc(by_heart, ATTACK) >= mean_auc(by_heart, single) - 0.005
    view = view_with_updates_times(by_heart, 0.0)
    scores = single.infer(view, [client(0)], by_heart.knowledge, Seed(0))[client(0)].scores
    assert scores.isfinite().all()
    assert len(scores.unique()) == 1


@pytest.mark.parametrize("factor", [1e20, float("nan")])
def test_an_update_of_no_trained_model_is_refused_and_others_are_read(by_heart, factor) -> None:
    view, targets = view_with_updates_times(by_heart, factor), [client(0), client(1)]
    made = make_claims(ATTACK, view, targets, by_heart.knowledge, Seed(0))
    assert made.claims.keys() == {client(1)}
    assert "numbers beyond 1e+12" in made.problems[client(0)]


def test_the_steps_of_an_adaptive_optimizer_are_undone(by_heart) -> None:
    knowledge = by_heart.knowledge
    adam = Recipe(rate=0.003, epochs=3, batch=5, optimizer="adam")
    start = by_heart.transcript.seen_by(SERVER).broadcasts()[0]
    tasks = [
        ClientTask(who, torch.arange(20 * n, 20 * n + 20)) for n, who in enumerate(CLIENTS)
    ]
    trained = train_cohort(
        knowledge.build_model,
        start,
        candidate_records(knowledge),
        tasks,
        adam,
        seed=Seed(0),
        round=0,
        workers=1,
    )
    sent = [Message(0, SERVER, frozenset(CLIENTS), Broadcast(start))]
    sent += [
        Message(0, who, frozenset({SERVER}), Update(dict(one.delta)))
        for who, one in zip(CLIENTS, trained, strict=True)
    ]
    run = replace(by_heart, transcript=Transcript(tuple(sent)))
    undone = mean_auc(known(run, recipe=adam), ATTACK)
    assert undone > 0.98
    assert undone > mean_auc(run, ATTACK)


def test_strength_is_an_upper_envelope_of_members_at_a_small_rate(by_heart) -> None:
    view, recipe = by_heart.transcript.seen_by(SERVER), by_heart.knowledge.recipe
    claims = ATTACK.infer(view, CLIENTS, by_heart.knowledge, Seed(0))
    evidence = compute_gradient_evidence(view, by_heart.knowledge, {0: CLIENTS, 1: CLIENTS})
    for place, target in enumerate(CLIENTS):
        strength = sum(one.first_strength[place] for one in evidence.values()).sqrt()
        fit = sum(one.fit[place] for one in evidence.values()) / strength
        own = slice(20 * place, 20 * place + 20)
        largest = claims[target].strength.double()
        assert largest.allclose(
            recipe.rate * recipe.epochs / recipe.batch * strength, rtol=1e-3
        )
        assert float(fit[own].mean()) < float(largest[own].mean())
    adam = replace(by_heart.knowledge, recipe=replace(recipe, optimizer="adam"))
    assert ATTACK.infer(view, CLIENTS[:1], adam, Seed(0))[CLIENTS[0]].strength is None


@pytest.mark.parametrize(
    ("batch", "momentum", "examples", "expected"),
    [
        (5, 0.0, 20, 0.1 * 2 / 5),
        (1000, 0.0, 20, 0.1 * 2 / 20),  # a batch has no more than all examples
        (20, 0.5, 10, 0.1 * 2 / 10 * 1.25),  # two steps: the first adds 1.5, the second 1
        (20, 0.5, None, 0.1 * 2 / 20 * 2),
        (20, 0.5, 0, 0.1 * 2 / 20 * 2),  # as a client may say
        (20, 0.5, -3, 0.1 * 2 / 20 * 2),
    ],
)
def test_a_record_has_the_weight_that_steps_give_it(
    batch: int, momentum: float, examples: int | None, expected: float
) -> None:
    recipe = Recipe(rate=0.1, epochs=2, batch=batch, momentum=momentum)
    assert gradient_weight(recipe, examples) == pytest.approx(expected)
