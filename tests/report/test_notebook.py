"""A notebook shows the matrix of the first page, and the charts of the report."""

import re
from dataclasses import replace
from html import unescape

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from overheard.drawing.svg import INK, SERIES
from overheard.findings.audit import Audit
from overheard.report.first_page.matrix import make_matrices
from overheard.report.notebook import draw_figures, verdict_matrix
from tests.runs.audits import HOSTILE


def cells(page: str) -> list[list[str]]:
    """The texts of the cells of all tables, by line."""
    return [
        [unescape(cell) for cell in re.findall("<td>(.*?)</td>", line)]
        for body in re.findall("<tbody>(.*?)</tbody>", page)
        for line in body.split("</tr>")
        if line
    ]


def test_the_matrix_has_the_cells_of_the_first_page(rich: Audit) -> None:
    expected = [
        [cell.text if cell else "no attack" for cell in row.cells]
        for matrix in make_matrices(rich.arm_results)
        for row in matrix.rows
    ]
    assert [line[1:] for line in cells(verdict_matrix(rich))] == expected
    assert len({cell for line in expected for cell in line}) > 2


def test_names_are_escaped(small: Audit) -> None:
    hostile = replace(small, title=HOSTILE)
    assert "<script" not in verdict_matrix(hostile)


def test_charts_are_figures_in_the_colours_of_paper(small: Audit) -> None:
    figures = draw_figures(small)
    assert set(figures) == set(small.figures())
    assert any(title.startswith("Privacy against utility") for title in figures)
    used = set()
    for figure in figures.values():
        assert isinstance(figure, Figure)
        used |= {
            to_hex(artist.get_color())
            for artist in figure.findobj(lambda one: hasattr(one, "get_color"))
        }
    assert not used & {INK, *SERIES}
    assert "#0b6168" in used


def test_scores_have_the_intervals_of_the_report(rich: Audit) -> None:
    frame = rich.scores()
    rows = [
        row for arm in rich.arm_results for result in arm.threat_results for row in result.rows
    ]
    assert frame["value"].tolist() == [row.value.mean for row in rows]
    assert frame["rounds"].tolist() == [row.rounds for row in rows]
    with_interval = frame.dropna(subset=["value low"])
    lows = [row.value.low for row in rows if row.value.low is not None]
    assert with_interval["value low"].tolist() == lows
    assert lows


def test_verdicts_are_those_of_the_first_page(rich: Audit) -> None:
    expected = [
        (one.arm, one.question, one.verdict)
        for arm in rich.arm_results
        for one in arm.threat_results
    ]
    frame = rich.verdicts()
    found = zip(frame["arm"], frame["question"], frame["verdict"], strict=True)
    assert list(found) == expected
    assert len(set(expected)) > 2
