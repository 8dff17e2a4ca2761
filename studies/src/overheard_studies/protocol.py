"""Protocols of other papers: scores of attacks over all rounds and per round."""

from collections.abc import Callable, Iterator
from functools import partial

from overheard.core.scorer import Better
from overheard.data.dataset import DataSource
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces
from overheard.data.splits.shares import Shares
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard_studies.estimates import FindingFilter, mean_guess_score, mean_score
from overheard_studies.study import Panel, PanelRun, Paper, Study
from overheard_studies.values import Published, ReproducedValue

PUBLISHED = Published("protocols")

UNIFORM_GUESS = "uniform"


def protocol(
    paper: str,
    name: str,
    title: str,
    panels: dict[str, Callable[[bool], Plan]],
    scores: tuple[str, ...],
    better: Better,
) -> Study:
    """Return attacks on the federation that a paper describes, beside the uniform guess.

    Args:
        paper: name of the paper, in the file of published values.
        name: name of the experiment.
        title: title, in one line.
        panels: by the name of a data set as the paper writes it, the plan of a full or of a
            quick run. Its threat runs every attack on all rounds together and on each alone;
            the paper's attack is the first.
        scores: names of the scores; the paper's main score comes first.
        better: whether higher or lower scores mean a better attack.

    """
    read = partial(_read, paper, scores, better)
    return Study(
        name,
        title,
        PUBLISHED.differences(paper),
        tuple(
            Panel(plan(False).data.source.name, key, plan, read) for key, plan in panels.items()
        ),
    )


def _read(
    paper: str, scores: tuple[str, ...], better: Better, one: PanelRun
) -> Iterator[ReproducedValue]:
    """Read each score of each attack and of the guess, over all rounds and per round."""
    threat, rounds = one.plan.threats[0], tuple(range(one.plan.training.rounds))
    selections = {"all_rounds": rounds} | {f"round_{n + 1}": (n,) for n in rounds}
    for number, attack in enumerate(threat.attacks):
        for when, selected in selections.items():
            for score in scores:
                is_main = (number, when, score) == (0, "all_rounds", scores[0])
                found = FindingFilter(threat.attack_name(attack), selected)
                yield one.value(
                    f"{one.key}_attack_{number + 1}_{attack.name}_{score}_{when}",
                    f"{attack!r}, {when.replace('_', ' ')}",
                    mean_score(one.audit, found, score),
                    PUBLISHED.number(paper, one.key) if is_main else None,
                    better,
                )
    first = FindingFilter(threat.attack_name(threat.attacks[0]), rounds)
    for score in scores:
        measured = mean_guess_score(one.audit, first, score, UNIFORM_GUESS)
        words = "uninformed guess: uniform over classes"
        yield one.value(f"{one.key}_{UNIFORM_GUESS}_{score}", words, measured, None, better)


def ldia_plan(quick: bool) -> Plan:
    """Return the federation of LDIA on MNIST."""
    return Plan(
        title="LDIA on MNIST",
        seeds=(0,) if quick else (0, 1, 2),
        data=DataPlan(
            source=Mnist(shrink=2) if quick else Mnist(),
            split=Dirichlet(0.8),
            clients=10 if quick else 40,
            examples=400 if quick else 1000,
            auxiliary_per_class=50,
            test=1000,
        ),
        training=TrainingPlan(
            model=LdiaConv(),
            rounds=3 if quick else 10,
            rate=0.001,
            epochs=5,
            batch=32 if quick else 128,
            momentum=0.9,
            weight_decay=5e-4,
        ),
        threats=(
            ThreatPlan(
                attacks=(Ldia(), Amortised(steps=300) if quick else Amortised()),
                virtual=VirtualPlan(clients=160 if quick else 1000, splits=(Faces(),)),
            ),
        ),
    )


PREFERRED, OTHER = 62.5, 37.5 / 9
"""Percentages of the preferred class, 3,000 examples, and of each other one, 200."""

PREFERENCE_SPLIT = Shares(
    tuple(
        tuple(PREFERRED if label == preferred else OTHER for label in range(10))
        for preferred in range(10)
    )
)
"""One client for each preferred class."""


def ppa_plan(
    sources: tuple[DataSource, DataSource], examples: tuple[int, int], quick: bool
) -> Plan:
    """Return the federation of PPA on a data set, each setting for a full and a quick run."""
    attack = Ppa(form="preference", samples=20, retraining=2) if quick else Ppa("preference")
    return Plan(
        title=f"PPA on {sources[quick].name}",
        seeds=(0,) if quick else (0, 1, 2),
        data=DataPlan(
            source=sources[quick],
            split=PREFERENCE_SPLIT,
            clients=10,
            examples=examples[quick],
            auxiliary_per_class=200,
            test=1000,
        ),
        training=TrainingPlan(
            model=LdiaConv(16 if quick else 32),
            rounds=2 if quick else 5,
            rate=0.001,
            batch=32 if quick else 128,
            optimizer="adam",
        ),
        threats=(
            ThreatPlan(
                attacks=(attack, Amortised(steps=300) if quick else Amortised()),
                virtual=VirtualPlan(clients=120 if quick else 1000, splits=(Dirichlet(0.1),)),
            ),
        ),
    )


def ramakrishna_plan(quick: bool) -> Plan:
    """Return the federation of Ramakrishna and Dan, with their estimators and a rival."""
    return Plan(
        title="Ramakrishna and Dan on MNIST",
        seeds=(0,) if quick else tuple(range(10)),
        data=DataPlan(
            source=Mnist(shrink=2) if quick else Mnist(),
            split=Dirichlet(1.0),
            clients=10,
            examples=(100, 1500),
            auxiliary_per_class=10,
            test=1000,
        ),
        training=TrainingPlan(
            model=LdiaConv(),
            rounds=4 if quick else 20,
            rate=0.01,
            epochs=5,
            batch=256,
            momentum=0.9,
        ),
        threats=(
            ThreatPlan(
                attacks=(
                    Ramakrishna(),
                    Ramakrishna(form="auxiliary_gradient"),
                    Ramakrishna(form="auxiliary_gradient_weights"),
                    Ramakrishna(form="ratio"),
                )
            ),
        ),
    )


PAPERS = (
    Paper(
        "ldia",
        "LDIA: Label Distribution Inference Attack Against Federated Learning in Edge "
        "Computing",
        "Gu and Bai 2023 (JISA 74)",
        lambda: (
            protocol(
                "ldia",
                "mnist",
                "Error of the network that reads the last layer's changes",
                {"MNIST": ldia_plan},
                ("kl", "linf", "l1"),
                "lower",
            ),
        ),
    ),
    Paper(
        "ppa",
        "PPA: Preference Profiling Attack Against Federated Learning",
        "Zhou et al. 2023 (NDSS; arXiv 2202.04856)",
        lambda: (
            protocol(
                "ppa",
                "top1",
                "How often the attack names the majority class of a client",
                {
                    "MNIST": partial(ppa_plan, (Mnist(), Mnist(shrink=2)), (4800, 480)),
                    "CIFAR-10": partial(ppa_plan, (Cifar10(), Cifar10()), (768, 240)),
                },
                ("top1",),
                "higher",
            ),
        ),
    ),
    Paper(
        "ramakrishna",
        "Inferring Class-Label Distribution in Federated Learning",
        "Ramakrishna and Dan 2022 (AISec)",
        lambda: (
            protocol(
                "ramakrishna",
                "forms",
                "Error of four estimators from the last layer, by round",
                {"MNIST": ramakrishna_plan},
                ("kl", "l2", "l1"),
                "lower",
            ),
        ),
    ),
)
