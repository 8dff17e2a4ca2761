"""What is measured without an audit is kept, selected by name, and concluded from."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.core.errors import PlanError
from overheard.statistics.estimate import Estimate
from overheard_studies.conclusion import Conclusion
from overheard_studies.portion import Portion
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, make_value

RESOURCES = Resources(engine="sequential")
NO_RUNS = StudyRuns({}, {}, Path())


def count(calls: list[str], key: str, run: MeasurementRun) -> Iterator[ReproducedValue]:
    calls.append(key)
    yield make_value(key, f"here; {key}", Estimate(0.5, 0.4, 0.6))


def study(calls: list[str]) -> Study:
    measured = tuple(Measurement(key, partial(count, calls, key)) for key in ("one", "two"))
    above = Conclusion(
        "above",
        "They are above 0.3.",
        lambda runs, values: {one.name: Estimate(0.5, one.low, one.high) for one in values},
        margin=0.3,
    )
    return Study("own", "Two", "None.", measurements=measured, conclusions=(above,))


def run(one: Study, folder: Path, **portion: tuple[object, ...]) -> dict[str, float | None]:
    values = one.run(
        folder,
        quick=False,
        resources=RESOURCES,
        on_step=None,
        portion=Portion(**portion),
    )
    return {value.name: value.value for value in values}


def test_measurements_are_kept_and_concluded_from(tmp_path: Path) -> None:
    calls = list[str]()
    first = run(study(calls), tmp_path)
    assert first == {"one": 0.5, "two": 0.5, "reading_above": 1.0}
    assert run(study(calls), tmp_path) == first
    assert calls == ["one", "two"]
    assert "They are above 0.3." in (tmp_path / "figures.html").read_text()


def test_other_seeds_are_measured_anew(tmp_path: Path) -> None:
    calls = list[str]()
    run(study(calls), tmp_path)
    run(study(calls), tmp_path, seeds=(7,))
    assert calls == ["one", "two"] * 2


def test_one_of_them_may_be_selected_and_an_unknown_name_is_refused(tmp_path: Path) -> None:
    calls = list[str]()
    assert "one" not in run(study(calls), tmp_path, only=("two",))
    assert calls == ["two"]
    with pytest.raises(PlanError, match="no measurement 'three'; choose among one, two"):
        run(study(calls), tmp_path, only=("three",))


def test_finished_measurements_stay_when_another_is_selected(tmp_path: Path) -> None:
    calls = list[str]()
    run(study(calls), tmp_path, only=("one",))
    assert run(study(calls), tmp_path, only=("two",)).keys() >= {"one", "two"}
    assert calls == ["one", "two"]


def test_a_conclusion_without_its_statistics_is_undecided() -> None:
    (conclusion,) = study([]).conclusions
    empty = replace(conclusion, statistics=lambda runs, values: {})
    assert empty.judge(NO_RUNS, ()).holds == "undecided"


@pytest.mark.parametrize(
    ("direction", "holds"), [("above", "yes"), ("below", "no"), ("around", "no")]
)
def test_a_statistic_is_compared_in_its_direction(direction: str, holds: str) -> None:
    (conclusion,) = study([]).conclusions
    values = [make_value("one", "", Estimate(0.5, 0.4, 0.6))]
    assert replace(conclusion, direction=direction).judge(NO_RUNS, values).holds == holds
    around = replace(conclusion, direction="around", margin=0.5)
    assert around.judge(NO_RUNS, values).holds == "undecided"
    # 0.4 to 0.6 is inside 0.35 to 0.65, across 0.55 to 0.75 and outside 0.61 to 0.81.
    for margin, tolerance, expected in (
        (0.5, 0.15, "yes"),
        (0.65, 0.1, "undecided"),
        (0.71, 0.1, "no"),
    ):
        band = replace(around, margin=margin, tolerance=tolerance)
        assert band.judge(NO_RUNS, values).holds == expected
    assert band.condition == "around 0.71 within 0.1"
