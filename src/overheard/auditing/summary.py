"""Summaries of findings: means over targets and seeds, with their uninformed guesses."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from overheard.core.scorer import Better, Score
from overheard.core.seeds import Seed
from overheard.findings.finding import Finding, targets_of
from overheard.findings.question import Question
from overheard.findings.score_row import ScoreRow, row_group
from overheard.plans.registries import questions
from overheard.statistics.estimate import Estimate, convert_estimate, widen
from overheard.statistics.run_means import estimate_gain, estimate_mean


def summarise(findings: Sequence[Finding], seed: Seed) -> tuple[ScoreRow, ...]:
    """Return one row per arm, observers, attack, question, observed rounds and score.

    Intervals are over runs, since targets of one run share its model and are not independent
    trials. With few runs they are over the targets of these runs: see
    `statistics.run_means.estimate_mean`. A joint claim counts by target where its question
    divides the score (`Question.values_by_target`). If the users behind all targets are known,
    a user counts once in a run, with the mean of their targets. So does a client with many
    pseudonyms.
    Intervals are at least as wide as those over records, where the question has any
    (`Question.interval_over_records`).

    Rows that need many findings together are appended, question by question. An interval of a
    score ends where the score's range does; that of a gain does not.

    Raises:
        KeyError: if a finding answers an unknown question.

    """
    by_name = {
        name: questions()[name] for name in dict.fromkeys(f.cell.question for f in findings)
    }
    groups: dict[tuple[object, ...], list[tuple[Finding, Score]]] = defaultdict(list)
    controls: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        place = row_group(finding.cell)
        if not by_name[finding.cell.question].is_averaged(finding):
            controls[place].append(finding)
            continue
        for score in finding.scores:
            groups[(*place, score.name)].append((finding, score))
    rows = (
        *(
            _row(by_name[members[0][0].cell.question], members, controls[place[:-1]])
            for place, members in groups.items()
        ),
        *(
            row
            for name, question in by_name.items()
            for row in question.summary_rows(
                [f for f in findings if f.cell.question == name], seed
            )
        ),
    )
    return tuple(
        replace(row, value=by_name[row.question].measure(row.score).cut(row.value))
        for row in rows
    )


def _row(
    question: Question[Any],
    members: Sequence[tuple[Finding, Score]],
    control: Sequence[Finding],
) -> ScoreRow:
    cell, first = members[0][0].cell, members[0][1]
    scores = [score for _, score in members]
    uninformed = {
        name: _mean([score.uninformed[name] for score in scores]) for name in first.uninformed
    }
    best = _best_guess(uninformed, first.better)
    sign = 1 if first.better == "higher" else -1
    own_findings = [finding for finding, _ in members]
    of_row = _values_of(question, members)
    values, seeds, users = of_row.values, of_row.seeds, of_row.users
    over_records = question.interval_over_records(
        first.name, float(values.mean()), own_findings
    )
    value = estimate_mean(values, seeds, users, may_be_trials=over_records is None)
    gain = None
    if best is not None:
        guesses = np.repeat([score.uninformed[best] for score in scores], of_row.counts)
        gain = estimate_gain(
            values, guesses, seeds, users, sign, may_be_trials=over_records is None
        )
        gain = _widen(gain, over_records, sign, uninformed[best])
    return ScoreRow(
        arm=cell.arm,
        observers=cell.observers,
        attack=cell.attack,
        question=cell.question,
        rounds=cell.rounds,
        score=first.name,
        better=first.better,
        value=_widen(value, over_records),
        uninformed=uninformed,
        references={
            name: _mean([score.references[name] for score in scores])
            for name in first.references
        }
        | dict(question.references(first.name, own_findings, control)),
        best_uninformed=None if best is None else uninformed[best],
        gain=gain,
        targets=len(targets_of(finding for finding, _ in members)),
        seeds=len(set(seeds.tolist())),
    )


@final
@dataclass(frozen=True, slots=True)
class _Values:
    """The values of a score.

    Args:
        values: the values.
        seeds: the seed of the run of each.
        users: the number of the user or client of each; None = another one for each.
        counts: how many there are of each finding.

    """

    values: Float[np.ndarray, " values"]
    seeds: Int[np.ndarray, " values"]
    users: Int[np.ndarray, " values"] | None
    counts: Int[np.ndarray, " findings"]


def _values_of(question: Question[Any], members: Sequence[tuple[Finding, Score]]) -> _Values:
    """Return a value of each finding, or those that the score of a joint claim divides into."""
    findings = [finding for finding, _ in members]
    seeds = np.array([finding.cell.seed for finding in findings])
    parts = [question.values_by_target(one, score.name) for one, score in members]
    if not all(parts):
        values = np.array([score.value for _, score in members])
        return _Values(values, seeds, _user_numbers(findings), np.ones_like(seeds))
    by_target = [one for part in parts for one in part.values()]
    sizes = np.array([len(one) for one in by_target])
    counts = np.array([sum(map(len, part.values())) for part in parts])
    # A client of another run holds other data.
    users = np.repeat(np.arange(len(by_target)), sizes)
    return _Values(np.concatenate(by_target), np.repeat(seeds, counts), users, counts)


def _widen(
    estimate: Estimate, over_records: Estimate | None, sign: int = 1, guess: float = 0.0
) -> Estimate:
    """Widen a value, or its gain over a guess, by the value's interval over records."""
    if over_records is None:
        return estimate
    return widen(estimate, convert_estimate(over_records, float(sign), -sign * guess))


def _user_numbers(findings: Sequence[Finding]) -> NDArray[np.int64] | None:
    """Return the number of the user behind each finding, or of the client behind a pseudonym.

    None unless all are known. A client of another run holds other data.
    """
    users: list[object] = [finding.true_user for finding in findings]
    if None in users:
        users = [(finding.cell.seed, finding.client) for finding in findings]
        if not all(finding.client for finding in findings):
            return None
    number = {user: index for index, user in enumerate(dict.fromkeys(users))}
    return np.array([number[user] for user in users])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _best_guess(uninformed: Mapping[str, float], better: Better) -> str | None:
    """Return the one guess that has the best mean over all targets."""
    if not uninformed:
        return None
    return (min if better == "lower" else max)(uninformed, key=lambda name: uninformed[name])
