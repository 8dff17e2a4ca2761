"""Names are beside their points, do not overlap and stay inside the chart."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from overheard.drawing.point_names import MAX_LENGTH, NamedPoint, write_names


def chart() -> Axes:
    figure = Figure(figsize=(400 / 72, 330 / 72), dpi=72)
    axes = figure.add_axes((0.1, 0.1, 0.85, 0.85))
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    return axes


def written(axes: Axes) -> list[Annotation]:
    return [one for one in axes.texts if isinstance(one, Annotation)]


def boxes(axes: Axes) -> list[tuple[float, float, float, float]]:
    """Left, low, right, high of each name as it is drawn, without its line to the dot."""
    drawn = []
    for one in written(axes):
        one.get_window_extent()  # puts it where it is drawn; its own extent has the line in it
        extent = Text.get_window_extent(one)
        drawn.append((extent.x0, extent.y0, extent.x1, extent.y1))
    return drawn


def overlaps(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    # Two pixels: letters seldom fill their lines.
    return (
        one[0] < other[2] - 2
        and other[0] < one[2] - 2
        and one[1] < other[3] - 2
        and other[1] < one[3] - 2
    )


@given(
    st.lists(
        st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 100.0)),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
def test_a_few_names_never_cover_each_other_and_stay_on_the_chart(
    places: list[tuple[float, float]],
) -> None:
    axes = chart()
    write_names(
        axes, [NamedPoint(f"arm {number}", x, y) for number, (x, y) in enumerate(places)]
    )
    drawn = boxes(axes)
    assert len(drawn) == len(places)
    assert not any(overlaps(one, other) for one, other in combinations(drawn, 2))
    frame = axes.bbox.extents
    for left, low, right, high in drawn:
        assert frame[0] - 1 <= left <= right <= frame[2] + 1
        assert frame[1] - 4 <= low <= high <= frame[3] + 4


def test_writes_no_empty_names_and_shortens_long_ones() -> None:
    axes = chart()
    write_names(axes, [NamedPoint("", 10.0, 10.0), NamedPoint("x" * 80, 50.0, 50.0)])
    (one,) = written(axes)
    assert len(one.get_text()) == MAX_LENGTH


def test_a_distant_name_is_connected_to_its_point() -> None:
    axes = chart()
    write_names(axes, [NamedPoint(name, 50.0, 50.0) for name in "abcdef"])
    lines = [one.arrow_patch is not None for one in written(axes)]
    assert lines[0] is False
    assert lines[-1] is True
