"""All results of an audit, with its verdicts by arm."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from overheard.core.plugin_registry import import_built_in
from overheard.core.scorer import Score
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.finding import ArmRun, Finding, Refusal
from overheard.findings.frame import score_columns, typed_frame
from overheard.findings.html import html_table, short_number
from overheard.findings.names import make_printable, name_observers
from overheard.findings.privacy.bound_settings import USUAL_BOUND, BoundSettings
from overheard.findings.threat_results import ArmResult

if TYPE_CHECKING:
    import pandas

NOTEBOOK = "overheard.report.notebook"
"""The module that shows an audit in a notebook."""

MAX_TABLE_LINES = 40
"""Most lines of a table in a notebook; of more it gives the number."""


@dataclass(frozen=True, slots=True)
class Audit:
    """All results of an audit.

    Args:
        title: title of the plan.
        subject: one sentence on what was audited: data, clients, model, training.
        class_names: name of each label; they come from the data, so a report must escape them.
        arms: one entry per arm and seed.
        findings: one entry per target of an attack that ran; one in all if its claim is joint.
        refusals: one entry per target of an attack that could not run.
        plan: the resolved plan, as TOML.
        versions: versions of the software used, by name.
        margins: by score, the smallest gain that matters, if the plan states another one than
            the question does.
        release: what the plan says of the release of the results, by field of
            `plans.release_plan.ReleasePlan`.
        made_on: the day of the audit, such as "2026-11-22"; "" = not known.
        is_recorded: whether a recorded run was audited, and not simulated ones.
        is_auxiliary_separate: whether the attackers' auxiliary examples are known to be no
            client's own. False for a run that was recorded outside Overheard.
        data: what was read of the data, in sentences; () = not known.
        data_warnings: what does not fit of the data, or is assumed, in sentences.
        recording: what the check of the recording proves; None = runs were simulated.
        bound_settings: how epsilon is bounded from canaries.
        arm_results: the results by arm, threat and attack, with the verdicts; they follow from
            the rest, see `auditing.threat_results.with_verdicts`.

    """

    title: str
    subject: str
    class_names: tuple[str, ...]
    arms: tuple[ArmRun, ...]
    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]
    plan: str
    versions: Mapping[str, str]
    margins: Mapping[str, float] = field(default_factory=dict)
    release: Mapping[str, str] = field(default_factory=dict)
    made_on: str = field(default="", compare=False)
    is_recorded: bool = False
    is_auxiliary_separate: bool = True
    data: tuple[str, ...] = ()
    data_warnings: tuple[str, ...] = ()
    recording: AuditedRecording | None = None
    bound_settings: BoundSettings = USUAL_BOUND
    arm_results: tuple[ArmResult, ...] = field(default=(), compare=False)

    def to_frame(self) -> "pandas.DataFrame":
        """Return a DataFrame with a row for each finding and score, like `findings.csv`.

        A finding without scores has one row. The columns and their dtypes are
        `findings.frame.COLUMNS`: scores are float64, round numbers Int64, names string. Rounds
        and the numbers of claims are tuples; guesses are dictionaries by name. Names are not
        escaped, and numbers are not rounded.
        """
        return typed_frame(
            [
                _frame_row(finding, score)
                for finding in self.findings
                for score in finding.scores or (None,)
            ]
        )

    def scores(self) -> "pandas.DataFrame":
        """Return a DataFrame of mean scores with intervals, as in `findings.json`.

        There is a row for each arm, observers, attack, observed rounds and score. Means are
        over targets and seeds, without controls. The columns `value`, `value low` and
        `value high` are the mean and its 95 % interval, and `gain` with its ends is what the
        attack gains over the best uninformed guess (`best guess`). Without an interval the
        ends are NaN. Rows with the longest `rounds` observe all rounds together.
        """
        frame: pandas.DataFrame = import_built_in(NOTEBOOK).score_frame(self)
        return frame

    def verdicts(self) -> "pandas.DataFrame":
        """Return a DataFrame with the verdict on each question, by arm and observers.

        `verdict` is one of `findings.threat_verdict.Verdict`, such as "leaks". `p` is the
        p-value of `attack`, adjusted for the number of attacks; `gain` with its 95 % interval
        is that of the strongest attack; `why` says why it is not enough to judge.
        """
        frame: pandas.DataFrame = import_built_in(NOTEBOOK).verdict_frame(self)
        return frame

    # Any: a matplotlib figure, whose package is loaded only if somebody asks for charts.
    def figures(self) -> Mapping[str, Any]:
        """Return the charts that compare arms and rounds as matplotlib figures, by title.

        They are those of the report, in its colours for white paper.
        """
        drawn: Mapping[str, Any] = import_built_in(NOTEBOOK).draw_figures(self)
        return drawn

    def __repr__(self) -> str:
        """Give the title and the number of runs, findings and refusals on one line."""
        return f"<Audit {make_printable(self.title)!r}: {self._counts}>"

    def _repr_html_(self) -> str:
        # Verdicts are judged in a higher layer, which is loaded only if a notebook shows them.
        verdicts: str = import_built_in(NOTEBOOK).verdict_matrix(self)
        lines = list(_mean_lines(self.findings))
        more = len(lines) - MAX_TABLE_LINES
        rest = f" {more} more lines are in to_frame()." if more > 0 else ""
        return verdicts + html_table(
            "What the verdicts rest on",
            ("arm", "observers", "attack", "score", "mean", "best guess", "findings"),
            lines[:MAX_TABLE_LINES],
            f"{self._counts}. Means over targets and seeds, without controls.{rest}",
        )

    @property
    def _counts(self) -> str:
        counted = (("run", self.arms), ("finding", self.findings), ("refusal", self.refusals))
        return ", ".join(
            f"{len(items)} {noun}{'' if len(items) == 1 else 's'}" for noun, items in counted
        )


def _frame_row(finding: Finding, score: Score | None) -> dict[str, object]:
    cell, timeline = finding.cell, finding.claimed.timeline
    return {
        "arm": cell.arm,
        "seed": cell.seed,
        "observers": "; ".join(cell.observers),
        "attack": cell.attack,
        "settings": cell.settings,
        "question": cell.question,
        "rounds": cell.rounds,
        "target": finding.target,
        **score_columns(score),
        "claimed": finding.claimed.numbers,
        "true": finding.true_numbers,
        "low": finding.claimed.low,
        "high": finding.claimed.high,
        "is_control": cell.is_control,
        "control": cell.control,
        "control_number": cell.control_number,
        "true_since": finding.true_since,
        "since": None if timeline is None else timeline.since,
        "alarm": None if timeline is None else timeline.alarm,
        "named": finding.top_candidate or None,
        "none_of_them": finding.claimed.none_of_them,
        "true_user": finding.true_user,
    }


def _mean_lines(findings: Sequence[Finding]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each attack: its first score, over the most rounds observed at once."""
    groups = defaultdict[tuple[object, ...], list[Finding]](list)
    for one in findings:
        cell = one.cell
        if not cell.is_control:
            groups[cell.arm, cell.observers, cell.attack, cell.question].append(one)
    for group in groups.values():
        most = max(len(one.cell.rounds) for one in group)
        longest = [one for one in group if len(one.cell.rounds) == most]
        scores = [one.scores[0] for one in longest if one.scores]
        guesses = [
            score.best_uninformed for score in scores if score.best_uninformed is not None
        ]
        cell = longest[0].cell
        yield (
            *(cell.arm, name_observers(cell.observers), cell.attack),
            scores[0].name if scores else "not checked",
            short_number(fmean(score.value for score in scores) if scores else None),
            short_number(fmean(guesses) if guesses else None),
            str(len(longest)),
        )
