"""The values of a shift experiment follow from the runs that its plans name."""

from pathlib import Path

import pytest

from overheard.papers.shift import measured_series
from overheard.papers.shift.measure import source_of_leakage
from overheard.papers.shift.measured_series import describe_origin
from overheard.papers.shift.scalability import ScalabilityExperiment
from overheard.papers.shift.scenarios import ShiftScenario
from tests.papers.shift.planted import empty_runs, plant_series

COSINE = source_of_leakage("gradients", "cosine")
DIVERGENCE = "clients_2_gradients_cosine_divergence"


def test_further_seeds_count_in_a_folder_with_fewer(
    tiny: ShiftScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_series(monkeypatch)
    experiment = ScalabilityExperiment("figure8", tiny, COSINE)
    for clients in (2, 3, 5, 10):
        (tmp_path / f"clients_{clients}").mkdir()

    def divergence(*seeds: int) -> float:
        values = experiment.read_values(empty_runs(experiment, tmp_path, seeds))
        (one,) = [value.value for value in values if value.name == DIVERGENCE]
        assert one is not None
        return one

    first = divergence(0)
    # The values at the shift are 2 and 4.
    assert divergence(0, 2) == pytest.approx(first + 1.0)
    assert divergence(0) == pytest.approx(first)


def test_the_origin_of_measures_names_seeds_and_code(
    tiny: ShiftScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ScalabilityExperiment("figure8", tiny, COSINE).plans(quick=True)["clients_2"]
    origin = describe_origin(plan)
    assert origin == describe_origin(plan)
    assert origin != describe_origin(plan.model_copy(update={"seeds": (0, 1, 2)}))
    monkeypatch.setattr(measured_series, "derived_code", lambda _plan, _module: "changed")
    assert origin != describe_origin(plan)
