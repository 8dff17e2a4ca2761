"""The contract of a paper's experiment."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from overheard.archive.atomic import write_text
from overheard.auditing.progress import OnStep, Step
from overheard.auditing.run import audit
from overheard.auditing.supplies import Resources
from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.drawing.plates import Table
from overheard.findings.figures import OWN_SCALE, direction
from overheard.findings.names import shown
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan
from overheard.report.experiment_page import ExperimentPage
from overheard.report.write import write_report
from overheard.statistics.estimate import Estimate

PAGE = "figures.html"
"""The page that an experiment leaves in its folder."""

REPORT_SEED = Seed(0)
"""Of the bootstrap in the reports of an experiment: the same runs, the same bytes."""


class Experiment(ABC):
    """One table or figure of a paper: audits to run, and what to read off them.

    A concrete experiment is a final frozen dataclass.
    """

    name: str
    """As the command line has it, such as "table3"."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it shows, in a line."""

    @property
    @abstractmethod
    def differences(self) -> str:
        """One paragraph of plain text: how our setting departs from the paper's, or may."""

    @abstractmethod
    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """The audits to run, by the sub-folder that each leaves; quick: in minutes."""

    @abstractmethod
    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """What the paper's table or figure shows, read off the audits that were run."""

    def run(
        self,
        folder: Path,
        *,
        quick: bool,
        resources: Resources,
        on_step: OnStep | None,
        seed: int | None = None,
    ) -> tuple[Figure, ...]:
        """Run every audit, leave its report in its sub-folder, and read off the figures.

        The page `figures.html` tells them, with the drawings of an experiment that is `Drawn`.
        What was done before in the same folder is not done again. An audit whose data are
        missing is left out, and told by one figure that is not measured, unless it is the only
        one.

        Args:
            folder: gets a sub-folder for each plan.
            quick: fewer seeds, rounds and examples.
            resources: where the data lie and what the work is done on.
            on_step: told of each piece of work that is done, within the audit it belongs to.
            seed: one in place of the experiment's own.

        Raises:
            AuditError: one of its leaves, saying what to mend; what was done before stays.

        """
        plans = dict(self.plans(quick=quick))
        if seed is not None:
            plans = {
                name: plan.model_copy(update={"seeds": (seed,)}) for name, plan in plans.items()
            }
        audits, missing = {}, dict[str, DataError]()
        for number, (name, plan) in enumerate(plans.items(), start=1):
            place = f"audit {number} of {len(plans)}"
            try:
                audits[name] = audit(
                    plan,
                    folder / name,
                    resources=resources,
                    on_step=None if on_step is None else partial(_tell, on_step, place),
                )
            except DataError as error:
                missing[name] = error
                continue
            write_report(audits[name], folder / name, REPORT_SEED)
        if not audits:
            raise next(iter(missing.values()))
        runs = Runs(audits, plans, folder, resources)
        figures = (
            *self.figures(runs),
            *(_not_measured(name, error) for name, error in missing.items()),
        )
        drawing = self.drawing(runs, figures) if isinstance(self, Drawn) else Drawing()
        page = ExperimentPage(
            self.name,
            self.title,
            self.differences,
            drawing.readings,
            drawing.plates,
            _numbers(figures),
            tuple(audits),
            quick,
        )
        write_text(folder / PAGE, page.html())
        return figures


class Paper(ABC):
    """A published paper, as far as its tables and figures can be run anew."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    """Authors, year, where to find it."""

    @abstractmethod
    def experiments(self) -> Mapping[str, Experiment]:
        """Its experiments by name, in the order of the paper."""


def _numbers(figures: Sequence[Figure]) -> tuple[Table, ...]:
    """One table a run: what comes before the first semicolon of a setting is the run."""
    return tuple(
        Table(
            shown(where),
            ("Figure", "Of", "Ours", "95 % interval", "Published", "Direction"),
            tuple(_line(one) for one in told),
            2,
        )
        for where, told in groupby(figures, key=lambda one: one.setting.partition("; ")[0])
    )


def _line(one: Figure) -> tuple[str, ...]:
    return (
        shown(one.name),
        shown(one.setting.partition("; ")[2]),
        OWN_SCALE.tell(one.ours),
        OWN_SCALE.span(Estimate(one.ours or 0.0, one.low, one.high)),
        OWN_SCALE.tell(one.published),
        "" if one.better is None else direction(one.better),
    )


def _not_measured(name: str, error: DataError) -> Figure:
    return Figure(
        f"{name}_not_measured", f"{name}: not measured: {error}", None, None, None, None, None
    )


def _tell(on_step: OnStep, place: str, step: Step) -> None:
    on_step(Step(f"{place}: {step.what}", step.done, step.total))
