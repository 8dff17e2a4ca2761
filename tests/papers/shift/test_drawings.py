import pytest

from overheard.drawing.band_charts import Spread
from overheard.papers.figure import Figure
from overheard.papers.numbers_table import numbers_table
from overheard.papers.shift.drawings import bands_of, normalised, plate, spreads
from overheard.papers.shift.followed import Followed
from overheard.papers.shift.measure import LOSS

TWO = Followed(LOSS, 1, ({0: 1.0, 1: 3.0}, {0: 1.0, 1: 5.0}), ({0: 1.0, 1: 1.0}, {0: 1.0}))


def test_a_band_is_the_mean_within_one_deviation() -> None:
    # 3 and 5: mean 4, deviation of the sample sqrt(2).
    told = spreads(TWO.shifted)
    assert told[0] == Spread(1.0, 0.0)
    assert (told[1].mean, told[1].deviation) == (4.0, pytest.approx(2**0.5))


def test_a_round_that_one_run_tells_has_no_deviation() -> None:
    assert spreads(TWO.control)[1] == Spread(1.0, None)


def test_the_control_has_a_line_of_its_own_by_the_same_name() -> None:
    shifted, control = bands_of(TWO, "two clients", 3)
    assert (shifted.is_control, control.is_control) == (False, True)
    assert shifted.name == control.name
    assert shifted.points[1] != control.points[1]


def test_normalised_runs_go_from_0_to_1_and_controls_by_the_same_scale() -> None:
    told = normalised(TWO)
    assert told.shifted == ({0: 0.0, 1: 1.0}, {0: 0.0, 1: 1.0})
    # (1 - 1) / (3 - 1) in both rounds.
    assert told.control[0] == {0: 0.0, 1: 0.0}


def test_a_run_that_never_moves_is_normalised_to_0() -> None:
    still = Followed(LOSS, 1, ({0: 7.0, 1: 7.0},), ({0: 7.0},))
    assert normalised(still).shifted == ({0: 0.0, 1: 0.0},)


def test_a_plate_has_a_panel_a_heading_and_its_numbers() -> None:
    figure = Figure("audit_loss", "digits; loss: off its trend", 0.25, None, None, None, None)
    drawn = plate("Figure", [("loss", {"two": TWO}), ("accuracy", {"two": TWO})], [figure])
    assert [panel.heading for panel in drawn.panels] == ["loss", "accuracy"]
    assert drawn.panels[0].drawing.count("<svg") == 1
    assert drawn.table.lines == (("audit_loss", "loss: off its trend", "0.25", "–"),)


def test_an_interval_stands_beside_its_mean() -> None:
    figure = Figure("a", "digits; loss", 0.25, 0.1, 0.4, None, None)
    assert numbers_table("", [figure]).lines == (("a", "loss", "0.25", "0.10 to 0.40"),)
