from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overheard.drawing.chart_frame import ChartFrame, guess_line, list_legend


def test_axes_leave_the_room_that_is_asked_for():
    # 20 of 200 at the left, 30 at the right; 10 of 100 below, and 5 of 100 above.
    axes = ChartFrame(200.0, 100.0, 20.0, 10.0, 30.0).axes(Figure())
    assert [round(float(end), 9) for end in axes.get_position().bounds] == [
        0.1,
        0.1,
        0.75,
        0.85,
    ]


def test_a_legend_has_one_line_per_name():
    lines = [Line2D([], [], label="first <b>"), guess_line()]
    drawn = str(list_legend(lambda: lines, 2, 300.0, "names"))
    assert "first &lt;b&gt;" in drawn
    assert "guessing" in drawn
