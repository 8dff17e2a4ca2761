"""The studies that read the summary of an audit: Tables 3 and 5, Figures 6, 7 and 9."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from overheard.core.attack import Attack
from overheard.data.partition.known_user_settings import KnownUserSettings, PriorKind
from overheard.drawing.figures import ReportFigure
from overheard.findings.score_row import CONTROL_NAME
from overheard.learning.models.mlp import Mlp
from overheard.linkage.known_updates import UpdateSource
from overheard.linkage.layers import Layer
from overheard.plans.plan import Plan
from overheard.questions.identity.attacks.match import MatchSiamese
from overheard.questions.identity.attacks.profile import Profile
from overheard.questions.identity.attacks.reidentify import ReidentifySvm
from overheard.questions.same_sender.attacks.link_siamese import LinkSiamese
from overheard_studies.deanonymization.charts import ValueSeries, series_figure
from overheard_studies.deanonymization.setting import (
    AGES,
    BLOGS,
    IDENTITY_ATTACKS,
    IDENTITY_SCORES,
    PRECISION,
    PUBLISHED,
    QUICK_BLOGS,
    QUICK_SCENARIOS,
    QUICK_WISDM,
    UPDATE_SOURCES,
    WISDM,
    IdentityScenario,
    ResultRows,
    build_identity_attacks,
    build_known_user_settings,
    build_panel,
    build_plan,
    build_published_attack,
    build_threat,
    build_wccn_attack,
    describe_differences,
    describe_setting,
    find_scenario,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Panel, PanelRun, Study
from overheard_studies.values import ReproducedValue, Values

Scenarios = tuple[IdentityScenario, ...]

HOLDOUT_DIVISOR = 3
"""One user in this number of users does not take part, as published."""


@final
@dataclass(frozen=True, slots=True)
class Varied:
    """A scenario, and the variants in which it is run: priors, numbers, layers or attributes.

    Args:
        scenario: data set and federation.
        variants: the variants.
        sources: sources of known updates.

    """

    scenario: IdentityScenario
    # Any: each study has its own kind of variant.
    variants: Any
    sources: tuple[UpdateSource, ...] = UPDATE_SOURCES

    @property
    def key(self) -> str:
        """Name in folders and in the keys of values."""
        return self.scenario.key


def spoken(name: str) -> str:
    """Return a name in words."""
    return name.replace("_", " ")


PAPER_PRIORS: tuple[PriorKind, ...] = ("random", "chronological")

ALL_PRIORS: tuple[PriorKind, ...] = (*PAPER_PRIORS, "chronological_within_labels")

SOURCES_AND_NAMES = tuple(
    (source, name)
    for source in UPDATE_SOURCES
    for name in (
        *(attack.name for attack in IDENTITY_ATTACKS),
        "reidentify_wccn_unlinked",
        "reidentify_svm_hard",
    )
)
"""The source of known updates and the name of each attack of Table 3. Unlinked, Overheard's
neither links nor assigns, as the paper's do not. The published values of the SVM are those of
hard scores."""


QUICK_TABLE = tuple(Varied(one, PAPER_PRIORS) for one in QUICK_SCENARIOS)


def reidentification(
    panels: tuple[Varied, ...] = (
        Varied(BLOGS, PAPER_PRIORS),
        Varied(AGES, PAPER_PRIORS),
        Varied(WISDM, ALL_PRIORS),
    ),
    reduced: tuple[Varied, ...] = QUICK_TABLE,
) -> Study:
    """Return Table 3: every attack with each kind of prior examples, by source of updates."""

    def plan(prior: PriorKind, scenario: IdentityScenario) -> Plan:
        attacks = tuple(
            one
            for source in UPDATE_SOURCES
            for one in (
                *build_identity_attacks(scenario, source),
                build_wccn_attack(scenario, source, is_linking=False),
                ReidentifySvm(
                    updates=source,
                    layer=scenario.layer,
                    most_rounds=scenario.most_rounds,
                    hard=True,
                ),
            )
        )
        threats = build_threat(attacks), build_threat(attacks, by_sender=True)
        return build_plan(scenario, build_known_user_settings(prior), threats)

    def read(
        scenario: IdentityScenario, prior: str, one: PanelRun
    ) -> Iterator[ReproducedValue]:
        rows = ResultRows.of(one)
        for threat in one.plan.threats:
            unit = "update" if threat.pseudonyms == "round" else "sender"
            for attack, (source, label) in zip(threat.attacks, SOURCES_AND_NAMES, strict=True):
                name = f"{scenario.key}_{prior}_{unit}_{source}_{label}"
                words = f"per {unit}, {label}, {source} updates"
                is_published = (unit, source) == ("update", "shadow")
                path = "table3", scenario.paper, prior, label
                for score in IDENTITY_SCORES:
                    published = PUBLISHED.number(*path, score) if is_published else None
                    place = threat.attack_name(attack), score
                    words_of_score = f"{words}: {spoken(score)}"
                    yield rows.value(f"{name}_{score}", words_of_score, place, published)
                yield from rows.baselines(name, words, threat.attack_name(attack))

    quick = {(one.key, prior): one.scenario for one in reduced for prior in one.variants}
    return Study(
        "table3",
        "Re-identification: average precision, times chance, top-1 and top-5",
        describe_differences((one.scenario for one in panels), "table3"),
        tuple(
            build_panel(
                f"{panel.key}_{prior}",
                panel.scenario,
                quick.get((panel.key, prior)),
                partial(plan, prior),
                partial(read, panel.scenario, prior),
            )
            for panel in panels
            for prior in panel.variants
        ),
        describe_setting,
    )


PROFILE_CHUNKS = 4
"""Chunks of a profile's examples, of which it has far more than a device."""


def iid(scenarios: Scenarios = (BLOGS, WISDM), reduced: Scenarios = QUICK_SCENARIOS) -> Study:
    """Return the IID control of section 6.1.1: examples are redistributed among all users."""

    def plan(scenario: IdentityScenario) -> Plan:
        attacks = tuple(build_published_attack(scenario, one) for one in UPDATE_SOURCES)
        known = build_known_user_settings("random")
        return build_plan(scenario, known, (build_threat(attacks),))

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        rows, (threat,) = ResultRows.of(one), one.plan.threats
        for attack, source in zip(threat.attacks, UPDATE_SOURCES, strict=True):
            name, words = f"{one.key}_{source}", f"{source} updates"
            label, control = threat.attack_name(attack), "average precision of the IID control"
            place = label, "control_excess"
            yield rows.value(f"{name}_control", f"{words}: {control}", place)
            excess, row = rows.find(*place), rows.find(label, PRECISION)
            if excess is None or row is None or not row.best_uninformed:
                continue
            yield one.value(
                f"{name}_times_chance",
                f"{words}: IID control divided by a random order (published: PIPA)",
                row.references[CONTROL_NAME] / row.best_uninformed,
                PUBLISHED.number("text", "iid_times_chance") if source == "shadow" else None,
                "higher",
            )
            for end, side in (("null 2.5 %", "low"), ("null 97.5 %", "high")):
                described = f"{words}: {side} end of the 95 % permutation interval"
                yield one.value(f"{name}_null_{side}", described, excess.references[end])
            described = f"{words}: average precision of the original users"
            yield rows.value(f"{name}_as_they_are", described, (label, PRECISION))

    return Study(
        "iid",
        "Re-identification when examples are redistributed at random among all users",
        describe_differences(scenarios, "iid"),
        build_panels(scenarios, reduced, plan, read),
        describe_setting,
    )


def build_panels(
    scenarios: Scenarios, reduced: Scenarios, plan: Any, read: Any
) -> tuple[Panel, ...]:
    """Return one audit for each scenario, named for it."""
    return tuple(
        build_panel(one.key, one, find_scenario(reduced, one.key), plan, read)
        for one in scenarios
    )


def profiles(scenarios: Scenarios = (WISDM,), reduced: Scenarios = QUICK_SCENARIOS) -> Study:
    """Return Figure 5: which devices fit a profile, from examples of the profile alone."""

    def plan(scenario: IdentityScenario) -> Plan:
        mlp = build_published_attack(scenario, "simulated", pieces=PROFILE_CHUNKS)
        profile = Profile(
            layer=scenario.layer,
            chunks=PROFILE_CHUNKS,
            steps=scenario.steps,
            most_rounds=scenario.most_rounds,
        )
        known = KnownUserSettings(prior="profile")
        return build_plan(scenario, known, (build_threat((mlp, profile), by_sender=True),))

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        rows, (threat,) = ResultRows.of(one), one.plan.threats
        for attack in threat.attacks:
            name, label = f"{one.key}_{attack.name}", threat.attack_name(attack)
            for score in IDENTITY_SCORES[:-1]:
                yield rows.value(
                    f"{name}_{score}", f"{attack.name}: {spoken(score)}", (label, score)
                )
            yield from rows.baselines(name, attack.name, label)

    return Study(
        "figure5",
        "Which devices fit a profile",
        describe_differences(scenarios, "figure5"),
        build_panels(scenarios, reduced, plan, read),
        describe_setting,
    )


OPEN_SET_SCORES = (PRECISION, "times_chance", "top1", "dir_at_1_percent", "matching_auc")

LINKING_SCORES = ("matching_auc", "equal_error_rate")


def open_world(
    scenarios: Scenarios = (BLOGS, WISDM),
    reduced: Scenarios = QUICK_SCENARIOS,
    seen_percentages: tuple[int, ...] = (25, 50, 75, 100),
    source: UpdateSource = "shadow",
    pairs: int = 32_000,
) -> Study:
    """Return Figure 6: re-identification and matching by the share of known senders.

    The paper calls an open set an open world, and known senders seen.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        seen_percentages: percentages of the senders that the server knows.
        source: source of known updates.
        pairs: number of pairs that the matching network learns from.

    """

    def plan(percentage: int, scenario: IdentityScenario) -> Plan:
        holdout = scenario.clients // HOLDOUT_DIVISOR
        senders = scenario.clients - holdout
        known = build_known_user_settings(
            scenario.chronological_prior,
            unseen=senders - senders * percentage // 100,
            holdout=holdout,
        )
        matching = (
            kind(
                updates=source,
                layer=scenario.layer,
                pairs=pairs,
                most_rounds=scenario.most_rounds,
            )
            for kind in (MatchSiamese, LinkSiamese)
        )
        threat = build_threat((*build_identity_attacks(scenario, source), *matching))
        return build_plan(scenario, known, (threat,), clients=senders)

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        rows, (threat,), users = ResultRows.of(one), one.plan.threats, one.plan.data.people
        for attack in threat.attacks:
            name, label = f"{one.key}_{attack.name}", threat.attack_name(attack)
            scores = LINKING_SCORES if isinstance(attack, LinkSiamese) else OPEN_SET_SCORES
            for score in scores:
                # Without unknown users there are no false positives.
                if score != "dir_at_1_percent" or (users is not None and users.unseen):
                    words = f"{attack.name}: {spoken(score)}"
                    yield rows.value(f"{name}_{score}", words, (label, score))
            yield from rows.baselines(name, attack.name, label)

    def draw(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
        for one in scenarios:
            keys = {n: f"{one.key}_seen_{n}" for n in seen_percentages}
            keys = {n: key for n, key in keys.items() if key in runs.audits}
            names = [attack.name for attack in build_identity_attacks(one, source)]
            for score, attacks in (
                (PRECISION, [*names, "match_siamese"]),
                ("matching_auc", ["match_siamese", "link_siamese"]),
            ):
                lines = {name: (name, score) for name in attacks}
                title = f"Figure 6: {one.name}, {spoken(score)}"
                yield from _lines(values, keys, lines, title, "known users, %", score)

    return Study(
        "figure6",
        "Re-identification by the share of senders that the server knows",
        describe_differences(scenarios, "figure6", source=source),
        tuple(
            build_panel(
                f"{one.key}_seen_{percentage}",
                one,
                find_scenario(reduced, one.key),
                partial(plan, percentage),
                read,
            )
            for one in scenarios
            for percentage in seen_percentages
        ),
        describe_setting,
        figures=draw,
    )


def _lines(
    values: Values,
    keys: Mapping[int, str],
    lines: Mapping[str, tuple[str, str]],
    title: str,
    across: str,
    score: str,
) -> Iterator[ReportFigure]:
    """Draw a score by a number: each line is named, for an attack, and through the audits.

    Args:
        values: all values.
        keys: sub-folder of each audit by its number; none = no figure.
        lines: by the name of a line, the attack and score in the names of its values.
        title: title of the figure.
        across: what the number is.
        score: the score.

    """
    by_name = {one.name: one for one in values}
    if keys:
        drawn = [
            ValueSeries(
                name, list(keys), [by_name[f"{key}_{'_'.join(end)}"] for key in keys.values()]
            )
            for name, end in lines.items()
        ]
        yield series_figure(title, drawn, across, score)


def prior_examples(
    panels: tuple[Varied, ...] = (
        Varied(BLOGS, (1, 4, 16, 64), ("shadow",)),
        Varied(WISDM, (1, 2, 4, 8, 16, 32)),
    ),
    reduced: tuple[Varied, ...] = (
        Varied(QUICK_BLOGS, (1, 4, 16)),
        Varied(QUICK_WISDM, (1, 4, 16)),
    ),
) -> Study:
    """Return Figure 7: every attack with a limited number of prior records per user.

    Args:
        panels: data sets; the variants are numbers of records. All records are used too.
        reduced: the same for a quick run.

    """

    def attacks(panel: Varied, scenario: IdentityScenario) -> list[tuple[str, Attack[Any]]]:
        return [
            (source, attack)
            for source in panel.sources
            for attack in build_identity_attacks(scenario, source)
        ]

    def plan(panel: Varied, count: int | None, scenario: IdentityScenario) -> Plan:
        limited = replace(build_known_user_settings("random"), records=count)
        threat = build_threat(tuple(attack for _, attack in attacks(panel, scenario)))
        return build_plan(scenario, limited, (threat,))

    def read(panel: Varied, count: int | None, one: PanelRun) -> Iterator[ReproducedValue]:
        rows, (threat,) = ResultRows.of(one), one.plan.threats
        for attack, (source, _) in zip(
            threat.attacks, attacks(panel, panel.scenario), strict=True
        ):
            name, label = f"{one.key}_{source}_{attack.name}", threat.attack_name(attack)
            for score in (PRECISION, "times_chance"):
                is_published = (count, source, attack.name, score) == (
                    1, "shadow", "reidentify_mlp", PRECISION,
                )  # fmt: skip
                yield rows.value(
                    f"{name}_{score}",
                    f"{attack.name}, {source} updates: {spoken(score)}"
                    + (" (published: PIPA)" if is_published else ""),
                    (label, score),
                    PUBLISHED.number("text", "one_example_precision") if is_published else None,
                )
            yield from rows.baselines(name, attack.name, label)

    def draw(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
        for panel in panels:
            keys = {n: f"{panel.key}_records_{n}" for n in panel.variants}
            keys = {n: key for n, key in keys.items() if key in runs.audits}
            names = [f"{source}_{one.name}" for source, one in attacks(panel, panel.scenario)]
            lines = {spoken(name): (name, PRECISION) for name in names}
            title, across = f"Figure 7: {panel.scenario.name}", "prior records per user"
            yield from _lines(values, keys, lines, title, across, PRECISION)

    quick = {
        (one.key, count): one.scenario for one in reduced for count in (*one.variants, None)
    }
    return Study(
        "figure7",
        "Re-identification by the number of prior examples per user",
        describe_differences((one.scenario for one in panels), "figure7"),
        tuple(
            build_panel(
                f"{one.key}_records_{count or 'all'}",
                one.scenario,
                quick.get((one.key, count)),
                partial(plan, one, count),
                partial(read, one, count),
            )
            for one in panels
            for count in (*one.variants, None)
        ),
        describe_setting,
        figures=draw,
    )


TEXT_LAYERS: Mapping[str, Layer] = {
    "embedding": 0,
    "lstm": 1,
    "fully_connected": 2,
    "output_bias": "last_bias",
    "all": "all",
}


def perceptron(scenario: IdentityScenario, hidden: int) -> Varied:
    """Replace the scenario's model with a perceptron of `hidden` hidden layers of 64 units."""
    layers: Mapping[str, Layer] = {
        **{f"hidden_{depth + 1}": depth for depth in range(hidden)},
        "fully_connected": hidden,
        "output_bias": "last_bias",
        "all": "all",
    }
    return Varied(replace(scenario, model=Mlp((64,) * hidden)), layers)


SHALLOW_DEPTH, DEEP_DEPTH = 2, 4
"""Hidden layers; the paper has 27 convolutions, which need more images than are available."""


def depth(name: str, panels: tuple[Varied, ...], reduced: tuple[Varied, ...]) -> Study:
    """Return Table 5 or Figure 9: the published attack on one layer at a time.

    Args:
        name: name of the table or figure.
        panels: scenarios; the variants are the layers of the model, from first to last.
        reduced: the same for a quick run.

    """

    def plan(panel: Varied, scenario: IdentityScenario) -> Plan:
        layers = panel.variants if scenario == panel.scenario else quick_layers[scenario.key]
        attacks = tuple(
            build_published_attack(scenario, source, layer)
            for source in UPDATE_SOURCES
            for layer in layers.values()
        )
        known = build_known_user_settings("random")
        return build_plan(scenario, known, (build_threat(attacks),))

    def read(panel: Varied, one: PanelRun) -> Iterator[ReproducedValue]:
        rows, (threat,) = ResultRows.of(one), one.plan.threats
        variants = [(source, layer) for source in UPDATE_SOURCES for layer in panel.variants]
        for attack, (source, layer) in zip(threat.attacks, variants, strict=True):
            key, label = f"{one.key}_{source}_{layer}", threat.attack_name(attack)
            for score in (PRECISION, "times_chance"):
                is_published = (source, score) == ("shadow", PRECISION)
                path = "table5", panel.scenario.paper, layer
                yield rows.value(
                    f"{key}_{score}",
                    f"{spoken(layer)}, {source} updates: {spoken(score)}",
                    (label, score),
                    PUBLISHED.number(*path) if is_published else None,
                )
            yield from rows.baselines(key, f"{layer}, {source}", label)

    def draw(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
        by_name = {one.name: one for one in values}
        for one in panels:
            if one.key in runs.audits:
                names = [f"{one.key}_{{}}_{layer}_{PRECISION}" for layer in one.variants]
                lines = [
                    ValueSeries(
                        f"{source} updates",
                        range(len(names)),
                        [by_name[name.format(source)] for name in names],
                    )
                    for source in UPDATE_SOURCES
                ]
                across = ", ".join(f"{n} = {layer}" for n, layer in enumerate(one.variants))
                title = f"By depth: {one.scenario.name}"
                yield series_figure(title, lines, f"layer ({across})", PRECISION)

    quick_layers = {one.key: one.variants for one in reduced}
    quick = [one.scenario for one in reduced]
    return Study(
        name,
        "Re-identification by the depth of the layer that is read",
        describe_differences((one.scenario for one in panels), "depth"),
        tuple(
            build_panel(
                one.key,
                one.scenario,
                find_scenario(quick, one.key),
                partial(plan, one),
                partial(read, one),
            )
            for one in panels
        ),
        describe_setting,
        figures=draw,
    )
