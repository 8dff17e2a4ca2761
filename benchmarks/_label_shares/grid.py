"""The grid of federations, auxiliary data, observed rounds and attacks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from overheard.core.attack import Attack
from overheard.core.recipe import Recipe
from overheard.data.dataset import DataSource
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.defenses.local_dp import LocalDp
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.ilrg import Ilrg
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.label_shares.attacks.zlg import Zlg
from overheard.questions.label_shares.claim import LabelShares

SOURCES: Mapping[str, DataSource] = {
    "mnist": Mnist(shrink=2),
    "fashion_mnist": FashionMnist(shrink=2),
}

ALPHAS = (0.5, 1.0, 2.0)

RECIPES = {
    "sgd-1": Recipe(rate=0.05, epochs=1, batch=32),
    "sgd-5": Recipe(rate=0.05, epochs=5, batch=32),
    "adam-1": Recipe(rate=0.001, epochs=1, batch=32, optimizer="adam"),
}
"""By optimizer and local epochs."""

ROUNDS = 10

VIEWS: Mapping[str, tuple[int, ...]] = {
    # All rounds first, as the other views find their virtual clients in its cache.
    "rounds-1-10": tuple(range(ROUNDS)),
    "round-1": (0,),
    "round-5": (4,),
}
"""Observed rounds, counted from 0."""

AUXILIARIES = (1000, 100, 20)
"""Examples per class; smaller sets are the first examples of larger ones."""

OWN_POOL = "own-pool"
"""Name of the auxiliary data of the limit: all examples of the clients."""

OURS = "amortised"


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of the experiment; results of different scales are not comparable.

    Args:
        clients: clients per federation.
        examples: examples per client.
        virtual: virtual clients.
        virtual_at_limit: virtual clients at the limit.

    """

    clients: int = 20
    examples: int = 300
    virtual: int = 600
    virtual_at_limit: int = 1800


@dataclass(frozen=True, slots=True)
class Setting:
    """One federation.

    Args:
        source: key of `SOURCES`.
        alpha: parameter of the Dirichlet distribution of labels.
        recipe: key of `RECIPES`.
        seed: seed of the run.

    """

    source: str
    alpha: float
    recipe: str
    seed: int

    @property
    def name(self) -> str:
        """A name that is valid for a folder."""
        return f"{self.source}_alpha-{self.alpha:g}_{self.recipe}_seed-{self.seed}"


CLEAN, DISTORTED, NOISY = "clean", "distorted", "noisy"
"""Trials: the attacker's assumptions hold; its examples are distorted; clients add noise."""

WRONG_ASSUMPTIONS = (DISTORTED, NOISY)

DISTORTION = 0.8
"""Strength at which the auxiliary examples are distorted."""

UNKNOWN_NOISE = LocalDp(clip=1.0, noise_multiplier=0.03)
"""The defense that the attacker does not know of."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One attack with some auxiliary data on some rounds of a federation.

    Args:
        setting: the federation.
        auxiliary: examples per class; None = all examples of the clients.
        view: key of `VIEWS`.
        attack: key of `Lineup.attacks`.
        trial: `CLEAN`, or which assumption of the attacker is wrong.

    """

    setting: Setting
    auxiliary: int | None
    view: str
    attack: str
    trial: str = CLEAN

    @property
    def name(self) -> str:
        """A name that is valid for a file."""
        known = OWN_POOL if self.auxiliary is None else f"auxiliary-{self.auxiliary}"
        name = f"{self.setting.name}_{known}_{self.view}_{self.attack}"
        return name if self.trial == CLEAN else f"{name}_{self.trial}"


@dataclass(frozen=True, slots=True)
class Lineup:
    """Overheard's attack and the rival attacks, with default settings except these.

    Args:
        most_rounds: rounds that Overheard's attack reads.
        steps: training steps of its networks.
        convolutions: whether LDIA has its paper's convolutions, the slowest part.
        with_ppa: whether PPA is included, which is slower still.

    """

    most_rounds: int = Amortised().most_rounds
    steps: int = Amortised().steps
    convolutions: bool = False
    with_ppa: bool = False

    def attacks(self) -> dict[str, Attack[LabelShares]]:
        """Return all attacks by name."""
        attacks: dict[str, Attack[LabelShares]] = {
            OURS: Amortised(most_rounds=self.most_rounds, steps=self.steps),
            "decaf": Decaf(),
            "whispers": Whispers(),
            "mean_softmax": MeanSoftmax(),
            "bias_inversion": BiasInversion(),
            "ramakrishna soft_label": Ramakrishna(form="soft_label"),
            "ramakrishna auxiliary_gradient": Ramakrishna(form="auxiliary_gradient"),
            "zlg": Zlg(),
            "llg": Llg(),
            "ilrg": Ilrg(),
            "ldia": Ldia(convolutions=self.convolutions),
        }
        if self.with_ppa:
            attacks["ppa"] = Ppa()
        return attacks


@dataclass(frozen=True, slots=True)
class Extent:
    """The measured part of the grid; a larger extent includes all of a smaller one.

    Args:
        sources: keys of `SOURCES`.
        alphas: values of `ALPHAS`.
        auxiliaries: values of `AUXILIARIES`.
        seeds: number of seeds, from 0.
        limit_seeds: number of these seeds with the limit.
        wrong_seeds: number of these seeds with the trials of `WRONG_ASSUMPTIONS`.
        only: text in the names of the measured cells; "" = all cells.

    """

    sources: tuple[str, ...] = tuple(SOURCES)
    alphas: tuple[float, ...] = ALPHAS
    auxiliaries: tuple[int, ...] = AUXILIARIES
    seeds: int = 3
    limit_seeds: int = 1
    wrong_seeds: int = 1
    only: str = ""

    def settings(self) -> tuple[Setting, ...]:
        """Return all federations ordered by seed, so that partial results are comparable."""
        return tuple(
            Setting(source, alpha, recipe, seed)
            for seed in range(self.seeds)
            for source in self.sources
            for alpha in self.alphas
            for recipe in RECIPES
        )

    def cells(self, setting: Setting, names: Iterable[str]) -> tuple[Cell, ...]:
        """Return all cells of these attacks on one federation, in order of execution."""
        attacks = tuple(names)
        cells = [
            Cell(setting, auxiliary, view, attack)
            for auxiliary in self.auxiliaries
            for view in VIEWS
            for attack in attacks
        ]
        if setting.seed < self.limit_seeds:
            cells += [Cell(setting, None, view, OURS) for view in VIEWS]
        if setting.seed < self.wrong_seeds:
            cells += [
                Cell(setting, auxiliary, view, OURS, trial)
                for trial in WRONG_ASSUMPTIONS
                for auxiliary in self.auxiliaries
                for view in VIEWS
            ]
        return tuple(cell for cell in cells if self.only in cell.name)
