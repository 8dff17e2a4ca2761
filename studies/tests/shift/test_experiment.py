"""The values of a shift experiment follow from the runs that its plans name."""

from dataclasses import replace
from pathlib import Path

import pytest

from overheard_studies.pages.experiment_page import PaperStatement
from overheard_studies.reproduce import find_study
from overheard_studies.runs import StudyRuns
from overheard_studies.shift.federated import scalability
from overheard_studies.shift.setting import ShiftScenario, source_of_leakage
from studies.tests.shift.planted import empty_runs, plant_series

COSINE = source_of_leakage("gradients", "cosine")
DIVERGENCE = "clients_2_gradients_cosine_divergence"


def test_further_seeds_count_in_a_folder_with_fewer(
    tiny: ShiftScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = scalability("figure8", tiny, COSINE)

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
def test_an_audit_may_be_missing_but_then_statements_on_it_are_undecided(
    name: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = find_study(f"shift/{name}")
    runs = empty_runs(experiment, tmp_path)
    whole = {one.name for one in experiment.read_values(runs)}
    assert len(experiment.conclude(runs, ())) == len(experiment.conclusions) > 0

    runs = empty_runs(experiment, tmp_path, without=missing)
    values = experiment.read_values(runs)
    assert {one.name for one in values} == {
        one for one in whole if not one.startswith(f"{missing}_")
    }
    assert len(list(experiment.figures(runs, values))) == 1
    for one in experiment.conclude(runs, values):
        assert (one.holds, one.evidence) == ("undecided", f"not run: {missing}")


def test_statements_compare_the_runs_of_seeds_that_all_audits_have(
    tiny: ShiftScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = scalability("figure8", tiny, COSINE)

    def statements(seeds: dict[str, tuple[int, ...]]) -> tuple[PaperStatement, ...]:
        runs = empty_runs(experiment, tmp_path, (0, 5))
        plans = {
            name: plan.model_copy(update={"seeds": seeds.get(name, plan.seeds)})
            for name, plan in runs.plans.items()
        }
        return experiment.conclude(replace(runs, plans=plans), ())

    equal = statements({})
    assert len(equal) == 4
    assert statements({"clients_2": (9, 5, 0), "clients_10": (0, 2, 5)}) == equal
    assert all(one.evidence.startswith("2 runs of 5; ") for one in equal)
    assert {one.evidence for one in statements({"clients_2": (9,)})} == {
        "0 runs of 5 that all audits have"
    }


def test_the_values_of_one_audit_alone_have_the_names_of_the_whole_experiment(
    tiny: ShiftScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = scalability("figure8", tiny, COSINE)
    runs = empty_runs(experiment, tmp_path)
    alone = StudyRuns(
        {"clients_2": runs.audits["clients_2"]},
        {"clients_2": runs.plans["clients_2"]},
        tmp_path,
    )
    names = {one.name for one in experiment.read_values(alone)}
    assert DIVERGENCE in names
    assert names < {one.name for one in experiment.read_values(runs)}
