"""The studies that read runs: Table 2 and Figures 8 and 10."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from overheard.auditing.inputs import load_data, partition_for_plan
from overheard.core.messages import Weights
from overheard.core.parties import SERVER
from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.data.partition.known_user_settings import PriorKind
from overheard.drawing.figures import Panel as Drawing
from overheard.drawing.figures import ReportFigure
from overheard.learning.threads import single_thread
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.linkage.known_updates import KnownUpdates, UpdateSource
from overheard.linkage.multi_head_mlp import TRAINING_STEPS
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.identity.attacks.reidentify import ReidentifyKnn
from overheard.statistics.estimate import convert_estimate
from overheard_studies.deanonymization.charts import (
    ValueSeries,
    heat_map,
    series_figure,
)
from overheard_studies.deanonymization.measures import (
    RunUpdates,
    chance_utility,
    iterate_run_updates,
    mark_all,
    mean_over_seeds,
    mean_over_users,
    measure_arm_utilities,
    measure_utility,
    select_test_examples,
)
from overheard_studies.deanonymization.setting import (
    BLOGS_MORE_UPDATES,
    PRECISION,
    PUBLISHED,
    QUICK_SCENARIOS,
    SCENARIOS,
    WISDM,
    IdentityScenario,
    build_known_user_settings,
    build_panel,
    build_plan,
    build_published_attack,
    build_threat,
    describe_differences,
    describe_setting,
    find_scenario,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import PanelRun, Study
from overheard_studies.values import ReproducedValue, Values, tabulate_values

Scenarios = tuple[IdentityScenario, ...]

ReadScenario = Callable[[IdentityScenario, PanelRun], Iterator[ReproducedValue]]

Draw = Callable[[IdentityScenario, StudyRuns, Values], Iterator[ReportFigure]]

PAPER_PRIORS: tuple[PriorKind, ...] = ("random", "chronological")


def build_study(
    name: str,
    title: str,
    scenarios: Scenarios,
    reduced: Scenarios,
    plan: Callable[[IdentityScenario], Plan],
    read: ReadScenario,
    draw: Draw,
    **settings: object,
) -> Study:
    """Return a study with one audit and perhaps figures for each scenario."""

    def figures(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
        for one in scenarios:
            if one.key in runs.audits:
                yield from draw(one, runs, values)

    return Study(
        name,
        title,
        describe_differences(scenarios, name, **settings),
        tuple(
            build_panel(one.key, one, find_scenario(reduced, one.key), plan, partial(read, one))
            for one in scenarios
        ),
        describe_setting,
        figures=figures,
    )


def cheapest_plan(scenario: IdentityScenario, prior: PriorKind = "random") -> Plan:
    """Return the plan with the attack that takes the least time."""
    attack = ReidentifyKnn(updates="shadow", layer=scenario.layer)
    return build_plan(scenario, build_known_user_settings(prior), (build_threat((attack,)),))


def joint_plan(source: UpdateSource, prior: PriorKind, scenario: IdentityScenario) -> Plan:
    """Return the plan with the published attack on all updates of a sender."""
    threat = build_threat((build_published_attack(scenario, source),), by_sender=True)
    return build_plan(scenario, build_known_user_settings(prior), (threat,))


# Table 2: utility of the federated model, a centralized model and chance.


def utility(
    scenarios: Scenarios = SCENARIOS,
    reduced: Scenarios = QUICK_SCENARIOS,
    priors: tuple[PriorKind, ...] = PAPER_PRIORS,
) -> Study:
    """Return Table 2: the last global model, and one trained centrally on all its data."""
    return Study(
        "table2",
        "Utility of the model: federated, centralized, and chance",
        describe_differences(scenarios, "table2"),
        tuple(
            build_panel(
                f"{one.key}_{prior}",
                one,
                find_scenario(reduced, one.key),
                partial(cheapest_plan, prior=prior),
                partial(_read_utility, one, prior),
            )
            for one in scenarios
            for prior in priors
        ),
        describe_setting,
    )


def _read_utility(
    scenario: IdentityScenario, prior: PriorKind, one: PanelRun
) -> Iterator[ReproducedValue]:
    dataset = load_data(one.plan, one.runs.resources)
    test = select_test_examples(scenario, dataset)
    build = partial(one.plan.training.model.build, dataset.task)
    better: Better = "lower" if scenario.utility == "absolute_error" else "higher"
    with single_thread():
        centralised = [
            measure_utility(scenario.utility, build, _train_centrally(one, dataset, seed), test)
            for seed in one.plan.seeds
        ]
    federated = measure_arm_utilities(one.runs, one.key, UNDEFENDED, scenario, dataset)
    pairs = zip(federated, centralised, strict=True)
    recovered = [a / b if better == "higher" else b / a for a, b in pairs if a and b]
    yield one.value(
        f"{one.key}_recovered",
        "share of the centralised model's utility that the last global model has",
        mean_over_seeds(recovered),
        None,
        "higher",
    )
    chance = chance_utility(scenario.utility, test.labels, dataset.task.classes)
    for name, words, measured in (
        ("federated", "the last global model", mean_over_seeds(federated)),
        ("centralised", "a model trained centrally", mean_over_seeds(centralised)),
        ("chance", "a random label", chance),
    ):
        published = PUBLISHED.number("table2", scenario.paper, prior, name)
        described = f"{scenario.utility.replace('_', ' ')} of {words}"
        yield one.value(f"{one.key}_{name}", described, measured, published, better)


def _train_centrally(one: PanelRun, dataset: Dataset, seed: int) -> Weights:
    """Train a model centrally on all data of the federation's devices, from the same start."""
    run, training = one.plan, one.plan.training
    partition = partition_for_plan(run, dataset, seed)
    transcript = one.runs.transcript(one.key, UNDEFENDED, seed)
    start = transcript.seen_by(SERVER).broadcasts()[0]
    devices = () if partition.run_users is None else partition.run_users.shadow_rows
    passes = max(1, round(training.rounds * training.participation))
    (trained,) = train_cohort(
        partial(training.model.build, dataset.task),
        start,
        partition.pool,
        [ClientTask("everyone", torch.cat([*partition.rows[0], *devices]))],
        replace(training.recipe, epochs=passes),
        seed=Seed(seed).child("centralised"),
        round=0,
        workers=1,
    )
    return {name: weights + trained.delta[name] for name, weights in start.items()}


# Figure 8: re-identification by the number of known updates per user.


def known_count(
    scenarios: Scenarios = (BLOGS_MORE_UPDATES, WISDM),
    reduced: Scenarios = QUICK_SCENARIOS,
    counts: tuple[int, ...] = (1, 2, 4, 8, 16),
    source: UpdateSource = "simulated",
) -> Study:
    """Return Figure 8: the published network, trained on some updates of each known user.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        counts: numbers of updates per user; those that are not below the number of updates of a
            user are left out. All its updates are used too.
        source: source of these updates.

    """

    def read(scenario: IdentityScenario, one: PanelRun) -> Iterator[ReproducedValue]:
        by_count = dict[str, dict[int, Mapping[str, float]]]()
        for updates in iterate_run_updates(one.runs, scenario, source):
            draw_seed = Seed(updates.seed).child("some")
            for count in select_counts(scenario, one.plan, counts):
                chosen = sample_per_user(updates.known, count, draw_seed)
                measured = _train_and_score(updates, chosen)
                by_count.setdefault(str(count), {})[updates.seed] = measured
            measured = _train_and_score(updates, mark_all(len(updates.known.users)))
            by_count.setdefault("all", {})[updates.seed] = measured
        for count_name in sorted(by_count, key=lambda name: (name == "all", len(name), name)):
            value = mean_over_users(by_count[count_name])
            words = f"trained on {count_name} {source} updates per user"
            name = f"{scenario.key}_updates_{count_name}"
            yield one.value(name, words, value, None, "higher")
            users = one.plan.data.clients
            if value is not None and users is not None:
                times = convert_estimate(value, float(users), 0.0)
                words += ": times 1 / users"
                yield one.value(f"{name}_times_users", words, times, None, "higher")

    def figures(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
        by_name, lines = {one.name: one for one in values}, []
        for one in scenarios:
            if one.key in runs.audits:
                used = select_counts(one, runs.plans[one.key], counts)
                drawn = [by_name[f"{one.key}_updates_{n}"] for n in used]
                lines.append(ValueSeries(one.name, used, drawn))
        title = "Figure 8: by the number of known updates per user"
        yield series_figure(title, lines, "known updates per user", PRECISION)

    study = build_study(
        "figure8",
        "Re-identification by the number of known updates per user",
        scenarios,
        reduced,
        partial(joint_plan, source, "random"),
        read,
        lambda scenario, runs, values: iter(()),
        source=source,
        steps=TRAINING_STEPS,
    )
    return replace(study, figures=figures)


def select_counts(
    scenario: IdentityScenario, plan: Plan, counts: Sequence[int]
) -> tuple[int, ...]:
    """Return the counts that are smaller than the number of updates of a user."""
    available = min(scenario.most_rounds, plan.training.rounds)
    return tuple(count for count in counts if count < available)


def sample_per_user(known: KnownUpdates, count: int, seed: Seed) -> Bool[Tensor, " updates"]:
    """Select up to `count` updates of each user at random."""
    selected = torch.zeros(len(known.users), dtype=torch.bool)
    for user in sorted(set(known.users.tolist())):
        rows = (known.users == user).nonzero().flatten()
        order = torch.randperm(len(rows), generator=seed.child("user", user).generator())
        selected[rows[order[:count]]] = True
    return selected


def _train_and_score(
    updates: RunUpdates, selected: Bool[Tensor, " known"]
) -> Mapping[str, float]:
    identifier = updates.train_identifier(selected)
    every = mark_all(len(updates.sent.senders))
    return {} if identifier is None else identifier.precision_by_user(every)


# Figure 10: known updates and targets from different ranges of rounds.

RangePair = tuple[int, int]


def stages(
    scenarios: Scenarios = (BLOGS_MORE_UPDATES, WISDM),
    reduced: Scenarios = QUICK_SCENARIOS,
    ranges: int = 4,
    source: UpdateSource = "simulated",
) -> Study:
    """Return Figure 10: the published network on every pair of ranges of rounds.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        ranges: number of ranges into which the rounds are split.
        source: source of known updates.

    """
    pairs = [(one, other) for one in range(ranges) for other in range(ranges)]

    def read(scenario: IdentityScenario, one: PanelRun) -> Iterator[ReproducedValue]:
        parts = split_rounds(one.plan.training.rounds, ranges)
        by_pair: dict[RangePair, dict[int, Mapping[str, float]]] = {pair: {} for pair in pairs}
        for updates in iterate_run_updates(one.runs, scenario, source):
            for first, part in enumerate(parts):
                known = _within(updates.known.rounds, part)
                identifier = updates.train_identifier(known)
                for second, later in enumerate(parts):
                    sent = _within(updates.sent.rounds, later)
                    by_pair[first, second][updates.seed] = (
                        {} if identifier is None else identifier.precision_by_user(sent)
                    )
        labels = [f"{part.start + 1} to {part.stop}" for part in parts]
        for first, second in pairs:
            words = f"trained on rounds {labels[first]}, targets in rounds {labels[second]}"
            name = f"{scenario.key}_learned_{first + 1}_told_{second + 1}"
            yield _pair_value(one, name, words, [by_pair[first, second]])
        for is_same, when in ((True, "same"), (False, "other")):
            cells = [by_pair[pair] for pair in pairs if (pair[0] == pair[1]) == is_same]
            name, words = f"{scenario.key}_{when}_rounds", f"targets in {when} rounds"
            yield _pair_value(one, name, words.replace("in same", "in the same"), cells)
        differences = [
            sum(same) / len(same) - sum(other) / len(other)
            for seed in one.plan.seeds
            if (same := _precisions(by_pair, seed, True))
            and (other := _precisions(by_pair, seed, False))
        ]
        name, words = f"{scenario.key}_same_minus_other", "the same rounds minus other rounds"
        yield one.value(name, words, mean_over_seeds(differences) if differences else None)

    def draw(
        scenario: IdentityScenario, runs: StudyRuns, values: Values
    ) -> Iterator[ReportFigure]:
        shown = [one for one in values if one.name.startswith(f"{scenario.key}_")]
        by_name = {one.name: one.value for one in shown}
        parts = split_rounds(runs.plans[scenario.key].training.rounds, ranges)
        labels = [f"{part.start + 1}-{part.stop}" for part in parts]
        found = [
            by_name[f"{scenario.key}_learned_{first + 1}_told_{second + 1}"]
            for first, second in pairs
        ]
        cells = np.array([np.nan if one is None else 100 * one for one in found])
        title = f"Figure 10: {scenario.name}"
        axes = "training rounds", "target rounds"
        chart = heat_map(cells.reshape(ranges, ranges), labels, labels, axes, title)
        yield ReportFigure(
            title,
            "Average precision per user in %, by the rounds of known updates and of targets.",
            None,
            (Drawing("", chart),),
            tabulate_values(title, shown),
            True,
        )

    return build_study(
        "figure10",
        "Re-identification by the rounds of known updates and of targets",
        scenarios,
        reduced,
        lambda one: joint_plan(source, one.chronological_prior, one),
        read,
        draw,
        source=source,
        ranges=ranges,
    )


def _precisions(
    by_pair: Mapping[RangePair, Mapping[int, Mapping[str, float]]], seed: int, is_same: bool
) -> list[float]:
    """Return the average precisions of all users of a run in the same or in other ranges."""
    return [
        precision
        for (first, second), cell in by_pair.items()
        if (first == second) == is_same
        for precision in cell[seed].values()
    ]


def _pair_value(
    one: PanelRun, name: str, words: str, cells: Sequence[Mapping[int, Mapping[str, float]]]
) -> ReproducedValue:
    """Return the mean over users of their means over these cells."""
    merged = dict[int, dict[str, list[float]]]()
    for cell in cells:
        for seed, by_user in cell.items():
            for user, precision in by_user.items():
                merged.setdefault(seed, {}).setdefault(user, []).append(precision)
    value = mean_over_users(
        {
            seed: {user: sum(several) / len(several) for user, several in by_user.items()}
            for seed, by_user in merged.items()
        }
    )
    missing = ": no user has updates in both ranges" if value is None else ""
    return one.value(name, words + missing, value, None, "higher")


def split_rounds(rounds: int, count: int) -> tuple[range, ...]:
    """Split the rounds into `count` ranges of about equal length.

    >>> split_rounds(10, 4)
    (range(0, 2), range(2, 5), range(5, 7), range(7, 10))
    """
    ends = [rounds * cut // count for cut in range(count + 1)]
    return tuple(range(start, end) for start, end in pairwise(ends))


def _within(rounds: Int[Tensor, " updates"], part: range) -> Bool[Tensor, " updates"]:
    return (rounds >= part.start) & (rounds < part.stop)


# Figure 11: the bias of a user per class, in prior and in private updates.
