"""The measurement of source inference: how often the client that holds a record is named."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from time import process_time

from overheard.auditing.simulate import knowledge, simulate
from overheard.auditing.summary import summarise
from overheard.core.parties import SERVER
from overheard.core.seeds import Seed
from overheard_studies.estimates import BOOTSTRAP_SEED
from overheard_studies.measurements.audits import describe_plan
from overheard_studies.plan_files import read_panels
from overheard_studies.study import Measurement, MeasurementRun, Panel, PanelRun, Study
from overheard_studies.values import ReproducedValue, make_value

HEADLINE = "source_accuracy"

SCORES = (
    HEADLINE,
    "source_top3",
    "source_log_loss",
    "source_calibration_error",
    "nobody_error",
)


def source_inference() -> Study:
    """Return how often each attack names the holder of a record, and how long it takes."""
    panels = read_panels("source_inference", _read_sources)
    return Study(
        "source_inference",
        "Which client holds a record, by every attack",
        "It repeats no paper. All attacks have their defaults and the same knowledge. Settings "
        "were chosen on other seeds.",
        panels,
        describe_plan,
        measurements=(Measurement("seconds", partial(_measure_seconds, panels[0])),),
    )


def _measure_seconds(panel: Panel, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Measure the core seconds of each attack on one run of a panel."""
    plan = panel.plan(True)
    assert plan is not None
    resources = replace(run.resources, workers=1)
    transcript, _ = simulate(plan, resources=resources)
    known, view = knowledge(plan, resources=resources), transcript.seen_by(SERVER)
    for attack in plan.threats[0].attacks:
        began = process_time()
        attack.infer(view, view.senders(), known, Seed(0))
        words = f"{panel.name}; {attack.name}: core seconds on one run"
        yield make_value(f"seconds_{attack.name}", words, process_time() - began, None, "lower")


def _read_sources(one: PanelRun) -> Iterator[ReproducedValue]:
    """Read the scores of each attack; of the main one its guesses and its range over runs."""
    for row in summarise(one.audit.findings, BOOTSTRAP_SEED):
        if row.score not in SCORES:
            continue
        words = f"{row.arm}; {row.attack}: {row.score.replace('_', ' ')}"
        name = f"{one.key}_{row.arm}_{row.attack}_{row.score}".replace(" ", "_")
        yield one.value(name, words, row.value, None, row.better)
        if row.score != HEADLINE:
            continue
        for guess, value in {**row.uninformed, **row.references}.items():
            yield one.value(f"{name}_{guess}".replace(" ", "_"), f"{words}, {guess}", value)
        values = [
            score.value
            for finding in one.audit.findings
            for score in finding.scores
            if (finding.cell.arm, finding.cell.attack) == (row.arm, row.attack)
            and score.name == HEADLINE
        ]
        yield one.value(f"{name}_lowest", f"{words}, lowest of the runs", min(values))
        yield one.value(f"{name}_highest", f"{words}, highest of the runs", max(values))
