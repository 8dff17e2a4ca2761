"""The report's text, tables and figures on shifts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import final

from overheard.drawing.claim_tables import candidate_words
from overheard.drawing.coverage import coverage_sentences
from overheard.drawing.figures import ReportTable
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, bracketed_interval
from overheard.findings.audit import Audit
from overheard.findings.control_draws import ControlDraws
from overheard.findings.finding import Finding
from overheard.findings.names import (
    make_printable,
    name_observers,
    name_other_clients,
    possessive,
)
from overheard.findings.number_format import (
    NO_NUMBER,
    SPACE,
    Measure,
    format_number,
    format_percent,
)
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import (
    ArmResult,
    AttackResult,
    ThreatResult,
    group_by_threat,
)
from overheard.questions.shift.measures import MEASURES
from overheard.questions.shift.pages.timeline_figures import timeline_figures
from overheard.questions.shift.statistics.pairs import headline_draws
from overheard.statistics.estimate import Estimate


@final
@dataclass(frozen=True)
class ShiftPages(QuestionPages):
    """How well shifts are distinguished from controls, and the evidence by round."""

    name = "shift"
    plain_question = "Whether and when the data changed, such as by a new disease"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State how often a run with a shift is distinguished from its control."""
        value = self.question.measure(row.score).format(row.value.mean)
        what = f"a shift in {whose} data"
        return Statement(
            what,
            f"distinguishes {what} from a control in {value} pairs",
            f"correct in {value} pairs of a shift and a control",
        )

    def intro(self) -> str:
        """Explain the pairs of a run with a shift and a control run."""
        return (
            "For shifts: in how many of 100 pairs of a run with a shift and a control run the "
            "attack finds more evidence in the run with the shift."
        )

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe detection, delay, direction, and the coverage of intervals."""
        return (
            *shift_sentences(threat_result.attack_results[0]),
            *coverage_sentences(threat_result, "coverage", MEASURES["coverage"], "change"),
        )

    def unmeasured_sentence(self, threat_result: ThreatResult) -> str:
        """State that control runs are missing."""
        whom = (
            name_other_clients(threat_result.observers)
            if threat_result.target_kind == "cohort"
            else "each client"
        )
        return (
            f"How well {name_observers(threat_result.observers)} can detect a shift in "
            f"{possessive(whom)} "
            "data was not measured: that requires runs with a shift and a control run for "
            "each, and there are none."
        )

    def unmeasured_reason(self) -> str:
        """Give the reason: no control run."""
        return "there is no control run"

    def describe_claim(self, finding: Finding) -> str:
        """State the alarm and the claimed first round of new data."""
        if finding.claimed.timeline is None:
            return candidate_words(finding)
        alarm, since = finding.claimed.timeline.alarm, finding.claimed.timeline.since
        raised = "no alarm" if alarm is None else f"alarm in round {alarm}"
        if since is None:
            return raised
        return f"{raised}; looking back, new data since round {since}"

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Return tables that compare shifts with controls, and figures of evidence by round."""
        tables, report_figures = (
            detection_tables(arm_results),
            timeline_figures(audit, arm_results),
        )
        if not tables and not report_figures:
            return ()
        paragraphs = (_controls_note(audit),) if tables else (_NOTE, _NO_CONTROLS)
        blocks = [SectionBlock(paragraphs=paragraphs, tables=tables)]
        if report_figures:
            blocks.append(SectionBlock("Evidence by round", figures=report_figures))
        title = "Detection of shifts"
        return (Section("shifts", title, "Shifts", tuple(blocks)),)

    def terms(self) -> tuple[Term, ...]:
        """Explain controls, pairs and alarms."""
        return _TERMS


_NOTE = (
    "Each run with a shift has a control run, in which the same client receives new examples "
    "of the same kind in the same round. Evidence that appears in both runs comes from the "
    "exchange of examples, not from the shift."
)

_KIND_NOTES: Mapping[ControlDraws, str] = {
    "": "",
    "natural": " Controls are natural: all examples of a client are random draws from its "
    "label shares, so that label counts differ from exchange to exchange.",
    "exact": " Controls are exact: each exchange copies the label counts of the examples that "
    "it replaces.",
}

_BOTH_NOTE = (
    " In exact controls, each exchange copies the label counts of the examples that it "
    "replaces. They are compared in a table of their own."
)


def _controls_note(audit: Audit) -> str:
    """Explain the controls that were run, those of the headline first."""
    found = [finding for finding in audit.findings if finding.claimed.timeline is not None]
    headline = headline_draws(found)
    has_both = headline == "natural" and any(one.cell.control == "exact" for one in found)
    return f"{_NOTE}{_KIND_NOTES[headline]}{_BOTH_NOTE if has_both else ''}"


_NO_CONTROLS = "There are no control runs, so it is unknown how well shifts are detected."

_TERMS = (
    Term(
        "Shift, exchange, control",
        "A shift is a change in the kind of data that a client trains on. An exchange replaces "
        "a client’s examples with new examples of the same kind. The control of a run with a "
        "shift is the same run with an exchange instead of the shift.",
    ),
    Term(
        "Natural and exact controls",
        "In a natural control, label counts are random draws from the client’s label shares, "
        "as when new data come in. In an exact control, each exchange copies the label counts. "
        "A natural control is harder to tell from a shift. The main scores compare with "
        "natural controls if there are any.",
    ),
    Term(
        "Shifts ranked above controls",
        "Take 100 pairs of a run with a shift and a control run. In this number of pairs the "
        "run with the shift has the larger peak of evidence (score auc, the area under the "
        "curve of true and false alarms). Guessing gives 50; 100 is perfect. The "
        "interval is the wider of two: a bootstrap interval, and an interval that is valid for "
        "few runs. “The same, at the true round” compares only the evidence in the round of "
        "the shift with that in the round of the control’s exchange.",
    ),
    Term(
        f"Detected at 5{SPACE}% false alarms",
        f"The share of shifts with more evidence than all but 5{SPACE}% of the controls "
        "(scores power_at_5 and power_at_1). This requires at least 19 controls, and 99 at "
        f"1{SPACE}%; with fewer controls the figure is omitted.",
    ),
    Term(
        "Alarms raised by an attack",
        "Some attacks state a threshold and the probability of a false alarm in a run. An "
        "alarm counts as a detection if it comes in the true round or later and none came "
        "before. The alarm of a round uses the rounds up to it alone. The claimed round of the "
        "shift is found by looking back over all rounds. Alarms in controls are false alarms. "
        "The intervals are exact if each run has one target.",
    ),
)


def shift_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    """Describe how well the best attack detects shifts."""
    return (
        *_power_sentence(attack_result),
        *_alarm_sentence(attack_result),
        *_direction_sentence(attack_result),
    )


def _power_sentence(attack_result: AttackResult) -> tuple[str, ...]:
    found = [
        f"{format_percent(row.value.mean)} of shifts{_interval(row)} at {level}{SPACE}% false "
        "alarms"
        for level in (5, 1)
        if (row := attack_result.rows_by_score.get(f"power_at_{level}")) is not None
    ]
    pairs = MEASURES["auc"].format(attack_result.rows_by_score["auc_told"].value.mean)
    known = f"If the round of the shift is known, the attack is correct in {pairs} pairs."
    if not found:
        few = f"There are too few controls to measure detection at 5{SPACE}% false alarms."
        return (f"{known} {few}",)
    return (f"{known} If it is unknown, the attack detects {' and '.join(found)}.",)


def _alarm_sentence(attack_result: AttackResult) -> tuple[str, ...]:
    found, false = (
        attack_result.rows_by_score.get("detection_rate"),
        attack_result.rows_by_score.get("false_alarm_rate"),
    )
    if found is None or false is None:
        silent = _uncalibrated_sentence(attack_result).strip()
        return (silent or "The attack states no threshold, so it raises no alarm.",)
    stated = false.references.get("stated")
    stated_rate = "" if stated is None else f"; stated rate: {format_percent(stated)}"
    alarms = (
        f"Its alarm detects {format_percent(found.value.mean)} of shifts{_interval(found)} and "
        "is raised "
        f"in {format_percent(false.value.mean)} of controls{_interval(false, stated_rate)}"
        f"{_exact_clause(attack_result)}.{_uncalibrated_sentence(attack_result)}"
    )
    delay = attack_result.rows_by_score.get("median_delay")
    if delay is None:
        return (alarms,)
    return (f"{alarms} {_delay_clause(delay.value.mean)}",)


def _exact_clause(attack_result: AttackResult) -> str:
    """State the alarms in exact controls; nothing if there are none of these controls."""
    exact = attack_result.rows_by_score.get("false_alarm_rate_exact")
    if exact is None:
        return ""
    return f", and in {format_percent(exact.value.mean)} of exact controls{_interval(exact)}"


def _uncalibrated_sentence(attack_result: AttackResult) -> str:
    """State in how many runs the attack gave no alarm; nothing if it always did."""
    row = attack_result.rows_by_score.get("not_calibrated")
    if row is None or row.value.mean == 0:
        return ""
    return (
        f" In {format_percent(row.value.mean)} of runs it is not calibrated: it cannot keep "
        "the stated rate, and gives no alarm. These runs do not count in the other rates."
    )


def _delay_clause(rounds: float) -> str:
    if rounds == 0:
        return "At least half of the detections come in the round of the shift."
    return f"The median delay of the detections is {rounds:g}{SPACE}rounds."


def _direction_sentence(attack_result: AttackResult) -> tuple[str, ...]:
    right = attack_result.rows_by_score.get(
        "direction_detected"
    ) or attack_result.rows_by_score.get("direction")
    if right is None:
        return ()
    which = "detected shifts" if right.score == "direction_detected" else "shifts"
    correct = (
        "The attack correctly states which classes rose for "
        f"{format_percent(right.value.mean)} of "
        f"{which}"
    )
    error = attack_result.rows_by_score.get("risen_error")
    if error is None:
        return (f"{correct} (guessing: {format_percent(right.best_uninformed)}).",)
    size = MEASURES["risen_error"].format(error.value.mean)
    guess = MEASURES["risen_error"].format(error.best_uninformed)
    return (
        f"{correct}. Its estimate of their share after the shift is off by {size} (guessing: "
        f"{guess}).",
    )


def _interval(row: ScoreRow, addition: str = "") -> str:
    return bracketed_interval(row, MEASURES[row.score], addition)


@dataclass(frozen=True, slots=True)
class _DetectionColumn:
    """One score in a table, with or without a column for guessing.

    Args:
        score: the name of the score.
        guess_head: the head of the column for guessing; "" = no such column.

    """

    score: str
    guess_head: str = ""

    def heads(self) -> list[str]:
        return [MEASURES[self.score].title, *([self.guess_head] if self.guess_head else [])]

    def cells(self, row: ScoreRow | None) -> list[str]:
        if row is None:
            return [NO_NUMBER] * len(self.heads())
        measure = MEASURES[self.score]
        # Without an uninformed guess, the rate that the claim itself states.
        guess = (
            next(iter(row.references.values()), None)
            if row.best_uninformed is None
            else row.best_uninformed
        )
        return [
            _with_interval(row.value, measure),
            *([measure.format(guess)] if self.guess_head else []),
        ]


def _with_interval(value: Estimate, measure: Measure) -> str:
    """Format the value with its interval; for an infinite time, only its lower bound."""
    if value.low is None or value.high is None:
        return measure.format(value.mean)
    low, high = (
        format_number(value.low * measure.factor),
        format_number(value.high * measure.factor),
    )
    if isinf(value.mean):
        return f"{low}{measure.unit} or more"
    return f"{measure.format(value.mean)} ({low} to {high})"


_TABLES = (
    (
        "Shifts compared with controls",
        (
            _DetectionColumn("auc", guess_head="Guessing"),
            _DetectionColumn("auc_told"),
            _DetectionColumn("power_at_5"),
            _DetectionColumn("power_at_1"),
        ),
    ),
    (
        "Alarms raised by the attacks",
        (
            _DetectionColumn("detection_rate"),
            _DetectionColumn("false_alarm_rate", guess_head="Stated"),
            _DetectionColumn("rounds_between_false_alarms"),
            _DetectionColumn("median_delay"),
            _DetectionColumn("not_calibrated"),
        ),
    ),
    (
        "Shifts compared with exact controls",
        (
            _DetectionColumn("auc_exact", guess_head="Guessing"),
            _DetectionColumn("power_at_5_exact"),
            _DetectionColumn("false_alarm_rate_exact", guess_head="Stated"),
        ),
    ),
    (
        "Claimed round and change",
        (
            _DetectionColumn("round_error", guess_head="Guessing"),
            _DetectionColumn("direction", guess_head="Guessing"),
            _DetectionColumn("direction_detected"),
        ),
    ),
    (
        "Claimed shares after the shift, and coverage of the intervals",
        (
            _DetectionColumn("risen_error", guess_head="Guessing"),
            _DetectionColumn("risen_coverage"),
            _DetectionColumn("coverage"),
            _DetectionColumn("width"),
        ),
    ),
)


def detection_tables(arms: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Return up to five tables for each group of observers with claims about shifts.

    Brackets hold 95 % intervals. A table omits attacks that have none of its scores.
    """
    tables = []
    for threat, threat_results in group_by_threat(arms).items():
        attack_results = [
            (threat_result.arm, attack_result)
            for threat_result in threat_results
            for attack_result in threat_result.attack_results
        ]
        for title, columns in _TABLES:
            lines = tuple(
                _table_row(arm, attack_result, columns)
                for arm, attack_result in attack_results
                if any(column.score in attack_result.rows_by_score for column in columns)
            )
            if lines:
                heads = (
                    "Arm",
                    "Attack",
                    *(head for column in columns for head in column.heads()),
                )
                tables.append(
                    ReportTable(f"{title} (95{SPACE}% interval): {threat}", heads, lines, 2)
                )
    return tuple(tables)


def _table_row(
    arm: str, attack_result: AttackResult, columns: Sequence[_DetectionColumn]
) -> tuple[str, ...]:
    cells = [
        cell
        for column in columns
        for cell in column.cells(attack_result.rows_by_score.get(column.score))
    ]
    return (make_printable(arm), make_printable(attack_result.label), *cells)
