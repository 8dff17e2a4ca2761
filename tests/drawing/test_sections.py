"""Sections of tables and names of points."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import client
from overheard.drawing.figures import ReportTable
from overheard.drawing.point_names import MAX_LENGTH, NamedPoint, write_names
from overheard.drawing.score_tables import (
    ScoreColumn,
    ScoreTable,
    guess_value,
    score_tables,
)
from overheard.drawing.sections import Section, SectionBlock, merge_sections
from overheard.drawing.sentences import means_by_target
from overheard.findings.audit import Audit
from overheard.findings.number_format import Measure
from tests.runs.audits import shares_finding

ONE, OTHER = (ReportTable(name, ("a",), (("b",),), 1) for name in ("one", "other"))


def section(anchor: str, *blocks: SectionBlock) -> Section:
    return Section(anchor, anchor.upper(), anchor, blocks)


def test_merges_blocks_with_the_same_heading_without_repetition() -> None:
    (held,) = merge_sections(
        (
            section("a", SectionBlock("", ("note",)), SectionBlock("tables", tables=(ONE,))),
            section(
                "a", SectionBlock("", ("note", "more")), SectionBlock("tables", tables=(OTHER,))
            ),
        )
    )
    assert held.blocks == (
        SectionBlock("", ("note", "more")),
        SectionBlock("tables", tables=(ONE, OTHER)),
    )


ERROR = Measure("Error", "\u00a0points", 100.0)


TABLE = ScoreTable(
    "What is off",
    (
        ScoreColumn("linf", ERROR),
        ScoreColumn("linf", ERROR, "Guessing", guess_value),
        ScoreColumn("nobody", ERROR),
    ),
)


def test_a_row_has_value_interval_and_guess(small: Audit) -> None:
    (table,) = score_tables(small.arm_results, (TABLE,))
    assert table.headers == ("Arm", "Attack", "Error", "Guessing")
    # linf of 0.10 and 0.02; guessing 0.5 and 0.3; the interval is Student's for two clients,
    # cut at 0.
    line = ("none", "decaf", "6.0\u00a0points (0 to 57\u00a0points)", "40\u00a0points")
    assert table.rows[0] == line
    assert table.text_columns == 2


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


def test_averages_score_and_guess_over_the_runs_of_each_target(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), (1.0, 0.0), (0.9, 0.1)),
        shares_finding("none", client(0), (1.0, 0.0), (0.7, 0.3), seed=1),
        shares_finding("none", client(1), (0.2, 0.8), (0.2, 0.8)),
    )
    (arm, _) = with_verdicts(replace(small, findings=findings)).arm_results
    means = means_by_target(arm.threat_results[0].attack_results[0], "linf")
    # 0.1 and 0.3; guessing 0.5 in both runs. Then 0, guessing 0.3.
    assert [(mean.value, mean.best_uninformed) for mean in means.values()] == [
        (pytest.approx(0.2), 0.5),
        (0.0, pytest.approx(0.3)),
    ]
    assert list(means) == [client(0), client(1)]


def test_a_score_without_findings_has_no_means(small: Audit) -> None:
    assert (
        means_by_target(small.arm_results[0].threat_results[0].attack_results[0], "nobody")
        == {}
    )
