"""The measurements that are audits: membership, words, identity, shifts and label shares."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from overheard.auditing.summary import summarise
from overheard.data.dataset import DataSource
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.data.splits.dirichlet import Dirichlet
from overheard.epsilon.threshold_bound import bound_epsilon_by_thresholds
from overheard.findings.finding import Finding
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.ilrg import Ilrg
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.whispers import Whispers
from overheard.questions.label_shares.attacks.zlg import Zlg
from overheard.statistics.run_means import estimate_mean
from overheard_studies.estimates import BOOTSTRAP_SEED, final_accuracy
from overheard_studies.plan_files import read_panels
from overheard_studies.study import Panel, PanelRun, Read, Study
from overheard_studies.values import ReproducedValue

HALF_MNIST, HALF_FASHION = Mnist(shrink=2), FashionMnist(shrink=2)
"""Images of 14 x 14 pixels."""


def read_summary(one: PanelRun, *scores: str) -> Iterator[ReproducedValue]:
    """Yield scores of every attack in every arm, each with its guess, and accuracies."""
    for row in summarise(one.audit.findings, BOOTSTRAP_SEED):
        if row.score in scores:
            name, words = f"{one.key}_{row.arm}_{row.attack}_{row.score}", row.score
            words = f"{row.arm}; {row.attack}: {row.score.replace('_', ' ')}"
            yield one.value(name.replace(" ", "_"), words, row.value, None, row.better)
            if row.best_uninformed is not None:
                guess = f"{words}, an uninformed guess"
                yield one.value(f"{name}_guess".replace(" ", "_"), guess, row.best_uninformed)
    for arm in one.plan.arms:
        words = f"{arm.name}; accuracy of the last model"
        accuracy = final_accuracy(one.audit, arm.name)
        name = f"{one.key}_{arm.name}_accuracy".replace(" ", "_")
        yield one.value(name, words, accuracy, None, "higher")


def describe_plan(name: str, run: Plan, full: Plan) -> str:
    """Describe an audit by its name, rounds and seeds."""
    seeds = ", ".join(map(str, run.seeds))
    return f"{name}, {run.training.rounds} rounds, seeds {seeds}"


REFERENCE = "lira_pooled"
"""The attack on membership that the others are compared with, seed by seed."""

DELTA = 1e-5


def _study(name: str, title: str, differences: str, read: Read) -> Study:
    """Return a study whose plans are a file."""
    text = f"It repeats no paper. {differences}"
    return Study(name, title, text, read_panels(name, read), describe_plan)


def membership() -> Study:
    """Return all attacks on membership, in seven federations."""
    return _study(
        "membership",
        "Attacks on membership, with local differential privacy and without a defense",
        "The settings of all attacks are their defaults. They were chosen on other seeds of "
        "the first two cases.",
        _read_membership,
    )


def whitened_layers() -> Study:
    """Return membership in networks whose layers are neither dense nor convolutions."""
    return _study(
        "whitened_layers",
        "Membership in an LSTM, a transformer and its adapters",
        "All attacks have the same knowledge. The learning rate of each network was chosen on "
        "another seed. Shadow models are 64, fewer than by default.",
        partial(_read_membership, reference="whitened_membership"),
    )


def _read_membership(one: PanelRun, reference: str = REFERENCE) -> Iterator[ReproducedValue]:
    """Read scores, the gap to the reference seed by seed, and the least epsilon."""
    yield from read_summary(one, "membership_auc", "tpr_at_1_percent")
    for arm in one.plan.arms:
        by_attack = defaultdict[str, list[Finding]](list)
        for finding in one.audit.findings:
            if finding.cell.arm == arm.name:
                by_attack[finding.cell.label].append(finding)
        others = _mean_by_seed(by_attack[reference], "membership_auc")
        for label, own in by_attack.items():
            name, words = f"{one.key}_{arm.name}_{label}".replace(" ", "_"), arm.name
            if label != reference:
                aucs = _mean_by_seed(own, "membership_auc")
                gaps = np.array([aucs[seed] - others[seed] for seed in others])
                described = f"{words}; {label}: AUC minus that of {reference}, paired"
                gap = estimate_mean(gaps, np.arange(len(gaps)))
                yield one.value(f"{name}_gap", described, gap, None, "higher")
            bound = bound_epsilon_by_thresholds(own, DELTA)
            least = None if bound is None else bound.epsilon
            yield one.value(f"{name}_epsilon", f"{words}; {label}: epsilon, at least", least)


def _mean_by_seed(findings: Iterable[Finding], score: str) -> Mapping[int, float]:
    values = defaultdict[int, list[float]](list)
    for finding in findings:
        values[finding.cell.seed] += [one.value for one in finding.scores if one.name == score]
    return {seed: float(np.mean(group)) for seed, group in sorted(values.items())}


def words() -> Study:
    """Return which words of bloggers, and of clients with news, a server infers."""
    return _study(
        "words",
        "Words that a server infers from updates",
        "Bloggers train a transformer to name the next word, whole or by adapters; clients "
        "with news train a bag of word vectors to name the section.",
        lambda one: read_summary(one, "rare_word_precision", "rare_words_named"),
    )


def adapters() -> Study:
    """Return re-identification of bloggers from adapters, and from full updates."""
    return _study(
        "adapters",
        "Re-identification of bloggers from adapters, and from full updates",
        "40 bloggers train a transformer; the server holds six other posts of each. The "
        "control permutes the private posts among all bloggers.",
        lambda one: read_summary(one, "top1", "control_excess"),
    )


def identity() -> Study:
    """Return re-identification where label counts say nothing, and where they do."""
    return _study(
        "identity",
        "Re-identification of users with equal label counts, and with as many examples",
        "Prior examples are earlier within each activity. The other measurements on identity "
        "are those of the paper Gradient-Leaks.",
        lambda one: read_summary(one, "mean_average_precision", "control_excess"),
    )


SHIFT_SCORES = (
    "auc",
    "auc_exact",
    "auc_told",
    "power_at_5",
    "detection_rate",
    "false_alarm_rate",
    "median_delay",
    "round_error",
    "direction_detected",
    "risen_error",
    "risen_coverage",
)


def shift() -> Study:
    """Return how well every attack distinguishes a shift from an exchange of examples."""
    return _study(
        "shift",
        "Shifts distinguished from exchanges of examples, by every attack",
        "The rivals run as published, and standardised round by round by simulated runs "
        "without a shift, as shift_tracking is. Each run has two controls: one with natural "
        "draws, and one that copies the label counts.",
        lambda one: read_summary(one, *SHIFT_SCORES),
    )


SHARE_ATTACKS = (
    Amortised(),
    MeanSoftmax(),
    BiasInversion(),
    Ramakrishna(form="soft_label"),
    Ramakrishna(form="auxiliary_gradient"),
    Decaf(),
    Zlg(),
    Llg(),
    Ilrg(),
    Ldia(convolutions=False),
    Whispers(),
)


RECIPES: Mapping[str, Mapping[str, object]] = {
    "sgd_1": {"rate": 0.05, "epochs": 1},
    "sgd_5": {"rate": 0.05, "epochs": 5},
    "adam_1": {"rate": 0.001, "epochs": 1, "optimizer": "adam"},
}
"""By optimizer and local epochs."""


SHARE_SOURCES = {"mnist": HALF_MNIST, "fashion_mnist": HALF_FASHION}


def label_shares(
    alphas: Sequence[float] = (0.5, 1.0, 2.0), auxiliaries: Sequence[int] = (1000, 100, 20)
) -> Study:
    """Return the error of each attack on label shares, in rounds 1 and 5 and all five."""

    def plan(
        source: DataSource, alpha: float, recipe: str, auxiliary: int, quick: bool
    ) -> Plan | None:
        if quick and (recipe, auxiliary) != ("sgd_1", 20):
            return None
        return Plan(
            title=f"Label shares on {source.name}",
            seeds=(0,) if quick else (0, 1, 2),
            data=DataPlan(
                source=source,
                split=Dirichlet(alpha),
                clients=5 if quick else 20,
                examples=100 if quick else 300,
                auxiliary_per_class=auxiliary,
            ),
            training=TrainingPlan.model_validate(
                {"model": Mlp((128, 64)), "rounds": 5, "batch": 32, **RECIPES[recipe]}
            ),
            threats=(
                ThreatPlan(
                    attacks=SHARE_ATTACKS,
                    by_round=2,
                    virtual=VirtualPlan(clients=64 if quick else 600),
                ),
            ),
        )

    return Study(
        "label_shares",
        "Error of every attack on label shares, by data, training and auxiliary examples",
        "It repeats no paper. Images have 14 x 14 pixels. Rivals have the settings of their "
        "papers and were not tuned.",
        tuple(
            Panel(
                f"{key}_alpha_{alpha:g}_{recipe}_auxiliary_{auxiliary}",
                f"{key}, Dirichlet({alpha:g}), {recipe}, {auxiliary} auxiliary a class",
                partial(plan, source, alpha, recipe, auxiliary),
                lambda one: read_summary(one, "l1", "coverage", "width", "doubted"),
            )
            for (key, source), alpha, recipe, auxiliary in product(
                SHARE_SOURCES.items(), alphas, RECIPES, auxiliaries
            )
        ),
        describe_plan,
    )
