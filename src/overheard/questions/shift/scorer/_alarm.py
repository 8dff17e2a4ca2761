"""Whether an alarm was raised in time, and how far off its round is."""

from statistics import median

from overheard.core.claims import Timeline
from overheard.core.scorer import Score


def may_alarm(evidence: Timeline) -> bool:
    """Whether the claim could have raised an alarm: it states when it does, or did."""
    return evidence.threshold is not None or evidence.alarm is not None


def is_detected(evidence: Timeline, since: int) -> bool:
    """Whether the alarm was raised in the true round or later, and not before."""
    return evidence.alarm is not None and evidence.alarm >= since


def alarm_scores(evidence: Timeline, since: int) -> tuple[Score, ...]:
    """Hold evidence against the round of a shift that came."""
    scores = []
    stated = _as_stated("an alarm at random", evidence)
    if may_alarm(evidence):
        detected = is_detected(evidence, since)
        early = evidence.alarm is not None and not detected
        scores += [
            Score("detected", float(detected), "higher", stated, {}),
            Score(
                "false_alarm_before", float(early), "lower", {}, _as_stated("stated", evidence)
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
    """Hold evidence against a run in which the target's data did not shift."""
    if not may_alarm(evidence):
        return ()
    raised = float(evidence.alarm is not None)
    return (Score("false_alarm", raised, "lower", {}, _as_stated("stated", evidence)),)


def _as_stated(name: str, evidence: Timeline) -> dict[str, float]:
    rate = evidence.false_alarm_rate
    return {} if rate is None else {name: rate}
