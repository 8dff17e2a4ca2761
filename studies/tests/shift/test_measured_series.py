from dataclasses import replace

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.progress import ProgressStep
from overheard.auditing.run import audit
from overheard_studies.runs import StudyRuns
from overheard_studies.shift.measured import load_series, measure_runs
from overheard_studies.shift.setting import (
    LOSS,
    ShiftScenario,
    build_federated_plan,
    source_of_leakage,
)

pytestmark = pytest.mark.slow

MEASURES = (source_of_leakage("weights", "cosine"), LOSS)


@pytest.fixture(scope="module")
def runs(
    tiny: ShiftScenario, resources: Resources, tmp_path_factory: pytest.TempPathFactory
) -> StudyRuns:
    size = replace(tiny.reduced, seeds=(3, 5))
    plan = build_federated_plan(tiny, size, 2, 0.9, MEASURES)
    folder = tmp_path_factory.mktemp("followed")
    return StudyRuns(
        {"one": audit(plan, folder / "one", resources=resources)},
        {"one": plan},
        folder,
        resources,
    )


def test_a_run_and_its_control_differ_only_from_the_shift_on(runs: StudyRuns) -> None:
    for one in load_series(runs, "one", MEASURES):
        assert one.shift_round == 7
        assert len(one.shifted) == len(one.control) == 2
        for shifted, control in zip(one.shifted, one.control, strict=True):
            for number in range(1, 7):
                assert shifted[number] == control[number]
            assert shifted[7] != control[7]


def test_reports_each_run_that_it_measured(runs: StudyRuns) -> None:
    steps = list[ProgressStep]()
    measure_runs(replace(runs, on_step=steps.append), "one", MEASURES)
    # Two runs and two controls, and the end.
    assert [(step.done, step.total) for step in steps] == [(done, 4) for done in range(5)]
    assert {step.description for step in steps} == {"one: curves of all measures, by run"}


def test_a_measured_series_is_the_one_of_the_attack(runs: StudyRuns) -> None:
    audited = runs.audits["one"]
    for one in load_series(runs, "one", MEASURES):
        name = runs.plans["one"].threats[0].attack_name(one.measure.attack)
        timelines = {
            (finding.cell.seed, finding.cell.is_control): finding.claimed.timeline
            for finding in audited.findings
            if finding.cell.attack == name
        }
        for index, seed in enumerate((3, 5)):
            for is_control, series in ((False, one.shifted), (True, one.control)):
                timeline = timelines[seed, is_control]
                divergences = one.measure.trend.divergences(series[index])
                assert tuple(divergences) == timeline.rounds
                assert tuple(divergences.values()) == pytest.approx(timeline.statistic)
