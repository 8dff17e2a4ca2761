"""Tables III to VII and the figures of Decaf that can be reproduced."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from overheard.core.parties import client
from overheard.core.scorer import Better
from overheard.learning.model import Model
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.resnet18 import ResNet18
from overheard.learning.models.vgg16 import Vgg16
from overheard.plans.plugin_field import plugin_label
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard_studies.conclusion import Conclusion
from overheard_studies.decaf.conclusions import (
    AUXILIARY_CONCLUSIONS,
    AVERAGED_ROUNDS,
    FOLLOWED_USER,
    NEURON_CONCLUSIONS,
    ablation_conclusions,
    averaged_scores,
    network_conclusions,
    over_runs,
    random_guess,
    round_conclusions,
    table_conclusions,
)
from overheard_studies.decaf.defended import ATTACK as DEFENDED_ATTACK
from overheard_studies.decaf.defended import (
    STEPS,
    STEPWISE_DECAF,
    defended_arms,
    defense_conclusions,
)
from overheard_studies.decaf.mechanism import cost, growing_rows
from overheard_studies.decaf.published import (
    PUBLISHED,
    PublishedUser,
    mean_published_guess_score,
    mean_published_score,
    published_accuracies,
    published_tables,
    score_published_claim,
)
from overheard_studies.decaf.search import chosen_settings, search
from overheard_studies.decaf.setting import (
    ATTACK,
    BENCHMARKS,
    CIFAR10,
    DISTANCES,
    FASHION_MNIST,
    FER2013,
    MNIST,
    PUBLISHED_DECAF,
    SKIN_CANCER,
    TABLE_ATTACK,
    TABLE_DECAF,
    TABLE_TRAINING,
    DecafBenchmark,
    DecafSize,
    build_plan,
    describe_setting,
)
from overheard_studies.estimates import (
    FindingFilter,
    find_best_round,
    mean_accuracy,
    mean_guess_score,
    mean_score,
    mean_score_over_rounds,
)
from overheard_studies.study import Panel, PanelRun, Paper, Read, Study
from overheard_studies.values import ReproducedValue

NULL_CLASS_SCORES = ("null_recall", "null_precision", "null_exact")
"""Scores for null classes."""

RANDOM = "random guess: uniform numbers scaled to sum to 1 (Figure 4)"

AUDIT = "audit"
"""Sub-folder of the only audit of a study."""

Sizes = tuple[DecafSize, DecafSize]
"""The sizes of a full run and of a quick run."""

FIVE_ROUNDS = DecafSize(rounds=5, seeds=(0, 1, 2, 3, 4)), DecafSize(rounds=5, seeds=(0,))
MANY_ROUNDS = DecafSize(rounds=20, seeds=(0, 1, 2, 3, 4)), DecafSize(rounds=6, seeds=(0,))
SWEEP_ROUNDS = DecafSize(rounds=10, seeds=(0, 1, 2, 3, 4)), DecafSize(rounds=3, seeds=(0,))
DEEP_SIZES = (
    DecafSize(rounds=3, seeds=(0, 1), examples=200, auxiliary=20),
    DecafSize(rounds=1, seeds=(0,), examples=50, auxiliary=5, test=100),
)
DEFENDED_ROUNDS = (
    DecafSize(rounds=10, seeds=(0, 1, 2, 3, 4)),
    DecafSize(rounds=4, seeds=(0,)),
)


# Any: each setting of a plan has its own type.
def _panel(
    benchmark: DecafBenchmark, sizes: Sizes, read: Read, key: str = AUDIT, **settings: Any
) -> Panel:
    """Return the audit of a data set; see `build_plan` for the settings."""
    attacks = settings.pop("attacks", (PUBLISHED_DECAF,))
    return Panel(
        key,
        benchmark.name,
        lambda quick: build_plan(benchmark, sizes[quick], attacks, **settings),
        read,
    )


# Any: as above.
def _study(
    name: str,
    title: str,
    texts: Sequence[str],
    benchmarks: Iterable[DecafBenchmark],
    *panels: Panel,
    conclusions: tuple[Conclusion, ...] = (),
    has_separate_arms: bool = False,
    **settings: Any,
) -> Study:
    """Return a study with the texts on the differences of its data sets and its own."""
    notes = [f"{one.name}: {one.note}" for one in dict.fromkeys(benchmarks)]
    differences = PUBLISHED.differences("common", *notes, *texts, **settings)
    return Study(
        name,
        title,
        differences,
        panels,
        describe_setting,
        conclusions=conclusions,
        has_separate_arms=has_separate_arms,
    )


def table(
    name: str,
    benchmark: DecafBenchmark,
    sizes: Sizes = FIVE_ROUNDS,
) -> Study:
    """Return one table: the attack on every user, in the best of the first rounds."""
    attacks = (TABLE_DECAF, MeanSoftmax(), BiasInversion())
    guessed = published_tables()["table14"] if benchmark.table == "table3" else ()

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        """Read distances, null-class scores, guesses, other attacks, rounds and users."""
        audit, users, rounds = one.audit, benchmark.users, range(one.plan.training.rounds)
        best = find_best_round(audit, TABLE_ATTACK, "l1", rounds)
        at_best, words = (
            FindingFilter(TABLE_ATTACK, (best,)),
            f"round {best + 1}, the best round",
        )
        yield from _mean_scores(one, at_best, users, words)
        for key, guess, described in (
            (
                "uniform_on_true_support",
                "uniform on the true support",
                "uniform guess on the classes that the user holds",
            ),
            ("blind_uniform", "uniform", "uninformed guess: uniform over classes"),
        ):
            measured = mean_guess_score(audit, at_best, "l1", guess)
            published = mean_published_guess_score(users, "l1", guess)
            yield one.value(f"{key}_l1", described, measured, published, "lower")
        for number, distance in enumerate(DISTANCES):
            guesses = [random_guess(user.true_percents, distance) for user in users]
            stated = [user.guess_distances[number] / 100 for user in guessed]
            mean = sum(guesses) / len(guesses)
            by_paper = sum(stated) / len(stated) if stated else None
            yield one.value(f"random_{distance}", RANDOM, mean, by_paper, "lower")
        for other in ("mean_softmax", "bias_inversion"):
            own = find_best_round(audit, other, "l1", rounds)
            measured = mean_score(audit, FindingFilter(other, (own,)), "l1")
            described = f"round {own + 1}, the attack's best round"
            yield one.value(f"{other}_mean_l1", described, measured, None, "lower")
        for number in rounds:
            measured = mean_score(audit, FindingFilter(TABLE_ATTACK, (number,)), "l1")
            described = f"round {number + 1}"
            yield one.value(f"mean_l1_round_{number + 1}", described, measured, None, "lower")
        yield from _l1_by_user(one, at_best, users, words)

    title = f"Composition of each user's data as Decaf infers it, {benchmark.name}"
    panel = _panel(benchmark, sizes, read, attacks=attacks, **TABLE_TRAINING)
    conclusions = table_conclusions(benchmark, AUDIT)
    return _study(
        name, title, ("closest", "table"), (benchmark,), panel, conclusions=conclusions
    )


def by_round(
    benchmarks: tuple[DecafBenchmark, ...] = BENCHMARKS,
    averaged: DecafBenchmark = SKIN_CANCER,
    sizes: Sizes = MANY_ROUNDS,
) -> Study:
    """Return Figure 6: the users of each data set by round; one user's mean claim over rounds.

    Args:
        benchmarks: data sets.
        averaged: the data set for which a user's claims are averaged over rounds.
        sizes: sizes of a full and of a quick run.

    """

    def read(benchmark: DecafBenchmark, one: PanelRun) -> Iterator[ReproducedValue]:
        for number in range(one.plan.training.rounds):
            for distance in DISTANCES:
                measured = mean_score(one.audit, FindingFilter(ATTACK, (number,)), distance)
                name = f"{one.key}_mean_{distance}_round_{number + 1}"
                yield one.value(name, f"round {number + 1}", measured, None, "lower")
        if benchmark == averaged:
            yield from _averaged_claims(one)

    panels = [_panel(one, sizes, partial(read, one), one.source.name) for one in benchmarks]
    title = "Distances by round on five data sets, and averaged over rounds"
    names = {one.source.name: one.name for one in benchmarks}
    conclusions = round_conclusions(names, averaged.source.name)
    return _study(
        "figure6", title, ("one_step", "rounds"), benchmarks, *panels, conclusions=conclusions
    )


def _averaged_claims(one: PanelRun) -> Iterator[ReproducedValue]:
    """Score one user's claims averaged over the first rounds and rescaled to sum to 1."""
    for last in range(1, min(AVERAGED_ROUNDS, one.plan.training.rounds) + 1):
        for distance in DISTANCES:
            yield one.value(
                f"{one.key}_user_{FOLLOWED_USER}_{distance}_rounds_1_to_{last}",
                f"user {FOLLOWED_USER}, claims averaged over rounds 1 to {last}",
                over_runs(averaged_scores(one.audit, last, distance)),
                None,
                "lower",
            )


def sweep(
    name: str,
    what: str,
    text: str,
    benchmark: DecafBenchmark,
    settings: Mapping[str, Mapping[str, Any]],
    conclusions: tuple[Conclusion, ...],
    sizes: Sizes = SWEEP_ROUNDS,
) -> Study:
    """Return a figure with each distance, averaged over users and rounds, by a setting.

    Args:
        name: name of the figure.
        what: what the setting is.
        text: name of the text on the differences.
        benchmark: data set and users.
        settings: what each audit changes, by its sub-folder; see `build_plan`.
        conclusions: what the paper says of the figure.
        sizes: sizes of a full and of a quick run.

    """

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        rounds, words = range(one.plan.training.rounds), one.key.replace("_", " ")
        for distance in DISTANCES:
            measured = mean_score_over_rounds(one.audit, ATTACK, rounds, distance)
            described = f"{words}, mean over the rounds"
            yield one.value(f"mean_{distance}_{one.key}", described, measured, None, "lower")

    panels = [_panel(benchmark, sizes, read, key, **one) for key, one in settings.items()]
    title = f"Distances by number of {what}, {benchmark.name}"
    return _study(
        name, title, ("one_step", text), (benchmark,), *panels, conclusions=conclusions
    )


def auxiliary(
    benchmark: DecafBenchmark = FASHION_MNIST,
    counts: tuple[int, ...] = (2, 10, 30),
    sizes: Sizes = SWEEP_ROUNDS,
) -> Study:
    """Return Figure 7; each number also changes which examples the users get."""
    settings = {f"auxiliary_{number}": {"auxiliary": number} for number in counts}
    what = "auxiliary examples per class"
    return sweep(
        "figure7", what, "auxiliary", benchmark, settings, AUXILIARY_CONCLUSIONS, sizes
    )


def neurons(
    benchmark: DecafBenchmark = MNIST, widths: tuple[int, ...] = (64, 128, 256, 512)
) -> Study:
    """Return Figure 8: the attack by width of the last layer."""
    settings = {f"neurons_{width}": {"model": DecafConv2(hidden=width)} for width in widths}
    what = "inputs of the last layer"
    return sweep("figure8", what, "neurons", benchmark, settings, NEURON_CONCLUSIONS)


def ablation(
    name: str,
    step: str,
    attack: Decaf,
    published: str,
    benchmark: DecafBenchmark = MNIST,
    sizes: Sizes = FIVE_ROUNDS,
) -> Study:
    """Return a figure of the attack without one step, and the whole attack on the same run.

    Args:
        name: name of the figure.
        step: the step that is left out, in words.
        attack: the attack without the step.
        published: the paper's table of the attack without the step.
        benchmark: data set and users.
        sizes: sizes of a full and of a quick run.

    """
    users = published_tables()[published]

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        best = find_best_round(one.audit, TABLE_ATTACK, "l1", range(one.plan.training.rounds))
        without, words = FindingFilter(plugin_label(attack), (best,)), f"round {best + 1}; "
        whole = FindingFilter(TABLE_ATTACK, (best,))
        for distance in DISTANCES:
            for prefix, selected, of_users, described in (
                ("", without, users, f"without {step}"),
                ("whole_", whole, benchmark.users, "the whole attack"),
            ):
                yield one.value(
                    f"{prefix}mean_{distance}",
                    words + described,
                    mean_score(one.audit, selected, distance),
                    mean_published_score(of_users, distance),
                    "lower",
                )
        yield from _l1_by_user(one, without, users, f"{words}without {step}")

    panel = _panel(benchmark, sizes, read, attacks=(TABLE_DECAF, attack), **TABLE_TRAINING)
    title = f"Decaf without {step}, {benchmark.name}"
    conclusions = ablation_conclusions(attack, AUDIT)
    return _study(
        name, title, ("closest", "ablation"), (benchmark,), panel, conclusions=conclusions
    )


@final
@dataclass(frozen=True, slots=True)
class DeepNetwork:
    """One network on one data set, and the paper's table of Decaf's claims about its users."""

    benchmark: DecafBenchmark
    model: Model
    table: str

    @property
    def key(self) -> str:
        """Name in the keys of values and in folders."""
        return f"{self.benchmark.source.name}_{self.model.name}"


NETWORKS = (
    DeepNetwork(FER2013, ResNet18(), "table9"),
    DeepNetwork(FER2013, Vgg16(), "table10"),
    DeepNetwork(CIFAR10, ResNet18(), "table12"),
    DeepNetwork(CIFAR10, Vgg16(), "table13"),
)


def deep_networks(
    networks: tuple[DeepNetwork, ...] = NETWORKS,
    sizes: Sizes = DEEP_SIZES,
) -> Study:
    """Return Figure 13: the attack on networks that are deeper than the paper's own."""

    def read(network: DeepNetwork, one: PanelRun) -> Iterator[ReproducedValue]:
        best = find_best_round(one.audit, ATTACK, "l1", range(one.plan.training.rounds))
        at_best = FindingFilter(ATTACK, (best,))
        words = f"{network.model.name}, round {best + 1}"
        users = network.benchmark.reorder(published_tables()[network.table])
        yield from _mean_scores(one, at_best, users, words, f"{one.key}_")
        yield from _l1_by_user(one, at_best, users, words, f"{one.key}_")

    panels = [
        _panel(one.benchmark, sizes, partial(read, one), one.key, model=one.model)
        for one in networks
    ]
    title, used = "Distances on ResNet18 and VGG16", [one.benchmark for one in networks]
    pairs = {
        one.benchmark.name: (one.key, other.key)
        for one, other in zip(networks[::2], networks[1::2], strict=False)
    }
    conclusions = network_conclusions(pairs)
    return _study(
        "figure13", title, ("one_step", "deep_networks"), used, *panels, conclusions=conclusions
    )


def defended(
    benchmark: DecafBenchmark = MNIST,
    multipliers: tuple[float, ...] = (0.1, 0.25, 1.0, 4.0, 16.0),
    clip: float = 1.0,
    sizes: Sizes = DEFENDED_ROUNDS,
) -> Study:
    """Return Figure 14: the attack on the same users under each defense, and the accuracy.

    Args:
        benchmark: data set and users.
        multipliers: multipliers of the noise of DP-SGD, as Table XI has them.
        clip: L2 norm to which the gradient of each example is clipped before noise.
        sizes: sizes of a full and of a quick run.

    """

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        rounds = one.plan.training.rounds
        for arm in one.plan.arms:
            key = arm.name.replace(" ", "_").replace("-", "_").lower()
            for score in (*DISTANCES, *NULL_CLASS_SCORES):
                yield one.value(
                    f"{key}_{value_name(score)}",
                    f"{arm.name}, mean over rounds 1 to {rounds}",
                    mean_score_over_rounds(
                        one.audit, DEFENDED_ATTACK, range(rounds), score, arm.name
                    ),
                    None,
                    better_direction(score),
                )
            yield one.value(
                f"{key}_accuracy",
                f"{arm.name}, the model that round {rounds} broadcasts",
                mean_accuracy(one.audit, arm.name, rounds - 1),
                published_accuracies().get(arm.name),
                "higher",
            )

    title = f"Decaf against dropout and differential privacy, {benchmark.name}"
    panel = _panel(
        benchmark,
        sizes,
        read,
        attacks=(STEPWISE_DECAF,),
        arms=defended_arms(multipliers, clip),
        batch=-(-(sizes[0].examples or benchmark.examples) // STEPS),
    )
    return _study(
        "figure14",
        title,
        ("defended",),
        (benchmark,),
        panel,
        has_separate_arms=True,
        conclusions=defense_conclusions(AUDIT, multipliers),
        clip=clip,
    )


def value_name(score: str) -> str:
    """Return the name of the value that is the mean of this score over all users.

    >>> value_name("l1"), value_name("null_recall")
    ('mean_l1', 'null_recall')
    """
    return score if score in NULL_CLASS_SCORES else f"mean_{score}"


def better_direction(score: str) -> Better:
    """Return whether higher or lower scores mean a better attack."""
    return "higher" if score in NULL_CLASS_SCORES else "lower"


def _mean_scores(
    one: PanelRun,
    selected: FindingFilter,
    users: Sequence[PublishedUser],
    words: str,
    prefix: str = "",
) -> Iterator[ReproducedValue]:
    for score in (*DISTANCES, *NULL_CLASS_SCORES):
        measured, published = (
            mean_score(one.audit, selected, score),
            mean_published_score(users, score),
        )
        name = f"{prefix}{value_name(score)}"
        yield one.value(name, words, measured, published, better_direction(score))


def _l1_by_user(
    one: PanelRun,
    selected: FindingFilter,
    users: Sequence[PublishedUser],
    words: str,
    prefix: str = "",
) -> Iterator[ReproducedValue]:
    """Yield one value per user; `l1_user_1` is the first user, as in the paper."""
    for number, user in enumerate(users, start=1):
        of_user = replace(selected, target=client(number - 1))
        published = score_published_claim(user, "l1").value
        measured = mean_score(one.audit, of_user, "l1")
        yield one.value(f"{prefix}l1_user_{number}", words, measured, published, "lower")


PAPER_SIZE = "10 users, 7 for FER-2013 and SkinCancer; their sizes and the rounds are not given"

HOURS = {
    "figure6": 0.8,
    "figure7": 0.2,
    "figure8": 0.5,
    "figure13": 1.0,
    "figure14": 1.0,
}
"""Rough core hours of what was not run at the full size, from those of the other studies."""


def _studies() -> Iterator[Study]:
    yield from (table(benchmark.table, benchmark) for benchmark in BENCHMARKS)
    yield by_round()
    yield auxiliary()
    yield neurons()
    changed = replace(TABLE_DECAF, null_removal=False)
    yield ablation("figure9", "null removal", changed, "table14")
    changed = replace(TABLE_DECAF, calibrator=False)
    yield ablation("figure10", "calibrator", changed, "table15")
    yield deep_networks()
    yield defended()
    yield growing_rows()
    yield cost()
    yield search()
    yield chosen_settings()


PAPER = Paper(
    "decaf",
    "Decaf: Data Distribution Decompose Attack against Federated Learning",
    "Dai et al. 2024 (arXiv 2405.15316)",
    lambda: [
        replace(one, paper_size=PAPER_SIZE, hours=HOURS.get(one.name, 0.0))
        for one in _studies()
    ],
)
