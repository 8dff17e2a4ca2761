"""An audit in a notebook: the matrix of the first page, and charts to change further."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from overheard.drawing.svg import Chart
from overheard.findings.audit import Audit
from overheard.findings.html import html_table
from overheard.report.arm_figures import arm_figures
from overheard.report.first_page.matrix import Matrix, make_matrices
from overheard.report.frontier_figures import frontier_figures
from overheard.report.round_figures import round_figures
from overheard.report.verdict_sentences import false_leak_sentences
from overheard.statistics.estimate import Estimate

if TYPE_CHECKING:
    import pandas

NO_ATTACK = "no attack"


def verdict_matrix(audit: Audit) -> str:
    """Return the matrix of the report's first page as HTML tables.

    There is a line for each question and group of observers, and a column for each arm. Below
    it stands how many false leaks to expect.
    """
    note = " ".join(false_leak_sentences(audit.arm_results))
    return "".join(
        html_table(audit.title, _heads(matrix), _lines(matrix), note)
        for matrix in make_matrices(audit.arm_results)
    )


def score_frame(audit: Audit) -> "pandas.DataFrame":
    """Return a row for each score of an attack: see `Audit.scores`."""
    import pandas

    rows = [
        {
            "arm": row.arm,
            "observers": "; ".join(row.observers),
            "about": one.target_kind,
            "question": row.question,
            "attack": row.attack,
            "rounds": row.rounds,
            "score": row.score,
            "better": row.better,
            **_interval("value", row.value),
            "best guess": row.best_uninformed,
            **_interval("gain", row.gain),
            "targets": row.targets,
            "seeds": row.seeds,
        }
        for arm in audit.arm_results
        for one in arm.threat_results
        for row in one.rows
    ]
    return pandas.DataFrame(rows)


def verdict_frame(audit: Audit) -> "pandas.DataFrame":
    """Return a row for each verdict: see `Audit.verdicts`."""
    import pandas

    rows = [
        {
            "arm": one.arm,
            "observers": "; ".join(one.observers),
            "about": one.target_kind,
            "question": one.question,
            "verdict": one.verdict,
            "attack": one.judgement.attack,
            "p": one.judgement.p_value,
            **_interval("gain", one.judgement.gain),
            "why": one.judgement.why,
        }
        for arm in audit.arm_results
        for one in arm.threat_results
    ]
    return pandas.DataFrame(rows)


def _interval(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """Return an estimate and the ends of its 95 % interval, as columns."""
    return {
        name: None if estimate is None else estimate.mean,
        f"{name} low": None if estimate is None else estimate.low,
        f"{name} high": None if estimate is None else estimate.high,
    }


def draw_figures(audit: Audit) -> Mapping[str, Figure]:
    """Return the charts of a report that compare arms and rounds, by title.

    A title with several panels has one figure for each, with the panel's heading after it.
    """
    found = {}
    for report_figure in (
        *frontier_figures(audit.arm_results),
        *arm_figures(audit.arm_results),
        *round_figures(audit.arm_results),
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
