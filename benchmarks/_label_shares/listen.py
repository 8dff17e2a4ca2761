"""Runs one federation, lets every attack listen to it, and keeps what each got."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from time import process_time

import torch

from _label_shares.grid import RECIPES, ROUNDS, SOURCES, VIEWS, Cell, Scale, Setting
from _label_shares.store import Measured, Store, Told
from overheard.archive.shelf import FolderShelf
from overheard.auditing.simulate import federation_of
from overheard.auditing.supplies import Resources, deal_examples, load_data
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.means import Means
from overheard.core.parties import SERVER, client
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.data.partition.deal import Deal
from overheard.data.splits.dirichlet import Dirichlet
from overheard.federation.run import run
from overheard.learning.models.mlp import Mlp
from overheard.learning.threads import one_thread
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer

MOST_AUXILIARY = 1000
"""Examples of each class that are dealt whatever is asked for, so that all transcripts of a
federation are the same."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a federation is measured.

    Args:
        store: takes the figures.
        data: folder with data sets; None = as `Resources` has it.
        keep_bank: whether readings of virtual clients are kept once their attacks are done.
        is_wanted: asked before each attack; False ends the measuring.

    """

    store: Store
    data: Path | None
    keep_bank: bool
    is_wanted: Callable[[], bool]


def measure(setting: Setting, cells: Sequence[Cell], scale: Scale, place: Place) -> None:
    """Measure those cells of one federation that were not measured before."""
    missing = [cell for cell in cells if not place.store.has(cell)]
    if not missing:
        return
    plan, resources = plan_of(setting, scale), Resources(place.data, workers=1, device="cpu")
    dataset = load_data(plan, resources)
    folder = place.store.folder
    dealt = deal_examples(plan, dataset, setting.seed)
    federation = federation_of(plan, plan.arms[0], setting.seed, dealt, dataset.task, resources)
    transcript, truth = run(federation, folder / "runs" / setting.name)
    view = transcript.seen_by(SERVER)
    for auxiliary, some in groupby(missing, lambda cell: cell.auxiliary):
        bank = folder / "bank" / f"{setting.name}_{auxiliary}"
        knowledge = Knowledge(
            classes=dataset.task.classes,
            build_model=federation.build_model,
            auxiliary=auxiliary_of(dealt, auxiliary, dataset.task.classes),
            recipe=federation.recipe,
            means=Means(
                seed=Seed(setting.seed).child("bank"),
                virtual_clients=scale.virtual if auxiliary else scale.virtual_at_limit,
                shelf=FolderShelf(bank),
                workers=1,
            ),
        )
        for cell in some:
            if not place.is_wanted():
                return
            place.store.save(cell, listened(cell, place.store, view, truth, knowledge, scale))
        if not place.keep_bank:
            shutil.rmtree(bank, ignore_errors=True)


def listened(
    cell: Cell, store: Store, view: View, truth: GroundTruth, knowledge: Knowledge, scale: Scale
) -> Measured:
    """What one attack got, and in how much time."""
    attack, rounds = store.attacks[cell.attack], VIEWS[cell.view]
    heard, targets = view.during(rounds), [client(number) for number in range(scale.clients)]
    seed = Seed(cell.setting.seed).child("attack", cell.attack)
    began = process_time()
    with one_thread():
        claims = attack.infer(heard, targets, knowledge, seed)
    seconds, scorer, told = process_time() - began, LabelSharesScorer(), []
    for target in targets:
        true = scorer.truth(truth, target, rounds)
        scores = scorer.score(claims[target], true, scorer.guesses(true, knowledge))
        of = {score.name: score for score in scores}
        told.append(
            Told(
                target,
                of["l1"].value,
                of["l1"].blinds["uniform"],
                _value(of.get("coverage")),
                _value(of.get("width")),
            )
        )
    return Measured(cell.name, repr(attack), seconds, tuple(told))


def plan_of(setting: Setting, scale: Scale) -> Plan:
    """The plan of one federation, whatever its attackers know."""
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
        # A plan has a threat; who listens here, and knowing what, is told by the cells.
        threats=(ThreatPlan(attacks=(MeanSoftmax(),)),),
    )


def auxiliary_of(dealt: Deal, per_class: int | None, classes: int) -> Examples:
    """The first examples of each class that were dealt; None = what the clients hold."""
    if per_class is None:
        return dealt.pool.take(torch.cat(dealt.rows[0]))
    labels = dealt.auxiliary.labels
    first = [(labels == label).nonzero().flatten()[:per_class] for label in range(classes)]
    return dealt.auxiliary.take(torch.cat(first))


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value
