"""What is measured: which federations, auxiliary data, rounds and attacks make up the grid."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from overheard.core.attack import Attack
from overheard.core.recipe import Recipe
from overheard.data.dataset import DataSource
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
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
    # All rounds first: of its virtual clients the others find theirs on the shelf.
    "rounds-1-10": tuple(range(ROUNDS)),
    "round-1": (0,),
    "round-5": (4,),
}
"""Which rounds are listened to, counted from 0."""

AUXILIARIES = (1000, 100, 20)
"""Examples a class; the smaller are the first of the larger."""

OWN_POOL = "own-pool"
"""The auxiliary data of the limit: all examples that the clients themselves hold."""

OURS = "amortised"


@dataclass(frozen=True, slots=True)
class Scale:
    """How large everything is: two scales have no number in common.

    Args:
        clients: of a federation.
        examples: of each client.
        virtual: clients that an attacker trains.
        virtual_at_limit: the same for the limit.

    """

    clients: int = 20
    examples: int = 300
    virtual: int = 600
    virtual_at_limit: int = 1800


@dataclass(frozen=True, slots=True)
class Setting:
    """One federation.

    Args:
        source: of `SOURCES`.
        alpha: of Dirichlet's distribution, by which labels are shared out.
        recipe: of `RECIPES`.
        seed: of the run.

    """

    source: str
    alpha: float
    recipe: str
    seed: int

    @property
    def name(self) -> str:
        """Safe as the name of a folder."""
        return f"{self.source}_alpha-{self.alpha:g}_{self.recipe}_seed-{self.seed}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One attack with one amount of auxiliary data, listening to some rounds of a federation.

    Args:
        setting: the federation.
        auxiliary: examples a class; None = the clients' own pool.
        view: of `VIEWS`.
        attack: of `Lineup.attacks`.

    """

    setting: Setting
    auxiliary: int | None
    view: str
    attack: str

    @property
    def name(self) -> str:
        """Safe as the name of a file."""
        known = OWN_POOL if self.auxiliary is None else f"auxiliary-{self.auxiliary}"
        return f"{self.setting.name}_{known}_{self.view}_{self.attack}"


@dataclass(frozen=True, slots=True)
class Lineup:
    """Ours and its rivals, as they are by default unless told here.

    Args:
        most_rounds: that ours reads of all it hears.
        steps: of training each of our networks.
        convolutions: whether LDIA has those of its paper, which take longer than all else.
        with_ppa: whether PPA takes part, which takes longer still.

    """

    most_rounds: int = Amortised().most_rounds
    steps: int = Amortised().steps
    convolutions: bool = False
    with_ppa: bool = False

    def attacks(self) -> dict[str, Attack[LabelShares]]:
        """All that take part, by name."""
        every: dict[str, Attack[LabelShares]] = {
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
            every["ppa"] = Ppa()
        return every


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of the grid is measured; a larger extent holds all of a smaller one.

    Args:
        sources: of `SOURCES`.
        alphas: of `ALPHAS`.
        auxiliaries: of `AUXILIARIES`.
        seeds: how many, from 0.
        limit_seeds: how many of them the limit is measured for.
        only: a part of the names of the cells that are measured; "" = all.

    """

    sources: tuple[str, ...] = tuple(SOURCES)
    alphas: tuple[float, ...] = ALPHAS
    auxiliaries: tuple[int, ...] = AUXILIARIES
    seeds: int = 3
    limit_seeds: int = 1
    only: str = ""

    def settings(self) -> tuple[Setting, ...]:
        """Seed by seed, so that what is done of the grid when it is stopped can be compared."""
        return tuple(
            Setting(source, alpha, recipe, seed)
            for seed in range(self.seeds)
            for source in self.sources
            for alpha in self.alphas
            for recipe in RECIPES
        )

    def cells(self, setting: Setting, names: Iterable[str]) -> tuple[Cell, ...]:
        """All that attacks of these names do on one federation, in the order of doing it."""
        named = tuple(names)
        cells = [
            Cell(setting, auxiliary, view, attack)
            for auxiliary in self.auxiliaries
            for view in VIEWS
            for attack in named
        ]
        if setting.seed < self.limit_seeds:
            cells += [Cell(setting, None, view, OURS) for view in VIEWS]
        return tuple(cell for cell in cells if self.only in cell.name)
