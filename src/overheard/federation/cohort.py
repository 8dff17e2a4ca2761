"""The clients of a round and the examples on which they train."""

from dataclasses import dataclass, replace

import torch

from overheard.core.algorithm.algorithm import AsyncSchedule
from overheard.core.algorithm.crafted_gradients import CraftedRows
from overheard.core.custom_code.defense_results import check_returned_examples
from overheard.core.custom_code.guard import explain_failures
from overheard.core.defense import Defense, DefenseContext, LocalTraining, PreviousData
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.parties import Party
from overheard.federation.federation import Federation
from overheard.federation.sampling import draw_copies, draw_epochs, draw_straggler_epochs
from overheard.learning.architecture import needs_two_examples
from overheard.learning.initialization import model_structure
from overheard.learning.train import check_batches, check_private_steps
from overheard.learning.training_job import ClientTask

CLIENT_FAILED = "the client failed or was late"
NO_EXAMPLES = "the client held no examples"
ON_DATA = "it takes Examples and a DefenseContext and returns Examples"
ON_TRAINING = "it takes and returns a LocalTraining"
"""What these methods of a defense must take and return."""


@dataclass(frozen=True, slots=True)
class Cohort:
    """The clients of one round.

    Args:
        pool: examples to which the rows of `clients` refer.
        clients: the clients that train, in the order of the federation's clients.
        missing: the sampled clients that send no update, with the reason.

    """

    pool: Examples
    clients: tuple[ClientTask, ...]
    missing: dict[Party, str]


def _crafted_rows(federation: Federation, party: Party, examples: int) -> CraftedRows | None:
    """Return which examples of a client have crafted gradients: its last ones."""
    numbers = federation.crafted.get(party)
    if not numbers:
        return None
    canaries = torch.full((examples,), -1)
    canaries[examples - len(numbers) :] = torch.tensor(numbers)
    return CraftedRows(canaries, federation.crafted_count)


def draw_round_copies(federation: Federation, number: int) -> dict[int, int]:
    """Sample the clients of this round: how often each was drawn, by index and in order.

    Under an asynchronous algorithm they are those that start in this round, and whose update
    the server uses before the run ends.
    """
    schedule = round_schedule(federation)
    if schedule is not None:
        used = [index for index in schedule.starts[number] if (number, index) in schedule.steps]
        return dict.fromkeys(used, 1)
    return draw_copies(
        len(federation.clients),
        federation.participation,
        federation.sampling,
        federation.seed.child("participants", number),
    )


def draw_participants(federation: Federation, number: int) -> tuple[Party, ...]:
    """Return the clients that will send an update in this round, in order; nothing is trained.

    Defenses that empty a client's data are not asked.
    """
    clients = federation.clients
    drawn = (
        (clients[index], federation.rows[number][index])
        for index in draw_round_copies(federation, number)
    )
    return tuple(
        party for party, rows in drawn if len(rows) and not _fails(federation, number, party)
    )


def round_schedule(federation: Federation) -> AsyncSchedule | None:
    """Return when clients start and are aggregated; None = all wait for each other."""
    seed = federation.seed.child("schedule")
    return federation.algorithm.schedule(len(federation.clients), federation.rounds, seed)


def client_epochs(federation: Federation, number: int, party: Party) -> int | None:
    """Return for how many epochs a client trains in a round; None = as the recipe says."""
    seed, epochs = federation.seed, None
    if federation.epochs_range is not None:
        epochs = draw_epochs(federation.epochs_range, seed.child("epochs", party))
    if not federation.straggler_rate:
        return epochs
    return draw_straggler_epochs(
        federation.recipe.epochs if epochs is None else epochs,
        federation.straggler_rate,
        seed.child("straggler", number, party),
    )


def sample_cohort(federation: Federation, number: int) -> Cohort:
    """Sample the cohort of this round, and apply the defenses that change examples."""
    missing, training = dict[Party, str](), list[ClientTask]()
    changed, start = list[Examples](), 0
    data_defenses, clients = _data_defenses(federation), federation.clients
    background = federation.background
    for index in draw_round_copies(federation, number):
        party = clients[index]
        rows = federation.rows[number][index]
        if _fails(federation, number, party):
            missing[party] = CLIENT_FAILED
            continue
        if data_defenses:
            data = federation.pool.take(rows)
            previous = _previous_data(federation, number, index)
            for defense in data_defenses:
                if defense not in federation.defenses_of(party):
                    continue
                context = defense_context(federation, defense, number, party)
                context = replace(context, previous_data=previous, background=background)
                with explain_failures(f"defense {defense.name}: on_data", ON_DATA):
                    data = defense.on_data(data, context)
                check_returned_examples(defense, data)
            rows = torch.arange(start, start + len(data))
            start += len(data)
            changed.append(data)
        if len(rows):
            epochs = client_epochs(federation, number, party)
            crafted = _crafted_rows(federation, party, len(rows))
            training.append(ClientTask(party, rows, epochs, crafted=crafted))
        else:
            missing[party] = NO_EXAMPLES
    return Cohort(
        concatenate_examples(changed) if changed else federation.pool, tuple(training), missing
    )


def local_training(federation: Federation) -> LocalTraining:
    """Return the model and the recipe of clients, with the changes of all defenses."""
    recipe = federation.algorithm.local_recipe(federation.recipe)
    training = LocalTraining(federation.build_model, recipe)
    for defense in federation.defenses:
        with explain_failures(f"defense {defense.name}: on_training", ON_TRAINING):
            training = defense.on_training(training)
    return training


def refuse_untrainable(federation: Federation) -> None:
    """Refuse a federation whose network cannot train on its batches.

    Raises:
        PlanError: if a client would train on batches of one example, or by DP-SGD, and the
            network cannot.

    """
    training = local_training(federation)
    if training.recipe.private_steps is not None:
        check_private_steps(training.recipe, model_structure(training.build_model))
    held = (rows for in_round in federation.rows for rows in in_round)
    is_large = federation.recipe.batch > 1 and all(len(rows) != 1 for rows in held)
    if is_large or not needs_two_examples(model_structure(federation.build_model)):
        return
    for number in range(federation.rounds):
        check_batches(sample_cohort(federation, number).clients, federation.recipe)


def defense_context(
    federation: Federation, defense: Defense, number: int, party: Party
) -> DefenseContext:
    """Build the context in which a defense acts: round, party and the defense's own seeds."""
    seed = federation.seed
    return DefenseContext(
        number,
        party,
        seed.child("defense", defense.name, number, party),
        persistent_seed=seed.child("lasting", defense.name, party),
    )


def _fails(federation: Federation, number: int, party: Party) -> bool:
    generator = federation.seed.child("failure", number, party).generator()
    return float(torch.rand((), generator=generator)) < federation.failure_rate


def _previous_data(federation: Federation, number: int, index: int) -> PreviousData | None:
    """Return the examples that a client held before its rows last changed, if they did."""
    current = federation.rows[number][index]
    for since in range(number, 0, -1):
        before = federation.rows[since - 1][index]
        if not torch.equal(before, current):
            return PreviousData(federation.pool.take(before), since)
    return None


def _data_defenses(federation: Federation) -> tuple[Defense, ...]:
    """Return the defenses that may change examples; without any, no data are copied."""
    return tuple(d for d in federation.defenses if type(d).on_data is not Defense.on_data)
