from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.values import ReproducedValue
from overheard_studies.whispers.setting import DECAF, WhispersBenchmark, few_labels_scenario
from overheard_studies.whispers.studies import lines


@pytest.fixture(scope="module")
def values(
    tiny: WhispersBenchmark, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ReproducedValue]:
    experiment = lines("figure4", "tiny", (few_labels_scenario(tiny),), methods=(DECAF,))
    run = experiment.run(
        tmp_path_factory.mktemp("figure4"),
        quick=True,
        resources=Resources(engine="sequential", workers=1),
        on_step=None,
    )
    return {one.name: one for one in run}


def test_the_shares_of_a_line_sum_to_1(values: dict[str, ReproducedValue]) -> None:
    for line in ("true", "decaf"):
        shares = [values[f"digits_{line}_share_{label}"].value for label in range(10)]
        assert sum(shares) == pytest.approx(1, abs=1e-4)
        assert {values[f"digits_{line}_share_{n}"].better for n in range(10)} == {None}


def test_the_true_line_is_that_of_a_client_with_three_labels(
    values: dict[str, ReproducedValue],
) -> None:
    shares = [values[f"digits_true_share_{label}"].value for label in range(10)]
    assert sorted(share > 0 for share in shares) == [False] * 7 + [True] * 3


def test_the_error_is_the_mean_over_all_clients(values: dict[str, ReproducedValue]) -> None:
    error = values["digits_decaf_l1"]
    assert error.low < error.value < error.high
    assert error.better == "lower"


@pytest.mark.slow
def test_with_noise_the_defended_arm_is_read(tiny: WhispersBenchmark, tmp_path: Path) -> None:
    pytest.importorskip("dp_accounting")
    experiment = lines(
        "figure6", "tiny", (few_labels_scenario(tiny),), epsilon=0.01, methods=(DECAF,)
    )
    run = experiment.run(
        tmp_path, quick=True, resources=Resources(engine="sequential", workers=1), on_step=None
    )
    by_name = {one.name: one.value for one in run}
    assert "mechanism is lost" in experiment.differences
    # Three equal labels under strong noise: the claims are far from the truth.
    assert by_name["digits_decaf_l1"] > 0.8
