"""An audit in a notebook: the matrix of the first page, and charts to change further."""

from collections.abc import Iterator, Mapping

from matplotlib.figure import Figure

from overheard.auditing.threat_results import collect_arms
from overheard.core.seeds import Seed
from overheard.drawing.svg import Chart
from overheard.findings.finding import Audit
from overheard.findings.html import html_table
from overheard.report.arm_figures import arm_figures
from overheard.report.first_page.matrix import Matrix, make_matrices
from overheard.report.frontier_figures import frontier_figures
from overheard.report.round_figures import round_figures
from overheard.report.verdict_sentences import false_leak_sentences

BOOTSTRAP_SEED = Seed(0)
"""Seed of intervals and pairings, as in the report that the command writes."""

NO_ATTACK = "no attack"


def verdict_matrix(audit: Audit) -> str:
    """Return the matrix of the report's first page as HTML tables.

    There is a line for each question and group of observers, and a column for each arm. Below
    it stands how many false leaks to expect.
    """
    arm_results = collect_arms(audit, BOOTSTRAP_SEED)
    note = " ".join(false_leak_sentences(arm_results))
    return "".join(
        html_table(audit.title, _heads(matrix), _lines(matrix), note)
        for matrix in make_matrices(arm_results)
    )


def draw_figures(audit: Audit) -> Mapping[str, Figure]:
    """Return the charts of a report that compare arms and rounds, by title.

    A title with several panels has one figure for each, with the panel's heading after it.
    """
    arm_results = collect_arms(audit, BOOTSTRAP_SEED)
    found = {}
    for report_figure in (
        *frontier_figures(arm_results),
        *arm_figures(arm_results),
        *round_figures(arm_results),
    ):
        for panel in report_figure.panels:
            title = " · ".join(filter(None, (report_figure.title, panel.heading)))
            if isinstance(panel.drawing, Chart):
                found[title] = panel.drawing.to_figure()
    return found


def _heads(matrix: Matrix) -> tuple[str, ...]:
    return (
        "who learns what",
        *(f"{arm.name}: {arm.defenses}" for arm in matrix.arms),
    )


def _lines(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    for row in matrix.rows:
        yield (
            f"{row.observers}, about {row.about}. {row.question}",
            *(NO_ATTACK if cell is None else cell.text for cell in row.cells),
        )
