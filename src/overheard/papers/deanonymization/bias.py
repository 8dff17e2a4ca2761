"""Figure 11: the bias of a user, class by class, in prior and in private updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from overheard.auditing.supplies import load_data
from overheard.core.parties import Party
from overheard.drawing.plates import Panel, Plate
from overheard.findings.names import shown
from overheard.linkage.layers import tensors_of
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.drawings import heat_map
from overheard.papers.deanonymization.heard import Ear, ears
from overheard.papers.deanonymization.identifiers import published
from overheard.papers.deanonymization.plans import every_sender, people, plan, setting
from overheard.papers.deanonymization.world import BLOGS, HURRIED, WISDM, IdentityScenario
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.numbers_table import numbers_table
from overheard.papers.reading import BOOTSTRAP, figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan
from overheard.statistics.estimate import estimate

USERS = 8
"""How many are drawn, as published."""

MOST_CLASSES = 20
"""Beyond it a heat map has no room for the classes."""


@final
@dataclass(frozen=True, slots=True)
class Biases:
    """The mean norm of the last layer's weights of each class, over a user's updates.

    Args:
        users: who was heard on both devices.
        prior: of what their shadow devices sent.
        private: of what they sent.

    """

    users: tuple[str, ...]
    prior: Float[Tensor, "users classes"]
    private: Float[Tensor, "users classes"]

    def alike(self) -> Float[np.ndarray, "users users"]:
        """The correlation over classes of each user's private bias with each one's prior."""
        one, other = (
            torch.nn.functional.normalize(bias - bias.mean(1, keepdim=True))
            for bias in (self.private, self.prior)
        )
        return (one @ other.T).numpy()


@final
@dataclass(frozen=True, slots=True)
class BiasExperiment(Experiment, Drawn):
    """How much a user's bias is the same in both, and how much another's.

    Args:
        worlds: the data sets.
        reduced: those of a run in a hurry.
        name: of the figure.

    """

    worlds: tuple[IdentityScenario, ...] = (WISDM, BLOGS)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    name: str = "figure11"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "The bias of users, class by class, in prior and in private updates"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.worlds)} The paper shows eight of its users and says in words where "
            "both biases agree. Ours are told by their correlation over classes, of a user's "
            "own two and of two users', with norms averaged over all updates of a device; "
            f"drawn are {USERS} users of the first run, evenly spaced from the most to the "
            f"least alike, where there are up to {MOST_CLASSES} classes. The prior is random."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set."""
        return {
            world.key: plan(
                world, people("random"), (every_sender((published(world, "shadow"),)),)
            )
            for world in (self.reduced if quick else self.worlds)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Correlations, and how often a user's own is the largest."""
        full = self.plans(quick=False)
        figures = []
        for world in self.worlds:
            if world.key in runs.audits:
                where = setting(world, runs.plans[world.key], full.get(world.key))
                heard = ears(runs, world.key)
                figures += _told(
                    world.key, where, {seed: biases(ear) for seed, ear in heard.items()}
                )
        return tuple(figures)

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """Heat maps of some users, prior and private."""
        plates = []
        for world in self.worlds:
            if world.key not in runs.audits:
                continue
            names = load_data(runs.plans[world.key], runs.resources).task.class_names
            if len(names) <= MOST_CLASSES:
                seed = runs.plans[world.key].seeds[0]
                told = biases(ears(runs, world.key)[seed])
                plates.append(_plate(world, told, names))
        return Drawing(tuple(plates))


def biases(ear: Ear) -> Biases:
    """The biases of everyone who was heard on both devices."""
    devices = {
        user: device
        for device, user in ear.knowledge.people.devices.items()
        if device in ear.view.senders()
    }
    clients = {ear.users[who]: who for who in ear.clients()}
    both = tuple(sorted(devices.keys() & clients.keys()))
    return Biases(
        both,
        torch.stack([_bias(ear, devices[user]) for user in both]),
        torch.stack([_bias(ear, clients[user]) for user in both]),
    )


def _bias(ear: Ear, who: Party) -> Float[Tensor, " classes"]:
    norms = []
    for update in ear.view.updates(who).values():
        name = tensors_of(-1, update.delta)[0]
        norms.append(update.delta[name].double().flatten(1).norm(dim=1))
    return torch.stack(norms).mean(0)


def _told(key: str, where: str, told: Mapping[int, Biases]) -> list[Figure]:
    own, others, first, seeds = [], [], [], []
    for seed, one in told.items():
        alike = one.alike()
        diagonal = alike.diagonal()
        own += diagonal.tolist()
        others += ((alike.sum(1) - diagonal) / max(1, len(diagonal) - 1)).tolist()
        first += (alike.argmax(1) == np.arange(len(alike))).astype(float).tolist()
        seeds += [seed] * len(diagonal)
    return [
        figure(
            f"{key}_{name}",
            f"{where}; {words}",
            estimate(np.array(values), np.array(seeds), BOOTSTRAP),
            None,
            None,
        )
        for name, words, values in (
            ("own_correlation", "correlation of a user's private and prior bias", own),
            ("other_correlation", "of a user's private and another's prior bias", others),
            ("own_is_largest", "share of users whose own prior bias is the most alike", first),
        )
    ]


def _plate(world: IdentityScenario, told: Biases, names: tuple[str, ...]) -> Plate:
    alike = told.alike().diagonal()
    order = np.argsort(-alike, kind="stable")
    places = np.unique(np.linspace(0, len(order) - 1, min(USERS, len(order))).round())
    chosen = order[places.astype(int)]
    users = [told.users[place] for place in chosen]
    title = f"Figure 11: {world.name}"
    return Plate(
        title,
        "Norms of the change of each class's weights, mean over updates. From above, the most "
        "to the least alike: " + ", ".join(f"{alike[place]:.2f}" for place in chosen) + ".",
        None,
        tuple(
            Panel(
                heading,
                heat_map(
                    bias[torch.from_numpy(chosen.copy())].numpy(),
                    [shown(user) for user in users],
                    [shown(name) for name in names],
                    ("user", "class"),
                    f"{title}, {heading}",
                ),
            )
            for heading, bias in (
                ("prior updates", told.prior),
                ("private updates", told.private),
            )
        ),
        numbers_table(title, _told(world.key, f"{world.name}; first run", {0: told})),
        True,
    )
