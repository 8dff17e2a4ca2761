"""Scores of alarms and of the claimed round of a shift."""

from statistics import median

from overheard.core.claims import Timeline
from overheard.core.scorer import Score


def can_raise_alarm(evidence: Timeline) -> bool:
    """Return whether the claim has a threshold or an alarm."""
    return evidence.threshold is not None or evidence.alarm is not None


def is_detected(evidence: Timeline, since: int) -> bool:
    """Return whether the alarm was raised in the true round or later, and not before."""
    return evidence.alarm is not None and evidence.alarm >= since


def alarm_scores(evidence: Timeline, since: int) -> tuple[Score, ...]:
    """Score the evidence of a run with a shift in round `since`."""
    scores = []
    stated = _stated_rate("an alarm at random", evidence)
    if can_raise_alarm(evidence):
        detected = is_detected(evidence, since)
        early = evidence.alarm is not None and not detected
        scores += [
            Score("detected", float(detected), "higher", stated, {}),
            Score(
                "false_alarm_before",
                float(early),
                "lower",
                {},
                _stated_rate("stated", evidence),
            ),
        ]
    if evidence.alarm is not None and is_detected(evidence, since):
        scores.append(Score("delay", float(evidence.alarm - since), "lower", {}, {}))
    if evidence.since is not None and evidence.rounds:
        middle = float(median(evidence.rounds))
        scores.append(
            Score(
                "round_error",
                float(abs(evidence.since - since)),
                "lower",
                {"the middle of the run": abs(middle - since)},
                {},
            )
        )
    return tuple(scores)


def false_alarm_scores(evidence: Timeline) -> tuple[Score, ...]:
    """Score the evidence of a run in which the target's data did not shift."""
    if not can_raise_alarm(evidence):
        return ()
    raised = float(evidence.alarm is not None)
    return (Score("false_alarm", raised, "lower", {}, _stated_rate("stated", evidence)),)


def _stated_rate(name: str, evidence: Timeline) -> dict[str, float]:
    rate = evidence.false_alarm_rate
    return {} if rate is None else {name: rate}
