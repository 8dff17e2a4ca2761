"""The one kind of study: audits, values read from them, and what follows from the values."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Literal, final

from overheard.auditing.audited_run import core_seconds
from overheard.auditing.inputs import Resources
from overheard.auditing.progress import OnStep, ProgressStep
from overheard.auditing.run import audit
from overheard.core.errors import AuditError, DataError, OutputError, PlanError
from overheard.core.scorer import Better
from overheard.disk.writing import write_text
from overheard.drawing.figures import ReportFigure, ReportTable
from overheard.findings.audit import Audit
from overheard.findings.names import make_printable
from overheard.findings.number_format import BARE_NUMBER, direction_label, format_number
from overheard.plans.plan import Plan
from overheard.report.write import write_report
from overheard.statistics.estimate import FEWEST_RUNS, Estimate
from overheard_studies.how_run import describe_run
from overheard_studies.pages.experiment_page import (
    ExperimentPage,
    Holds,
    PaperStatement,
    State,
)
from overheard_studies.portion import ALL, ARM_NOT_SELECTED, NOT_SELECTED, Portion
from overheard_studies.runs import StudyRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.values import CONTENT as KEPT
from overheard_studies.values import (
    ReproducedValue,
    StoredValues,
    load_values,
    make_value,
    write_values,
)

PAGE_FILE = "figures.html"
"""File name of the page that a study writes into its folder."""

LEFT_OUT = "_not_measured"
"""End of the names of values that stand for an audit or an arm that was left out."""

Values = Sequence[ReproducedValue]


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
        path = run.folder / f"{self.key}.json"
        size = f"quick {run.quick}, seeds {run.seeds or 'its own'}"
        if path.exists():
            kept = KEPT.validate_json(path.read_bytes())
            if kept.differences == size:
                return kept.values
        values = tuple(self.measure(run))
        kept = StoredValues(self.key, run.quick, size, values)
        text = KEPT.dump_json(kept, indent=1, by_alias=True, exclude_defaults=True).decode()
        write_text(path, text, inside=run.folder)
        return values


@final
@dataclass(frozen=True, slots=True)
class Conclusion:
    """A statement, and the statistics by which it holds or not.

    It holds if the 95 % intervals of its statistics lie on the statement's side of the margin,
    it does not if they lie on the other side, and else it is undecided. With fewer runs than
    `least_runs` it is undecided, whatever the intervals are. A statement that cannot be judged
    here has a reason in place of statistics.

    Args:
        key: its name among those of the study.
        statement: the sentence, such as one of the paper.
        statistics: returns the statistics by name; a verdict in place of one stands for itself,
            and None for one that was not measured. None = it cannot be judged here.
        direction: where the interval of a statistic must lie: above the margin, below it, or
            around it. No interval shows that a statistic equals the margin, so "around" holds
            never: it is refuted or undecided.
        margin: what statistics are compared with.
        any_suffices: whether one statistic is enough; otherwise all must comply.
        words: what a single statistic is.
        audits: names of the audits that it needs; () = all of the study.
        least_runs: number of seeds that all of these audits must have. Only a statistic that
            does not come from runs may do with fewer. The runs of a measurement without audits
            are not counted.
        reason_not_run: why it cannot be judged here, such as "OpenImages is not here".

    """

    key: str
    statement: str
    statistics: Callable[[StudyRuns, Values], Mapping[str, Estimate | Holds | None]] | None
    direction: Literal["above", "below", "around"] = "above"
    margin: float = 0.0
    any_suffices: bool = False
    words: str = ""
    audits: tuple[str, ...] = ()
    least_runs: int = FEWEST_RUNS
    reason_not_run: str = ""

    def __post_init__(self) -> None:
        """Check that it has either statistics or a reason."""
        if (self.statistics is None) != bool(self.reason_not_run):
            raise ValueError(f"{self.key}: give either statistics or reason_not_run")

    def judge(self, runs: StudyRuns, values: Values) -> PaperStatement:
        """Compare the statistics with the margin."""
        if self.statistics is None:
            return self._statement("cannot be run here", self.reason_not_run)
        names = self.audits or tuple(runs.audits)
        missing = [name for name in names if name not in runs.audits]
        if missing:
            return self._statement("undecided", f"not run: {', '.join(missing)}")
        count = len(runs.common_seeds(names)) if names else self.least_runs
        told = f"{count} run{'' if count == 1 else 's'} of {self.least_runs}"
        if count == 0:
            return self._statement("undecided", f"{told} that all audits have")
        statistics = self.statistics(runs, values)
        verdicts = {
            name: one if isinstance(one, str) else self._compare(one)
            for name, one in statistics.items()
        }
        evidence = self._describe(statistics, verdicts)
        if count < self.least_runs:
            return self._statement("undecided", f"{told}; {evidence}")
        decide = any_holds if self.any_suffices else all_hold
        return self._statement(decide(list(verdicts.values())), evidence)

    def _statement(self, state: State, evidence: str) -> PaperStatement:
        return PaperStatement(self.key, self.statement, state, evidence, self.condition)

    @property
    def condition(self) -> str:
        """Where the statistics must lie, in words; "" if there are none."""
        if self.statistics is None:
            return ""
        some = "at least one " if self.any_suffices else ""
        return f"{some}{self.direction} {self.margin:g}"

    def _describe(
        self,
        statistics: Mapping[str, Estimate | Holds | None],
        verdicts: Mapping[str, Holds],
    ) -> str:
        if not statistics:
            return "not measured"
        estimates = [one for one in statistics.values() if not isinstance(one, str)]
        if self.words and len(estimates) == 1:
            return f"{self.words}: {format_estimate(*estimates)}"
        told = {
            name if isinstance(one, str) else f"{name} {format_estimate(one)}": verdicts[name]
            for name, one in statistics.items()
        }
        return (f"{self.words}: " if self.words else "") + group_by_verdict(told)

    def _compare(self, one: Estimate | None) -> Holds:
        above = is_above(one, self.margin)
        if self.direction == "above":
            return above
        if self.direction == "below":
            return negate(above)
        if one is None or one.low is None or one.high is None:
            return "undecided"
        return "undecided" if one.low <= self.margin <= one.high else "no"


def is_above(estimate: Estimate | None, bound: float) -> Holds:
    """Return whether a value is above a bound, by its interval."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return "undecided"
    if estimate.low > bound:
        return "yes"
    return "no" if estimate.high <= bound else "undecided"


def all_hold(parts: Sequence[Holds]) -> Holds:
    """Return whether all parts hold."""
    if "no" in parts:
        return "no"
    return "yes" if parts and set(parts) == {"yes"} else "undecided"


def any_holds(parts: Sequence[Holds]) -> Holds:
    """Return whether at least one part holds."""
    return negate(all_hold([negate(one) for one in parts]))


def negate(part: Holds) -> Holds:
    """Return the verdict on the negation."""
    opposite: Mapping[Holds, Holds] = {"yes": "no", "no": "yes", "undecided": "undecided"}
    return opposite[part]


def format_estimate(estimate: Estimate | None) -> str:
    """Format an estimate with its interval.

    >>> estimates = Estimate(2.0, 1.0, 3.0), Estimate(2.0, None, None), None
    >>> [format_estimate(estimate) for estimate in estimates]
    ['2.0 (1.0 to 3.0)', '2.0 (one run)', 'not measured']
    """
    if estimate is None:
        return "not measured"
    if estimate.low is None:
        return f"{format_number(estimate.mean)} (one run)"
    interval = f"{format_number(estimate.low)} to {format_number(estimate.high)}"
    return f"{format_number(estimate.mean)} ({interval})"


def group_by_verdict(parts: Mapping[str, Holds]) -> str:
    """List which parts hold, do not hold, or are undecided.

    >>> group_by_verdict({"a": "yes", "b": "undecided", "c": "yes"})
    'yes: a, c; undecided: b'
    """
    answers: tuple[Holds, ...] = ("yes", "no", "undecided")
    groups = {
        answer: ", ".join(name for name, holds in parts.items() if holds == answer)
        for answer in answers
    }
    return "; ".join(f"{answer}: {names}" for answer, names in groups.items() if names)


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
        hours: core hours that the rest takes, which was not run; 0 = not known.
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
        begun = core_seconds()
        all_plans = self.plans(quick=quick)
        measurements = [
            one for one in self.measurements if not portion.only or one.key in portion.only
        ]
        of_audits = portion.without(one.key for one in self.measurements)
        selected = {} if of_audits is None else of_audits.select(self.name, all_plans)
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
        of_study = MeasurementRun(folder, resources, quick, portion.seeds)
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
            _spent(folder, begun),
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


def _spent(folder: Path, begun: float | None) -> float | None:
    """Return the CPU seconds since `begun`, and those of earlier commands in a folder."""
    now, earlier = core_seconds(), 0.0
    if now is None or begun is None:
        return None
    try:
        how_run = load_values(folder).how_run
    except OutputError:
        how_run = None  # The first command, or the file is damaged and will be replaced.
    if how_run is not None and how_run.core_seconds is not None:
        earlier = how_run.core_seconds
    return round(earlier + now - begun, 1)


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
