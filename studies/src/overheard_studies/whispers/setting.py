"""The setting of Whispers' experiments: data sets, splits, methods, noise, and plans."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, final

from overheard.core.attack import Attack
from overheard.core.split import Split
from overheard.data.dataset import DataSource
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.fer2013 import Fer2013
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.data.splits.quantity import Quantity
from overheard.defenses.local_dp import LocalDp
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import (
    UNDEFENDED,
    ArmPlan,
    KnownPart,
    Plan,
    ThreatPlan,
    TrainingPlan,
)
from overheard.plans.plugin_field import plugin_label
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard_studies.estimates import (
    FindingFilter,
)
from overheard_studies.values import Published

PUBLISHED = Published("whispers")

DISTANCES = ("wasserstein", "kl", "js", "l1")
"""The paper's distances, in the order of its columns."""

SEEDS = (0, 1, 2, 3, 4)
"""Seeds of a full run: the fewest from which on an interval covers other runs."""

CLIP, DELTA = 4.0, 1e-3
NOISE_ROUNDS, NOISE_SHARE = 200, 0.5
"""Clip, delta, rounds, and share of clients a round, of Gu and Bai's code (LDIA). It uses the
epsilons 1, 5, 10, 20 and 40."""

NOISE_EXAMPLES = 4000
"""Examples of a client of a full run; a quick run has the same noise."""

ROUNDING = 1e-4
"""Tolerance for two published distances that are both rounded to four digits."""

IMPOSSIBLE_NOTE = "impossible as published: its Wasserstein distance is below half of its L1"
"""The note on a row with a cell that cannot be right."""

EXPECTED_SIZES = (100, 4000)
"""Sizes of the smallest and of the largest client that the attacker of Figure 2 expects."""

SIZE_FACTOR = "size_factor"
"""The score of an estimated size: |log2(estimated / true)|."""


@final
@dataclass(frozen=True, slots=True)
class WhispersSize:
    """The size of a federation and of a set of virtual clients.

    Args:
        source: source of the data.
        model: model that the federation trains.
        rate: local learning rate.
        batch: examples per local step.
        examples: size of the smallest and of the largest client, virtual or real.
        clients: clients of the federation.
        auxiliary: auxiliary examples of each class.
        held_out: the most of them on which the attacker measures accuracies.
        rounds: rounds of the federation.
        virtual: virtual clients that the attacker trains.
        seeds: seeds of the runs.
        test: examples on which the accuracy is measured.

    """

    source: DataSource
    model: Model
    rate: float
    batch: int
    examples: tuple[int, int]
    clients: int
    auxiliary: int
    held_out: int = 400
    rounds: int = 10
    virtual: int = 1200
    seeds: tuple[int, ...] = SEEDS
    test: int = 2000


@final
@dataclass(frozen=True, slots=True)
class WhispersBenchmark:
    """One data set of the paper.

    Args:
        name: name as the paper writes it.
        full: size of a full run.
        reduced: size of a quick run.
        alphas: alphas of the Dirichlet distributions.
        labels: number of labels of a client in the split with few labels.

    """

    name: str
    full: WhispersSize
    reduced: WhispersSize
    alphas: tuple[float, ...] = (0.5, 1.0, 2.0)
    labels: int = 3

    @property
    def key(self) -> str:
        """Name in the keys of values and in folders."""
        return self.full.source.name

    @property
    def sizes(self) -> tuple[WhispersSize, WhispersSize]:
        """The sizes of a full and of a quick run."""
        return self.full, self.reduced


def reduce_size(full: WhispersSize, source: DataSource) -> WhispersSize:
    """Reduce a federation for a quick run: smaller clients, fewer rounds, one seed.

    Args:
        full: size of a full run.
        source: source of the same data, smaller if possible.

    """
    return replace(
        full,
        source=source,
        batch=32,
        examples=(300, 500),
        auxiliary=min(full.auxiliary, 100),
        rounds=3,
        virtual=240,
        seeds=(0,),
    )


SLOW_RATE, SLOW_MODEL = 0.01, Mlp((32,))
"""Local rate, without momentum, and model in which accuracies tell label shares. They were
chosen on MNIST at 14 x 14 pixels (`measurements.whispers_setting`)."""

_MNIST = WhispersSize(
    Mnist(shrink=2), SLOW_MODEL, SLOW_RATE, 128, (3000, 5000), clients=6, auxiliary=2000
)
_FASHION = replace(_MNIST, source=FashionMnist(shrink=2))
_FER2013 = WhispersSize(
    Fer2013(), SLOW_MODEL, SLOW_RATE, 32, (600, 1000), clients=6, auxiliary=50
)
_AG_NEWS = WhispersSize(AgNews(), TextBag(), 0.1, 32, (600, 1000), clients=6, auxiliary=200)

MNIST = WhispersBenchmark("MNIST", _MNIST, reduce_size(_MNIST, _MNIST.source))
FASHION_MNIST = WhispersBenchmark("F-MNIST", _FASHION, reduce_size(_FASHION, _FASHION.source))
FER2013 = WhispersBenchmark("FER2013", _FER2013, reduce_size(_FER2013, Fer2013()))
AG_NEWS = WhispersBenchmark(
    "AG-News", _AG_NEWS, reduce_size(_AG_NEWS, AgNews(vocabulary=5000)), (0.1, 0.4, 1.0), 2
)

BENCHMARKS = (MNIST, FASHION_MNIST, FER2013, AG_NEWS)

SIZE_BENCHMARK = replace(
    MNIST,
    full=replace(_MNIST, clients=5, virtual=60),
    reduced=replace(_MNIST, clients=5, virtual=60, rounds=2, seeds=(0,)),
)
"""The federation of Figure 2, whose clients all have one size."""


@final
@dataclass(frozen=True, slots=True)
class WhispersScenario:
    """A data set and a split for both real and virtual clients.

    Args:
        key: name in the keys of values, in folders and in the published tables.
        name: name in words.
        benchmark: data set.
        split: split of the labels.

    """

    key: str
    name: str
    benchmark: WhispersBenchmark
    split: Split


def iid_scenario(one: WhispersBenchmark, key: str | None = None) -> WhispersScenario:
    """Make a scenario in which every client holds all labels about equally often."""
    return WhispersScenario(key or one.key, f"{one.name} IID", one, Iid())


def few_labels_scenario(one: WhispersBenchmark) -> WhispersScenario:
    """Make a scenario in which every client holds a few labels, in any shares."""
    name = f"{one.name} with {one.labels} labels a client"
    return WhispersScenario(one.key, name, one, Quantity(one.labels, alpha=1.0))


def dirichlet_scenarios(one: WhispersBenchmark) -> tuple[WhispersScenario, ...]:
    """Make one scenario with Dirichlet shares for each of the paper's alphas."""
    return tuple(
        WhispersScenario(
            f"{one.key}_alpha_{alpha:g}",
            f"{one.name} Dirichlet({alpha:g})",
            one,
            Dirichlet(alpha),
        )
        for alpha in one.alphas
    )


@final
@dataclass(frozen=True, slots=True)
class Method:
    """One row of a table.

    Args:
        published_name: name of the method in the paper, or its origin.
        attack: attack.
        quick_attack: the same attack with less work, for a quick run; None = the same.

    """

    published_name: str
    # Any: each attack has its own claim type.
    attack: Attack[Any]
    quick_attack: Attack[Any] | None = None

    @property
    def key(self) -> str:
        """Name in the keys of values and in the published tables."""
        return self.attack.name

    @property
    def words(self) -> str:
        """The attack with its settings, and the paper's name."""
        return f"{plugin_label(self.attack)} ({self.published_name})"

    def select(self, *, quick: bool) -> Attack[Any]:
        """Return the attack of a full or of a quick run."""
        return self.quick_attack if quick and self.quick_attack is not None else self.attack


DECAF = Method("Dai et al.", Decaf(bases="published"))
RAMAKRISHNA = Method("Raksha et al.", Ramakrishna(form="auxiliary_gradient"))
PPA = Method(
    "Zhou et al.", Ppa(form="preference"), Ppa(form="preference", samples=20, retraining=2)
)
WHISPERS = Method(
    "the paper's own",
    Whispers(size="doubling", hidden=128, epochs=250, batch=128, rate=1e-2, slow_after=180),
    Whispers(size="doubling"),
)
"""A quick run has too few virtual clients for the wider network."""

AMORTISED = Method("Overheard's", Amortised(), Amortised(steps=300))

METHODS = (DECAF, RAMAKRISHNA, PPA, WHISPERS, AMORTISED)
"""All methods, in the order of the tables; the last is not in them."""

SIZE_METHODS = {
    "doubling": Method("Algorithm 1", Whispers(size="doubling", most_rounds=1)),
    "bisection": Method(
        "Overheard's correction of it", Whispers(size="bisection", most_rounds=1)
    ),
}
"""The estimators of sizes; the label shares that whispers also claims are not used here."""

UNIFORM_GUESS = "uniform"
"""Name of the uniform guess, which is reported with the methods."""


def build_plan(
    scenario: WhispersScenario,
    size: WhispersSize,
    *,
    quick: bool,
    methods: Iterable[Method] = METHODS,
    arms: tuple[ArmPlan, ...] = (),
    expected_sizes: tuple[int, int] | None = None,
) -> Plan:
    """Build the plan of an audit by a server that trains virtual clients like the real ones.

    Args:
        scenario: data set and split of real and virtual clients.
        size: size of the run.
        quick: whether to use the quick attacks.
        methods: methods that the server runs, on all rounds together.
        arms: arms with defenses, which the server then knows and its virtual clients apply.
        expected_sizes: smallest and largest client size that the server expects; None = the
            true ones.

    """
    known: tuple[KnownPart, ...] = ("auxiliary", "model", "recipe")
    return Plan(
        title=f"Whispers of Data on {scenario.name}",
        seeds=size.seeds,
        data=DataPlan(
            source=size.source,
            split=scenario.split,
            clients=size.clients,
            examples=size.examples,
            auxiliary_per_class=size.auxiliary,
            test=size.test,
        ),
        training=TrainingPlan(
            model=size.model,
            rounds=size.rounds,
            rate=size.rate,
            batch=size.batch,
        ),
        arms=arms,
        threats=(
            ThreatPlan(
                attacks=tuple(one.select(quick=quick) for one in methods),
                knows=(*known, "defenses") if arms else known,
                by_round=False,
                virtual=VirtualPlan(
                    clients=size.virtual,
                    held_out=size.held_out,
                    splits=(scenario.split,),
                    examples=expected_sizes or size.examples,
                ),
            ),
        ),
    )


def build_finding_filter(run: Plan, number: int, arm: str = UNDEFENDED) -> FindingFilter:
    """Select the findings of the attack with this index, on all rounds together."""
    threat, rounds = run.threats[0], tuple(range(run.training.rounds))
    return FindingFilter(threat.attack_name(threat.attacks[number]), rounds, arm)


def noise_deviation(epsilon: float) -> float:
    """Return the standard deviation of the noise on each weight."""
    releases = NOISE_SHARE * NOISE_ROUNDS
    return 2 * CLIP / NOISE_EXAMPLES * sqrt(2 * releases * log(1 / DELTA)) / epsilon


def build_noise_arm(epsilon: float) -> ArmPlan:
    """Build the arm whose clients add the noise."""
    multiplier = noise_deviation(epsilon) / CLIP
    noise = LocalDp(clip=CLIP, noise_multiplier=multiplier, delta=DELTA)
    return ArmPlan(name=f"epsilon {epsilon:g}", defenses=(noise,))
