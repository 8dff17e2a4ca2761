"""Run one federation, run every attack on it, and store the results."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from time import process_time

import torch

from _label_shares.grid import (
    DISTORTED,
    DISTORTION,
    NOISY,
    RECIPES,
    ROUNDS,
    SOURCES,
    UNKNOWN_NOISE,
    VIEWS,
    Cell,
    Scale,
    Setting,
)
from _label_shares.store import CellResult, ClientResult, Store
from overheard.archive.tensor_cache import FolderTensorCache
from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.auditing.simulate import build_federation
from overheard.core.compute_settings import ComputeSettings
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.data.distortion import distort
from overheard.data.partition.data_partition import DataPartition
from overheard.data.splits.dirichlet import Dirichlet
from overheard.federation.run import Federation, run
from overheard.learning.models.mlp import Mlp
from overheard.learning.threads import one_thread
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer

MOST_AUXILIARY = 1000
"""Auxiliary examples of each class in every partition, so that all transcripts of a federation
are the same."""


NOISY_ARM = ArmPlan(name=NOISY, defenses=(UNKNOWN_NOISE,))


@dataclass(frozen=True, slots=True)
class Workplace:
    """Inputs and outputs of measuring a federation.

    Args:
        store: store of results.
        data: folder with data sets; None = the default of `Resources`.
        keep_bank: whether simulations are kept after their attacks.
        is_wanted: called before each attack; False stops measuring.

    """

    store: Store
    data: Path | None
    keep_bank: bool
    is_wanted: Callable[[], bool]


def measure(
    setting: Setting, cells: Sequence[Cell], scale: Scale, workplace: Workplace
) -> None:
    """Measure the missing cells of one federation."""
    missing = [cell for cell in cells if not workplace.store.has(cell)]
    if not missing:
        return
    plan, resources = (
        plan_of(setting, scale),
        Resources(workplace.data, workers=1, device="cpu"),
    )
    dataset = load_data(plan, resources)
    folder = workplace.store.folder
    partition = partition_for_plan(plan, dataset, setting.seed)

    @cache
    def observe(arm: ArmPlan) -> tuple[Federation, View, GroundTruth]:
        federation = build_federation(
            plan, arm, setting.seed, partition, dataset.task, resources
        )
        transcript, truth = run(federation, folder / "runs" / f"{setting.name}_{arm.name}")
        return federation, transcript.seen_by(SERVER), truth

    for (trial, auxiliary), group in groupby(
        missing, lambda cell: (cell.trial, cell.auxiliary)
    ):
        federation, view, truth = observe(NOISY_ARM if trial == NOISY else plan.arms[0])
        bank = folder / "bank" / f"{setting.name}_{auxiliary}_{trial}"
        examples = auxiliary_of(partition, auxiliary, dataset.task.classes)
        if trial == DISTORTED:
            draws = Seed(setting.seed).child("distortion")
            examples = distort(examples, dataset.task, DISTORTION, draws)
        knowledge = Knowledge(
            classes=dataset.task.classes,
            build_model=federation.build_model,
            auxiliary=examples,
            recipe=federation.recipe,
            compute=ComputeSettings(
                seed=Seed(setting.seed).child("bank"),
                virtual_clients=scale.virtual if auxiliary else scale.virtual_at_limit,
                cache=FolderTensorCache(bank),
                workers=1,
            ),
        )
        for cell in group:
            if not workplace.is_wanted():
                return
            result = run_attack(cell, workplace.store, view, truth, knowledge, scale)
            workplace.store.save(cell, result)
        if not workplace.keep_bank:
            shutil.rmtree(bank, ignore_errors=True)


def run_attack(
    cell: Cell, store: Store, view: View, truth: GroundTruth, knowledge: Knowledge, scale: Scale
) -> CellResult:
    """Run one attack; return its scores and CPU time."""
    attack, rounds = store.attacks[cell.attack], VIEWS[cell.view]
    observed, targets = view.during(rounds), [client(number) for number in range(scale.clients)]
    seed = Seed(cell.setting.seed).child("attack", cell.attack)
    began = process_time()
    with one_thread():
        claims = attack.infer(observed, targets, knowledge, seed)
    seconds, scorer, results = process_time() - began, LabelSharesScorer(), []
    for target in targets:
        true = scorer.true_claim(truth, target, rounds, claims[target])
        scores = scorer.score(claims[target], true, scorer.guesses(true, knowledge))
        by_name = {score.name: score for score in scores}
        results.append(
            ClientResult(
                target,
                by_name["l1"].value,
                by_name["l1"].blinds["uniform"],
                _value(by_name.get("coverage")),
                _value(by_name.get("width")),
                _value(by_name.get("doubted")),
            )
        )
    return CellResult(cell.name, repr(attack), seconds, tuple(results))


def plan_of(setting: Setting, scale: Scale) -> Plan:
    """Return the plan of one federation."""
    recipe = RECIPES[setting.recipe]
    return Plan(
        seeds=(setting.seed,),
        data=DataPlan(
            source=SOURCES[setting.source],
            split=Dirichlet(setting.alpha),
            clients=scale.clients,
            examples=scale.examples,
            auxiliary_per_class=MOST_AUXILIARY,
        ),
        training=TrainingPlan(
            model=Mlp((128, 64)),
            rounds=ROUNDS,
            rate=recipe.rate,
            epochs=recipe.epochs,
            batch=recipe.batch,
            optimizer=recipe.optimizer,
        ),
        # A plan must have a threat. The cells define the actual attacks and their knowledge.
        threats=(ThreatPlan(attacks=(MeanSoftmax(),)),),
    )


def auxiliary_of(partition: DataPartition, per_class: int | None, classes: int) -> Examples:
    """Return the first auxiliary examples of each class; None = all examples of the clients."""
    if per_class is None:
        return partition.pool.take(torch.cat(partition.rows[0]))
    labels = partition.auxiliary.labels
    first = [(labels == label).nonzero().flatten()[:per_class] for label in range(classes)]
    return partition.auxiliary.take(torch.cat(first))


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value
