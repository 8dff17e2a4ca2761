"""What known users would tell beside their weights, from training on what is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.defense import Moment, Training
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.cohort import Member
from overheard.learning.threads import one_thread
from overheard.learning.train import train_cohort
from overheard.linkage.learner import PriorClient, learners_of, together
from overheard.linkage.told_beside import less_mean, told_beside

LOSS = "loss"
"""The metric that a client of this package's federation reports: see `learning.cohort`."""


@final
@dataclass(frozen=True, slots=True)
class KnownNumbers:
    """Numbers that the users who may be named tell in clear, one row an update.

    Args:
        names: what each number is, as `ToldBeside` has it.
        numbers: less the mean of their round; NaN where an update does not tell it.
        users: index into the names of `KnownUsers.priors` of who each row is of.
        devices: which device, or piece of a prior, each row is of.

    """

    names: tuple[str, ...]
    numbers: Float[Tensor, "updates numbers"]
    users: Int[Tensor, " updates"]
    devices: Int[Tensor, " updates"]


def told_by_shadows(view: View, knowledge: Knowledge, *, order: bool) -> KnownNumbers:
    """What the shadow devices of users who may be named told in the run.

    Raises:
        NeedsError: if no such device took part.

    """
    people = knowledge.people
    users = tuple(people.priors)
    playing = {who: user for who, user in people.devices.items() if user in people.priors}
    told = told_beside(view, playing.keys(), order=order)
    if not told.senders:
        raise NeedsError(
            "metadata of shadow devices need a run in which they take part: set "
            "data.people.shadow_devices, or updates = 'simulated'"
        )
    numbers = {who: place for place, who in enumerate(playing)}
    return KnownNumbers(
        told.names,
        told.numbers,
        torch.tensor([users.index(playing[who]) for who in told.senders]),
        torch.tensor([numbers[who] for who in told.senders]),
    )


def told_when_simulated(
    view: View, knowledge: Knowledge, *, pieces: int, most_rounds: int
) -> KnownNumbers:
    """The loss that training on each prior from the broadcasts reports.

    A prior is cut into pieces, each of which trains as a client of its own: how far the losses
    of two pieces of one user lie apart tells how far that of other examples of the user may.

    Args:
        view: for the broadcasts.
        knowledge: with priors, a model and a recipe.
        pieces: of each prior, those on end together; fewer where it has not so many examples.
        most_rounds: rounds that are imitated, evenly spaced among those with a broadcast.

    Raises:
        NeedsError: if the model, the recipe or every broadcast is missing.

    """
    broadcasts = view.broadcasts()
    if knowledge.build_model is None or knowledge.recipe is None or not broadcasts:
        raise NeedsError(
            "simulated metadata need broadcasts, the model's architecture and the recipe: "
            "grant them, or set updates = 'shadow'"
        )
    priors = knowledge.people.priors
    learners = learners_of(priors, pieces)
    rounds = sorted(broadcasts)
    spaced = torch.linspace(0, len(rounds) - 1, min(most_rounds, len(rounds))).round().int()
    chosen = [rounds[place] for place in spaced.tolist()]
    with one_thread():
        losses = [_losses(broadcasts[n], knowledge, learners, n) for n in chosen]
    told = torch.tensor(losses, dtype=torch.float64).reshape(-1, 1)
    users = tuple(priors)
    return KnownNumbers(
        (LOSS,),
        less_mean(told, torch.tensor(chosen).repeat_interleave(len(learners))),
        torch.tensor([users.index(one.user) for one in learners]).repeat(len(chosen)),
        torch.arange(len(learners)).repeat(len(chosen)),
    )


def _losses(
    start: Weights, knowledge: Knowledge, learners: Sequence[PriorClient], number: int
) -> list[float]:
    """What each learner reports in one round, through the defenses that the attacker knows.

    NaN for one that a defense leaves without examples.
    """
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    seed, device = knowledge.means.seed.child("prior losses"), knowledge.means.device
    training = Training(knowledge.build_model, knowledge.recipe)
    for defense in knowledge.defenses or ():
        training = defense.on_training(training)
    whole = together(knowledge.people.priors)
    held = [_defended(one, whole, knowledge, number, seed) for one in learners]
    pool = together({one.name: data for one, data in zip(learners, held, strict=True)})
    ends = torch.tensor([len(data) for data in held]).cumsum(0).tolist()
    members = [
        Member(one.name, torch.arange(end - len(data), end))
        for one, data, end in zip(learners, held, ends, strict=True)
        if len(data)
    ]
    trained = train_cohort(
        training.build_model,
        start,
        Examples(pool.inputs.to(device), pool.labels.to(device)),
        members,
        training.recipe,
        seed=seed.child("training"),
        round=number,
        workers=knowledge.means.workers,
        device=device,
    )
    told = {one.member.name: one.loss for one in trained}
    return [told.get(one.name, nan) for one in learners]


def _defended(
    learner: PriorClient, whole: Examples, knowledge: Knowledge, number: int, seed: Seed
) -> Examples:
    """What a learner trains on, after the defenses of the data."""
    data = whole.take(torch.arange(learner.begin, learner.end))
    for defense in knowledge.defenses or ():
        own = seed.child("defense", defense.name)
        moment = Moment(
            number,
            Party(learner.name),
            own.child(number, learner.name),
            background=knowledge.background,
            lasting=own.child("lasting", learner.name),
        )
        data = defense.on_data(data, moment)
    return data
