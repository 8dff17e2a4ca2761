import numpy as np

from overheard.papers.deanonymization.drawings import (
    Series,
    heat_map,
    scatter_chart,
    series_plate,
)
from overheard.papers.figure import Figure


def figure(value: float | None) -> Figure:
    return Figure("a", "data; more", value, None, None, None, "higher")


def test_a_figure_that_was_not_measured_is_no_point() -> None:
    lines = [Series("one", (1, 2), (figure(0.5), figure(None)))]
    plate = series_plate("By count", lines, "count", "mean_average_precision")
    assert len(plate.table.lines) == 2
    assert plate.legend is not None
    assert "one" in plate.legend


def test_a_plate_of_nothing_is_still_a_plate() -> None:
    lines = [Series("one", (1,), (figure(None),))]
    assert "<svg" in series_plate("Empty", lines, "count", "top1").panels[0].drawing


def test_a_heat_map_writes_its_numbers_and_leaves_out_what_is_none() -> None:
    values = np.array([[1.0, np.nan], [3.0, 4.0]])
    drawn = heat_map(values, ("a", "b"), ("c", "d"), ("up", "across"), "map")
    assert drawn.count(">1.0</text>") == 1
    assert drawn.count(">4.0</text>") == 1
    assert "nan" not in drawn


def test_a_scatter_has_a_dot_a_user() -> None:
    drawn = scatter_chart(np.array([1.0, 2.0]), np.array([2.0, 3.0]), "x", "y", "dots")
    assert drawn.count("<use") >= 2
