"""All targets of a run, with their scores for every candidate user."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.findings.finding import Finding
from overheard.statistics.average_precision import average_precisions, random_average_precisions
from overheard.statistics.roc import ScoredPairs


@final
@dataclass(frozen=True, slots=True)
class Ranking:
    """The claims of one attack about all targets of one run.

    Args:
        seed: the seed of the run.
        users: the candidate users.
        true_users: the users behind the targets: first the known users, who are among `users`.
        known_columns: the index in `users` of each known user.
        scores: the score of each target for each user; -inf if a claim leaves a user out.
        target_user: the index in `true_users` of the user behind each target.
        unknown_probability: the claimed probability of each target to be none of the users;
            None if not claimed.

    """

    seed: int
    users: tuple[str, ...]
    true_users: tuple[str, ...]
    known_columns: Int[np.ndarray, " known"]
    scores: Float[np.ndarray, "targets users"]
    target_user: Int[np.ndarray, " targets"]
    unknown_probability: Float[np.ndarray, " targets"] | None

    @property
    def known_count(self) -> int:
        """Return how many of the users behind targets are candidate users."""
        return len(self.known_columns)

    def precision_matrix(self) -> Float[np.ndarray, "users known"]:
        """Return the average precision of each row's targets in the ranking of each known user.

        The diagonal holds the true matches. The other entries are the values after permutations
        of users.
        """
        columns = [
            average_precisions(self.scores[:, place], self.target_user, len(self.true_users))
            for place in self.known_columns
        ]
        return np.stack(columns, 1)

    def random_precisions(self) -> Float[np.ndarray, " known"]:
        """Return the expected average precision of a random ranking for each known user."""
        counts = np.bincount(self.target_user, minlength=len(self.true_users))[
            : self.known_count
        ]
        return random_average_precisions(counts, len(self.target_user))


def build_rankings(findings: Iterable[Finding]) -> tuple[Ranking, ...]:
    """Build one ranking per run from the findings of one attack in one setting.

    Runs without a known user are left out. A target counts as known if its finding has a rank
    score, even if the claim left its true user out.
    """
    by_seed: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.claimed.candidates and finding.true_user is not None:
            by_seed[finding.cell.seed].append(finding)
    all_runs = (_build_ranking(seed, group) for seed, group in sorted(by_seed.items()))
    return tuple(ranking for ranking in all_runs if ranking.known_count)


def precision_by_user(runs: Iterable[Ranking]) -> dict[tuple[int, str], float]:
    """Return the average precision of each known user of each run, by seed and name."""
    return {
        (run.seed, user): float(value)
        for run in runs
        for user, value in zip(
            run.true_users[: run.known_count], run.precision_matrix().diagonal(), strict=True
        )
    }


def _build_ranking(seed: int, findings: Sequence[Finding]) -> Ranking:
    true = [finding.true_user or "" for finding in findings]
    known = {
        user
        for user, finding in zip(true, findings, strict=True)
        if any(score.name == "top1" for score in finding.scores)
    }
    candidate_sets = {finding.claimed.candidates for finding in findings}
    named = [name for candidates in candidate_sets for name in candidates]
    users = tuple(sorted({*named, *known}))
    all_users = (*sorted(known), *sorted(set(true) - known))
    index = {user: place for place, user in enumerate(all_users)}
    unknown = [
        finding.claimed.none_of_them
        for finding in findings
        if finding.claimed.none_of_them is not None
    ]
    return Ranking(
        seed,
        users,
        all_users,
        np.array([users.index(user) for user in sorted(known)], dtype=np.int64),
        _score_matrix(findings, users),
        np.array([index[user] for user in true]),
        np.array(unknown) if len(unknown) == len(findings) else None,
    )


def _score_matrix(
    findings: Sequence[Finding], users: tuple[str, ...]
) -> Float[np.ndarray, "targets users"]:
    scores = np.full((len(findings), len(users)), -np.inf)
    column_of = {user: column for column, user in enumerate(users)}
    columns = {
        candidates: np.array([column_of[user] for user in candidates])
        for candidates in {finding.claimed.candidates for finding in findings}
    }
    for row, finding in enumerate(findings):
        scores[row, columns[finding.claimed.candidates]] = finding.claimed.numbers
    return scores


def build_matches(ranking: Ranking) -> ScoredPairs:
    """Return all pairs of a target and a user with a score, and all true pairs."""
    true_columns = np.full(len(ranking.true_users), -1)
    true_columns[: ranking.known_count] = ranking.known_columns
    is_true = true_columns[ranking.target_user][:, None] == np.arange(len(ranking.users))
    targets, users = np.nonzero(np.isfinite(ranking.scores) | is_true)
    user = ranking.target_user[targets]
    return ScoredPairs(
        ranking.scores[targets, users],
        true_columns[user] == users,
        user,
        ranking.known_count,
        len(ranking.true_users) - ranking.known_count,
    )
