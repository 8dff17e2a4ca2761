"""Table I, the membership attack of Section VI-D2, and distillation methods by time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from overheard.auditing.program import single_rounds
from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.mnist import Mnist
from overheard.data.partition.candidates import CandidateSettings
from overheard.drawing.charts import legend_chart
from overheard.drawing.figures import Panel as Drawing
from overheard.drawing.figures import ReportFigure
from overheard.drawing.line_charts import Axis, ChartLine, lines_chart
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun
from overheard.learning.distillation.methods.distribution_matching import DistributionMatching
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.models.alexnet import AlexNet
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.tiny_resnet import TinyResnet
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.registries import question_of_attack
from overheard.questions.label_shares.attacks.distilled_labels import DistilledLabels
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.membership.attacks.lira import Lira, LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.attacks.shadow_membership import ShadowMembership
from overheard.questions.membership.scorer import FALSE_POSITIVE_RATES
from overheard.questions.membership.statistics.record_rates import estimate_record_rates
from overheard.statistics.estimate import Estimate, convert_estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.conclusion import Conclusion, Statistics, named
from overheard_studies.estimates import (
    FindingFilter,
    final_accuracy,
    mean_score,
    mean_score_over_rounds,
    select_findings,
)
from overheard_studies.flip.setting import (
    CIFAR10,
    FIVE_SEEDS,
    GUESS,
    MNIST,
    NEAR,
    PUBLISHED,
    QUICK_MNIST,
    TABLE_CIFAR10,
    TABLE_MNIST,
    TABLE_WIDE,
    TEN_PER_STEP_FLIP,
    FlipScenario,
    build_panels,
    flip_arm_name,
    quick_table,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.study import Panel, PanelRun, Study
from overheard_studies.values import ReproducedValue, Values, tabulate_values


def accuracies() -> tuple[Study, ...]:
    """Return the parts of Table I: each is a study, so that each is concluded alone."""
    mnist = "100 rounds of 360 steps, 28 x 28 pixels, 12,000 images a client"
    tiny_resnet, alexnet = (replace(TABLE_WIDE, model=one) for one in (TinyResnet(), AlexNet()))
    cifar10 = accuracy(
        "table1_cifar10",
        "ConvNet, CIFAR-10",
        TABLE_CIFAR10,
        paper_size="100 rounds of 300 steps, 32 x 32 pixels, 10,000 images a client",
        hours=3.9,
    )
    return (
        accuracy("table1", "ConvNet, MNIST", TABLE_MNIST, paper_size=mnist, hours=2.3),
        replace(cifar10, conclusions=(*cifar10.conclusions, *CIFAR100)),
        accuracy(
            "table1_tiny_resnet", "TinyResNet, MNIST", tiny_resnet, paper_size=mnist, hours=9.0
        ),
        accuracy("table1_alexnet", "AlexNet, MNIST", alexnet, paper_size=mnist, hours=25.0),
    )


def accuracy(
    name: str,
    network: str,
    scenario: FlipScenario,
    reduced: FlipScenario | None = None,
    *,
    paper_size: str = "",
    hours: float = 0.0,
) -> Study:
    """Return a part of Table I: FedAvg compared with distilled data.

    Args:
        name: name of the study.
        network: the paper's words for the network and the data.
        scenario: scenario of a full run.
        reduced: scenario of a quick run; None = that of `quick_table`.
        paper_size: the size in the paper.
        hours: core hours of what was not run.

    """
    threat = ThreatPlan(attacks=(MeanSoftmax(),), by_round=False)
    return Study(
        name,
        f"Accuracy of FedAvg and of FLiP by synthetic examples per class: {network}",
        PUBLISHED.differences("common", "table1"),
        build_panels(
            (scenario,),
            (reduced or quick_table(scenario),),
            lambda one: one.build_plan((threat,), auxiliary=100),
            _read_table,
        ),
        conclusions=tuple(_accuracy_conclusions(scenario)),
        has_separate_arms=True,
        paper_size=paper_size,
        hours=hours,
    )


def _read_table(one: PanelRun) -> Iterator[ReproducedValue]:
    """Read the accuracy of each arm's last model, and its ratio to FedAvg's."""
    path = one.key, one.plan.training.model.name
    fedavg = PUBLISHED.number(*path, "fedavg", scale=100.0)
    for arm in one.plan.arms:
        key = _column(arm)
        published = PUBLISHED.number(*path, key, scale=100.0)
        yield one.value(
            f"{one.key}_{key}_accuracy",
            f"{arm.name}, the model after {one.plan.rounds_of(arm)} rounds",
            final_accuracy(one.audit, arm.name),
            published,
            "higher",
        )
        if arm.distillation is not None:
            yield one.value(
                f"{one.key}_{key}_of_fedavg",
                f"{arm.name}, accuracy divided by FedAvg's",
                _accuracy_ratio(one.audit, arm),
                None if published is None or fedavg is None else published / fedavg,
                "higher",
            )


def _column(arm: ArmPlan) -> str:
    """Return the name of an arm in the paper's table, or its own name if it is not there."""
    if arm.distillation is None:
        return "fedavg"
    samples = arm.distillation.samples
    return str(samples) if arm.name == flip_arm_name(samples) else arm.name.replace(" ", "_")


def _accuracy_ratio(audit: Audit, arm: ArmPlan) -> Estimate:
    """Return the ratio to FedAvg's accuracy with the same seed."""
    fedavg, flip = _last_accuracies(audit, "FedAvg"), _last_accuracies(audit, arm.name)
    return _over_seeds({seed: flip[seed] / fedavg[seed] for seed in flip})


def _last_accuracies(audit: Audit, arm: str) -> Mapping[int, float]:
    """Return the accuracy of an arm's last model by seed; {} if the arm was not run."""
    return {run.seed: run.accuracy[max(run.accuracy)] for run in audit.arms if run.arm == arm}


def _gap(runs: StudyRuns, arm: str, other: str, published: float = 0.0) -> Estimate | None:
    """Return by how much an arm is less accurate than another with the same seeds.

    Args:
        runs: the runs of one data set.
        arm: the arm.
        other: the arm that it is compared with.
        published: the published gap, which is subtracted.

    """
    (audit,) = runs.audits.values()
    accuracies, others = (_last_accuracies(audit, name) for name in (arm, other))
    gaps = {
        seed: others[seed] - value - published
        for seed, value in accuracies.items()
        if seed in others
    }
    return _over_seeds(gaps) if gaps else None


def _gaps_to_fedavg(runs: StudyRuns, values: Values) -> Statistics:
    return {
        f"{one} samples": _gap(runs, flip_arm_name(one), "FedAvg") for one in PUBLISHED_SAMPLES
    }


def _gaps_beyond_published(
    published: Mapping[int, float], runs: StudyRuns, values: Values
) -> Statistics:
    return {
        f"{one} samples": _gap(runs, flip_arm_name(one), "FedAvg", gap)
        for one, gap in published.items()
    }


def _gain_per_five_samples(runs: StudyRuns, values: Values) -> Statistics:
    fewest, *_, most = (flip_arm_name(one) for one in PUBLISHED_SAMPLES)
    gain = _gap(runs, fewest, most)
    return {"gain": None if gain is None else convert_estimate(gain, PER_FIVE, 0.0)}


PUBLISHED_SAMPLES = (10, 15, 20)
"""The paper's numbers of synthetic examples per class."""

PER_FIVE = 5 / (PUBLISHED_SAMPLES[-1] - PUBLISHED_SAMPLES[0])
"""Share of the gain from the fewest to the most samples that is due to five of them."""

CLOSE = 0.05
"""Largest gap to FedAvg that counts as close: the paper names 15 gaps up to it, of 27."""


def _accuracy_conclusions(scenario: FlipScenario) -> Iterator[Conclusion]:
    """Yield what the paper says of Table I, for one network and data set alone.

    Where this part of the table refutes the text, they state what the table shows.
    """
    path = scenario.name, scenario.model.name
    fedavg = PUBLISHED.number(*path, "fedavg", scale=100.0)
    if fedavg is None:
        return
    accuracies = {one: PUBLISHED.find(*path, str(one)) / 100 for one in PUBLISHED_SAMPLES}
    gaps = {one: fedavg - value for one, value in accuracies.items()}
    is_close = max(gaps.values()) < CLOSE
    yield Conclusion(
        "close" if is_close else "behind",
        "our FLiP achieves an accuracy close to that of the vanilla method; it lags behind by "
        "only 3 % in 8 experiments and by 5 % in 15"
        if is_close
        else f"in this part of Table I, FLiP lags behind by {100 * min(gaps.values()):.1f} to "
        f"{100 * max(gaps.values()):.1f} points (the margin is half of the least)",
        _gaps_to_fedavg,
        "below" if is_close else "above",
        CLOSE if is_close else round(min(gaps.values()) / 2, 4),
        words="accuracy of FedAvg minus that of FLiP",
    )
    yield Conclusion(
        "gap",
        "FLiP is at most a point further behind FedAvg than in Table I",
        partial(_gaps_beyond_published, gaps),
        "below",
        0.01,
        words="the same, minus the published difference",
    )
    fewest, *_, most = accuracies.values()
    gain = PER_FIVE * (most - fewest)
    text = "as the number of distilled samples increases, the model's accuracy is improved"
    yield Conclusion(
        "samples",
        f"{text}; this part of Table I has {100 * gain:+.2f} points for every 5 samples (the "
        "margin is half of it)",
        _gain_per_five_samples,
        "above" if gain > 0 else "below",
        round(gain / 2, 5),
        words="accuracy with 20 samples a class minus that with 10, for every 5",
    )


CIFAR100 = (
    Conclusion(
        "cifar100",
        "the accuracy of FLiP on the dataset CIFAR-100 is comparable to that of vanilla FL and "
        "even performs better in some configurations",
        None,
        reason_not_run="CIFAR-100 is not here",
    ),
    Conclusion(
        "exceeds",
        "the accuracy of FLiP exceeds that of the vanilla FL in 5 experiments",
        None,
        reason_not_run="all five are of CIFAR-100, which is not here",
    ),
)


# Membership.

# Any: each attack has its own claim type.
AttacksByName = Mapping[str, Attack[Any]]


def _membership_attacks(models: int, shadow: ShadowMembership) -> AttacksByName:
    """Return the attacks by their names in the values; the paper's is "shadow"."""
    return {
        "shadow": shadow,
        "lira": Lira(models=models),
        "lira_pooled": LiraPooled(models=models),
        "lira_offline": Lira(models=models, online=False),
        "loss": LossMembership(),
    }


MEMBERSHIP_ATTACKS = (
    _membership_attacks(32, ShadowMembership(booster="catboost")),
    _membership_attacks(32, ShadowMembership()),
)
"""The attacks of a full run and of a quick run. The paper's 128 shadow models of AlexNet on
32 x 32 pixels take 340 core hours by their number of operations."""

MEMBERSHIP_SCENARIOS = (
    replace(
        CIFAR10,
        source=Cifar10(shrink=2),
        model=AlexNet(),
        examples=600,
        flip=replace(CIFAR10.flip, at_once=10),
        samples=(20,),
        rounds=20,
        flip_rounds=100,
        seeds=FIVE_SEEDS,
        epochs=5,
    ),
    replace(
        QUICK_MNIST,
        source=Mnist(shrink=2),
        model=Mlp(hidden=(64,)),
        examples=600,
        rounds=20,
        flip=TEN_PER_STEP_FLIP,
        flip_rounds=60,
        samples=(20,),
        seeds=FIVE_SEEDS,
        epochs=5,
    ),
)

SINGLE_ROUNDS = 5
"""Number of rounds that are also attacked alone; of 100 they are the paper's 1, 25, 50, 75,
100."""

SINGLE_ROUND_SCORES = ("membership_accuracy", "membership_auc", "tpr_at_1_percent")
"""The scores that are reported for single rounds."""

CANDIDATES = CandidateSettings(members=200, outsiders=1000)


def membership(
    scenarios: tuple[FlipScenario, FlipScenario] = MEMBERSHIP_SCENARIOS,
    attacks: tuple[AttacksByName, AttacksByName] = MEMBERSHIP_ATTACKS,
    candidates: CandidateSettings = CANDIDATES,
    auxiliary: int = 1500,
) -> Study:
    """Return the paper's attack and stronger ones, on clients under FedAvg and under FLiP.

    Args:
        scenarios: scenarios of a full and of a quick run.
        attacks: attacks of a full and of a quick run, by the same names.
        candidates: candidate records.
        auxiliary: auxiliary examples for shadow models.

    """

    def plan(quick: bool) -> Plan:
        threat = ThreatPlan(attacks=tuple(attacks[quick].values()), by_round=SINGLE_ROUNDS)
        return scenarios[quick].build_plan(
            (threat,), auxiliary=auxiliary, candidates=candidates
        )

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        for name, attack in zip(attacks[0], one.plan.threats[0].attacks, strict=True):
            for arm in one.plan.arms:
                yield from _read_attack(one, name, attack, arm, scores)

    # The scores that this number of non-members allows.
    possible = [name for rate, name in FALSE_POSITIVE_RATES if candidates.outsiders * rate >= 1]
    scores = ("membership_accuracy", "membership_auc", *possible)
    return Study(
        "membership",
        "Membership under FedAvg and under FLiP",
        PUBLISHED.differences("common", "membership"),
        (Panel("audit", "", plan, read),),
        lambda name, run, full: describe_setting(run.data.source.name, run, full),
        conclusions=MEMBERSHIP_CONCLUSIONS,
        paper_size="100 rounds of 300 steps, 10,000 images a client, 128 shadow models",
        # From the time of its parts: 9 for shadow models, 4 for CatBoost, 2 for federations.
        hours=15.0,
    )


ACCURACY_NAME = "{}_shadow_membership_accuracy_mean_of_rounds"

MEMBERSHIP_CONCLUSIONS = (
    Conclusion(
        "vulnerable",
        "the vanilla FL is vulnerable to membership inference attack, and the attack accuracy "
        "is 59.14 %",
        named(ACCURACY_NAME.format("fedavg")),
        "above",
        GUESS + NEAR,
        words="accuracy of the paper's attack on FedAvg",
    ),
    Conclusion(
        "resists",
        "our method can resist this attack with an attack accuracy of only 49.75 %",
        named(ACCURACY_NAME.format("flip")),
        "below",
        GUESS + NEAR,
        words="accuracy of the paper's attack on FLiP",
    ),
    Conclusion(
        "cannot_determine",
        "the adversaries cannot determine whether the given samples exist in the training "
        "datasets",
        named(*(f"flip_{one}_membership_auc" for one in ("lira", "lira_pooled", "loss"))),
        "around",
        GUESS,
        NEAR,
        words="AUC of other attacks on FLiP, all rounds together; a guess has 0.5",
    ),
)


def _read_attack(
    one: PanelRun,
    name: str,
    # Any: each attack has its own claim type.
    attack: Attack[Any],
    arm: ArmPlan,
    scores: Sequence[str],
) -> Iterator[ReproducedValue]:
    """Read an attack's scores in one arm, over all rounds and for single rounds."""
    audit, threat = one.audit, one.plan.threats[0]
    kind = "fedavg" if arm.distillation is None else "flip"
    key, label = f"{kind}_{name}", threat.attack_name(attack)
    published = PUBLISHED.number("membership", kind, scale=100.0) if name == "shadow" else None
    all_rounds = tuple(range(one.plan.rounds_of(arm)))
    together = FindingFilter(label, all_rounds, arm.name)

    def value(
        measured: Estimate | None, words: str, *parts: str, beside: float | None = None
    ) -> ReproducedValue:
        named = "_".join((key, *parts)).replace(".", "_")
        return one.value(named, f"{arm.name}, {name}{words}", measured, beside, "higher")

    try:
        rates = estimate_record_rates(select_findings(audit, together))
    except NeedsError as error:
        words = f"; not measured: {error}"
        yield value(None, words, "membership_accuracy", beside=published)
        return
    for score in scores:
        yield value(mean_score(audit, together, score), "", score)
    for score, rate in {
        "membership_accuracy": rates.accuracy,
        **rates.true_positive_rates,
    }.items():
        yield value(rate, ", exact interval over records", score, "by_record")
    rounds = single_rounds(threat, question_of_attack(attack), all_rounds)
    for score in SINGLE_ROUND_SCORES:
        for number in rounds:
            alone = FindingFilter(label, (number,), arm.name)
            words = f", round {number + 1} alone"
            yield value(mean_score(audit, alone, score), words, score, f"round_{number + 1}")
        yield value(
            mean_score_over_rounds(audit, label, rounds, score, arm.name),
            f", mean of {len(rounds)} single rounds",
            score,
            "mean_of_rounds",
            beside=published if score == "membership_accuracy" else None,
        )


# Methods.

ONE_PER_STEP = "FLiP one example a step"
TEN_PER_STEP = "FLiP ten examples a step"
MATCHING = "distribution matching"
METHODS = {"one_by_one": ONE_PER_STEP, "together": TEN_PER_STEP, "matching": MATCHING}

TARGET_ACCURACIES = (0.9, 0.95)
"""Accuracies for which the time to reach them is reported."""

THREAT = ThreatPlan(attacks=(DistilledLabels(),), by_round=False)
"""A cheap threat that reads a few distilled sets and no client model."""


@final
@dataclass(frozen=True, slots=True)
class DistillationMethods:
    """A scenario and the arms of its distillation methods.

    Args:
        scenario: data, network, FedAvg, and FLiP with one example per step.
        ten_per_step: arm of FLiP with ten examples per step.
        matching: arm of distribution matching.

    """

    scenario: FlipScenario
    ten_per_step: ArmPlan
    matching: ArmPlan

    def build_plan(self) -> Plan:
        """Build the plan with FedAvg and each distillation method."""
        scenario, samples = self.scenario, self.scenario.samples[0]
        plan = scenario.build_plan((THREAT,), auxiliary=100)
        one_by_one = ArmPlan(
            name=ONE_PER_STEP,
            distillation=replace(scenario.flip, samples=samples),
            rounds=scenario.flip_rounds,
        )
        arms = (plan.arms[0], one_by_one, self.ten_per_step, self.matching)
        return plan.model_copy(update={"arms": arms})


def _methods(scenario: FlipScenario, rounds: tuple[int, int]) -> DistillationMethods:
    return DistillationMethods(
        scenario,
        ArmPlan(name=TEN_PER_STEP, distillation=TEN_PER_STEP_FLIP, rounds=rounds[0]),
        ArmPlan(name=MATCHING, distillation=DistributionMatching(), rounds=rounds[1]),
    )


QUICK_FLIP = Flip(batch=256, halve_every=60)

METHOD_SIZES = (
    _methods(MNIST, (500, 1000)),
    _methods(replace(QUICK_MNIST, flip=QUICK_FLIP, flip_rounds=120, seeds=(0,)), (250, 250)),
)
"""The methods of a full run and of a quick run."""


def methods(sizes: tuple[DistillationMethods, DistillationMethods] = METHOD_SIZES) -> Study:
    """Return distillation methods at equal accuracy and at equal time."""
    return Study(
        "methods",
        "Distillation methods, at equal accuracy and at equal time",
        PUBLISHED.differences("common", "methods"),
        (Panel("mnist", "mnist", lambda quick: sizes[quick].build_plan(), _read_methods),),
        figures=_draw_methods,
        hours=1.5,
    )


def _read_methods(one: PanelRun) -> Iterator[ReproducedValue]:
    """Read each method's last accuracy, its time, and its accuracy at equal time."""
    audit = one.audit
    fedavg = final_accuracy(audit, "FedAvg")
    yield one.value("fedavg_accuracy", "FedAvg, the last model", fedavg, None, "higher")
    curves = {
        method: {run.seed: _curve(run) for run in audit.arms if run.arm == method}
        for method in METHODS.values()
    }
    shortest = min(curve[-1][0] for of_seeds in curves.values() for curve in of_seeds.values())
    for key, method in METHODS.items():
        of_seeds = curves[method]
        value = partial(_method_value, one, key, method)
        yield value("accuracy", "the last model", final_accuracy(audit, method), "higher")
        seconds = {seed: curve[-1][0] for seed, curve in of_seeds.items()}
        yield value("seconds", "seconds of all rounds", _over_seeds(seconds), "lower")
        reached = {
            seed: [y for x, y in curve if x <= shortest][-1] for seed, curve in of_seeds.items()
        }
        words = f"after {shortest:.0f} seconds"
        yield value("accuracy_at_equal_time", words, _over_seeds(reached), "higher")
        for target in TARGET_ACCURACIES:
            name = f"seconds_to_{round(100 * target)}"
            # Unmeasured if a run never reaches it.
            times = {
                seed: next(x for x, y in curve if y >= target)
                for seed, curve in of_seeds.items()
                if any(y >= target for _, y in curve)
            }
            if len(times) < len(of_seeds):
                by = f"{target:.0%} was reached by {len(times)} of {len(of_seeds)} seeds"
                yield value(name, by, None, None)
            else:
                yield value(name, f"seconds to {target:.0%}", _over_seeds(times), "lower")


def _method_value(
    one: PanelRun, key: str, method: str, name: str, words: str, measured: Any, better: Any
) -> ReproducedValue:
    return one.value(f"{key}_{name}", f"{method}, {words}", measured, None, better)


def _draw_methods(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
    """Draw the accuracy against seconds."""
    audit, title = runs.audits["mnist"], "Accuracy by the time of distillation"
    curves = {
        method: _curve(next(run for run in audit.arms if run.arm == method))
        for method in METHODS.values()
    }
    fedavg = 100 * final_accuracy(audit, "FedAvg").mean
    end = max(curve[-1][0] for curve in curves.values())
    chart = lines_chart(
        [
            ChartLine(index, [x for x, _ in curve], [100 * y for _, y in curve], method)
            for index, (method, curve) in enumerate(curves.items())
        ],
        ChartLine(0, (0.0, end), (fedavg, fedavg)),
        Axis("seconds of all cores", 0.0, 1.02 * end),
        Axis("accuracy, %", 50.0, 100.0),
        title,
    )
    yield ReportFigure(
        title,
        "The first seed of each method. Dashed line: the accuracy of FedAvg.",
        legend_chart(list(curves), False, f"Legend: {title}"),
        (Drawing("", chart),),
        tabulate_values(title, values),
        True,
    )


def _curve(run: ArmRun) -> Sequence[tuple[float, float]]:
    """Return seconds and accuracy by round, with the run's time divided among its rounds.

    The seconds are of all cores, or of the wall clock if those are not known.
    """
    assert run.seconds is not None
    total = run.seconds.wall if run.seconds.cores is None else run.seconds.cores
    last = max(run.accuracy)
    return [(total * number / last, value) for number, value in sorted(run.accuracy.items())]


def _over_seeds(values: Mapping[int, float]) -> Estimate:
    """Return the mean over runs of accuracies, seconds, or their differences and ratios."""
    means = np.array(list(values.values()))
    return estimate_mean(means, np.array(list(values)), may_be_trials=False)
