"""Tables 2 to 4 and Figures 2 to 6 of Whispers of Data."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

from overheard.core.messages import Weights
from overheard.core.parties import SERVER, client
from overheard.data.splits.dirichlet import Dirichlet
from overheard.plans.plan import (
    UNDEFENDED,
)
from overheard_studies.estimates import (
    final_accuracy,
    mean_guess_score,
    mean_score,
    select_findings,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Panel, PanelRun, Paper, Read, Study
from overheard_studies.values import ReproducedValue
from overheard_studies.whispers.conclusions import (
    Errors,
    closest,
    excess,
    of_sizes,
    of_table,
    under_noise,
)
from overheard_studies.whispers.setting import (
    AG_NEWS,
    AMORTISED,
    BENCHMARKS,
    DECAF,
    DISTANCES,
    EXPECTED_SIZES,
    FASHION_MNIST,
    IMPOSSIBLE_NOTE,
    METHODS,
    MNIST,
    PUBLISHED,
    ROUNDING,
    SIZE_BENCHMARK,
    SIZE_FACTOR,
    SIZE_METHODS,
    UNIFORM_GUESS,
    WHISPERS,
    Method,
    WhispersBenchmark,
    WhispersScenario,
    WhispersSize,
    build_finding_filter,
    build_noise_arm,
    build_plan,
    dirichlet_scenarios,
    few_labels_scenario,
    iid_scenario,
    noise_deviation,
)

PAPER_SIZE = "1,200 virtual clients of 3,000 to 5,000 examples; no rounds and no recipe stated"

HOURS_PER_AUDIT = 0.4
"""Core hours of five runs of one audit without noise, or of one arm with noise."""


def read_published_rows(table: str, scenario: str) -> Mapping[str, Mapping[str, float]]:
    """Return the distances of each attack in one scenario, by its name; empty if none."""
    return {
        method: dict(zip(DISTANCES, map(float, cells.split()), strict=True))
        for method, cells in (PUBLISHED.find(table, scenario) or {}).items()
        if method != "accuracy"
    }


def is_impossible(row: Mapping[str, float]) -> bool:
    """Return whether no label shares on positions 0 .. C - 1 have these distances.

    Half of the L1 distance is the share that must be moved, each part by at least one
    position. The bound holds for each client, hence for the published means.
    """
    return row["wasserstein"] < row["l1"] / 2 - ROUNDING


def _panel(
    scenario: WhispersScenario,
    read: Read,
    key: str | None = None,
    sizes: tuple[WhispersSize, WhispersSize] | None = None,
    # Any: each setting of a plan has its own type.
    **settings: Any,
) -> Panel:
    both = sizes or scenario.benchmark.sizes
    return Panel(
        key or scenario.key,
        scenario.name,
        lambda quick: build_plan(scenario, both[quick], quick=quick, **settings),
        read,
    )


def _differences(scenarios: Iterable[WhispersScenario], *texts: str) -> str:
    """Describe the differences from the paper for the data sets of these scenarios."""
    benchmarks = dict.fromkeys(one.benchmark for one in scenarios)
    notes = [(one, PUBLISHED.find("differences", one.key)) for one in benchmarks]
    named = [f"{one.name}: {' '.join(note.split())}" for one, note in notes if note]
    return PUBLISHED.differences("common", *named, *texts)


def table(
    name: str,
    topic: str,
    scenarios: tuple[WhispersScenario, ...],
    methods: tuple[Method, ...] = METHODS,
) -> Study:
    """Return Table 2 or 3: every method in every scenario, beside the uniform guess."""

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        return _distances(one, name, one.key, methods)

    published = {one.key: read_published_rows(name, one.key) for one in scenarios}
    return Study(
        name,
        f"Distances between claimed and true label shares, {topic}",
        _differences(scenarios, "misprints"),
        tuple(_panel(one, read, methods=methods) for one in scenarios),
        conclusions=tuple(
            of_table(
                methods,
                {one.key: one.name for one in scenarios},
                {key: rows[WHISPERS.key]["l1"] for key, rows in published.items() if rows},
                is_skewed=any(isinstance(one.split, Dirichlet) for one in scenarios),
            )
        ),
        paper_size=PAPER_SIZE,
        hours=HOURS_PER_AUDIT * len(scenarios),
    )


def _distances(
    one: PanelRun,
    table: str,
    key: str,
    methods: Iterable[Method],
    arm: str = UNDEFENDED,
) -> Iterator[ReproducedValue]:
    """Yield every distance of every method, with the published one, and the guess's."""
    published = read_published_rows(table, key)
    for number, method in enumerate(methods):
        row, selected = (
            published.get(method.key, {}),
            build_finding_filter(one.plan, number, arm),
        )
        words = method.words
        words += f"; {IMPOSSIBLE_NOTE}" if row and is_impossible(row) else ""
        for score in DISTANCES:
            measured = mean_score(one.audit, selected, score)
            yield one.value(
                f"{key}_{method.key}_{score}", words, measured, row.get(score), "lower"
            )
    first = build_finding_filter(one.plan, 0, arm)
    for score in DISTANCES:
        measured = mean_guess_score(one.audit, first, score, UNIFORM_GUESS)
        words = "uninformed guess: uniform over classes"
        yield one.value(f"{key}_{UNIFORM_GUESS}_{score}", words, measured, None, "lower")


ASSUMED_SCENARIO = WhispersScenario(
    "fashion_mnist", "F-MNIST Dirichlet(1)", FASHION_MNIST, Dirichlet(1.0)
)
"""Replaces the paper's scenario, which is lost."""


def defended(
    scenario: WhispersScenario = ASSUMED_SCENARIO,
    epsilons: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 40.0),
    methods: tuple[Method, ...] = (DECAF, WHISPERS, AMORTISED),
) -> Study:
    """Return Table 4: errors and accuracy by the paper's epsilons."""
    full, reduced = scenario.benchmark.sizes
    sizes = replace(full, examples=(sum(full.examples) // 2,) * 2), reduced
    deviations = {build_noise_arm(one).name: noise_deviation(one) for one in epsilons}

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        for name in (arm.name for arm in one.plan.arms):
            key = name.replace(" ", "_")
            noise = f", noise of deviation {deviations[name]:.2g}" if name in deviations else ""
            of_arm = replace(one, context=f"{one.context}, {name}{noise}")
            yield from _distances(of_arm, "table4", key, methods, name)
            published = PUBLISHED.find("table4", key, "accuracy")
            yield of_arm.value(
                f"{key}_accuracy",
                "the last global model",
                final_accuracy(one.audit, name),
                None if published is None else float(published) / 100,
                "higher",
            )

    arms = tuple(build_noise_arm(epsilon) for epsilon in epsilons)
    return Study(
        "table4",
        f"Distances under local noise, {scenario.name}",
        _differences([scenario], "mechanism", "defended"),
        (_panel(scenario, read, "audit", sizes, methods=methods, arms=arms),),
        conclusions=tuple(
            under_noise(
                methods,
                "audit",
                dict(zip(epsilons, (arm.name for arm in arms), strict=True)),
                {
                    one: read_published_rows("table4", f"epsilon_{one:g}")[WHISPERS.key]["l1"]
                    for one in epsilons
                    if PUBLISHED.find("table4", f"epsilon_{one:g}")
                },
            )
        ),
        has_separate_arms=True,
        paper_size=PAPER_SIZE,
        hours=HOURS_PER_AUDIT * (1 + len(epsilons)),
    )


def lines(
    name: str,
    topic: str,
    scenarios: tuple[WhispersScenario, ...],
    epsilon: float | None = None,
    methods: tuple[Method, ...] = METHODS,
) -> Study:
    """Return Figures 3 to 6: shares of the first client, and the mean error over all clients.

    Args:
        name: name of the figure.
        topic: topic, in words.
        scenarios: scenarios, one per panel.
        epsilon: epsilon of the clients' noise, as in the paper; None = no noise.
        methods: methods, one per line.

    """
    arms = () if epsilon is None else (build_noise_arm(epsilon),)
    arm = arms[0].name if arms else UNDEFENDED

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        of_client = f"of client 1, seed {one.plan.seeds[0]}"
        for number, method in enumerate(methods):
            selected = build_finding_filter(one.plan, number, arm)
            followed = select_findings(one.audit, replace(selected, target=client(0)))
            (finding,) = [each for each in followed if each.cell.seed == one.plan.seeds[0]]
            if number == 0:
                words = f"true shares {of_client}"
                yield from _shares(one, "true", words, finding.true_numbers)
            words = method.words
            measured = mean_score(one.audit, selected, "l1")
            yield one.value(f"{one.key}_{method.key}_l1", words, measured, None, "lower")
            yield from _shares(one, method.key, f"{words} {of_client}", finding.claimed.numbers)

    return Study(
        name,
        f"Claimed and true shares by label, {topic}",
        _differences(scenarios, "mechanism" if arms else "", "lines"),
        tuple(_panel(one, read, methods=methods, arms=arms) for one in scenarios),
        conclusions=tuple(
            closest(methods, {one.key: one.name for one in scenarios}, ("l1",), arm)
        ),
        paper_size=PAPER_SIZE,
        hours=HOURS_PER_AUDIT * len(scenarios),
    )


def _shares(
    one: PanelRun, name: str, words: str, shares: tuple[float, ...]
) -> Iterator[ReproducedValue]:
    for label, share in enumerate(shares):
        yield one.value(f"{one.key}_{name}_share_{label}", words, share)


def sizes(
    benchmark: WhispersBenchmark = SIZE_BENCHMARK,
    examples: tuple[int, ...] = (2000, 1600, 1000, 600, 200),
) -> Study:
    """Return Figure 2: norms of updates by client size, and sizes estimated from the norms.

    Args:
        benchmark: data set.
        examples: examples of each client, by audit, as in the paper.

    """
    scenario, estimators = iid_scenario(benchmark), tuple(SIZE_METHODS.values())

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        for number in (0, one.plan.training.rounds - 1):
            words = f"L2 norm of an update in round {number + 1}"
            norm = excess(update_norms(one.runs, one.key, number), 0.0)
            yield one.value(f"{one.key}_norm_round_{number + 1}", words, norm)
        for number, (kind, estimator) in enumerate(SIZE_METHODS.items()):
            yield one.value(
                f"{one.key}_{kind}_{SIZE_FACTOR}",
                f"{kind} ({estimator.published_name}), |log2(estimated / true)|: 1 = off by a "
                "factor of 2",
                mean_score(one.audit, build_finding_filter(one.plan, number), SIZE_FACTOR),
                None,
                "lower",
            )

    def panel(count: int) -> Panel:
        full, reduced = (replace(one, examples=(count, count)) for one in benchmark.sizes)
        named = replace(scenario, name=scenario.name)
        return replace(
            _panel(
                named,
                read,
                f"size_{count}",
                (full, reduced),
                methods=estimators,
                expected_sizes=EXPECTED_SIZES,
            ),
            name=benchmark.name,
        )

    return Study(
        "figure2",
        f"Norm of updates and estimated size by client size, {benchmark.name}",
        _differences([scenario], "sizes"),
        tuple(map(panel, examples)),
        conclusions=tuple(
            of_sizes(
                {count: f"size_{count}" for count in examples},
                lambda runs, key: update_norms(runs, key, 0),
                SIZE_METHODS["doubling"],
            )
        ),
        paper_size="clients of 2,000 to 200 examples",
        hours=0.1 * len(examples),
    )


def update_norms(runs: StudyRuns, key: str, number: int) -> Errors:
    """Return the L2 norm of each client's update of one round."""
    run, norms = runs.plans[key], {}
    for seed in run.seeds:
        view = runs.transcript(key, UNDEFENDED, seed).seen_by(SERVER)
        for party in map(client, range(run.data.clients)):
            norms[seed, party] = _norm(view.updates(party)[number].delta)
    return norms


def _norm(delta: Weights) -> float:
    return sqrt(sum(float(part.double().square().sum()) for part in delta.values()))


def _studies() -> tuple[Study, ...]:
    iid = tuple(map(iid_scenario, (MNIST, FASHION_MNIST, AG_NEWS)))
    few_labels = tuple(map(few_labels_scenario, BENCHMARKS))
    dirichlet = tuple(each for one in BENCHMARKS for each in dirichlet_scenarios(one))
    noisy = (
        iid_scenario(FASHION_MNIST, "fashion_mnist_iid"),
        *dirichlet_scenarios(FASHION_MNIST),
    )
    return (
        sizes(),
        table("table2", "IID clients", iid),
        lines("figure3", "IID clients", iid),
        lines("figure4", "few labels per client", few_labels),
        table("table3", "Dirichlet clients", dirichlet),
        lines("figure5", "Dirichlet clients", dirichlet),
        defended(),
        lines("figure6", "noise of epsilon 1", noisy, epsilon=1.0),
    )


PAPER = Paper(
    "whispers",
    "Whispers of Data: Unveiling Label Distributions in Federated Learning Through Virtual "
    "Client Simulation",
    "Ma et al. 2025 (arXiv 2504.21436)",
    _studies,
)
