"""Figures 5 and 6 of the shift paper: one model; and what its other studies share."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from overheard.drawing.figures import ReportFigure
from overheard.findings.number_format import format_number
from overheard.findings.score_row import ScoreRow
from overheard.learning.models.shift_conv import ShiftConv
from overheard.plans.plan import Plan
from overheard.questions.shift.statistics.detection import detection_rows
from overheard.statistics.estimate import Estimate
from overheard_studies.estimates import BOOTSTRAP_SEED
from overheard_studies.pages.experiment_page import Holds
from overheard_studies.runs import StudyRuns
from overheard_studies.shift.charts import bands_figure, normalize_series
from overheard_studies.shift.measured import (
    BASELINE_ROUNDS,
    OUTLIER_DEVIATION,
    Divergence,
    MeasuredSeries,
    load_series,
    mean_over_runs,
    mean_within_runs,
    measure_divergence,
    subtract_runs,
)
from overheard_studies.shift.setting import (
    ACCURACY,
    INFORMATION,
    LEAKAGE_SOURCES,
    LOSS,
    MNIST,
    SCALED_CMD,
    LeakageMeasure,
    ShiftScenario,
    ShiftSize,
    build_centralized_plan,
    source_of_leakage,
)
from overheard_studies.study import (
    Conclusion,
    Panel,
    PanelRun,
    Study,
    Values,
    format_estimate,
)
from overheard_studies.values import Published, ReproducedValue

PUBLISHED = Published("shift")

AUDIT = "audit"
"""The only audit of a study of a centralized model."""

CENTRALISED_SHARE = 0.8
"""Share of even labels after the shift of a centralized model."""

CENTRALISED = replace(
    MNIST,
    reduced=replace(MNIST.reduced, model=ShiftConv(), auxiliary=200),
    paper_size="one model of 6,700 examples, 20 epochs",
    hours=0.8,
)
"""Quick runs have the paper's network, too: its layers differ more than a small one's."""

LAYERS = {
    "0": "convolution of 32",
    "2": "convolution of 64",
    "6": "linear 128",
    "8": "linear 10",
}
"""The layers of `shift_conv` that have weights, from first to last."""


TRACKING_SCORES = ("auc", "detection_rate", "false_alarm_rate")
"""The reported scores of Overheard's detector, if it runs next to the paper's attacks."""


@final
@dataclass(frozen=True, slots=True)
class AuditMeasurements:
    """Every measure by round in one audit."""

    measured: tuple[MeasuredSeries, ...]

    def series_of(self, measure: LeakageMeasure) -> MeasuredSeries:
        """Return one of the measures by round."""
        return next(one for one in self.measured if one.measure == measure)

    def divergence(self, measure: LeakageMeasure) -> Divergence:
        """Return the divergence of one of the measures from its trend."""
        return measure_divergence(self.series_of(measure))


Audits = Mapping[str, AuditMeasurements]

Statistics = Mapping[str, Estimate | Holds | None]

# Any: the settings of `Conclusion`.
Tests = Mapping[str, tuple[Callable[[Audits], Statistics], dict[str, Any]]]
"""How each statement of the paper is tested: its statistics, and other settings."""


def measure_audits(
    runs: StudyRuns, measures: Sequence[LeakageMeasure], *, in_common: Collection[str] = ()
) -> Audits:
    """Return the measures of audits, from the file in their folder if it fits.

    Args:
        runs: finished audits.
        measures: the measures.
        in_common: names of the audits, of which only the runs of those seeds are returned that
            all have; () = all audits with all runs.

    """
    audits = {}
    for name in in_common or runs.audits:
        followed = load_series(runs, name, measures)
        if in_common:
            seeds = [runs.plans[name].seeds.index(n) for n in runs.common_seeds(in_common)]
            followed = tuple(one.select_runs(seeds) for one in followed)
        audits[name] = AuditMeasurements(followed)
    return audits


def build_study(
    name: str,
    title: str,
    scenario: ShiftScenario,
    texts: tuple[str, ...],
    measures: tuple[LeakageMeasure, ...],
    plans: Mapping[str, Callable[[ShiftSize], Plan]],
    tests: Tests,
    draw: Callable[[StudyRuns, Audits, Values], Iterable[ReportFigure]],
    first: str = "",
) -> Study:
    """Return a figure of the paper.

    Args:
        name: name of the figure.
        title: title of the figure.
        scenario: data set and federation.
        texts: names of the texts on the differences, besides the common ones.
        measures: the measures.
        plans: builds the plan of each audit, by its sub-folder.
        tests: how each statement of the paper is tested, and perhaps others.
        draw: draws the figures from the audits that were run.
        first: name of an audit of which all is concluded that it allows, also while others have
            not been run; "" = none.

    """

    def read(one: PanelRun) -> Iterator[ReproducedValue]:
        prefix = f"{one.key}_" if len(plans) > 1 else ""
        only = replace(one.runs, audits={one.key: one.audit})
        (measured,) = measure_audits(only, measures).values()
        for measure in measures:
            yield from _divergence_values(prefix, one, measure, measured.divergence(measure))
        yield from _auc_values(prefix, one, measures)

    def statistics(
        of_audits: Callable[[Audits], Statistics],
        names: tuple[str, ...],
        runs: StudyRuns,
        values: Values,
    ) -> Statistics:
        names = names or tuple(runs.audits)
        return of_audits(measure_audits(runs, measures, in_common=names))

    def conclude(key: str, says: str, end: str = "", **settings: Any) -> Conclusion:
        of_audits, usual = tests[key]
        settings = {**usual, **settings}
        judged = partial(statistics, of_audits, settings.get("audits", ()))
        return Conclusion(f"{key}{end}", says, judged, **settings)

    sentences: Mapping[str, str] = PUBLISHED.find(figure_of(name))

    def plan(build: Callable[[ShiftSize], Plan], quick: bool) -> Plan:
        return build(scenario.reduced if quick else scenario.full)

    return Study(
        name,
        title,
        differences(scenario, *texts),
        tuple(
            Panel(key, scenario.label, partial(plan, build), read)
            for key, build in plans.items()
        ),
        figures=lambda runs, values: draw(runs, measure_audits(runs, measures), values),
        conclusions=(
            *(conclude(key, says) for key, says in sentences.items()),
            *(
                conclude(key, says, f"_{first}", audits=(first,))
                for key, says in sentences.items()
                if first and "audits" not in tests[key][1]
            ),
        ),
        paper_size=f"3 runs, {scenario.paper_size}",
        is_paper_size=True,
        hours=scenario.hours * len(plans),
    )


def figure_of(name: str) -> str:
    """Return the figure that a study varies, such as "figure5" of "figure5_batch_128".

    >>> figure_of("figure5_batch_128")
    'figure5'
    """
    return name.partition("_")[0]


def differences(scenario: ShiftScenario, *texts: str) -> str:
    """Describe the differences from the paper, and how many exchanges the data allow."""
    held = 2 * scenario.full.examples[2]
    spare = scenario.training_examples - scenario.full.auxiliary - held
    return PUBLISHED.differences(
        "common",
        "chunks" if scenario.full.refresh_every else "one_exchange",
        "budget",
        *texts,
        name=scenario.name,
        batch=scenario.full.batch,
        every=scenario.full.refresh_every,
        training=scenario.training_examples,
        auxiliary=scenario.full.auxiliary,
        held=held,
        exchanges=spare // held,
        hours=scenario.hours,
        disk=scenario.disk_gigabytes,
    )


def _divergence_values(
    prefix: str, one: PanelRun, measure: LeakageMeasure, divergence: Divergence
) -> Iterator[ReproducedValue]:
    """Yield a divergence from the trend, the control's, and in standard errors."""
    at_shift = "divergence from its trend at the shift"
    before = f"divergence from its trend, {BASELINE_ROUNDS} rounds before"
    for name, words, estimate, is_attack in (
        ("divergence", at_shift, mean_over_runs(divergence.shifted), True),
        ("control", f"{at_shift}, in the control", mean_over_runs(divergence.control), False),
        ("before", before, mean_over_runs(divergence.baseline), False),
        ("over_control", f"{at_shift}, minus the control's", divergence.over_control, True),
        ("deviation", f"{at_shift}, in standard errors", divergence.mean_deviation, True),
        (
            "control_deviation",
            f"{at_shift}, in the control, in standard errors",
            divergence.mean_control_deviation,
            False,
        ),
    ):
        missing = "; no run has a trend at that round" if estimate is None else ""
        yield one.value(
            f"{prefix}{measure.key}_{name}",
            f"{measure.name}: {words}{missing}",
            estimate,
            None,
            "higher" if is_attack else None,
        )


def _auc_values(
    prefix: str, one: PanelRun, measures: Sequence[LeakageMeasure]
) -> Iterator[ReproducedValue]:
    """Yield how well each measure, and Overheard's detector, separates shifts from controls."""
    found = detection_rows(one.audit.findings, BOOTSTRAP_SEED)
    rows = {(row.attack, row.score): row for row in found}
    first, *others = one.plan.threats
    for measure in measures:
        yield _of_row(
            one,
            f"{prefix}{measure.key}_auc",
            f"{measure.name}: probability of a larger divergence than a control; a guess has "
            "0.5",
            rows.get((first.attack_name(measure.attack), "auc_told")),
        )
    for threat in others:
        for detector in threat.attacks:
            for score in TRACKING_SCORES:
                yield _of_row(
                    one,
                    f"{prefix}ours_{score}",
                    f"Overheard's {detector.name}, which does not know the round: "
                    + score.replace("_", " "),
                    rows.get((threat.attack_name(detector), score)),
                )


def _of_row(one: PanelRun, name: str, words: str, row: ScoreRow | None) -> ReproducedValue:
    if row is None:
        return one.value(name, f"{words}; not measured", None, None, "higher")
    return one.value(name, words, row.value, None, row.better)


OUTLIER = (
    f"{format_number(OUTLIER_DEVIATION)} standard errors, as by chance in one of twenty rounds"
)


def exchange_tests(of: Callable[[Audits], Mapping[str, Divergence]]) -> Tests:
    """Return how it is tested that an exchange without a shift has no conspicuous effect.

    Args:
        of: returns the divergences of the sources by name.

    """

    def each(of_one: Callable[[Divergence], Estimate | None], audits: Audits) -> Statistics:
        return {name: of_one(one) for name, one in of(audits).items()}

    return {
        "exchange_is_silent": (
            partial(each, lambda one: one.control_over_baseline),
            {
                "direction": "below",
                "words": "no larger divergence from the trend when examples are exchanged "
                "without a shift than before",
            },
        ),
        "exchange_keeps_the_trend": (
            partial(each, lambda one: one.mean_control_deviation),
            {
                "direction": "below",
                "margin": OUTLIER_DEVIATION,
                "words": f"a deviation of the control from its trend below {OUTLIER}",
            },
        ),
        "exchange_has_half_the_effect": (
            partial(each, lambda one: one.over_two_controls),
            {"words": "a divergence from the trend of more than twice the control's"},
        ),
    }


def source_tests(
    shows: str, breaks: str, of: Callable[[Audits], Mapping[str, Divergence]]
) -> Tests:
    """Return how it is tested that a shift shows: by the control, and as the paper reads it.

    Args:
        shows: key of the statement for the comparison with the control.
        breaks: key of the statement for the paper's criterion, which needs no control.
        of: returns the divergences of the sources by name.

    """
    return {
        shows: (
            lambda audits: {name: one.over_control for name, one in of(audits).items()},
            {"words": "a larger divergence from the trend than in the control"},
        ),
        breaks: (
            lambda audits: {name: one.mean_deviation for name, one in of(audits).items()},
            {
                "margin": OUTLIER_DEVIATION,
                "words": f"a deviation from the trend above {OUTLIER}",
            },
        ),
    }


def loss_keeps_the_trend(of: Callable[[Audits], Mapping[str, Divergence]]) -> Tests:
    """Return how it is tested that the loss is silent, as the paper reads it: by no control."""
    return {
        "loss_keeps_the_trend": (
            lambda audits: {name: one.mean_deviation for name, one in of(audits).items()},
            {
                "direction": "below",
                "margin": OUTLIER_DEVIATION,
                "words": f"a deviation of the loss from its trend below {OUTLIER}",
            },
        )
    }


def centralised(name: str = "figure5", scenario: ShiftScenario = CENTRALISED) -> Study:
    """Return Figure 5: one model with one epoch per round, and all sources of leakage."""
    measures = (*LEAKAGE_SOURCES, SCALED_CMD, LOSS, ACCURACY)

    def divergences(audits: Audits) -> Mapping[str, Divergence]:
        return {one.name: audits[AUDIT].divergence(one) for one in LEAKAGE_SOURCES}

    def loss(audits: Audits) -> Statistics:
        found = audits[AUDIT].divergence(LOSS)
        return {_describe(found): found.hides_shift}

    def lead_over_weights(audits: Audits) -> Statistics:
        of_weights, others = (
            mean_within_runs(
                [
                    audits[AUDIT].divergence(one).deviations
                    for one in LEAKAGE_SOURCES
                    if one.key.startswith("weights") == is_of_weights
                ]
            )
            for is_of_weights in (True, False)
        )
        return {"lead": mean_over_runs(subtract_runs(others, of_weights))}

    def draw(runs: StudyRuns, audits: Audits, values: Values) -> Iterator[ReportFigure]:
        for title, shown in (
            ("Figure 5a: the sources of leakage", (*LEAKAGE_SOURCES, SCALED_CMD)),
            ("Figure 5b: validation", (LOSS, ACCURACY)),
        ):
            panels = [(one.name, {"the shift": audits[AUDIT].series_of(one)}) for one in shown]
            yield bands_figure(title, panels, _values_of(values, *shown))

    return build_study(
        name,
        f"Sources of leakage and validation around a shift: one model on {scenario.label}",
        scenario,
        ("centralised",),
        measures,
        {AUDIT: lambda size: _centralised_plan(scenario, size, measures)},
        {
            **exchange_tests(divergences),
            **source_tests("every_source_shows", "every_source_breaks_its_trend", divergences),
            "loss_is_silent": (loss, {}),
            **loss_keeps_the_trend(lambda audits: {"loss": audits[AUDIT].divergence(LOSS)}),
            "weights_are_least": (
                lead_over_weights,
                {
                    "words": "mean deviation of representations and gradients minus that of "
                    "weights, in standard errors"
                },
            ),
        },
        draw,
    )


def layers(scenario: ShiftScenario = CENTRALISED) -> Study:
    """Return Figure 6: one model with one epoch per round, and one measure per layer."""
    by_kind = {
        kind: {
            source_of_leakage(kind, "cosine", layer): words for layer, words in LAYERS.items()
        }
        for kind in INFORMATION
    }
    measures = tuple(one for kind in by_kind.values() for one in kind)

    def leads(audits: Audits, *kinds: str) -> Statistics:
        """Return by how much the last layer deviates more than the first."""
        found = dict[str, Estimate | None]()
        for kind, of_kind in by_kind.items():
            first, *_, last = (audits[AUDIT].divergence(one).deviations for one in of_kind)
            if not kinds or kind in kinds:
                found[kind] = mean_over_runs(subtract_runs(last, first))
        return found

    def draw(runs: StudyRuns, audits: Audits, values: Values) -> Iterator[ReportFigure]:
        panels = [
            (
                f"cosine of {kind}",
                {
                    words: normalize_series(audits[AUDIT].series_of(one))
                    for one, words in of_kind.items()
                },
            )
            for kind, of_kind in by_kind.items()
        ]
        shown = _values_of(values, *measures)
        yield bands_figure("Figure 6: by layer, normalized", panels, shown)

    words = {"words": "deviation of the last layer minus that of the first"}
    return build_study(
        "figure6",
        f"Cosine similarity by layer around a shift: one model on {scenario.label}",
        scenario,
        ("centralised", "normalization"),
        measures,
        {AUDIT: lambda size: _centralised_plan(scenario, size, measures)},
        {
            "later_layers_tell_more": (leads, words),
            "weights_react_late": (lambda audits: leads(audits, "weights"), words),
            "representations_react_late": (
                lambda audits: leads(audits, "representations"),
                words,
            ),
        },
        draw,
    )


def _centralised_plan(
    scenario: ShiftScenario, size: ShiftSize, measures: Sequence[LeakageMeasure]
) -> Plan:
    return build_centralized_plan(scenario, size, CENTRALISED_SHARE, measures)


def _describe(divergence: Divergence) -> str:
    return (
        f"divergence minus the control's {format_estimate(divergence.over_control)}, "
        f"{format_estimate(divergence.mean_deviation)} standard errors; by chance it exceeds "
        f"{format_number(OUTLIER_DEVIATION)} in one of twenty rounds"
    )


def _values_of(values: Values, *measures: LeakageMeasure) -> list[ReproducedValue]:
    return [one for each in measures for one in values if f"; {each.name}: " in one.setting]


def measured_values(values: Values) -> list[ReproducedValue]:
    """Return the values that are no statements."""
    return [one for one in values if not one.name.startswith("reading_")]
