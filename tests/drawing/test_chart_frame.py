from matplotlib.figure import Figure

from overheard.drawing.chart_frame import ChartFrame, draw_intervals
from overheard.drawing.svg import INK


def test_axes_leave_the_room_that_is_asked_for():
    # 20 of 200 at the left, 30 at the right; 10 of 100 below, and 5 of 100 above.
    axes = ChartFrame(200.0, 100.0, 20.0, 10.0, 30.0).axes(Figure())
    assert [round(float(end), 9) for end in axes.get_position().bounds] == [
        0.1,
        0.1,
        0.75,
        0.85,
    ]


def test_intervals_have_caps_at_both_ends() -> None:
    axes = ChartFrame(200.0, 100.0, 20.0, 10.0, 30.0).axes(Figure())
    draw_intervals(axes, [3.0], [(1.0, 2.0)], INK, is_across=True)
    lines = [line.get_xydata().tolist() for line in axes.lines]
    assert lines == [[[1.0, 3.0]], [[2.0, 3.0]]]
    assert {line.get_marker() for line in axes.lines} == {"|"}


def test_no_intervals_draw_nothing() -> None:
    axes = ChartFrame(200.0, 100.0, 20.0, 10.0, 30.0).axes(Figure())
    draw_intervals(axes, [], [], INK, is_across=False)
    assert [line.get_xydata().tolist() for line in axes.lines] == [[], []]
