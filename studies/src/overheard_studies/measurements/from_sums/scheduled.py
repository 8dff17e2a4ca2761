"""Federations whose cohorts follow a schedule, and the attack on their sums."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float

from overheard.auditing.inputs import load_inputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.simulate import build_federation, with_partition
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.disk.folders import remove_folder
from overheard.federation.federation import Federation
from overheard.federation.run import run as run_federation
from overheard.plans.plan import Plan
from overheard_studies.study import MeasurementRun


@final
@dataclass(frozen=True, slots=True, eq=False)
class Claimed:
    """What `sum_shares` claims of clients after some rounds, beside the truth.

    Args:
        rounds: number of rounds that it read.
        claimed: (clients, classes), label shares.
        low: lower ends of their 90 % intervals.
        high: upper ends.
        true: the true shares, of all records that the client held in rounds of its own.
        accuracy: of the last broadcast that it read, on the test set.
        is_doubted: whether a claim says that its intervals are not trusted.

    """

    rounds: int
    claimed: Float[np.ndarray, "clients classes"]
    low: Float[np.ndarray, "clients classes"]
    high: Float[np.ndarray, "clients classes"]
    true: Float[np.ndarray, "clients classes"]
    accuracy: float
    is_doubted: bool

    @property
    def error(self) -> float:
        """Return the mean L1 distance."""
        return float(np.abs(self.claimed - self.true).sum(axis=1).mean())

    @property
    def guess(self) -> float:
        """Return that of the mean of the true shares of all clients."""
        return float(np.abs(self.true.mean(axis=0) - self.true).sum(axis=1).mean())

    @property
    def coverage(self) -> float:
        """Return the share of the intervals that hold."""
        return float(((self.low <= self.true) & (self.true <= self.high)).mean())


def run_schedule(
    plan: Plan,
    seed: int,
    folder: Path,
    run: MeasurementRun,
    took_part: Bool[np.ndarray, "rounds clients"] | None = None,
    change: Callable[[Federation], Federation] | None = None,
) -> tuple[Transcript, GroundTruth]:
    """Run the federation of a plan's first arm with defenses.

    Args:
        plan: the plan.
        seed: of the federation.
        folder: where its transcript is written; it is emptied first.
        run: what the measurement got.
        took_part: who takes part in which round; None = as the plan selects. A client that does
            not take part holds no examples in that round.
        change: returns the federation to run in its place; None = it is not changed.

    """
    remove_folder(folder, inside=run.folder)
    inputs = load_inputs(plan, run.resources, MemoryTensorCache())
    arm = next(one for one in plan.arms if one.defenses)
    federation = build_federation(
        plan, arm, seed, inputs.partition(seed), inputs.dataset, run.resources
    )
    if took_part is not None:
        nothing = torch.zeros(0, dtype=torch.int64)
        rows = [
            [held if takes_part else nothing for held, takes_part in zip(*both, strict=True)]
            for both in zip(federation.rows, took_part, strict=True)
        ]
        federation = replace(federation, rows=rows, participation=1.0)
    if change is not None:
        federation = change(federation)
    transcript, truth = run_federation(federation, folder)
    return transcript, with_partition(truth, federation, None)


def attack_sums(
    plan: Plan,
    seed: int,
    rounds: Sequence[int],
    run: MeasurementRun,
    took_part: Bool[np.ndarray, "rounds clients"] | None = None,
) -> Iterator[Claimed]:
    """Yield what `sum_shares` claims after each of these numbers of rounds.

    Raises:
        NeedsError: if it is refused.

    """
    folder = run.folder / "running"
    transcript, truth = run_schedule(plan, seed, folder, run, took_part)
    knowledge, view = read_knowledge(plan, seed, run), transcript.seen_by(SERVER)
    # Most rounds first: what virtual clients did in them is then found again.
    found = {
        number: claim_shares(plan, seed, view.during(range(number)), truth, knowledge)
        for number in sorted(rounds, reverse=True)
    }
    remove_folder(folder, inside=run.folder)
    for number in rounds:
        yield found[number]


def read_knowledge(plan: Plan, seed: int, run: MeasurementRun) -> Knowledge:
    """Return what the attacker of a plan's first arm with defenses knows of a run."""
    known = load_inputs(plan, run.resources, MemoryTensorCache()).for_attackers(seed)
    arm = next(one for one in plan.arms if one.defenses)
    return attacker_knowledge(arm, plan.threats[0], known)


def claim_shares(
    plan: Plan, seed: int, view: View, truth: GroundTruth, knowledge: Knowledge
) -> Claimed:
    """Return what `sum_shares` claims of all clients but the observers.

    Args:
        plan: its first attack is the one that claims.
        seed: of the federation.
        view: what the observers read.
        truth: the ground truth of the run.
        knowledge: the attacker's; claims from views of one run share its virtual clients.

    Raises:
        NeedsError: if it is refused.

    """
    rounds = frozenset(view.rounds())
    held = dict[Party, np.ndarray]()
    for (at, party), count in truth.facts.need(LabelCounts).counts.items():
        if at in rounds and party not in view.observers and count.sum():
            held[party] = held.get(party, 0) + count.double().numpy()
    targets = tuple(map(client, range(plan.data.clients)))
    targets = tuple(one for one in targets if one in held)
    claims = plan.threats[0].attacks[0].infer(view, targets, knowledge, Seed(seed))
    made = [claims[one] for one in targets]
    return Claimed(
        len(rounds),
        np.stack([one.shares.numpy() for one in made]),
        np.array([one.bounds.low for one in made]),
        np.array([one.bounds.high for one in made]),
        np.stack([held[one] / held[one].sum() for one in targets]),
        _accuracy_by(truth, rounds),
        any(one.reason_for_doubt is not None for one in made),
    )


def _accuracy_by(truth: GroundTruth, rounds: Collection[int]) -> float:
    """Return the accuracy of the last broadcast of these rounds, on the test set."""
    return truth.accuracy[max(number for number in truth.accuracy if number in rounds)]
