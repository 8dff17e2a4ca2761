"""A run of SCAFFOLD with planted users, whose senders have a new pseudonym in every round."""

from dataclasses import replace
from pathlib import Path

import torch

from overheard.algorithms.scaffold import Scaffold
from overheard.auditing.attack_runner import draw_pseudonyms
from overheard.core.examples import concatenate_examples
from overheard.core.facts import Facts
from overheard.core.parties import client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.federation.federation import Federation
from overheard.federation.run import run
from overheard.testing.planted_users import (
    ALL_USERS,
    CLASSES,
    FEATURES,
    KNOWN,
    build,
    make_user,
    simulate_users,
)
from overheard.testing.trial import PlantedRun

RECIPE = Recipe(rate=0.1, epochs=2, batch=8)
ROUNDS = 4


def simulate_scaffold(
    folder: Path, seed: int = 0, participation: float = 1.0, recipe: Recipe = RECIPE
) -> PlantedRun:
    """Train the known users by SCAFFOLD; all else is as in `simulate_users`."""
    planted = simulate_users([make_user(n) for n in ALL_USERS], Seed(seed), rounds=1)
    draws = Seed(seed).child("private", 0)
    examples = [make_user(n).examples(draws.child(f"user {n}")) for n in range(KNOWN)]
    pool = concatenate_examples(tuple(examples))
    rows = torch.arange(len(pool)).split([len(one) for one in examples])
    federation = Federation(
        build_model=build,
        model="planted",
        task=Task((FEATURES,), tuple(map(str, range(CLASSES)))),
        recipe=recipe,
        pool=pool,
        rows=[list(rows)] * ROUNDS,
        test=pool,
        rounds=ROUNDS,
        seed=Seed(seed),
        participation=participation,
        algorithm=Scaffold(),
    )
    transcript = run(federation, folder)[0]
    users = {client(number): f"user {number}" for number in range(KNOWN)}
    pseudonyms = draw_pseudonyms(transcript, Seed(seed))
    knowledge = replace(planted.knowledge, recipe=recipe, algorithm=Scaffold())
    truth = GroundTruth(Facts(UsersOfClients(users))).renamed(pseudonyms)
    targets = tuple(pseudonyms.clients())
    return PlantedRun(pseudonyms.rename_senders(transcript), truth, knowledge, targets)
