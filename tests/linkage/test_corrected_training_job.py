"""Known users who train with control variates send what clients with their examples send."""

from dataclasses import replace

import pytest
import torch

from overheard.algorithms.scaffold import Scaffold
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.parties import SERVER
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.linkage.known_updates import load_known_updates
from overheard.linkage.prior_client import concatenate_users, split_priors
from overheard.linkage.simulated_updates import ROUND, CorrectedTrainingJob
from overheard.linkage.user_training_job import SKETCH_PREFIX, UserTrainingJob
from overheard.simulation.job_tensors import pack_history
from overheard.testing.planted_users import (
    ALL_USERS,
    EXAMPLES,
    KNOWN,
    build,
    make_user,
    simulate_users,
    users_of,
)
from overheard.testing.trial import PlantedRun
from tests.runs.scaffold_users import ROUNDS, simulate_scaffold

WHOLE = Recipe(rate=0.1, epochs=2, batch=200)
"""Batches of all examples, so that the order of examples does not matter."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> PlantedRun:
    """A run of all users in all rounds."""
    return simulate_scaffold(tmp_path_factory.mktemp("scaffold"), recipe=WHOLE)


def with_private_examples(run: PlantedRun) -> Knowledge:
    """Return the knowledge of an attacker whose prior examples are the private ones."""
    draws = Seed(0).child("private", 0)
    private = {
        f"user {n}": make_user(n).examples(draws.child(f"user {n}")) for n in range(KNOWN)
    }
    return replace(run.knowledge, facts=Facts(KnownUsers(private)))


def sent_updates(run: PlantedRun) -> dict[tuple[str, int], Weights]:
    """Return the updates that each user sent, by round."""
    return {
        (users_of(run)[message.sender], message.round): message.body.delta
        for message in run.transcript.messages
        if isinstance(message.body, Update)
    }


def test_with_the_same_examples_the_updates_of_all_rounds_are_the_same(
    run: PlantedRun,
) -> None:
    view, sent = run.transcript.seen_by(SERVER), sent_updates(run)
    known = load_known_updates(view, with_private_examples(run), "simulated", "all")
    assert len(known.vectors) == KNOWN * ROUNDS
    for vector, user, number in zip(known.vectors, known.users, known.rounds, strict=True):
        delta = sent[known.names[int(user)], int(number)]
        expected = torch.cat([part.flatten() for part in delta.values()])
        assert torch.allclose(vector, expected, atol=1e-5)


def test_without_the_first_round_known_users_train_without_a_correction(
    run: PlantedRun,
) -> None:
    late = run.transcript.seen_by(SERVER).during((2, 3))
    known = load_known_updates(late, with_private_examples(run), "simulated", "all")
    plain = View(
        late.observers,
        tuple(
            replace(m, body=replace(m.body, control=None)) if isinstance(m.body, Update) else m
            for m in late.messages
        ),
    )
    same = load_known_updates(plain, with_private_examples(run), "simulated", "all")
    assert known.vectors.equal(same.vectors)


def test_who_never_takes_part_is_corrected_by_the_servers_variate_alone() -> None:
    """With K steps of rate r on one gradient, c changes the update by -K r c."""
    users = simulate_users([make_user(n) for n in ALL_USERS], Seed(0), rounds=1).knowledge
    priors = KnownUsers.of(users).all_prior_examples()
    clients = split_priors({"user 0": priors["user 0"]}, 1)
    pool = concatenate_users(priors)
    weights = {name: part.detach() for name, part in build().state_dict().items()}
    control = {name: torch.full_like(part, 0.5) for name, part in weights.items()}
    zero = {name: torch.zeros_like(part) for name, part in weights.items()}
    # The rate is so low that the gradient hardly changes from step to step.
    recipe = Recipe(rate=1e-4, epochs=2, batch=EXAMPLES)
    one_round = UserTrainingJob(0, clients, build, recipe, (), Seed(1), "cpu")

    def last_update(change: Weights, participation: float) -> torch.Tensor:
        job = CorrectedTrainingJob(one_round, (0, 1), Scaffold(), participation)
        history = {0: Broadcast(weights, control=zero), 1: Broadcast(weights, control=change)}
        examples = {"users/inputs": pool.inputs, "users/labels": pool.labels}
        result = job.run({**examples, **pack_history(history)})
        assert result[ROUND].tolist() == [0, 1]
        return result[f"{SKETCH_PREFIX}2.bias"][1]

    steps = recipe.steps(clients[0].end - clients[0].begin)
    moved = last_update(control, 0.0) - last_update(zero, 0.0)
    assert torch.allclose(moved, torch.full_like(moved, -steps * 1e-4 * 0.5), rtol=1e-2)
    # Who took part in round 0 subtracts its gradient of then, so hardly anything is left.
    left = last_update(zero, 1.0).abs().max() / last_update(zero, 0.0).abs().max()
    assert left < 0.01
