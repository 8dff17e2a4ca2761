"""What the server of a binary task's federation observes."""

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
from overheard.questions.shift.estimators.target_models import TargetModels
from overheard.statistics.evenly_spaced import select_evenly_spaced
from overheard_studies.runs import ExperimentRuns

MAX_SETS = 100
"""Largest number of rounds whose distilled sets are read, as in the paper."""

MAX_MODELS = 20
"""Largest number of rounds whose models are read; the paper's has 78,000 parameters."""


@final
@dataclass(frozen=True, slots=True)
class TaskObservation:
    """The server's observation of one federation with one seed.

    Args:
        view: the server's view; under FLiP it includes models derived from distilled sets.

    """

    view: View

    def synthetic_inputs(self) -> Float[Tensor, "samples ..."]:
        """Return the server's synthetic inputs of all rounds but the first, which are noise."""
        sets = self.view.distilled_sets(SERVER)
        rounds = select_evenly_spaced(sorted(sets)[1:], MAX_SETS)
        return torch.cat([sets[number].inputs for number in rounds])

    def normalized_updates(self) -> Float[Tensor, "updates params"]:
        """Return the clients' updates, derived ones under FLiP, each with L2 norm 1."""
        vectors = [
            torch.cat([one.flatten() for one in update.delta.values()]).double()
            for sender in self.clients()
            for update in self._updates(sender)
        ]
        return torch.stack([one / one.norm().clamp(min=1e-12) for one in vectors])

    def client_models(self, sender: Party) -> Iterator[Weights]:
        """Iterate over a client's trained models by round."""
        view = self.view.during(
            select_evenly_spaced(self.view.rounds_with_updates(sender), MAX_MODELS)
        )
        return TargetModels(view, sender).models()

    def clients(self) -> tuple[Party, ...]:
        """Return the clients that sent messages."""
        return self.view.senders()

    def _updates(self, sender: Party) -> list[Update]:
        updates = self.view.updates(sender)
        return [updates[number] for number in select_evenly_spaced(sorted(updates), MAX_MODELS)]


def observe_task(runs: ExperimentRuns, name: str, arm: str, seed: int) -> TaskObservation:
    """Return what the server observes in one run, with models derived from distilled sets.

    Args:
        runs: the runs of the experiment.
        name: name of the audit's folder.
        arm: name of the arm.
        seed: seed of the run.

    """
    run = AuditFolder(runs.folder / name).run_path(arm, seed)
    rebuilt = run / "rebuilt"
    folder = rebuilt if rebuilt.is_dir() else run
    return TaskObservation(open_transcript(folder).seen_by(SERVER))
