"""How well numbers to predict are read: `python benchmarks/target_distribution.py --seeds 6`.

Ten clients of 60 to 300 examples train an MLP of 32 for two rounds. Users that differ hold
examples by odds of exp(a z), with a from -1 to 1 and z the number in standard deviations; users
that are alike are the control. The attacker has 400 examples. Seeds from 900 on chose settings
of the attack; docs/target-distribution.md reports those from 0 on.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from statistics import mean

import torch
from torch import Tensor, nn

from overheard.core.examples import Examples, without_classes
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update, apply_update
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.scorer import Guesses
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.core.view import View, mean_update
from overheard.data.datasets.adult import Adult
from overheard.data.reading.folder import data_folder
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.target_distribution.attacks.target_regression import TargetRegression
from overheard.questions.target_distribution.scorer import TargetDistributionScorer
from overheard.questions.target_distribution.true_facts import ClientTargets, state_targets

CLIENTS, ROUNDS, AUXILIARY = 10, 2, 400
FEWEST, MOST = 60, 300
RECIPE = Recipe(rate=0.05, epochs=1, batch=16, loss="squared_error")


def build(inputs: int) -> nn.Module:
    """Build the network."""
    return nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 1))


def adult(seed: Seed) -> Examples:
    """Return people with their hours of work a week, standardised."""
    examples = Adult("hours_per_week").load(data_folder(None)).train
    order = torch.randperm(len(examples), generator=seed.child("people").generator())
    return examples.take(order[:12_000])


def made_up(seed: Seed) -> Examples:
    """Return inputs of normal numbers, with a number that follows from two of them."""
    generator = seed.child("made up").generator()
    inputs = torch.randn(12_000, 10, generator=generator)
    noise = torch.randn(12_000, generator=generator)
    numbers = 0.7 * inputs[:, 0] + 0.4 * inputs[:, 1].abs() + 0.5 * noise
    return without_classes(inputs, ((numbers - numbers.mean()) / numbers.std())[:, None])


DATA: dict[str, Callable[[Seed], Examples]] = {"adult": adult, "made-up": made_up}


def scores_of_run(data: str, strength: float, seed: Seed) -> list[dict[str, float]]:
    """Return the scores of the claim about each client, and of the guess."""
    examples = DATA[data](seed)
    auxiliary, free = (
        examples.take(torch.arange(AUXILIARY)),
        torch.arange(AUXILIARY, len(examples)),
    )
    parties = [client(number) for number in range(CLIENTS)]
    rows = _rows_of_clients(examples, free, strength, seed)
    messages, start = (
        list[Message](),
        initial_weights(partial(build, examples.inputs.shape[1]), seed),
    )
    for number in range(ROUNDS):
        messages.append(Message(number, SERVER, frozenset(parties), Broadcast(start)))
        trained = train_cohort(
            partial(build, examples.inputs.shape[1]),
            start,
            examples,
            [ClientTask(party, one) for party, one in zip(parties, rows, strict=True)],
            RECIPE,
            seed=seed.child("training"),
            round=number,
            workers=1,
        )
        updates = [
            Update(one.delta, len(held)) for one, held in zip(trained, rows, strict=True)
        ]
        messages += [
            Message(number, party, frozenset({SERVER}), update)
            for party, update in zip(parties, updates, strict=True)
        ]
        start = apply_update(start, mean_update(updates).delta)
    knowledge = Knowledge(
        1, partial(build, examples.inputs.shape[1]), auxiliary, RECIPE, kind="regression"
    )
    truth = GroundTruth(
        Facts(
            ClientTargets(
                {
                    party: state_targets(party, examples.loss_labels[held])
                    for party, held in zip(parties, rows, strict=True)
                }
            )
        )
    )
    view = Transcript(tuple(messages)).seen_by(SERVER)
    return _score(view, parties, knowledge, truth, seed)


def _rows_of_clients(
    examples: Examples, free: Tensor, strength: float, seed: Seed
) -> list[Tensor]:
    draws = seed.child("clients").generator()
    sizes = torch.randint(FEWEST, MOST + 1, (CLIENTS,), generator=draws).tolist()
    tilts = torch.linspace(-strength, strength, CLIENTS).tolist()
    numbers = examples.loss_labels[:, 0]
    standard = (numbers - numbers.mean()) / numbers.std()
    rows = []
    for size, tilt in zip(sizes, tilts, strict=True):
        odds = (tilt * standard[free]).exp()
        rows.append(free[torch.multinomial(odds, size, generator=draws)])
    return rows


def _score(
    view: View, parties: list[Party], knowledge: Knowledge, truth: GroundTruth, seed: Seed
) -> list[dict[str, float]]:
    scorer, found = TargetDistributionScorer(), []
    for party, claim in TargetRegression().infer(view, parties, knowledge, seed).items():
        true = scorer.true_claim(truth, party, range(ROUNDS), claim)
        guesses = scorer.uninformed_guesses(claim, knowledge)
        scores = scorer.score(claim, true, Guesses(guesses, {}))
        row = {one.name: one.value for one in scores}
        row |= {
            f"{one.name} guess": min(one.uninformed.values())
            for one in scores
            if one.uninformed
        }
        found.append(row)
    return found


def main() -> int:
    """Print a row for each kind of data, with users that differ and that are alike."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--data", choices=DATA, nargs="*", default=list(DATA))
    chosen = options.parse_args()
    for data in chosen.data:
        for strength in (1.0, 0.0):
            rows = [
                row
                for number in range(chosen.seeds)
                for row in scores_of_run(data, strength, Seed(chosen.first_seed + number))
            ]
            text = "  ".join(
                f"{name} {mean(row[name] for row in rows):.3f}" for name in rows[0]
            )
            sys.stdout.write(f"{data:8} {'differ' if strength else 'alike':7} {text}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
