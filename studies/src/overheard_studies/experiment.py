"""The contract of a paper's experiment."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from overheard.archive.atomic import write_text
from overheard.auditing.inputs import Resources
from overheard.auditing.progress import OnStep, ProgressStep
from overheard.auditing.run import audit
from overheard.core.errors import AuditError, DataError, OutputError, PlanError
from overheard.drawing.figures import ReportTable
from overheard.findings.audit import Audit
from overheard.findings.names import make_printable
from overheard.findings.number_format import BARE_NUMBER, direction_label
from overheard.plans.plan import Plan
from overheard.report.experiment_page import ExperimentPage
from overheard.report.write import write_report
from overheard.statistics.estimate import Estimate
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.portion import ALL, ARM_NOT_SELECTED, NOT_SELECTED, Portion
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

PAGE_FILE = "figures.html"
"""File name of the page that an experiment writes into its folder."""

LEFT_OUT = "_not_measured"
"""End of the names of values that stand for an audit or an arm that was left out."""


class Experiment(ABC):
    """One table or figure of a paper: the audits to run and the values to read from them.

    A concrete experiment is a final frozen dataclass.
    """

    name: str
    """The name on the command line, such as "table3"."""

    has_separate_arms: ClassVar[bool] = False
    """Whether the values of an arm need no other arm than the one without defenses.

    Only then some of the arms can be run, see `Portion`.
    """

    @property
    @abstractmethod
    def title(self) -> str:
        """Title in one line."""

    @property
    @abstractmethod
    def differences(self) -> str:
        """Describe in a paragraph how the setting differs or may differ from the paper's."""

    @abstractmethod
    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return the plans to run, by sub-folder; with `quick`, plans that run in minutes."""

    @abstractmethod
    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Read the values of the paper's table or figure from the finished audits."""

    def is_reduced(self, folder: Path, *, quick: bool, portion: Portion = ALL) -> bool:
        """Return whether any audit of a folder was run at a reduced size, or with fewer runs.

        Args:
            folder: folder of the experiment, after the audits were run.
            quick: whether they had fewer seeds, rounds and examples.
            portion: the audits, arms and seeds that were run.

        """
        plans = self.plans(quick=quick)
        run = portion.add_finished(portion.select(self.name, plans), plans, folder)
        return quick or any(len(run[name].seeds) < len(plans[name].seeds) for name in run)

    def run(
        self,
        folder: Path,
        *,
        quick: bool,
        resources: Resources,
        on_step: OnStep | None,
        portion: Portion = ALL,
        rerun: bool = False,
    ) -> tuple[ReproducedValue, ...]:
        """Run every audit, write its report to its sub-folder, and return the values.

        The page `figures.html` shows the values, and the figures of an experiment that is
        `IllustratedExperiment`. Results that are already in the folder are reused, also those
        of finished audits that were not selected, unless other code made their runs. Any
        other audit that was not selected, or whose data are missing, is left out and reported
        as one unmeasured value, unless no audit has data. Arms that were not selected are
        left out, too.

        Args:
            folder: folder of the experiment, with a sub-folder for each plan.
            quick: whether to use fewer seeds, rounds and examples.
            resources: data folder, device and workers.
            on_step: called after each finished step of an audit.
            portion: the audits, arms and seeds to run.
            rerun: whether to train runs of selected audits anew that other code made;
                otherwise they are refused.

        Raises:
            AuditError: if an audit fails; the message says what to change. Finished work is
                kept.

        """
        if portion.arms and not self.has_separate_arms:
            raise PlanError(f"{self.name} has no arms that can be run alone: leave out --arm")
        all_plans = self.plans(quick=quick)
        selected = portion.select(self.name, all_plans)
        plans = portion.add_finished(selected, all_plans, folder)
        audits, missing = dict[str, Audit](), dict[str, AuditError]()
        # First what was asked for: changed attacks are computed anew in finished audits.
        for number, name in enumerate(sorted(plans, key=lambda name: name not in selected)):
            prefix = f"audit {number + 1} of {len(plans)}"
            try:
                audits[name] = audit(
                    plans[name],
                    folder / name,
                    resources=resources,
                    on_step=None if on_step is None else partial(_report_step, on_step, prefix),
                    rerun=rerun and name in selected,
                )
            except (DataError, OutputError) as error:
                if name in selected and isinstance(error, OutputError):
                    raise
                missing[name] = error
                continue
            write_report(audits[name], folder / name)
        if not audits:
            raise next(iter(missing.values()))
        audits = {name: audits[name] for name in plans if name in audits}
        runs = ExperimentRuns(audits, plans, folder, resources, on_step)
        values = (
            *self.read_values(runs),
            *(_not_measured(name, str(error)) for name, error in missing.items()),
            *_not_selected(plans, all_plans),
        )
        content = (
            self.page_content(runs, values)
            if isinstance(self, IllustratedExperiment)
            else PageContent()
        )
        page = ExperimentPage(
            self.name,
            self.title,
            self.differences,
            content.statements,
            content.figures,
            _value_tables(values),
            tuple(audits),
            self.is_reduced(folder, quick=quick, portion=portion),
        )
        write_text(folder / PAGE_FILE, page.html())
        return values


class Paper(ABC):
    """A published paper and those of its tables and figures that can be reproduced."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    """Authors, year and reference."""

    @abstractmethod
    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name, in the order of the paper."""


def _value_tables(values: Sequence[ReproducedValue]) -> tuple[ReportTable, ...]:
    """Make one table per run; the setting's part before the first semicolon names the run."""
    return tuple(
        ReportTable(
            make_printable(run),
            ("Value", "Setting", "Reproduced", "95 % interval", "Published", "Direction"),
            tuple(_row(one) for one in values_of_run),
            2,
        )
        for run, values_of_run in groupby(
            values, key=lambda one: one.setting.partition("; ")[0]
        )
    )


def _row(one: ReproducedValue) -> tuple[str, ...]:
    return (
        make_printable(one.name),
        make_printable(one.setting.partition("; ")[2]),
        BARE_NUMBER.format(one.value),
        BARE_NUMBER.format_interval(Estimate(one.value or 0.0, one.low, one.high)),
        BARE_NUMBER.format(one.published),
        "" if one.better is None else direction_label(one.better),
    )


def _not_measured(name: str, reason: str) -> ReproducedValue:
    return ReproducedValue(
        f"{name}{LEFT_OUT}", f"not measured; {name}: {reason}", None, None, None, None, None
    )


def _not_selected(
    plans: Mapping[str, Plan], all_plans: Mapping[str, Plan]
) -> Iterator[ReproducedValue]:
    """Yield an unmeasured value for each audit and each arm that was not selected."""
    for name, plan in all_plans.items():
        if name not in plans:
            yield _not_measured(name, NOT_SELECTED)
            continue
        for arm in plan.arms:
            if arm not in plans[name].arms:
                yield _not_measured(f"{name}_{arm.name.replace(' ', '_')}", ARM_NOT_SELECTED)


def _report_step(on_step: OnStep, prefix: str, step: ProgressStep) -> None:
    on_step(ProgressStep(f"{prefix}: {step.description}", step.done, step.total))
