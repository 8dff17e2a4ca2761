"""What a report tells of shifts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.claims import choice_words
from overheard.drawing.coverage import coverage_words
from overheard.drawing.pages import Pages
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.figures import SPACE
from overheard.findings.finding import Audit, Finding
from overheard.findings.names import all_others, possessive, together
from overheard.findings.row import Row
from overheard.questions.shift.measures import MEASURES
from overheard.questions.shift.pages.detection_tables import detection_tables
from overheard.questions.shift.pages.shift_words import shift_words
from overheard.questions.shift.pages.timeline_plates import timeline_plates


@final
@dataclass(frozen=True)
class ShiftPages(Pages):
    """How shifts are told from controls, and the evidence round by round."""

    name = "shift"

    def reading(self, row: Row, whose: str) -> Statement:
        """Pairs of a run with a shift and one without."""
        value = self.question.measure(row.score).tell(row.value.mean)
        what = f"a shift of {whose} data"
        return Statement(
            what,
            f"tells {what} from an exchange without shift in {value} pairs",
            f"right in {value} pairs of a shift and an exchange without",
        )

    def intro(self) -> str:
        """Pairs of a run with a shift and one without."""
        return (
            "For shifts: of 100 pairs of a run with a shift and one without, in how many it "
            "finds out which is which."
        )

    def sentences(self, exposure: Exposure) -> tuple[str, ...]:
        """How a shift is noticed, when, which way, and how far intervals can be trusted."""
        return (
            *shift_words(exposure.cases[0]),
            *coverage_words(exposure, "coverage", MEASURES["coverage"], "change"),
        )

    def unmeasured(self, exposure: Exposure) -> str:
        """Without a control there is nothing to tell a shift from."""
        whom = all_others(exposure.observers) if exposure.about == "cohort" else "each client"
        return (
            f"How well {together(exposure.observers)} can tell a shift of {possessive(whom)} "
            "data was not measured: that takes runs with a shift, each beside its control "
            "without, and there are none."
        )

    def why_unmeasured(self) -> str:
        """No control."""
        return "no control ran beside it"

    def claim_in_words(self, finding: Finding) -> str:
        """The alarm, and since when the data are said to be new."""
        if finding.timeline is None:
            return choice_words(finding)
        alarm, since = finding.timeline.alarm, finding.timeline.since
        raised = "no alarm" if alarm is None else f"alarm in round {alarm}"
        return raised if since is None else f"{raised}; new data since round {since}"

    def sections(self, audit: Audit, every: Sequence[Arm]) -> tuple[Section, ...]:
        """Tables beside the controls, and the evidence round by round."""
        tables, plates = detection_tables(every), timeline_plates(audit, every)
        if not tables and not plates:
            return ()
        paragraphs = (_NOTE,) if tables else (_NOTE, _NO_CONTROLS)
        blocks = [SectionBlock(paragraphs=paragraphs, tables=tables)]
        if plates:
            blocks.append(SectionBlock("The evidence, round by round", plates=plates))
        title = "Shifts, and what shows of them"
        return (Section("shifts", title, "Shifts", tuple(blocks)),)

    def terms(self) -> tuple[Term, ...]:
        """Controls, pairs, and alarms."""
        return _TERMS


_NOTE = (
    "Each run with a shift stands beside its control, in which the same client gets fresh "
    "examples of the same kind in the same round. What shows in both is the exchange, not the "
    "shift."
)

_NO_CONTROLS = "No controls ran, so nothing can be said of how well shifts are told."

_TERMS = (
    Term(
        "Shift, exchange, control",
        "A shift is a change in the kind of data that a client trains on; an exchange, fresh "
        "examples of the same kind. The control of a run with a shift is the same run with an "
        "exchange in its place.",
    ),
    Term(
        "Shifts told from controls",
        "Of 100 pairs of a run with a shift and a control, in how many the shift has the "
        "larger peak of evidence (score auc, the area under the curve of false and true "
        "alarms). 50 is a coin’s; 100 is certainty. Its interval is the wider of the "
        "bootstrap’s and of one for so few runs as there were. “Told when” holds the "
        "evidence of the true round alone against that of the control’s exchange.",
    ),
    Term(
        f"Found at 5{SPACE}% false alarms",
        f"The part of the shifts with more evidence than all but 5{SPACE}% of the controls "
        "(scores power_at_5 and power_at_1). It takes 19 controls at least, and 99 at "
        f"1{SPACE}%; with fewer it is left out.",
    ),
    Term(
        "Alarms that an attack raises itself",
        "Some attacks state a threshold and how often it gives a false alarm in a whole run. "
        "Counted are the alarms in the true round or later, none before, and those in "
        "controls; their intervals are exact ones, where each run has one target.",
    ),
)
