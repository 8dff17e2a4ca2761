import numpy as np

from overheard_studies.deanonymization.charts import (
    ValueSeries,
    heat_map,
    scatter_chart,
    series_figure,
)
from overheard_studies.values import ReproducedValue


def figure(value: float | None) -> ReproducedValue:
    return ReproducedValue("a", "data; more", value, None, None, None, "higher")


def test_an_unmeasured_value_is_not_drawn() -> None:
    lines = [ValueSeries("one", (1, 2), (figure(0.5), figure(None)))]
    report_figure = series_figure("By count", lines, "count", "mean_average_precision")
    assert len(report_figure.table.rows) == 2
    assert report_figure.legend is not None
    assert "one" in report_figure.legend


def test_a_figure_without_measured_values_is_drawn() -> None:
    lines = [ValueSeries("one", (1,), (figure(None),))]
    assert "<svg" in series_figure("Empty", lines, "count", "top1").panels[0].drawing


def test_a_heat_map_writes_its_values_and_leaves_out_missing_ones() -> None:
    values = np.array([[1.0, np.nan], [3.0, 4.0]])
    drawn = heat_map(values, ("a", "b"), ("c", "d"), ("up", "across"), "map")
    assert drawn.count(">1.0</text>") == 1
    assert drawn.count(">4.0</text>") == 1
    assert "nan" not in drawn


def test_a_scatter_chart_has_one_dot_per_user() -> None:
    drawn = scatter_chart(np.array([1.0, 2.0]), np.array([2.0, 3.0]), "x", "y", "dots")
    assert drawn.count("<use") >= 2
