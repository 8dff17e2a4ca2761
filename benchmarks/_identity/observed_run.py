"""One federation as the server observes it, and how precise an attack is on its updates."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from _identity.grids import IdentityAttack
from overheard.auditing.inputs import Resources, load_inputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.pseudonyms import PseudonymizedRun, pseudonymize
from overheard.auditing.simulate import simulate
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, Party, is_shadow_device
from overheard.core.seeds import Seed
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.statistics.average_precision import (
    average_precisions,
    random_average_precisions,
)


@dataclass(frozen=True, slots=True)
class Precision:
    """How precisely an attack names the senders of the updates of one run.

    Args:
        average_precision: mean over users of the average precision of all updates.
        top1: share of updates whose true user is ranked first.

    """

    average_precision: float
    top1: float


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run in which every update has a pseudonym of its own.

    Args:
        seed: seed of the run.
        run: transcript and ground truth by pseudonym.
        knowledge: what the server knows; its cache is shared by all attacks on this run.
        targets: the pseudonyms.

    """

    seed: int
    run: PseudonymizedRun
    knowledge: Knowledge
    targets: tuple[Party, ...]

    def chance(self) -> float:
        """Return the expected average precision of a random order of the updates."""
        _, counts = np.unique(
            [self.run.truth.users[one] for one in self.targets], return_counts=True
        )
        return float(random_average_precisions(counts, len(self.targets)).mean())

    def precision(self, attack: IdentityAttack) -> Precision:
        """Run an attack on all updates and score its claims."""
        view = self.run.transcript.seen_by(SERVER)
        claims = attack.infer(view, self.targets, self.knowledge, Seed(self.seed))
        users = tuple(self.knowledge.known_users.prior_examples)
        scores = np.stack([claims[one].scores.double().numpy() for one in self.targets])
        owners = np.array([users.index(self.run.truth.users[one]) for one in self.targets])
        precisions = [
            average_precisions(scores[:, user], owners, len(users))[user]
            for user in np.unique(owners)
        ]
        best = scores == scores.max(1, keepdims=True)
        hits = best[np.arange(len(owners)), owners] / best.sum(1)
        return Precision(float(np.mean(precisions)), float(hits.mean()))


def observe_run(
    plan: Plan, seed: int, folder: Path, resources: Resources, *, arm: str | None = None
) -> ObservedRun:
    """Simulate a run, or read it from its folder if it is complete.

    Args:
        plan: the plan; its first threat states what the server knows.
        seed: seed of the run.
        folder: folder of the transcript.
        resources: where the data are, and the compute resources.
        arm: name of the arm; None = the one without defenses.

    """
    transcript, truth = simulate(plan, arm=arm, seed=seed, folder=folder, resources=resources)
    inputs = load_inputs(plan, resources, MemoryTensorCache())
    observed = next(one for one in plan.arms if one.name == (arm or UNDEFENDED))
    knowledge = attacker_knowledge(observed, seed, inputs, plan.threats[0])
    run = pseudonymize(transcript, truth, Seed(seed).child("pseudonyms"))
    senders = run.transcript.seen_by(SERVER).senders()
    targets = tuple(one for one in senders if not is_shadow_device(one))
    return ObservedRun(seed, run, knowledge, targets)
