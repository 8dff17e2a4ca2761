"""The page of all reproduced experiments of a folder, which works offline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from markupsafe import Markup

from overheard.drawing.figures import ReportTable
from overheard.findings.names import make_printable
from overheard.report.template import load_template


@final
@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    """An experiment on the page of all.

    Args:
        name: its name on the command line, such as "decaf/table3".
        title: what it shows.
        differences: how the setting differs from the paper's.
        link: path of its own page, relative to this one; "" = there is none.
        chart: its values beside the published ones; None if none can be compared.
        values: each value, with the published one and how they compare; None = it was not run.
        facts: how it was run, such as its commit.

    """

    name: str
    title: str
    differences: str
    link: str
    chart: Markup | None
    values: ReportTable | None
    facts: Mapping[str, str] = field(default_factory=dict)


def reproductions_page(
    counts: ReportTable,
    conclusion_counts: ReportTable,
    conclusions: ReportTable,
    experiments: Sequence[ExperimentSummary],
) -> str:
    """Return the page; all names are escaped, control characters included.

    Args:
        counts: how many values of each experiment were reproduced.
        conclusion_counts: how many conclusions of each paper hold here.
        conclusions: the conclusions of all papers.
        experiments: the experiments, in the order of the table.

    """
    return load_template("reproductions_page.html.j2", "overheard_studies.pages").render(
        counts=counts,
        conclusion_counts=conclusion_counts,
        conclusions=conclusions,
        experiments=[
            {
                "name": make_printable(one.name),
                "title": make_printable(one.title),
                "differences": make_printable(one.differences),
                "link": one.link,
                "chart": one.chart,
                "values": one.values,
                "facts": {name: make_printable(fact) for name, fact in one.facts.items()},
            }
            for one in experiments
        ],
    )
