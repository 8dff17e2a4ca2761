"""What adapters leak by their rank and layers: label shares, membership, identity and words."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import nn

from overheard.auditing.run import audit
from overheard.auditing.summary import summarise
from overheard.core.attack import Attack
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.blogs import Blogs, WindowSettings, cut_windows
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.reading.folder import data_folder
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.disk.folders import remove_folder
from overheard.findings.finding import Finding
from overheard.findings.score_row import ScoreRow
from overheard.learning.models.custom import Own
from overheard.learning.models.transformer import AdaptedLayer, Transformer, pretrain
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.membership.attacks.whitened_membership import WhitenedMembership
from overheard.questions.words.attacks.rows import CombinedRows
from overheard.questions.words.statistics.other_clients import OTHER_CLIENTS
from overheard_studies.estimates import BOOTSTRAP_SEED, final_accuracy
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, make_value

SEEDS = (500, 501, 502)

RATE = 0.01
"""Rate of Adam in all rows, so that rows differ in what is trained alone."""

WIDTH, DEPTH, HEADS = 64, 1, 4

ATTENTION: tuple[AdaptedLayer, ...] = ("query", "key", "value", "output")
FEED_FORWARD: tuple[AdaptedLayer, ...] = ("widen", "narrow")

LAYERS: Mapping[str, tuple[AdaptedLayer, ...]] = {
    "all": ATTENTION + FEED_FORWARD,
    "attention": ATTENTION,
    "feed_forward": FEED_FORWARD,
}
"""The linear layers of a block that have adapters, by name."""

VIRTUAL_CLIENTS = 60
"""Far fewer than by default, so that a run takes seconds."""

PRETRAINED_WINDOWS = 24_000
"""Windows of public text on which the base is trained."""

NEWS = AgNews(vocabulary=2000, tokens=20)
BLOGS = Blogs(task="next_word", vocabulary=2000)


@final
@dataclass(frozen=True, slots=True)
class Trained:
    """What of the network is trained and sent.

    Args:
        title: the name of its row.
        rank: rank of the adapters; 0 = the whole network.
        layers: which layers have adapters, as in `LAYERS`.
        trains_head: whether the last layer is trained beside them.

    """

    title: str
    rank: int = 0
    layers: str = "all"
    trains_head: bool = True

    def model(self, base: Path) -> Transformer | Own:
        """Return the model, whose other weights are those of a file."""
        if self.trains_head:
            rank, adapted = self.rank, LAYERS[self.layers]
            return Transformer(WIDTH, DEPTH, HEADS, rank=rank, adapted=adapted, base=str(base))
        arguments = (("rank", self.rank), ("layers", self.layers), ("base", str(base)))
        return Own(f"{__name__}:{with_frozen_head.__name__}", arguments)


def with_frozen_head(task: Task, rank: int, layers: str, base: str) -> nn.Module:
    """Build a transformer whose adapters alone are trained.

    Its last layer is that of the base or, for other classes, drawn from a fixed seed.
    """
    adapted = LAYERS[layers]
    network = Transformer(WIDTH, DEPTH, HEADS, rank=rank, adapted=adapted, base=base).build(
        task
    )
    last = network.get_submodule("last")
    assert isinstance(last, nn.Linear)
    if not task.class_names[0].startswith("word"):
        noise = torch.randn(last.weight.shape, generator=Seed(0).generator())
        with torch.no_grad():
            last.weight.copy_(noise / WIDTH**0.5)
            last.bias.zero_()
    for parameter in last.parameters():
        parameter.requires_grad_(False)
    return network


TRAINED: Mapping[str, Trained] = {
    "whole": Trained("whole network"),
    "rank_1": Trained("rank 1", 1),
    "rank_4": Trained("rank 4", 4),
    "rank_16": Trained("rank 16", 16),
    "rank_4_attention": Trained("rank 4, attention alone", 4, "attention"),
    "rank_4_feed_forward": Trained("rank 4, feed-forward part alone", 4, "feed_forward"),
    "rank_1_frozen_head": Trained("rank 1, head frozen", 1, trains_head=False),
    "rank_4_frozen_head": Trained("rank 4, head frozen", 4, trains_head=False),
    "rank_16_frozen_head": Trained("rank 16, head frozen", 16, trains_head=False),
}
"""The rows."""


@final
@dataclass(frozen=True, slots=True)
class World:
    """A federation in which some of the questions are asked.

    Args:
        data: the data, and how they are divided.
        public: which examples of the data pretrain the base: windows of words, and their next
            words.
        rounds: number of rounds.
        epochs: local epochs.
        attacks: the attacks.
        scores: the scores that are kept.

    """

    data: DataPlan
    public: Callable[[Dataset], Examples]
    rounds: int
    epochs: int
    attacks: tuple[Attack[Any], ...]  # Any: attacks of several questions.
    scores: tuple[str, ...]

    @property
    def source(self) -> DataSource:
        """The data set."""
        return self.data.source

    def plan(self, row: str, base: Path, seeds: Sequence[int]) -> Plan:
        """Return the plan of one row.

        Args:
            row: its key.
            base: file of the weights to start from.
            seeds: seeds of the runs.

        """
        threat = ThreatPlan(
            attacks=self.attacks, by_round=False, virtual=VirtualPlan(clients=VIRTUAL_CLIENTS)
        )
        return Plan(
            title=TRAINED[row].title,
            seeds=tuple(seeds),
            data=self.data,
            training=TrainingPlan(
                model=TRAINED[row].model(base),
                rounds=self.rounds,
                epochs=self.epochs,
                rate=RATE,
                batch=16,
                optimizer="adam",
            ),
            threats=(threat,),
        )


def _news_windows(dataset: Dataset) -> Examples:
    """Return windows of the test articles, without their sections."""
    return cut_windows(dataset.test.inputs, WindowSettings()).examples


def _windows_of_others(dataset: Dataset) -> Examples:
    """Return windows of other bloggers."""
    assert dataset.background is not None
    return dataset.background


WORLDS: Mapping[str, World] = {
    "shares": World(
        DataPlan(
            source=NEWS,
            split=Dirichlet(0.5),
            clients=10,
            examples=48,
            test=500,
            auxiliary_per_class=40,
        ),
        _news_windows,
        rounds=2,
        epochs=2,
        attacks=(Amortised(steps=100), MeanSoftmax(), CombinedRows()),
        scores=("l1", "rare_word_precision"),
    ),
    "records": World(
        DataPlan(
            source=NEWS,
            split=Iid(balanced=False),
            clients=5,
            examples=64,
            test=500,
            auxiliary=200,
            candidates=CandidateSettings(members=64, outsiders=300),
        ),
        _news_windows,
        rounds=1,
        epochs=4,
        attacks=(WhitenedMembership(),),
        scores=("membership_auc",),
    ),
    "users": World(
        DataPlan(
            source=BLOGS,
            split=ByUser(),
            clients=20,
            examples=48,
            test=300,
            people=KnownUserSettings(prior="random", share=0.5, records=6),
        ),
        _windows_of_others,
        rounds=1,
        epochs=2,
        attacks=(ReidentifyWccn(most_rounds=1, layers=("all",)), CombinedRows()),
        scores=("top1", "rare_word_precision"),
    ),
}
"""Federations, each with the questions that it can answer."""


@cache
def _base(world: str, folder: Path, data: Path | None) -> Path:
    """Return the file of a transformer that predicts the next word of public text."""
    path = folder / f"base_{WORLDS[world].source.name}.safetensors"
    if path.exists():
        return path
    dataset = WORLDS[world].source.load(data)
    windows = WORLDS[world].public(dataset)
    rows = torch.randperm(len(windows), generator=Seed(0).generator())[:PRETRAINED_WINDOWS]
    words = tuple(f"word {one}" for one in range(int(windows.labels.max()) + 1))
    task = Task(tuple(windows.inputs.shape[1:]), words, dataset.task.vocabulary)
    recipe = Recipe(rate=0.003, epochs=1, batch=64, optimizer="adam")
    build = partial(Transformer(WIDTH, DEPTH, HEADS).build, task)
    pretrain(build, windows.take(rows), recipe, path, seed=Seed(0))
    return path


def _measure(world: str, row: str, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield the scores of a row in a world, each with its guess and its control."""
    settings, trained = WORLDS[world], TRAINED[row]
    seeds = run.seeds or (SEEDS[:1] if run.quick else SEEDS)
    base = _base(world, run.folder, data_folder(run.resources.data))
    plan, folder = (
        settings.plan(row, base, seeds),
        run.folder / f"running_{world}_{row}",
    )
    remove_folder(folder, inside=run.folder)
    made = audit(plan, folder, resources=replace(run.resources, workers=1))
    remove_folder(folder, inside=run.folder)
    context = (
        f"{trained.title}, {settings.source.name}, {settings.data.clients} clients of "
        f"{settings.data.examples} examples, rounds {settings.rounds}, epochs "
        f"{settings.epochs}, rate {RATE:g}, seeds {', '.join(map(str, seeds))}"
    )
    for one in summarise(made.findings, BOOTSTRAP_SEED):
        if one.score not in settings.scores or one.best_uninformed is None:
            continue
        attack = one.attack.partition("(")[0].partition(",")[0]
        name = f"{world}_{row}_{attack}_{one.score}"
        words = f"{context}; {attack}: {one.score.replace('_', ' ')}"
        yield make_value(name, words, one.value, None, one.better)
        yield make_value(f"{name}_guess", f"{words}, an uninformed guess", one.best_uninformed)
        control = _control(one, made.findings)
        yield make_value(f"{name}_control", f"{words}, where nothing leaks", control)
    for attack, why in {one.cell.part: one.missing[0] for one in made.refusals}.items():
        yield make_value(f"{world}_{row}_{attack}_refused", f"{context}; {attack}: {why}", None)
    accuracy = final_accuracy(made, plan.arms[0].name)
    words = f"{context}; accuracy of the last model"
    yield make_value(f"{world}_{row}_accuracy", words, accuracy, None, "higher")


CONTROLS = {"top1": "IID control", "rare_word_precision": OTHER_CLIENTS}
"""Names of the references where nothing leaks, by score."""


def _control(row: ScoreRow, findings: Sequence[Finding]) -> float | None:
    """Return the score where nothing leaks.

    Identity has runs with permuted posts. Else the claims about a client are held against
    another one of the same run, whose data it never held.
    """
    if row.score in CONTROLS:
        return row.references[CONTROLS[row.score]]
    by_seed = defaultdict[int, list[Finding]](list)
    for one in findings:
        if one.cell.attack == row.attack and not one.cell.is_control:
            by_seed[one.cell.seed].append(one)
    fit = _l1 if row.score == "l1" else _auc
    fits = [
        fit(claim, other)
        for group in by_seed.values()
        for claim in group
        for other in group
        if other is not claim
    ]
    return float(np.mean(fits))


def _l1(claim: Finding, other: Finding) -> float:
    """Return the L1 distance of claimed shares from those of another client."""
    return float(np.abs(np.array(claim.claimed.numbers) - other.true_numbers).sum())


def _auc(claim: Finding, other: Finding) -> float:
    """Return the AUC of a claim on the members of another client among outsiders."""
    scores, true = np.array(claim.claimed.numbers), np.array(other.true_numbers)
    pairs = scores[true > 0][:, None] - scores[true < 0]
    return float((pairs > 0).mean() + (pairs == 0).mean() / 2)


def adapter_leaks() -> Study:
    """Return what a transformer leaks by the rank and the layers of its adapters."""
    return Study(
        "adapter_leaks",
        "What adapters leak by their rank and layers",
        "It repeats no paper. The base predicts the next word of public text. All rows train "
        "at one rate, so that they differ in what is trained alone. All attacks have the same "
        f"knowledge, and their defaults, but amortised has 100 steps and {VIRTUAL_CLIENTS} "
        "virtual clients.",
        measurements=tuple(
            Measurement(f"{world}_{row}", partial(_measure, world, row))
            for row, world in product(TRAINED, WORLDS)
        ),
        hours=0.2,
    )
