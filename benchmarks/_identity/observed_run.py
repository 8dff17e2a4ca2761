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
from overheard.plans.plan import Plan
from overheard.statistics.average_precision import average_precisions


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


def observe_run(plan: Plan, seed: int, folder: Path, resources: Resources) -> ObservedRun:
    """Simulate a run without defenses, or read it from its folder if it is complete."""
    transcript, truth = simulate(plan, seed=seed, folder=folder, resources=resources)
    inputs = load_inputs(plan, resources, MemoryTensorCache())
    undefended = next(arm for arm in plan.arms if not arm.defenses)
    knowledge = attacker_knowledge(undefended, seed, inputs, plan.threats[0])
    run = pseudonymize(transcript, truth, Seed(seed).child("pseudonyms"))
    senders = run.transcript.seen_by(SERVER).senders()
    targets = tuple(one for one in senders if not is_shadow_device(one))
    return ObservedRun(seed, run, knowledge, targets)
