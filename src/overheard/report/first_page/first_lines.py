"""The first lines of the first page, for whoever reads the terminal alone."""

from overheard.epsilon.epsilon_results import epsilon_results
from overheard.epsilon.table import epsilon_sentences
from overheard.findings.audit import Audit
from overheard.findings.names import make_printable
from overheard.report.doctor_section import alarm_sentences, criticism_rows
from overheard.report.first_page.answers import answer_sentences
from overheard.report.page_parts import PageParts


def first_lines(audit: Audit) -> tuple[str, ...]:
    """Return what the first page says first, in its order and words.

    First come critical faults in differential privacy, then what is wrong with a recording,
    then promises of differential privacy that do not hold, then what leaks and to whom. Last
    is a sentence on each of these that Overheard failed to make.
    """
    parts = PageParts()
    alarms = parts.make("critical faults", lambda: alarm_sentences(criticism_rows(audit)))
    broken = parts.make(
        "differential privacy", lambda: epsilon_sentences(epsilon_results(audit))
    )
    answers = parts.make("what leaks, in sentences", lambda: answer_sentences(audit))
    recording = audit.recording
    is_odd = recording is not None and not recording.is_proved
    return (
        *(f"Critical: {one}" for one in alarms),
        *map(make_printable, recording.sentences if recording is not None and is_odd else ()),
        *(f"Does not hold: {one}" for one in broken),
        *(answers or ("No attack ran.",)),
        *parts.failures,
    )
