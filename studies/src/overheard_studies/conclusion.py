"""A statement of a paper or a page, and how it is judged by the intervals of statistics."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

from overheard.findings.number_format import format_number
from overheard.statistics.estimate import FEWEST_RUNS, Estimate
from overheard_studies.pages.experiment_page import Holds, PaperStatement, State
from overheard_studies.runs import StudyRuns
from overheard_studies.values import Values

Statistics = Mapping[str, Estimate | None]
"""Statistics by name; None = not measured."""

NOT_RUN = "not run"
"""How the evidence begins where an audit is missing."""

_LACKS_RUNS = re.compile(rf"{NOT_RUN}: |\d+ runs? of \d+|not measured$")

FindStatistics = Callable[[StudyRuns, Values], Statistics]
"""Returns statistics of a study, from its audits and the values that were read from them."""


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
            around it.
        margin: what statistics are compared with.
        tolerance: largest distance from the margin that is still around it. No interval shows
            that a statistic equals a number, so with 0 it is refuted or undecided.
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
    tolerance: float = 0.0
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
            return self._statement("undecided", f"{NOT_RUN}: {', '.join(missing)}")
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
        within = f" within {self.tolerance:g}" if self.tolerance else ""
        return f"{some}{self.direction} {self.margin:g}{within}"

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
        lowest, highest = self.margin - self.tolerance, self.margin + self.tolerance
        if lowest < one.low and one.high < highest:
            return "yes"
        return "no" if one.high < lowest or one.low > highest else "undecided"


def lacks_runs(judged: PaperStatement) -> bool:
    """Return whether a conclusion is undecided because audits or runs are missing.

    >>> told = "undecided: l1 0.03 (0.0 to 0.1)", "not run: mnist", "1 run of 5; l1 0.03"
    >>> [lacks_runs(PaperStatement("a", "A", "undecided", one, "below 0")) for one in told]
    [False, True, True]
    """
    return judged.holds == "undecided" and bool(_LACKS_RUNS.match(judged.evidence))


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


def named(*names: str) -> FindStatistics:
    """Return the values of a study that have these names, as statistics."""

    def find(runs: StudyRuns, values: Values) -> Statistics:
        found = {
            one.name: Estimate(one.value, one.low, one.high)
            for one in values
            if one.value is not None
        }
        return {name: found.get(name) for name in names}

    return find
