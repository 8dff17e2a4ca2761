"""What the server of an audit heard, and of whom: for what is read off updates themselves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from overheard.archive.shelf import FolderShelf
from overheard.archive.truth import read_truth
from overheard.auditing.folder import AuditFolder
from overheard.auditing.knowledge import knowledge_of
from overheard.auditing.supplies import supply
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party, is_shadow
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.threads import one_thread
from overheard.linkage.heads import fit_heads
from overheard.linkage.prior_updates import (
    KnownUpdates,
    SentUpdates,
    Source,
    known_updates,
    sent_updates,
)
from overheard.papers.deanonymization.world import IdentityScenario
from overheard.papers.reading import BOOTSTRAP
from overheard.papers.runs import Runs
from overheard.plans.plan import UNDEFENDED
from overheard.questions.identity.estimators.user_classes import classes_of
from overheard.questions.identity.statistics.ranking import Ranking
from overheard.statistics.estimate import Estimate, estimate


@final
@dataclass(frozen=True, slots=True)
class Ear:
    """The server of one run of an audit, and what it knew beforehand.

    Args:
        view: what it read.
        knowledge: what it knew.
        users: who stands behind each client.

    """

    view: View
    knowledge: Knowledge
    users: Mapping[Party, str]

    def clients(self) -> tuple[Party, ...]:
        """Those that were heard."""
        return tuple(who for who in self.view.senders() if not is_shadow(who))


@final
@dataclass(frozen=True, slots=True)
class Updates:
    """Updates of one run, to learn from and to tell apart.

    Args:
        known: those of known users.
        sent: those of clients.
        users: who stands behind each client.
        seed: of the run.

    """

    known: KnownUpdates
    sent: SentUpdates
    users: Mapping[Party, str]
    seed: int

    def learn(self, rows: Bool[Tensor, " known"], epochs: int) -> "Teller | None":
        """Train the published network on the known updates that are marked.

        None where they are of fewer than two users.
        """
        known = KnownUpdates(
            self.known.vectors[rows],
            self.known.people[rows],
            self.known.rounds[rows],
            self.known.chunks[rows],
            self.known.names,
            self.known.named,
        )
        if len(set(known.people.tolist())) < 2:
            return None
        classes = classes_of(known, "reidentify_mlp")
        heads = fit_heads(
            normalize(known.vectors),
            [classes.labels],
            [classes.count],
            Seed(self.seed).child("papers"),
            epochs=epochs,
        )
        return Teller(
            self,
            tuple(classes.users[place] for place in classes.heard.tolist()),
            heads.log_probabilities(normalize(self.sent.vectors))[0][:, : len(classes.heard)],
        )


@final
@dataclass(frozen=True, slots=True)
class Teller:
    """What a trained network says of every update that clients sent.

    Args:
        updates: of the run.
        names: whom it learned to tell.
        scores: of each sent update for each of them.

    """

    updates: Updates
    names: tuple[str, ...]
    scores: Float[Tensor, "sent names"]

    def precisions(self, told: Bool[Tensor, " sent"]) -> Mapping[str, float]:
        """Average precision by user over the sent updates that are marked, each a target.

        Only users whom it learned and who sent one of these are in it.
        """
        true = [
            self.updates.users[self.updates.sent.senders[row]]
            for row in told.nonzero().flatten().tolist()
        ]
        there = sorted(set(true) & set(self.names))
        people = (*there, *sorted(set(true) - set(self.names)))
        if not there:
            return {}
        place = {who: number for number, who in enumerate(people)}
        ranking = Ranking(
            self.updates.seed,
            self.names,
            people,
            np.array([self.names.index(who) for who in there]),
            self.scores[told].double().numpy(),
            np.array([place[who] for who in true]),
            None,
        )
        return dict(zip(there, ranking.precisions().diagonal().tolist(), strict=True))


def ears(runs: Runs, name: str) -> Mapping[int, Ear]:
    """The server of each run without defenses, by seed, as the audit's first threat has it."""
    plan, home = runs.plans[name], AuditFolder(runs.folder / name)
    supplies = supply(plan, runs.resources, FolderShelf(runs.resources.bank or home.bank))
    (bare,) = [arm for arm in plan.arms if not arm.defenses]
    return {
        seed: Ear(
            runs.transcript(name, UNDEFENDED, seed).seen_by(*plan.threats[0].listeners),
            knowledge_of(bare, seed, supplies, plan.threats[0]),
            read_truth(home.run(UNDEFENDED, seed)).users,
        )
        for seed in plan.seeds
    }


def updates_of(runs: Runs, world: IdentityScenario, source: Source) -> Iterator[Updates]:
    """The updates of each run of a world's audit, by the layer that attacks read."""
    with one_thread():
        for seed, ear in ears(runs, world.key).items():
            yield Updates(
                known_updates(
                    ear.view,
                    ear.knowledge,
                    source,
                    world.layer,
                    most_rounds=world.most_rounds,
                ),
                sent_updates(ear.view, ear.clients(), world.layer),
                ear.users,
                seed,
            )


def mean_over_users(told: Mapping[int, Mapping[str, float]]) -> Estimate | None:
    """The mean over the users of all runs, by seed; None where nobody was told.

    Its interval draws runs, then users.
    """
    values = [value for by_user in told.values() for value in by_user.values()]
    seeds = [seed for seed, by_user in told.items() for _ in by_user]
    return estimate(np.array(values), np.array(seeds), BOOTSTRAP) if values else None


def every(count: int) -> Bool[Tensor, " updates"]:
    """Marks all of so many updates."""
    return torch.ones(count, dtype=torch.bool)
