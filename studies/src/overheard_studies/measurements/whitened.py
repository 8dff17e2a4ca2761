"""The whitened test of membership beside its prototype and today's other attacks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from time import process_time
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import spearmanr
from torch import Tensor

from overheard.auditing.inputs import load_inputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.simulate import simulate
from overheard.core.attack import Attack
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.defense import Defense
from overheard.core.examples import concatenate_examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.view import View
from overheard.data.dataset import DataSource
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import Mnist
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.defenses.local_dp import LocalDp
from overheard.disk.folders import remove_folder
from overheard.learning.layer_gradients import LayerGradients, layer_gradients
from overheard.learning.model import Model
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.decaf_modules import DecafModules
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.whitened_membership import WhitenedMembership
from overheard.questions.membership.claim import Membership
from overheard.simulation.gradient_evidence import compute_gradient_evidence
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.conclusion import Conclusion
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, Values, make_value

TUNING_SEEDS = (900, 901)
"""Seeds on which the settings of the whitened test were chosen; no figure is of them."""

SEEDS = (300, 301, 302, 303, 304)

FEW_SEEDS = SEEDS[:3]
"""Those of federations that take long, or of which there are many."""

SHADOWS_OF_CONVOLUTIONS = 64
"""Shadow models of `gradient_membership` and `lira_pooled` in place of 256 and of some
hundreds, whose training takes hours."""

RIDGE = 0.03
"""Of the prototype, relative to the mean eigenvalue."""

ARM = "all clients"

OURS, PROTOTYPE, GRADIENT = "whitened", "prototype", "gradient_membership"

STRENGTH = "strength"


@final
@dataclass(frozen=True, slots=True)
class World:
    """A federation of clients, all of them observed.

    Args:
        source: the data.
        model: the network.
        examples: of each client; the `members` of them are candidates.
        members: number of candidates of each client.
        auxiliary: auxiliary examples, per class or in all.
        rounds: number of rounds.
        epochs: local epochs.
        rate: learning rate.
        batch: examples a step.
        balanced: whether classes are equally frequent, and `auxiliary` is per class.
        defenses: which the attacker does not know.
        clients: number of clients.
        participation: share of the clients that train in a round.
        auxiliary_from: the data set of the auxiliary examples; None = `source`.
        alpha: of the Dirichlet distribution of each client's label shares; None = records are
            equally distributed.

    """

    source: DataSource
    model: Model
    examples: int
    members: int = 100
    auxiliary: int = 100
    rounds: int = 1
    epochs: int = 1
    rate: float = 0.1
    batch: int = 32
    balanced: bool = True
    defenses: tuple[Defense, ...] = ()
    clients: int = 5
    participation: float = 1.0
    auxiliary_from: DataSource | None = None
    alpha: float | None = None

    def plan(self, seed: int) -> Plan:
        """Return the plan of one run."""
        return Plan(
            seeds=(seed,),
            data=DataPlan(
                source=self.source,
                split=Iid(balanced=self.balanced)
                if self.alpha is None
                else Dirichlet(self.alpha),
                clients=self.clients,
                examples=self.examples,
                candidates=CandidateSettings(members=self.members, outsiders=1000),
                auxiliary_per_class=self.auxiliary if self.balanced else None,
                auxiliary=None if self.balanced else self.auxiliary,
            ),
            training=TrainingPlan(
                model=self.model,
                rounds=self.rounds,
                epochs=self.epochs,
                rate=self.rate,
                batch=self.batch,
                participation=self.participation,
            ),
            arms=(ArmPlan(name=ARM, defenses=self.defenses),),
            threats=(
                ThreatPlan(attacks=(WhitenedMembership(),), auxiliary_from=self.auxiliary_from),
            ),
        )

    def describe(self) -> str:
        """Name everything that moves the figures."""
        return (
            f"{self.source!r}, {self.model!r}, {self.examples} examples, {self.rounds} rounds, "
            f"{self.epochs} epochs, rate {self.rate:g}, batch {self.batch}, "
            f"{self.auxiliary} auxiliary{' a class' if self.balanced else ''}"
            f"{'' if self.auxiliary_from is None else f' from {self.auxiliary_from!r}'}"
            f"{'' if self.alpha is None else f', Dirichlet {self.alpha:g}'}"
            f", {self.participation * self.clients:g} of {self.clients} clients"
            f"{''.join(f', {one!r}' for one in self.defenses)}"
        )


MLPS = {
    "cifar10_mlp": World(Cifar10(), Mlp((64,)), 512, rounds=3),
    "mnist_mlp": World(Mnist(), Mlp((64,)), 512, rounds=3),
    "mnist_mlp_10_epochs": World(
        Mnist(), Mlp((32,)), 60, 60, auxiliary=20, rounds=2, epochs=10, batch=10
    ),
    "wisdm_mlp": World(
        Wisdm(), Mlp((128,)), 300, auxiliary=200, rounds=5, epochs=3, balanced=False
    ),
}
"""Three of these are the worlds in which the prototype was first measured."""

_NOISY = World(
    Mnist(shrink=2),
    Mlp((32,)),
    60,
    60,
    auxiliary=20,
    rounds=2,
    batch=10,
    defenses=(LocalDp(clip=5.0, noise_multiplier=0.06),),
)

DEFENDED = {"local_dp_1_epoch": _NOISY, "local_dp_10_epochs": replace(_NOISY, epochs=10)}
"""Noise hides members from the confidence of a model here, and little from updates."""

NETWORKS: Mapping[str, tuple[DataSource, Model]] = {
    "mnist_conv_net": (Mnist(), ConvNet(blocks=2, width=16)),
    "mnist_decaf": (Mnist(), DecafConv2()),
    "cifar10_conv_net": (Cifar10(), ConvNet(blocks=2, width=16)),
    "cifar10_decaf": (Cifar10(), DecafModules()),
}

CONVOLUTIONS = {
    f"{name}_{examples}_{epochs}_epochs_rate_{rate:g}": World(
        source, model, examples, epochs=epochs, rate=rate
    )
    for (name, (source, model)), examples, epochs, rate in product(
        NETWORKS.items(), (128, 512), (1, 5), (0.1, 0.03)
    )
}

RIVALS: Mapping[str, Attack[Membership]] = {
    GRADIENT: GradientMembership(trainings=0),
    "lira_pooled": LiraPooled(),
    "fed_mia": FedMia(),
    "loss": LossMembership(),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The scores of an attack on the clients of one run.

    Args:
        members: of each client's own candidates.
        others: of the records of no client.
        core_seconds: CPU time of the attack.

    """

    members: Float[np.ndarray, "clients members"]
    others: Float[np.ndarray, "clients others"]
    core_seconds: float

    def auc(self) -> float:
        """Return the mean AUC over clients."""
        pairs = self.members[:, :, None] - self.others[:, None, :]
        return float((pairs > 0).mean() + (pairs == 0).mean() / 2)

    def found(self, rate: float) -> float:
        """Return the mean share of members above all but this share of non-members."""
        place = int(rate * self.others.shape[1])
        limits = np.sort(self.others, axis=1)[:, ::-1][:, place]
        return float((self.members > limits[:, None]).mean())


def prototype(
    view: View, targets: Sequence[Party], knowledge: Knowledge
) -> Mapping[Party, Tensor]:
    """Return the scores of the prototype: K-FAC factors at the broadcast of each linear layer.

    It has no noise, no weights of layers, and one ridge.
    """
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    records = candidate_records(knowledge)
    known = records
    if knowledge.auxiliary is not None:
        known = concatenate_examples((records, knowledge.auxiliary))
    nothing = torch.zeros(len(records))
    fits, strengths = dict.fromkeys(targets, nothing), dict.fromkeys(targets, nothing)
    for number in view.rounds_with_updates(targets[0]):
        start = view.broadcasts()[number]
        found = layer_gradients(knowledge.build_model, start, known, knowledge.recipe)
        for layer, gradients in found.items():
            assert isinstance(gradients, LayerGradients), "its worlds have linear layers"
            inputs, slopes = gradients.inputs.squeeze(1), gradients.slopes.squeeze(1)
            (la, ea), (lg, eg) = (_factor(one) for one in (inputs, slopes))
            shape = torch.outer(lg, la)
            for target in targets:
                update = layer.matrix_of(view.updates(target)[number].delta)
                variances = update.square().sum() / shape.sum() * shape
                x, g = (inputs @ ea)[: len(records)], (slopes @ eg)[: len(records)]
                fit = -((g @ (eg.T @ update @ ea / variances)) * x).sum(1)
                strength = ((g.square() @ (1 / variances)) * x.square()).sum(1)
                fits[target] = fits[target] + fit
                strengths[target] = strengths[target] + strength
    return {one: fits[one] / strengths[one].sqrt() for one in targets}


def _factor(rows: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors = torch.linalg.eigh(rows.T @ rows / len(rows))
    values = values.clamp(min=0)
    return values + RIDGE * values.mean(), vectors


NOTHING_SHARED: Mapping[str, str] = {}

Infer = Callable[[View, Sequence[Party], Knowledge], Mapping[Party, Tensor]]


def inferred_by(attack: Attack[Membership]) -> Infer:
    """Return the scores of an attack by target."""

    def infer(
        view: View, targets: Sequence[Party], knowledge: Knowledge
    ) -> Mapping[Party, Tensor]:
        claims = attack.infer(view, targets, knowledge, Seed(0))
        return {target: claim.scores for target, claim in claims.items()}

    return infer


def _strength(
    view: View, targets: Sequence[Party], knowledge: Knowledge
) -> Mapping[Party, Tensor]:
    """Return the strength of each record before any truth, over all rounds."""
    senders = dict.fromkeys(view.rounds_with_updates(targets[0]), targets)
    found = compute_gradient_evidence(
        view, knowledge, senders, joint=WhitenedMembership().joint
    )
    total = torch.stack([one.first_strength for one in found.values()]).sum(0)
    return dict(zip(targets, total, strict=True))


def _measure(
    name: str, world: World, rows: Mapping[str, Infer], own: Sequence[int], run: MeasurementRun
) -> Iterator[ReproducedValue]:
    """Yield the figures of each attack, and the gain of the whitened test over each other."""
    seeds = seeds_of(run, own)
    by_seed: dict[str, list[Scores]] = {row: [] for row in (*rows, STRENGTH)}
    for seed in seeds:
        # The whitened test has computed it.
        found = run_world(
            world, {**rows, STRENGTH: _strength}, seed, run, same_cache={STRENGTH: OURS}
        )
        for row, scores in found.items():
            by_seed[row].append(scores)
    strengths = by_seed.pop(STRENGTH)
    context = f"{world.describe()}, seeds {', '.join(map(str, seeds))}"
    yield from compare_rows(name, context, by_seed)
    yield from _readable(name, context, by_seed[OURS], strengths)


def seeds_of(run: MeasurementRun, own: Sequence[int] = SEEDS) -> Sequence[int]:
    """Return the seeds of a measurement; `own` are those of its full size."""
    return run.seeds or (own[:1] if run.quick else own)


def compare_rows(
    name: str, context: str, by_seed: Mapping[str, Sequence[Scores]]
) -> Iterator[ReproducedValue]:
    """Yield the figures of each attack, and the gain of the whitened test over each other.

    Args:
        name: begins the names of the values.
        context: begins their descriptions.
        by_seed: the scores of each attack, seed by seed; the whitened test is `OURS`.

    """
    ours = by_seed[OURS]
    numbers = np.arange(len(ours))
    for row, found in by_seed.items():
        figures = {
            "auc": [one.auc() for one in found],
            "tpr_at_1_percent": [one.found(0.01) for one in found],
        }
        for figure, values in figures.items():
            mean = estimate_mean(np.array(values), numbers)
            words = f"{context}; {row}: {figure.replace('_', ' ')}"
            yield make_value(f"{name}_{row}_{figure}", words, mean, None, "higher")
        pooled = _pooled(found, 0.001)
        words = f"{context}; {row}: members above all but 0.1 % of the pooled non-members"
        yield make_value(f"{name}_{row}_pooled", words, pooled, None, "higher")
        seconds = float(np.mean([one.core_seconds for one in found]))
        yield make_value(f"{name}_{row}_seconds", f"{context}; {row}: core seconds", seconds)
        if row != OURS:
            pairs = zip(ours, found, strict=True)
            gap = np.array([one.auc() - other.auc() for one, other in pairs])
            words = f"{context}; AUC minus that of {row}, paired"
            yield make_value(
                f"{name}_over_{row}", words, estimate_mean(gap, numbers), None, "higher"
            )


def _readable(
    name: str, context: str, ours: Sequence[Scores], strengths: Sequence[Scores]
) -> Iterator[ReproducedValue]:
    """Yield how well the strength of a record predicts that the test finds it."""
    limit = _limit(ours, 0.01)
    strength = np.concatenate([one.members.ravel() for one in strengths])
    score = np.concatenate([one.members.ravel() for one in ours])
    found = score > limit
    rank = float(spearmanr(strength, found).statistic)
    words = f"{context}; rank correlation of a member's strength and being found at 1 %"
    yield make_value(f"{name}_strength_rank", words, rank, None, "higher")
    top = strength >= np.quantile(strength, 0.99)
    words = f"{context}; found at 1 % of the members in the top 1 % of strength, over all"
    yield make_value(f"{name}_strength_top", words, float(found[top].mean() / found.mean()))


def _pooled(found: Sequence[Scores], rate: float) -> float:
    """Return the share of members above all but this share of all runs' non-members."""
    limit = _limit(found, rate)
    return float(np.mean([(one.members > limit).mean() for one in found]))


def _limit(found: Sequence[Scores], rate: float) -> float:
    others = np.sort(np.concatenate([one.others.ravel() for one in found]))[::-1]
    return float(others[int(rate * len(others))])


def run_world(
    world: World,
    rows: Mapping[str, Infer],
    seed: int,
    run: MeasurementRun,
    only_round: int | None = None,
    same_cache: Mapping[str, str] = NOTHING_SHARED,
) -> Mapping[str, Scores]:
    """Simulate a run in a folder that the next one replaces, and attack it on one core.

    No row finds what another one computed, but for those of `same_cache`.

    Args:
        world: the federation.
        rows: attacks by the names of their rows.
        seed: of the run.
        run: has the folder and the resources.
        only_round: the round whose updates are read; None = all rounds.
        same_cache: of some rows, the row whose computations they may find.

    """
    plan, folder = world.plan(seed), run.folder / "run"
    remove_folder(folder, inside=run.folder)
    resources = replace(run.resources, workers=1)
    transcript, truth = simulate(plan, arm=ARM, seed=seed, folder=folder, resources=resources)
    view = transcript.seen_by(SERVER)
    if only_round is not None:
        view = view.during([only_round])
    owners = truth.facts.need(RecordOwners)
    targets = sorted(owners.members.keys() & set(view.senders()), key=str)
    owned = {place for one in owners.members.values() for place in one} | {*owners.excluded}
    known = load_inputs(plan, resources, MemoryTensorCache()).for_attackers(seed)
    found, caches = {}, {row: MemoryTensorCache() for row in rows}
    for row, infer in rows.items():
        own = replace(known, cache=caches[same_cache.get(row, row)])
        knowledge = attacker_knowledge(plan.arms[0], plan.threats[0], own)
        begun = process_time()
        scores = infer(view, targets, knowledge)
        seconds = process_time() - begun
        others = [n for n in range(len(scores[targets[0]])) if n not in owned]
        found[row] = Scores(
            np.stack([scores[one][list(owners.members[one])].numpy() for one in targets]),
            np.stack([scores[one][others].numpy() for one in targets]),
            seconds,
        )
    return found


def _gains(
    worlds: Iterable[str], rivals: Sequence[str], runs: StudyRuns, values: Values
) -> Mapping[str, Estimate | None]:
    """Return by world the paired gain over the strongest of these attacks."""
    by_name = {one.name: one for one in values}
    found = dict[str, Estimate | None]()
    for world in worlds:
        gains = [by_name[name] for row in rivals if (name := f"{world}_over_{row}") in by_name]
        least = min(gains, key=lambda one: one.value or 0.0, default=None)
        if least is not None and least.value is not None:
            found[world] = Estimate(least.value, least.low, least.high)
    return found


def _conclusions() -> Iterator[Conclusion]:
    """Yield what was asked of the test before it was measured."""
    for key, statement, worlds, rivals, margin in (
        (
            "prototype",
            "In each world of MLPs it leads the prototype.",
            MLPS,
            (PROTOTYPE,),
            0.03,
        ),
        (
            "convolutions",
            "With convolutions it leads each other attack.",
            CONVOLUTIONS,
            tuple(RIVALS),
            0.08,
        ),
        ("local_dp", "With local DP it is not behind.", DEFENDED, (GRADIENT,), 0.0),
    ):
        yield Conclusion(
            key, statement, partial(_gains, worlds, rivals), margin=margin, words="gain of AUC"
        )


def whitened() -> Study:
    """Return the whitened test beside other attacks, with linear layers and convolutions."""
    ours: Mapping[str, Infer] = {OURS: inferred_by(WhitenedMembership())}
    rivals = {row: inferred_by(attack) for row, attack in RIVALS.items()}
    plain = {**ours, PROTOTYPE: prototype, **rivals}
    fewer = {
        GRADIENT: GradientMembership(models=SHADOWS_OF_CONVOLUTIONS, trainings=0),
        "lira_pooled": LiraPooled(models=SHADOWS_OF_CONVOLUTIONS),
    }
    cheap = {**ours, **rivals, **{row: inferred_by(one) for row, one in fewer.items()}}
    measurements = [
        Measurement(name, partial(_measure, name, world, rows, seeds))
        for worlds, rows, seeds in (
            (MLPS | DEFENDED, plain, SEEDS),
            (CONVOLUTIONS, cheap, FEW_SEEDS),
        )
        for name, world in worlds.items()
    ]
    return Study(
        "whitened_membership",
        "Membership by whitened gradients, beside a prototype and other attacks",
        "It repeats no paper. Settings were chosen on the seeds "
        f"{' and '.join(map(str, TUNING_SEEDS))}. All attacks have the same knowledge. With "
        "convolutions gradient_membership and lira_pooled have "
        f"{SHADOWS_OF_CONVOLUTIONS} shadow models.",
        measurements=tuple(measurements),
        conclusions=tuple(_conclusions()),
        hours=9.0,
    )
