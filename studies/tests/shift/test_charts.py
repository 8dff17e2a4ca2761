import pytest

from overheard_studies.shift.band_charts import MeanAndDeviation
from overheard_studies.shift.charts import (
    bands_figure,
    make_bands,
    measure_spreads,
    normalize_series,
)
from overheard_studies.shift.measured import MeasuredSeries
from overheard_studies.shift.setting import LOSS
from overheard_studies.values import ReproducedValue, tabulate_values

TWO = MeasuredSeries(
    LOSS, 1, ({0: 1.0, 1: 3.0}, {0: 1.0, 1: 5.0}), ({0: 1.0, 1: 1.0}, {0: 1.0})
)


def test_a_band_is_the_mean_plus_minus_one_deviation() -> None:
    # 3 and 5: mean 4, deviation of the sample sqrt(2).
    spread = measure_spreads(TWO.shifted)
    assert spread[0] == MeanAndDeviation(1.0, 0.0)
    assert (spread[1].mean, spread[1].deviation) == (4.0, pytest.approx(2**0.5))


def test_a_round_measured_in_one_run_has_no_deviation() -> None:
    assert measure_spreads(TWO.control)[1] == MeanAndDeviation(1.0, None)


def test_the_control_has_its_own_line_with_the_same_name() -> None:
    shifted, control = make_bands(TWO, "two clients", 3)
    assert (shifted.is_control, control.is_control) == (False, True)
    assert shifted.name == control.name
    assert shifted.points[1] != control.points[1]


def test_normalized_runs_are_in_0_to_1_and_controls_have_the_same_scale() -> None:
    scaled = normalize_series(TWO)
    assert scaled.shifted == ({0: 0.0, 1: 1.0}, {0: 0.0, 1: 1.0})
    # (1 - 1) / (3 - 1) in both rounds.
    assert scaled.control[0] == {0: 0.0, 1: 0.0}


def test_a_constant_run_is_normalized_to_0() -> None:
    constant = MeasuredSeries(LOSS, 1, ({0: 7.0, 1: 7.0},), ({0: 7.0},))
    assert normalize_series(constant).shifted == ({0: 0.0, 1: 0.0},)


def test_a_figure_has_one_panel_per_heading_and_a_table() -> None:
    value = ReproducedValue(
        "audit_loss", "digits; loss: divergence from its trend", 0.25, None, None, None, None
    )
    figure = bands_figure(
        "Figure", [("loss", {"two": TWO}), ("accuracy", {"two": TWO})], [value]
    )
    assert [panel.heading for panel in figure.panels] == ["loss", "accuracy"]
    assert figure.panels[0].drawing.count("<svg") == 1
    assert figure.table.rows == (
        ("audit_loss", "loss: divergence from its trend", "0.25", "–"),
    )


def test_the_table_gives_intervals_with_means() -> None:
    value = ReproducedValue("a", "digits; loss", 0.25, 0.1, 0.4, None, None)
    assert tabulate_values("", [value]).rows == (("a", "loss", "0.25", "0.10 to 0.40"),)
