"""The values of a shift experiment follow from the runs that its plans name."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard_studies.registry import find_experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.shift.experiment import ShiftExperiment
from overheard_studies.shift.measure import source_of_leakage
from overheard_studies.shift.scalability import ScalabilityExperiment
from overheard_studies.shift.scenarios import ShiftScenario
from studies.tests.shift.planted import empty_runs, plant_series

COSINE = source_of_leakage("gradients", "cosine")
DIVERGENCE = "clients_2_gradients_cosine_divergence"


def test_further_seeds_count_in_a_folder_with_fewer(
    tiny: ShiftScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = ScalabilityExperiment("figure8", tiny, COSINE)

    def divergence(*seeds: int) -> float:
        values = experiment.read_values(empty_runs(experiment, tmp_path, seeds))
        (one,) = [value.value for value in values if value.name == DIVERGENCE]
        assert one is not None
        return one

    first = divergence(0)
    # The values at the shift are 2 and 4.
    assert divergence(0, 2) == pytest.approx(first + 1.0)
    assert divergence(0) == pytest.approx(first)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("figure7a", "even_60"),
        ("figure7b", "even_80"),
        ("figure7c", "even_90"),
        ("figure8", "clients_2"),
        ("figure9", "clients_5"),
        ("figure10", "clients_10"),
    ],
)
def test_an_audit_may_be_missing_but_then_no_statement_is_checked(
    name: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = find_experiment(f"shift/{name}")
    assert isinstance(experiment, ShiftExperiment)
    runs = empty_runs(experiment, tmp_path)
    whole = {one.name for one in experiment.read_values(runs)}
    statements = {one for one in whole if one.startswith("reading_")}
    assert len(experiment.page_content(runs, ()).statements) == len(statements) > 0

    runs = empty_runs(experiment, tmp_path, without=missing)
    values = experiment.read_values(runs)
    assert {one.name for one in values} == {
        one for one in whole - statements if not one.startswith(f"{missing}_")
    }
    content = experiment.page_content(runs, values)
    assert len(content.figures) == 1
    assert content.statements == ()


def test_statements_compare_the_runs_of_seeds_that_all_audits_have(
    tiny: ShiftScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = ScalabilityExperiment("figure8", tiny, COSINE)

    def statements(seeds: dict[str, tuple[int, ...]]) -> set[ReproducedValue]:
        runs = empty_runs(experiment, tmp_path, (0, 5))
        plans = {
            name: plan.model_copy(update={"seeds": seeds.get(name, plan.seeds)})
            for name, plan in runs.plans.items()
        }
        values = experiment.read_values(replace(runs, plans=plans))
        return {one for one in values if one.name.startswith("reading_")}

    equal = statements({})
    assert len(equal) == 4
    assert statements({"clients_2": (9, 5, 0), "clients_10": (0, 2, 5)}) == equal
    assert statements({"clients_2": (9,)}) == set()


def test_the_values_of_one_audit_alone_have_the_names_of_the_whole_experiment(
    tiny: ShiftScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = ScalabilityExperiment("figure8", tiny, COSINE)
    runs = empty_runs(experiment, tmp_path)
    alone = ExperimentRuns(
        {"clients_2": runs.audits["clients_2"]},
        {"clients_2": runs.plans["clients_2"]},
        tmp_path,
    )
    names = {one.name for one in experiment.read_values(alone)}
    assert DIVERGENCE in names
    assert names < {one.name for one in experiment.read_values(runs)}
