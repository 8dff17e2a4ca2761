"""What changed between two audits: verdicts, scores, epsilon, accuracy, plan and versions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, final

from overheard.core.errors import FindingsError
from overheard.disk.reading import parse_toml
from overheard.findings.document import FindingsDocument
from overheard.findings.document_rows import IntervalEstimate
from overheard.findings.privacy.epsilon_rows import EpsilonRow
from overheard.gate.rule_figure import interval_growth
from overheard.gate.verdict import format_estimate, format_number

ChangeKind = Literal["verdict", "score", "epsilon", "accuracy", "plan", "version"]
"""What changed; in this order changes are listed."""

ABSENT = "absent"
"""What stands for a side that does not have the subject at all."""

WITHIN = "within the intervals"

BEYOND = "beyond the intervals"

MAX_DEPTH = 20
"""Deepest table of a plan whose settings are compared one by one."""


@final
@dataclass(frozen=True, slots=True)
class AuditChange:
    """One difference between two audits.

    Args:
        kind: see `ChangeKind`.
        subject: what differs; names in it may come from anybody.
        before: the first audit's value as text; `ABSENT` if it has none.
        after: the same for the second audit.
        remark: "new", "removed", or whether intervals explain the difference; "" = neither.
        difference: the second value less the first, with the range that both intervals allow;
            None = not a figure.

    """

    kind: ChangeKind
    subject: str
    before: str
    after: str
    remark: str = ""
    difference: IntervalEstimate | None = None


@final
@dataclass(frozen=True, slots=True)
class AuditChanges:
    """All differences between two audits.

    Args:
        before: title of the first audit.
        after: title of the second audit.
        changes: the differences, kind by kind.
        compared: how many verdicts and scores both audits have.
        notes: caveats on the comparison.

    """

    before: str
    after: str
    changes: tuple[AuditChange, ...]
    compared: int
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The counts of changes that matter, and of what both audits have."""
        verdicts = sum(one.kind == "verdict" for one in self.changes)
        scores = sum(one.kind == "score" and one.remark == BEYOND for one in self.changes)
        settings = sum(one.kind == "plan" for one in self.changes)
        return (
            f"{_counted(verdicts, 'verdict')} changed, {_counted(scores, 'score')} beyond the "
            f"intervals, {_counted(settings, 'setting')} of the plan changed; both audits have "
            f"{_counted(self.compared, 'verdict or score', 'verdicts and scores')}"
        )


def compare_audits(before: FindingsDocument, after: FindingsDocument) -> AuditChanges:
    """Return what changed from one audit to another.

    Of each question that an attack of both audits answers, the score that verdicts judge is
    compared. A difference is "within the intervals" if both 95 % intervals together allow that
    there is none. That is wider than an interval of the difference, which would need to know
    how the two audits depend on each other.
    """
    verdicts = _verdicts(before), _verdicts(after)
    scores = _scores(before), _scores(after)
    changes = (
        *_changed("verdict", *verdicts),
        *_changed_figures("score", *scores),
        *_changed("epsilon", _epsilons(before), _epsilons(after)),
        *_changed_figures("accuracy", _accuracies(before), _accuracies(after)),
        *_changed("plan", _settings(before.plan), _settings(after.plan)),
        *_changed("version", before.versions, after.versions),
    )
    compared = sum(len(one.keys() & other.keys()) for one, other in (verdicts, scores))
    return AuditChanges(
        before.title, after.title, changes, compared, tuple(_notes(before, after))
    )


def _notes(before: FindingsDocument, after: FindingsDocument) -> Iterator[str]:
    if before.subject != after.subject:
        yield (
            f"The audits describe different subjects. First: {before.subject}. "
            f"Second: {after.subject}."
        )


T = TypeVar("T")


def _pairs(
    before: Mapping[str, T], after: Mapping[str, T]
) -> Iterator[tuple[str, T | None, T | None]]:
    for name in dict.fromkeys([*before, *after]):
        yield name, before.get(name), after.get(name)


def _changed(
    kind: ChangeKind, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[AuditChange]:
    for name, one, other in _pairs(before, after):
        if one != other:
            yield _change(kind, name, one, other, str)


def _change(
    kind: ChangeKind, name: str, one: T | None, other: T | None, shown: Callable[[T], str]
) -> AuditChange:
    remark = "new" if one is None else "removed" if other is None else ""
    return AuditChange(
        kind,
        name,
        ABSENT if one is None else shown(one),
        ABSENT if other is None else shown(other),
        remark,
    )


def _changed_figures(
    kind: ChangeKind,
    before: Mapping[str, IntervalEstimate],
    after: Mapping[str, IntervalEstimate],
) -> Iterator[AuditChange]:
    for name, one, other in _pairs(before, after):
        if one is None or other is None:
            yield _change(kind, name, one, other, _figure_text)
        elif one != other:
            yield _changed_figure(kind, name, one, other)


def _changed_figure(
    kind: ChangeKind, name: str, one: IntervalEstimate, other: IntervalEstimate
) -> AuditChange:
    difference = interval_growth(other, one)
    low, high = difference.low, difference.high
    remark = "no interval"
    if low is not None and high is not None:
        remark = WITHIN if low <= 0 <= high else BEYOND
    return AuditChange(kind, name, _figure_text(one), _figure_text(other), remark, difference)


def _verdicts(found: FindingsDocument) -> dict[str, str]:
    return {
        "; ".join(
            (row.arm, _by(row.observers), row.question, f"about {row.about}")
        ): row.verdict
        for row in found.verdicts
    }


def _scores(found: FindingsDocument) -> dict[str, IntervalEstimate]:
    """Return the scores that verdicts judge, by their place."""
    judged = {
        (row.arm, tuple(sorted(row.observers)), row.question, row.about): (
            {row.score} if row.score else set(row.margins)
        )
        for row in found.verdicts
    }
    scores = {}
    for row in found.summary:
        key = row.key
        place = (key.arm, key.observers, key.question, key.about)
        if row.score in judged.get(place, ()):
            name = (row.arm, _by(key.observers), row.attack, row.question, row.about, row.score)
            scores["; ".join((*name, _rounds_text(row.rounds)))] = row.value
    return scores


def _rounds_text(rounds: Sequence[int]) -> str:
    """Return the rounds, with each run of neighbours as its ends, such as "rounds 0-9, 12"."""
    ends: list[list[int]] = []
    for number in sorted(rounds):
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    parts = (str(low) if low == high else f"{low}-{high}" for low, high in ends)
    return f"rounds {', '.join(parts)}"


def _epsilons(found: FindingsDocument) -> dict[str, str]:
    return {
        "; ".join((row.arm, row.mechanism, _by(row.observers))): _epsilon_text(row)
        for row in found.epsilon
    }


def _epsilon_text(row: EpsilonRow) -> str:
    most = "unknown or infinite" if row.ceiling is None else format_number(row.ceiling)
    proven = "" if row.measured is None else f", proven {format_number(row.measured.at_least)}"
    return f"{row.verdict}, at most {most}{proven}"


def _accuracies(found: FindingsDocument) -> dict[str, IntervalEstimate]:
    """Return the accuracy of each arm, with the range of its runs."""
    by_arm: dict[str, list[float]] = {}
    for run in found.arms:
        if not run.is_control and run.last_accuracy is not None:
            by_arm.setdefault(run.arm, []).append(run.last_accuracy)
    return {
        arm: IntervalEstimate(
            mean=sum(values) / len(values),
            low=min(values) if len(values) > 1 else None,
            high=max(values) if len(values) > 1 else None,
        )
        for arm, values in by_arm.items()
    }


def _settings(plan: str) -> dict[str, str]:
    """Return the settings of a plan by their dotted keys; none if it cannot be read."""
    try:
        return dict(_flattened("", parse_toml(plan, "plan", FindingsError), 0))
    except FindingsError:
        return {"plan": "not readable"}


def _flattened(prefix: str, value: object, depth: int) -> Iterator[tuple[str, str]]:
    is_shallow = depth < MAX_DEPTH
    if isinstance(value, dict) and is_shallow:
        for name, inner in value.items():
            yield from _flattened(f"{prefix}.{name}" if prefix else name, inner, depth + 1)
    elif isinstance(value, list) and is_shallow and any(isinstance(v, dict) for v in value):
        for number, inner in enumerate(value):
            yield from _flattened(f"{prefix}.{number}", inner, depth + 1)
    else:
        yield prefix, str(value)


def _by(observers: tuple[str, ...]) -> str:
    return " and ".join(sorted(observers)) or "readers of the global models only"


def _figure_text(figure: IntervalEstimate) -> str:
    return format_estimate(figure) or "unknown"


def _counted(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
