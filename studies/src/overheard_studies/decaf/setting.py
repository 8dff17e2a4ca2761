"""The setting of Decaf's experiments: data sets, users, sizes, and the plan of a federation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from overheard.core.attack import Attack
from overheard.data.dataset import DataSource
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.fer2013 import Fer2013
from overheard.data.datasets.ham10000 import Ham10000
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.data.splits.shares import Shares
from overheard.learning.model import Model
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.decaf_modules import DecafModules
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.plans.plugin_field import plugin_label
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard_studies.decaf.published import PublishedUser, published_tables
from overheard_studies.setting_description import describe_setting as describe


@final
@dataclass(frozen=True, slots=True)
class DecafBenchmark:
    """One data set of the paper.

    Args:
        name: name of the data set as the paper writes it.
        table: name of the table with the users.
        source: source of the data.
        model: the paper's network, as far as Table II describes it.
        examples: examples of each user.
        auxiliary: auxiliary examples of each class.
        label_columns: for each label of the data source, its column in the paper's table.
        note: how the data differ from the paper's; a sentence or more.

    """

    name: str
    table: str
    source: DataSource
    model: Model
    examples: int
    auxiliary: int
    label_columns: tuple[int, ...]
    note: str

    @property
    def users(self) -> tuple[PublishedUser, ...]:
        """Return the users, with the shares in the order of the source's labels."""
        return self.reorder(published_tables()[self.table])

    def reorder(self, users: Sequence[PublishedUser]) -> tuple[PublishedUser, ...]:
        """Return users of a table with the shares in the order of the source's labels."""
        return tuple(user.reordered(self.label_columns) for user in users)


MNIST = DecafBenchmark(
    "MNIST",
    "table3",
    Mnist(),
    DecafConv2(),
    examples=1200,
    auxiliary=100,
    label_columns=tuple(range(10)),
    note="All 60,000 training images are available.",
)

FASHION_MNIST = DecafBenchmark(
    "Fashion-MNIST",
    "table4",
    FashionMnist(),
    DecafConv2(),
    examples=1200,
    auxiliary=100,
    label_columns=tuple(range(10)),
    note="All 60,000 training images are available.",
)

CIFAR10 = DecafBenchmark(
    "CIFAR-10",
    "table5",
    Cifar10(),
    DecafModules(),
    examples=600,
    auxiliary=100,
    label_columns=tuple(range(10)),
    note=(
        "The data folder may hold 1,000 training images of each class as JPEG copies instead "
        "of the 5,000 originals; users are small enough for them."
    ),
)

FER2013 = DecafBenchmark(
    "FER-2013",
    "table6",
    Fer2013(),
    DecafModules(modules=4),
    examples=280,
    auxiliary=50,
    # The table names no columns. The text lists the classes in alphabetical order (anger,
    # disgust, fear, happiness, neutrality, sadness, surprise); the source has neutral last.
    label_columns=(0, 1, 2, 3, 5, 6, 4),
    note=(
        "The table does not name its columns; they are assumed to be in the order of the "
        "text. The data folder may hold 10,000 training images as JPEG copies, 152 of them of "
        "the class disgust. There are therefore 50 auxiliary examples per class instead of "
        "100, and small users."
    ),
)

SKIN_CANCER = DecafBenchmark(
    "SkinCancer",
    "table7",
    Ham10000(),
    DecafModules(),
    examples=45,
    auxiliary=10,
    label_columns=tuple(range(7)),
    note=(
        "HAM10000 at 28 x 28 pixels, one image per lesion: 4,790 training images, 48 of them "
        "of the class df and 64 of vasc. There are therefore 10 auxiliary examples per class "
        "instead of 100, and users of 45 examples. HAM10000 has 115 images of df in all, so "
        "the paper cannot have 100 auxiliary ones that its users do not hold; it does not say "
        "what it did."
    ),
)

BENCHMARKS = (MNIST, FASHION_MNIST, CIFAR10, FER2013, SKIN_CANCER)


PUBLISHED_DECAF = Decaf(bases="published")
"""The attack with the paper's bases."""

ATTACK = plugin_label(PUBLISHED_DECAF)
"""Name of the attack in a plan."""

TABLE_DECAF = Decaf(solver="gradient", steps=20)
"""The attack in the setting of the tables: the one of `decaf/search` that is closest to Table
III, as none fits three tables."""

TABLE_ATTACK = plugin_label(TABLE_DECAF)
"""Its name in a plan."""

# Any: each setting has its own type.
TABLE_TRAINING: Mapping[str, Any] = {"batch": 64, "rate": 0.03}
"""How users and bases train in that setting."""

DISTANCES = ("l1", "l2", "linf")

LEARNING_RATE = 1.0
"""Learning rate of Adadelta: PyTorch's default, as the paper gives none."""


@final
@dataclass(frozen=True, slots=True)
class DecafSize:
    """The size of an experiment.

    Args:
        rounds: rounds of the federation.
        seeds: seeds of its runs.
        examples: examples of each user; None = the benchmark's.
        auxiliary: auxiliary examples of each class; None = the benchmark's.
        test: examples on which the accuracy is measured.

    """

    rounds: int
    seeds: tuple[int, ...]
    examples: int | None = None
    auxiliary: int | None = None
    test: int = 1000


def build_plan(
    benchmark: DecafBenchmark,
    size: DecafSize,
    # Any: each attack has its own claim type.
    attacks: tuple[Attack[Any], ...],
    *,
    model: Model | None = None,
    arms: tuple[ArmPlan, ...] = (),
    auxiliary: int | None = None,
    batch: int | None = None,
    epochs: int = 1,
    rate: float = LEARNING_RATE,
) -> Plan:
    """Build the plan of an audit of the paper's users, observed by the server.

    By default each user takes one step per round on all of its examples, and so do the
    attacker's published bases.

    Args:
        benchmark: data set and users.
        size: size of the run.
        attacks: attacks that the server runs.
        model: model that replaces the benchmark's.
        arms: arms with defenses, in addition to the undefended one.
        auxiliary: auxiliary examples of each class that replace the size's and the
            benchmark's.
        batch: examples of a step; None = all.
        epochs: passes over a user's examples in a round.
        rate: learning rate of users.

    """
    users = benchmark.users
    examples = size.examples or benchmark.examples
    known = auxiliary or size.auxiliary or benchmark.auxiliary
    return Plan(
        title=f"Decaf on {benchmark.name}",
        seeds=size.seeds,
        data=DataPlan(
            source=benchmark.source,
            split=Shares(tuple(user.true_percents for user in users)),
            clients=len(users),
            examples=examples,
            auxiliary_per_class=known,
            test=size.test,
        ),
        training=TrainingPlan(
            model=model or benchmark.model,
            rounds=size.rounds,
            rate=rate,
            epochs=epochs,
            batch=batch or max(examples, known * len(benchmark.label_columns)),
            optimizer="adadelta",
        ),
        arms=arms,
        threats=(ThreatPlan(attacks=attacks),),
    )


describe_setting = partial(describe, word="users")
"""Describe what a value was measured on, and what a quick run reduces."""
