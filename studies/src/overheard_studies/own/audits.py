"""The measurements that are audits: membership, words and identity."""

import os
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import final

import numpy as np

from overheard.auditing.summary import summarise
from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.iid import Iid
from overheard.defenses.local_dp import LocalDp
from overheard.epsilon.threshold_bound import bound_epsilon_by_thresholds
from overheard.findings.finding import Finding
from overheard.learning.model import Model
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan, parse_plan
from overheard.questions.identity.attacks.metadata import Metadata
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.lira_pooled import LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.statistics.run_means import estimate_mean
from overheard_studies.deanonymization.setting import WISDM, build_identity_attacks
from overheard_studies.estimates import BOOTSTRAP_SEED, final_accuracy
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
            if row.blind is not None:
                guess = f"{words}, an uninformed guess"
                yield one.value(f"{name}_guess".replace(" ", "_"), guess, row.blind)
    for arm in one.plan.arms:
        words = f"{arm.name}; accuracy of the last model"
        accuracy = final_accuracy(one.audit, arm.name)
        name = f"{one.key}_{arm.name}_accuracy".replace(" ", "_")
        yield one.value(name, words, accuracy, None, "higher")


def seeded_panel(
    key: str, name: str, plan: Callable[[Sequence[int]], Plan], seeds: Sequence[int], read: Read
) -> Panel:
    """Return an audit whose quick run has the first seed alone."""
    return Panel(key, name, lambda quick: plan(seeds[:1] if quick else seeds), read)


def describe_plan(name: str, run: Plan, full: Plan) -> str:
    """Describe an audit by its name, rounds and seeds."""
    seeds = ", ".join(map(str, run.seeds))
    return f"{name}, {run.training.rounds} rounds, seeds {seeds}"


# Membership: attacks with local differential privacy and without a defense.

REFERENCE = LiraPooled()
"""The attack that the others are compared with, seed by seed."""

ADAPTIVE = (GradientMembership(), REFERENCE)
"""Attacks that also run with knowledge of the defenses."""

MEMBERSHIP_ATTACKS = (
    *ADAPTIVE,
    GradientMembership(trainings=0),
    Lira(),
    FedMia(),
    FedMia("confidence"),
    LossMembership(),
)

RECORD_NOISE = LocalDp(clip=5, noise_multiplier=0.06)
"""Noise that hides single records from the confidence of a model, and little else."""

DELTA = 1e-5


@final
@dataclass(frozen=True, slots=True)
class MembershipCase:
    """A federation of five clients whose records are all candidates.

    Args:
        about: description.
        source: data source.
        training: the model, and how clients train it, for two rounds.
        examples: examples of each client.
        is_balanced: whether clients and auxiliary examples have equal label shares, rather
            than those of the data set.

    """

    about: str
    source: DataSource
    training: TrainingPlan
    examples: int = 60
    is_balanced: bool = True

    def plan(self, seeds: Sequence[int]) -> Plan:
        """Return the plan of some seeds."""
        return Plan(
            title=self.about,
            seeds=tuple(seeds),
            data=DataPlan(
                source=self.source,
                split=Iid(balanced=self.is_balanced),
                clients=5,
                examples=self.examples,
                auxiliary_per_class=20 if self.is_balanced else None,
                auxiliary=None if self.is_balanced else 200,
                candidates=CandidateSettings(members=self.examples, outsiders=1000),
            ),
            training=self.training,
            arms=(
                ArmPlan(name="local DP", defenses=(RECORD_NOISE,)),
                ArmPlan(name="no defense"),
            ),
            threats=(
                ThreatPlan(attacks=MEMBERSHIP_ATTACKS, by_round=False),
                ThreatPlan(
                    attacks=ADAPTIVE,
                    by_round=False,
                    knows=("auxiliary", "model", "recipe", "defenses"),
                ),
            ),
        )


def _sgd(model: Model, epochs: int) -> TrainingPlan:
    return TrainingPlan(model=model, rounds=2, rate=0.1, epochs=epochs, batch=10)


NET = Mlp(hidden=(32,))

ADAM = TrainingPlan(model=NET, rounds=2, rate=0.003, epochs=5, batch=20, optimizer="adam")

MEMBERSHIP_CASES = {
    "mnist_10": MembershipCase("MNIST, 10 local epochs", HALF_MNIST, _sgd(NET, 10)),
    "mnist_1": MembershipCase("MNIST, 1 local epoch", HALF_MNIST, _sgd(NET, 1)),
    "fashion_adam": MembershipCase("Fashion-MNIST, Adam", HALF_FASHION, ADAM, 100),
    "adult": MembershipCase("Adult", Adult(), _sgd(NET, 10), is_balanced=False),
    "wisdm": MembershipCase("WISDM", Wisdm(), _sgd(NET, 5), is_balanced=False),
    "ag_news": MembershipCase(
        "AG-News", AgNews(), _sgd(TextBag(dim=16, hidden=16), 10), is_balanced=False
    ),
    "fashion_conv": MembershipCase(
        "Fashion-MNIST, convolutions", HALF_FASHION, _sgd(ConvNet(blocks=1, width=12), 5)
    ),
}

REPORTED_SEEDS = range(200, 210)
"""The attacks' defaults were chosen on the seeds 100 to 105."""


def membership(cases: Mapping[str, MembershipCase] = MEMBERSHIP_CASES) -> Study:
    """Return all attacks on membership in each case."""
    panels = [
        seeded_panel(key, case.about, case.plan, REPORTED_SEEDS, _read_membership)
        for key, case in cases.items()
    ]
    return Study(
        "membership",
        "Attacks on membership, with local differential privacy and without a defense",
        "It repeats no paper. The settings of all attacks are their defaults. They were chosen "
        "on other seeds of the first two cases.",
        tuple(panels),
        describe_plan,
    )


def _read_membership(one: PanelRun) -> Iterator[ReproducedValue]:
    """Read scores, the gap to the reference seed by seed, and the least epsilon."""
    yield from read_summary(one, "membership_auc", "tpr_at_1_percent")
    for arm in one.plan.arms:
        by_attack = defaultdict[str, list[Finding]](list)
        for finding in one.audit.findings:
            if finding.cell.arm == arm.name:
                by_attack[finding.cell.label].append(finding)
        reference = _mean_by_seed(by_attack[REFERENCE.name], "membership_auc")
        for label, own in by_attack.items():
            name, words = f"{one.key}_{arm.name}_{label}".replace(" ", "_"), arm.name
            if label != REFERENCE.name:
                aucs = _mean_by_seed(own, "membership_auc")
                gaps = np.array([aucs[seed] - reference[seed] for seed in reference])
                described = f"{words}; {label}: AUC minus that of {REFERENCE.name}, paired"
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


# Words and re-identification of bloggers who train a transformer.

BASE = "OVERHEARD_STUDIES_BASE"
"""The variable that names pretrained weights, as `own.pretrain` writes them; without it the
transformer starts from fresh weights."""

WORD_ATTACKS = (
    'attacks = ["embedding_rows", "output_rows", "combined_rows"]\nby_round = false\n'
)

FEDERATIONS = {
    "bloggers_all": ("bloggers", 0),
    "bloggers_rank_8": ("bloggers", 8),
    "news": ("news", 0),
}
"""By federation: its template, and the rank of the adapters (0 = none)."""

LAYERS = {0: ("", "[-1]", '["all"]'), 8: ("", "[-1]", '["all"]', "[0, 1, 2, 3, 4, 5]")}
"""By the rank, the layers that re-identification reads: its default, the last one, all that is
sent, and the adapters alone."""


def _read_template(name: str) -> str:
    return files("overheard_studies.own").joinpath(f"plans/{name}.toml").read_text("utf-8")


def _fill_in(template: str, rank: int, seeds: Sequence[int], rest: str) -> Plan:
    base = os.environ.get(BASE)
    stated = f', base = "{Path(base).as_posix()}"' if base else ""
    text = Template(_read_template(template)).substitute(
        rank=rank, seeds=list(seeds), clients=40, base=stated
    )
    return parse_plan(f"{text}\n{rest}", template)


def words() -> Study:
    """Return which words of bloggers, and of clients with news, a server infers."""
    known = tomllib.loads(_read_template("arms"))

    def plan(template: str, rank: int, seeds: Sequence[int]) -> Plan:
        tables = [f'[[arms]]\nname = "{name}"\n{arm}' for name, arm in known[template].items()]
        return _fill_in(
            template, rank, seeds, "\n".join([*tables, "[[threats]]", WORD_ATTACKS])
        )

    return Study(
        "words",
        "Words that a server infers from updates",
        "It repeats no paper. Bloggers train a transformer to name the next word, whole or by "
        "adapters; clients with news train a bag of word vectors to name the section. A "
        "federation of whole transformers takes 1 GB of disk.",
        tuple(
            seeded_panel(
                key,
                key.replace("_", " "),
                partial(plan, template, rank),
                range(3),
                lambda one: read_summary(one, "rare_word_precision", "rare_words_named"),
            )
            for key, (template, rank) in FEDERATIONS.items()
        ),
        describe_plan,
    )


def adapters() -> Study:
    """Return re-identification of bloggers from adapters, and from full updates."""

    def plan(rank: int, seeds: Sequence[int]) -> Plan:
        attacks = ", ".join(
            f'{{ kind = "reidentify_wccn", most_rounds = 2{read and f", layers = {read}"} }}'
            for read in LAYERS[rank]
        )
        threat = f'[[threats]]\nattacks = [{attacks}]\npseudonyms = "run"\nby_round = false\n'
        return _fill_in("adapters", rank, seeds, threat)

    return Study(
        "adapters",
        "Re-identification of bloggers from adapters, and from full updates",
        "It repeats no paper. 40 bloggers train a transformer; the server holds six other "
        "posts of each. The control permutes the private posts among all bloggers.",
        tuple(
            seeded_panel(
                f"rank_{rank}",
                f"rank {rank}" if rank else "full updates",
                partial(plan, rank),
                range(10),
                lambda one: read_summary(one, "top1", "control_excess"),
            )
            for rank in LAYERS
        ),
        describe_plan,
    )


# Identity: matched labels, and metadata alone; the rest is in the studies of the paper.

EARLIER = KnownUserSettings(prior="chronological_within_labels", shadow_devices=True)

IDENTITY_CASES = {
    "matched": (
        "28 users of 10 walking and 10 jogging windows",
        replace(EARLIER, per_label=10),
    ),
    "few": ("28 users of 20 windows, labels as they are", replace(EARLIER, records=20)),
}


def identity() -> Study:
    """Return re-identification where label counts say nothing, and where they do."""

    def plan(known: KnownUserSettings, seeds: Sequence[int]) -> Plan:
        attacks = (
            *build_identity_attacks(WISDM, "shadow"),
            *build_identity_attacks(WISDM, "simulated"),
            Metadata(),
        )
        return Plan(
            title="WISDM, few windows",
            seeds=tuple(seeds),
            data=DataPlan(
                source=Wisdm(),
                split=ByUser(),
                clients=28,
                examples=known.records or 100_000,
                people=known,
            ),
            training=TrainingPlan(
                model=Mlp(hidden=(64,)), rounds=24, participation=0.5, rate=0.1, batch=16
            ),
            threats=(ThreatPlan(attacks=attacks, pseudonyms="round", by_round=False),),
        )

    return Study(
        "identity",
        "Re-identification of users with equal label counts, and with as many examples",
        "It repeats no paper. Prior examples are earlier within each activity. The other "
        "measurements on identity are those of the paper Gradient-Leaks.",
        tuple(
            seeded_panel(
                key,
                about,
                partial(plan, known),
                range(10),
                lambda one: read_summary(one, "mean_average_precision", "control_excess"),
            )
            for key, (about, known) in IDENTITY_CASES.items()
        ),
        describe_plan,
    )


# Label shares: all attacks on the same transcripts.


# Shifts: a shift distinguished from an exchange of examples.
