from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overheard.drawing.chart_frame import (
    LINE_HEIGHT,
    ChartFrame,
    guess_line,
    legend_text,
    list_legend,
)


def test_axes_leave_the_room_that_is_asked_for():
    # 20 of 200 at the left, 30 at the right; 10 of 100 below, and 5 of 100 above.
    axes = ChartFrame(200.0, 100.0, 20.0, 10.0, 30.0).axes(Figure())
    assert [round(float(end), 9) for end in axes.get_position().bounds] == [
        0.1,
        0.1,
        0.75,
        0.85,
    ]


def height(drawn: str) -> float:
    return float(drawn.split('viewBox="0 0 ')[1].split('"', maxsplit=1)[0].split()[1])


def test_a_legend_has_one_line_per_name() -> None:
    lines = [Line2D([], [], label="first <b>"), guess_line()]
    drawn = str(list_legend(lambda: lines, ["first <b>"], 1, "names"))
    assert "first &lt;b&gt;" in drawn
    assert "guessing" in drawn
    assert height(drawn) == 4 + 2 * LINE_HEIGHT


def test_long_names_are_wrapped_and_not_cut() -> None:
    name = "amortised(most_rounds=1, steps=100), adapting to the defenses, " + "long " * 20
    lines = [Line2D([], [], label=legend_text(name))]
    drawn = str(list_legend(lambda: lines, [name], 0, "legend"))
    # 163 characters, of which 60 fit a line.
    assert height(drawn) == 4 + 3 * LINE_HEIGHT
    assert drawn.count("long") == 20
    assert "…" not in drawn
