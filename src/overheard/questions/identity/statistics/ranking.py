"""All targets of a run, each with its score for every user whom an attacker may name."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.findings.finding import Finding
from overheard.statistics.matching import Matches
from overheard.statistics.precision import average_precisions, chance_precisions


@final
@dataclass(frozen=True, slots=True)
class Ranking:
    """What one attack said of all targets of one run.

    Args:
        seed: of the run.
        users: whom it may name.
        people: who stands behind the targets: first the known ones, who are among `users`.
        column: of each known one, its place in `users`.
        scores: of each target for each user; minus infinity where a claim left a user out.
        person: who stands behind each target, as a place in `people`.
        unknown: the chance of each target to be none of the users, as claimed; None where that
            is unsaid.

    """

    seed: int
    users: tuple[str, ...]
    people: tuple[str, ...]
    column: Int[np.ndarray, " known"]
    scores: Float[np.ndarray, "targets users"]
    person: Int[np.ndarray, " targets"]
    unknown: Float[np.ndarray, " targets"] | None

    @property
    def known(self) -> int:
        """How many of the people are among the users."""
        return len(self.column)

    def precisions(self) -> Float[np.ndarray, "people known"]:
        """Average precision of the targets ranked for a known user, each person's in turn.

        On the diagonal stand the true matches. A ranking for a user that finds the targets of
        another person says nothing by itself; all of them together say what is to be expected
        where nobody is who he seems.
        """
        columns = [
            average_precisions(self.scores[:, place], self.person, len(self.people))
            for place in self.column
        ]
        return np.stack(columns, 1)

    def chances(self) -> Float[np.ndarray, " known"]:
        """What a random ranking gets for each known user."""
        own = np.bincount(self.person, minlength=len(self.people))[: self.known]
        return chance_precisions(own, len(self.person))


def rankings(findings: Iterable[Finding]) -> tuple[Ranking, ...]:
    """One a run, of findings of one attack in one place; of runs in which a user is known.

    A target whose true user was among those whom the attacker knows, by its scores, is held
    against it, named or not.
    """
    by_seed: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.candidates and finding.true_user is not None:
            by_seed[finding.cell.seed].append(finding)
    every = (_ranking(seed, held) for seed, held in sorted(by_seed.items()))
    return tuple(ranking for ranking in every if ranking.known)


def by_user(runs: Iterable[Ranking]) -> dict[tuple[int, str], float]:
    """The average precision of each known user of each run, by seed and name."""
    return {
        (run.seed, who): float(value)
        for run in runs
        for who, value in zip(run.people[: run.known], run.precisions().diagonal(), strict=True)
    }


def _ranking(seed: int, findings: Sequence[Finding]) -> Ranking:
    true = [finding.true_user or "" for finding in findings]
    known = {
        who
        for who, finding in zip(true, findings, strict=True)
        if any(score.name == "top1" for score in finding.scores)
    }
    named = [name for choice in {one.candidates for one in findings} for name in choice]
    users = tuple(sorted({*named, *known}))
    people = (*sorted(known), *sorted(set(true) - known))
    number = {who: place for place, who in enumerate(people)}
    unknown = [one.none_of_them for one in findings if one.none_of_them is not None]
    return Ranking(
        seed,
        users,
        people,
        np.array([users.index(who) for who in sorted(known)], dtype=np.int64),
        _scores(findings, users),
        np.array([number[who] for who in true]),
        np.array(unknown) if len(unknown) == len(findings) else None,
    )


def _scores(
    findings: Sequence[Finding], users: tuple[str, ...]
) -> Float[np.ndarray, "targets users"]:
    scores = np.full((len(findings), len(users)), -np.inf)
    place = {user: number for number, user in enumerate(users)}
    columns = {
        choice: np.array([place[user] for user in choice])
        for choice in {finding.candidates for finding in findings}
    }
    for line, finding in enumerate(findings):
        scores[line, columns[finding.candidates]] = finding.claimed
    return scores


def matches(ranking: Ranking) -> Matches:
    """Every pair of a target and a user for whom it has a score, and each true one."""
    own = np.full(len(ranking.people), -1)
    own[: ranking.known] = ranking.column
    is_own = own[ranking.person][:, None] == np.arange(len(ranking.users))
    targets, users = np.nonzero(np.isfinite(ranking.scores) | is_own)
    person = ranking.person[targets]
    return Matches(
        ranking.scores[targets, users],
        own[person] == users,
        person,
        ranking.known,
        len(ranking.people) - ranking.known,
    )
