"""The one kind of study: audits, values read from them, and what follows from the values."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import final

from overheard.auditing.inputs import Resources
from overheard.auditing.progress import OnStep, ProgressStep
from overheard.auditing.run import audit
from overheard.core.errors import AuditError, DataError, OutputError, PlanError
from overheard.core.scorer import Better
from overheard.disk.writing import write_text
from overheard.drawing.figures import ReportFigure, ReportTable
from overheard.findings.audit import Audit
from overheard.findings.names import make_printable
from overheard.plans.plan import Plan
from overheard.report.write import write_report
from overheard.statistics.estimate import Estimate
from overheard_studies.conclusion import Conclusion
from overheard_studies.core_time import CoreTime
from overheard_studies.how_run import describe_run
from overheard_studies.pages.experiment_page import (
    ExperimentPage,
    PaperStatement,
)
from overheard_studies.portion import ALL, ARM_NOT_SELECTED, NOT_SELECTED, Portion
from overheard_studies.runs import StudyRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.values import CONTENT as KEPT
from overheard_studies.values import (
    ReproducedValue,
    StoredValues,
    Values,
    make_value,
    write_values,
)

PAGE_FILE = "figures.html"
"""File name of the page that a study writes into its folder."""

LEFT_OUT = "_not_measured"
"""End of the names of values that stand for an audit or an arm that was left out."""


@final
@dataclass(frozen=True, slots=True)
class PanelRun:
    """A finished audit of a study.

    Args:
        runs: all finished audits of the study.
        key: sub-folder of this one.
        context: description of what it was measured on.

    """

    runs: StudyRuns
    key: str
    context: str

    @property
    def audit(self) -> Audit:
        """The results."""
        return self.runs.audits[self.key]

    @property
    def plan(self) -> Plan:
        """The plan that was run."""
        return self.runs.plans[self.key]

    def value(
        self,
        name: str,
        words: str,
        measured: Estimate | float | None,
        published: float | None = None,
        better: Better | None = None,
    ) -> ReproducedValue:
        """Make a value of this audit, whose setting ends with these words."""
        return make_value(name, f"{self.context}; {words}", measured, published, better)


Read = Callable[[PanelRun], Iterable[ReproducedValue]]
"""Reads the values of an audit."""


@final
@dataclass(frozen=True, slots=True)
class Panel:
    """One audit of a study.

    Args:
        key: its sub-folder.
        name: what it is measured on, such as the data set as the paper names it.
        plan: returns its plan: at the full size, or with True the plan of a quick run; None if
            runs of that size leave it out.
        read: reads its values, in the order of the paper.

    """

    key: str
    name: str
    plan: Callable[[bool], Plan | None]
    read: Read


@final
@dataclass(frozen=True, slots=True)
class MeasurementRun:
    """What a measurement gets.

    Args:
        folder: folder of the study.
        resources: data folder, device and workers.
        quick: whether to take minutes.
        seeds: seeds that replace its own; none = its own.

    """

    folder: Path
    resources: Resources
    quick: bool
    seeds: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Measurement:
    """Something that is measured without an audit, such as synthetic claims.

    Args:
        key: its name; the file KEY.json keeps its values. Delete it after a change of code.
        measure: returns the values.

    """

    key: str
    measure: Callable[[MeasurementRun], Iterable[ReproducedValue]]

    def values(self, run: MeasurementRun) -> tuple[ReproducedValue, ...]:
        """Return the values, from their file if it is of the same size and seeds."""
        finished = self.finished(run)
        if finished is not None:
            return finished
        values = tuple(self.measure(run))
        kept = StoredValues(self.key, run.quick, _size(run), values)
        text = KEPT.dump_json(kept, indent=1, by_alias=True, exclude_defaults=True).decode()
        write_text(self._path(run), text, inside=run.folder)
        return values

    def finished(self, run: MeasurementRun) -> tuple[ReproducedValue, ...] | None:
        """Return the values that its file has of this size and these seeds; None if none."""
        if not self._path(run).exists():
            return None
        kept = KEPT.validate_json(self._path(run).read_bytes())
        return kept.values if kept.differences == _size(run) else None

    def _path(self, run: MeasurementRun) -> Path:
        return run.folder / f"{self.key}.json"


def _size(run: MeasurementRun) -> str:
    return f"quick {run.quick}, seeds {run.seeds or 'its own'}"


def _no_figures(runs: StudyRuns, values: Values) -> Iterable[ReportFigure]:
    return ()


@final
@dataclass(frozen=True, slots=True)
class Study:
    """One table or figure of a paper: audits, and the values that are read from them.

    Args:
        name: the name on the command line, such as "table3".
        title: title in one line.
        differences: how the setting differs or may differ from the paper's, in a paragraph.
        panels: the audits.
        describe: describes what an audit was measured on, by the panel's name, the plan that
            was run, and the plan of the full size.
        pooled: reads the values that need several audits, after those of each.
        figures: draws the page's figures from the audits and the values.
        measurements: what is measured without an audit, after the audits.
        conclusions: what is concluded, each once the audits that it needs were run.
        has_separate_arms: whether the values of an arm need no other arm than the one without
            defenses. Only then some of the arms can be run, see `Portion`.
        paper_size: the size in the paper, such as "53 users, 200 rounds".
        is_paper_size: whether the full size here is that of the paper.
        hours: core hours of what was not run at the full size here; 0 = not known.
        reason_not_run: why it cannot be run here, such as "OpenImages is not here".

    """

    name: str
    title: str
    differences: str
    panels: tuple[Panel, ...] = ()
    describe: Callable[[str, Plan, Plan], str] = describe_setting
    pooled: Callable[[StudyRuns], Iterable[ReproducedValue]] = lambda runs: ()
    figures: Callable[[StudyRuns, Values], Iterable[ReportFigure]] = _no_figures
    measurements: tuple[Measurement, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    has_separate_arms: bool = False
    paper_size: str = ""
    is_paper_size: bool = False
    hours: float = 0.0
    reason_not_run: str = ""

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return the plans to run, by sub-folder; with `quick`, plans that run in minutes."""
        plans = {one.key: one.plan(quick) for one in self.panels}
        return {key: plan for key, plan in plans.items() if plan is not None}

    def read_values(self, runs: StudyRuns) -> Values:
        """Read the values of the paper's table or figure from the finished audits."""
        values = [
            value
            for panel in self.panels
            if panel.key in runs.audits
            for value in panel.read(self.panel_run(panel.key, runs))
        ]
        return (*values, *self.pooled(runs))

    def panel_run(self, key: str, runs: StudyRuns) -> PanelRun:
        """Return one of the finished audits."""
        panel = next(one for one in self.panels if one.key == key)
        run = runs.plans[key]
        return PanelRun(runs, key, self.describe(panel.name, run, panel.plan(False) or run))

    def conclude(self, runs: StudyRuns, values: Values) -> tuple[PaperStatement, ...]:
        """Return of each statement whether it holds.

        One that names no audits needs all those of the full size, or of a quick run.
        """
        full, reduced = (tuple(self.plans(quick=quick)) for quick in (False, True))
        whole = reduced if runs.audits.keys() == set(reduced) else full
        return tuple(
            replace(one, audits=one.audits or whole).judge(runs, values)
            for one in self.conclusions
        )

    def is_reduced(self, folder: Path, *, quick: bool, portion: Portion = ALL) -> bool:
        """Return whether any audit of a folder was run at a reduced size, or with fewer runs.

        Args:
            folder: folder of the study, after the audits were run.
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
    ) -> Values:
        """Run every audit, write its report to its sub-folder, and return the values.

        `figures.json` has the values, and the page `figures.html` shows them with the figures
        and conclusions. Results that are already in the folder are reused, also those of
        finished measurements of the same size and seeds that were not selected, and those of
        finished audits that were not selected, unless other code made their runs. Any other
        audit that was not selected, or whose data are missing, is left out and reported as one
        unmeasured value, unless no audit has data. Arms that were not selected are left out,
        too.

        Args:
            folder: folder of the study, with a sub-folder for each plan.
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
        if self.reason_not_run:
            raise PlanError(f"{self.name} cannot be run here: {self.reason_not_run}")
        if portion.arms and not self.has_separate_arms:
            raise PlanError(f"{self.name} has no arms that can be run alone: leave out --arm")
        core_time = CoreTime(folder)
        try:
            return self._run(folder, quick, resources, on_step, portion, rerun, core_time)
        finally:
            core_time.store()

    def _run(
        self,
        folder: Path,
        quick: bool,
        resources: Resources,
        on_step: OnStep | None,
        portion: Portion,
        rerun: bool,
        core_time: CoreTime,
    ) -> Values:
        all_plans = self.plans(quick=quick)
        of_study = MeasurementRun(folder, resources, quick, portion.seeds)
        measurements = [
            one
            for one in self.measurements
            if not portion.only or one.key in portion.only or one.finished(of_study) is not None
        ]
        of_audits = portion.without(one.key for one in self.measurements)
        selected = (
            {}
            if of_audits is None
            else of_audits.select(self.name, all_plans, [one.key for one in self.measurements])
        )
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
        if missing and not audits:
            raise next(iter(missing.values()))
        audits = {name: audits[name] for name in plans if name in audits}
        runs = StudyRuns(audits, plans, folder, resources, on_step)
        read = list(self.read_values(runs))
        for number, one in enumerate(measurements):
            runs.report(one.key, number, len(measurements))
            read += one.values(of_study)
        statements = self.conclude(runs, read)
        values = (
            *read,
            *map(_statement_value, statements),
            *(_not_measured(name, str(error)) for name, error in missing.items()),
            *_not_selected(plans, all_plans),
        )
        is_reduced = self.is_reduced(folder, quick=quick, portion=of_audits or ALL)
        how_run = describe_run(
            [plans[name] for name in audits],
            portion.seeds if measurements else (),
            self._describe_portion(audits, all_plans, measurements),
            resources.device,
            _spent(core_time.total(), audits.values()),
        )
        page = ExperimentPage(
            self.name,
            self.title,
            self.differences,
            statements,
            tuple(self.figures(runs, values)),
            _value_tables(values),
            tuple(audits),
            is_reduced,
            how_run.facts(self.paper_size),
        )
        write_text(folder / PAGE_FILE, page.html(), inside=folder)
        stored = StoredValues(
            self.name, is_reduced, self.differences, values, how_run, statements
        )
        write_values(stored, folder)
        return values

    def _describe_portion(
        self,
        audits: Collection[str],
        all_plans: Collection[str],
        measurements: Collection[Measurement],
    ) -> str:
        return ", ".join(
            f"{len(run)} of {len(whole)} {what}"
            for what, run, whole in (
                ("audits", audits, all_plans),
                ("measurements", measurements, self.measurements),
            )
            if whole
        )


def _spent(seconds: float | None, audits: Iterable[Audit]) -> float | None:
    """Return the CPU seconds of all commands in a folder.

    They are at least those that the runs of the audits took to train: commands that were killed
    are not counted.
    """
    if seconds is None:
        return None
    trained = [run.seconds for one in audits for run in one.arms if run.seconds is not None]
    return round(max(seconds, sum(one.cores or 0.0 for one in trained)), 1)


@final
@dataclass(frozen=True, slots=True)
class Paper:
    """A published paper and those of its tables and figures that can be reproduced.

    Args:
        name: the name on the command line.
        title: title of the paper.
        source: authors, year and reference.
        build: builds the studies, in the order of the paper.

    """

    name: str
    title: str
    source: str
    build: Callable[[], Sequence[Study]]

    def studies(self) -> Mapping[str, Study]:
        """Return the studies by name."""
        return {one.name: one for one in self.build()}


def _statement_value(one: PaperStatement) -> ReproducedValue:
    """Return whether a statement holds: 1 = yes, 0 = no, none = neither.

    The published value is 1, as the paper makes the statement.
    """
    words = f"statements of the paper, 1 = holds; “{one.statement}”: {one.holds}: "
    holds = {"yes": 1.0, "no": 0.0}.get(one.holds)
    return make_value(f"reading_{one.key}", words + one.evidence, holds, 1.0)


def _value_tables(values: Values) -> tuple[ReportTable, ...]:
    """Make one table per run; the setting's part before the first semicolon names the run."""
    return tuple(
        ReportTable(
            make_printable(run),
            ("Value", "Setting", "Here", "95 % interval", "Published", "Better if"),
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
        *one.texts,
        one.better or "",
    )


def _not_measured(name: str, reason: str) -> ReproducedValue:
    return make_value(f"{name}{LEFT_OUT}", f"not measured; {name}: {reason}", None)


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
