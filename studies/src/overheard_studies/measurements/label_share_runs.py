"""Attacks on label shares in one simulated run, scored with the truth."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.auditing.simulate import build_federation
from overheard.core.attack import Attack
from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.federation.run import run
from overheard.learning.threads import single_thread
from overheard.plans.plan import ArmPlan, Plan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer

VIRTUAL = 240

ATTACK = Amortised(steps=100)


@final
@dataclass(frozen=True, slots=True)
class LabelShareRun:
    """A plan with one seed, whose last round is attacked.

    Args:
        plan: the plan.
        resources: the data folder.

    """

    plan: Plan
    resources: Resources
    dataset: Dataset = field(init=False)
    partition: DataPartition = field(init=False)
    _cache: MemoryTensorCache = field(default_factory=MemoryTensorCache, init=False)

    def __post_init__(self) -> None:
        """Load and partition the data."""
        dataset = load_data(self.plan, self.resources)
        object.__setattr__(self, "dataset", dataset)
        partition = partition_for_plan(self.plan, dataset, self.plan.seeds[0])
        object.__setattr__(self, "partition", partition)

    def score(
        self,
        arm: ArmPlan,
        auxiliary: Examples,
        attacks: Sequence[Attack[LabelShares]] = (ATTACK,),
        change_view: Callable[[View], View] = lambda view: view,
    ) -> list[list[Mapping[str, float]]]:
        """Train an arm and attack its last round with these auxiliary examples.

        Args:
            arm: the arm.
            auxiliary: the attacker's auxiliary examples.
            attacks: the attacks.
            change_view: changes what the server sees before it attacks.

        Returns:
            the scores by name, of each attack on each client, in the order of clients.

        """
        plan, seed, last = self.plan, self.plan.seeds[0], self.plan.training.rounds - 1
        federation = build_federation(
            plan, arm, seed, self.partition, self.dataset, self.resources
        )
        with tempfile.TemporaryDirectory() as folder, single_thread():
            transcript, truth = run(federation, Path(folder) / "run")
            compute = ComputeSettings(
                Seed(seed).child("bank"), VIRTUAL, cache=self._cache, workers=1
            )
            knowledge = Knowledge(
                classes=self.dataset.task.classes,
                build_model=federation.build_model,
                auxiliary=auxiliary,
                recipe=federation.recipe,
                compute=compute,
            )
            targets = [client(number) for number in range(plan.data.clients)]
            view = change_view(transcript.seen_by(SERVER).during((last,)))
            found = [
                one.infer(view, targets, knowledge, Seed(seed).child("attack"))
                for one in attacks
            ]
        scorer, scores = LabelSharesScorer(), []
        for claims in found:
            of_attack = list[Mapping[str, float]]()
            for target in targets:
                claim = claims[target]
                true = scorer.true_claim(truth, target, (last,), claim)
                guesses = scorer.guesses(true, knowledge)
                of_attack.append(
                    {one.name: float(one.value) for one in scorer.score(claim, true, guesses)}
                )
            scores.append(of_attack)
        return scores
