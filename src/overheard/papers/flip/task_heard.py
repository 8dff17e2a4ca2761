"""What the server of a binary task's federation heard."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.archive.reader import open_transcript
from overheard.auditing.folder import AuditFolder
from overheard.core.messages import Update, Weights
from overheard.core.parties import SERVER, Party
from overheard.core.view import View
from overheard.papers.runs import Runs
from overheard.questions.shift.estimators.models_heard import ModelsHeard
from overheard.statistics.spread import spread

MOST_SETS = 100
"""Rounds whose sets are taken, as many as the paper has."""

MOST_MODELS = 20
"""Rounds whose models are read; one model of the paper's network is 78,000 numbers."""


@final
@dataclass(frozen=True, slots=True)
class TaskHeard:
    """One federation under one seed.

    Args:
        view: what its server reads; under FLiP also the models that follow from what was said.

    """

    view: View

    def sets(self) -> Float[Tensor, "samples ..."]:
        """The server's synthetic inputs of all rounds, but for the first, which are noise."""
        told = self.view.distilled(SERVER)
        rounds = spread(sorted(told)[1:], MOST_SETS)
        return torch.cat([told[number].inputs for number in rounds])

    def updates(self) -> Float[Tensor, "updates params"]:
        """What clients sent or, under FLiP, what follows from it, each of length 1."""
        told = [
            torch.cat([one.flatten() for one in update.delta.values()]).double()
            for sender in self.clients()
            for update in self._updates(sender)
        ]
        return torch.stack([one / one.norm().clamp(min=1e-12) for one in told])

    def models(self, sender: Party) -> Iterator[Weights]:
        """The models at which a client arrived, round by round."""
        heard = self.view.during(spread(self.view.heard(sender), MOST_MODELS))
        return ModelsHeard(heard, sender).models()

    def clients(self) -> tuple[Party, ...]:
        """Who sent anything."""
        return self.view.senders()

    def _updates(self, sender: Party) -> list[Update]:
        told = self.view.updates(sender)
        return [told[number] for number in spread(sorted(told), MOST_MODELS)]


def heard(runs: Runs, name: str, arm: str, seed: int) -> TaskHeard:
    """The federation of an audit's arm, with the models that follow from distilled sets."""
    run = AuditFolder(runs.folder / name).run(arm, seed)
    rebuilt = run / "rebuilt"
    folder = rebuilt if rebuilt.is_dir() else run
    return TaskHeard(open_transcript(folder).seen_by(SERVER))
