"""Rows of results that rate the re-identification of all targets of a run together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import (
    ControlledFindings,
    control_mean,
    group_with_controls,
    pair_rows,
)
from overheard.findings.finding import Cell, Finding
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.questions.identity.statistics.open_set import (
    detection_identification_rate,
    estimate_identification_rate,
    split_known_and_unknown,
)
from overheard.questions.identity.statistics.ranking import (
    Ranking,
    build_matches,
    build_rankings,
    precision_by_user,
)
from overheard.statistics.estimate import (
    BOOTSTRAP_DRAWS,
    CONFIDENCE_LEVEL,
    Estimate,
    convert_estimate,
)
from overheard.statistics.permutation_test import number_values
from overheard.statistics.run_means import estimate_gain, estimate_mean

PUBLISHED_ATTACK = "reidentify_mlp"
"""The attack proposed by the paper: the baseline."""


def estimate_paired_gain(findings: Iterable[Finding], attack: str, base: str) -> Estimate:
    """Estimate the difference of two attacks' mean average precision, paired by user.

    Differences are taken for each known user of each run, so users who are hard for both
    attacks do not affect them.

    Args:
        findings: findings of both attacks in one arm, with the same observers and rounds.
        attack: the name of the attack in the plan.
        base: the name of the baseline.

    Raises:
        ValueError: if the two attacks do not cover the same users.

    """
    planned = [finding for finding in findings if not finding.cell.is_control]
    attack_precision, base_precision = (
        precision_by_user(
            build_rankings(finding for finding in planned if finding.cell.attack == name)
        )
        for name in (attack, base)
    )
    if not attack_precision or attack_precision.keys() != base_precision.keys():
        raise ValueError(
            f"{attack} covers {len(attack_precision)} users and {base} {len(base_precision)}: "
            "both must cover the same users in the same runs"
        )
    precisions = np.array(
        [(attack_precision[user], base_precision[user]) for user in attack_precision]
    )
    runs = np.array([run for run, _ in attack_precision])
    numbers = number_values(user for _, user in attack_precision)
    users = np.array([numbers[user] for _, user in attack_precision])
    return estimate_gain(precisions[:, 0], precisions[:, 1], runs, users)


def select_published(
    findings: Sequence[Finding], all_findings: Iterable[Sequence[Finding]]
) -> Sequence[Finding]:
    """Return the findings of the best version of the published attack on the same targets.

    Args:
        findings: the findings of one attack in one setting.
        all_findings: the findings of each attack and setting.

    """
    cell, targets = findings[0].cell, _targets(findings)
    if cell.part == PUBLISHED_ATTACK:
        return ()
    published = [
        group
        for group in all_findings
        if group[0].cell.part == PUBLISHED_ATTACK
        and _setting(group[0].cell) == _setting(cell)
        and _targets(group) == targets
    ]
    return max(published, key=mean_average_precision, default=())


def mean_average_precision(findings: Iterable[Finding]) -> float:
    """Return the mean over known users of all runs but controls; 0 without any."""
    planned = (finding for finding in findings if not finding.cell.is_control)
    precisions = precision_by_user(build_rankings(planned))
    return sum(precisions.values()) / max(len(precisions), 1)


def _setting(cell: Cell) -> tuple[object, ...]:
    return (cell.arm, cell.observers, cell.question, cell.rounds)


def _targets(findings: Iterable[Finding]) -> frozenset[tuple[int, str, bool]]:
    return frozenset(
        (finding.cell.seed, finding.target, finding.cell.is_control) for finding in findings
    )


FALSE_POSITIVE_PERCENT = 1
"""Percentage of unknown targets mistaken for a known user in `dir_at_1_percent`."""


def identity_rows(findings: Sequence[Finding], seed: Seed) -> tuple[ScoreRow, ...]:
    """Return rows for each arm, observers, attack and observed rounds, with the control.

    - `mean_average_precision`: for each known user, the average precision of all targets ranked
      by its score, ties broken at random; the mean over users who sent something. Uninformed
      guess: the expectation of a random ranking, which is above 1 / U; 1 / U is a reference.
    - `times_chance`: the same divided by the uninformed guess, as in papers. It grows with U.
    - `dir_at_1_percent`: the share of known targets whose true user ranks first with more
      evidence than all but 1 % of the unknown targets; only if there are unknown targets. The
      finest measurable rate is 1 / their number, so with fewer than 100 none may pass.
    - `control_excess`: the control's mean average precision, compared with random permutations
      of users among whole clients, since targets of a client are correlated. The uninformed
      guess is the mean of `BOOTSTRAP_DRAWS` permutations; the references are the ends of their
      95 % range. The interval of the gain is the control relative to that range: if it is all
      above 0, the control identifies users by something other than their examples.
    - `gain_over_published`: the gain in mean average precision over the best version of the
      published attack on the same targets (`estimate_paired_gain`).

    - `matching_auc`, `equal_error_rate`: see `findings.controlled_findings.pair_rows`.

    Precisions are means over the users of all runs, with the interval of `estimate_mean`; the
    others are means over runs with equal weight, with the interval of `bootstrap_mean`.
    """
    places = group_with_controls(findings)
    all_findings = [place.all_findings for place in places]
    return tuple(
        row
        for place in places
        for row in (
            *_rows_of_setting(place, place.interval_seed(seed)),
            *_gain_rows(place, select_published(place.all_findings, all_findings)),
        )
    )


def identity_references(
    score: str, planned: Sequence[Finding], control: Sequence[Finding]
) -> Mapping[str, float]:
    """Return the references of a mean score: the base rate and the control."""
    references = dict[str, float]()
    if score == "unseen":
        unknown = np.mean(
            [all(score.name != "top1" for score in finding.scores) for finding in planned]
        )
        references["the base rate"] = float(unknown * (1 - unknown))
    return {**references, **control_mean(score, control)}


def _rows_of_setting(place: ControlledFindings, seed: Seed) -> list[ScoreRow]:
    runs, control = build_rankings(place.planned), build_rankings(place.control)
    if not runs:
        return []
    precisions = precision_by_user(runs)
    value = _mean_over_users(precisions)
    chance = float(np.concatenate([run.random_precisions() for run in runs]).mean())
    references = {"1 / users": float(np.mean([1 / len(run.users) for run in runs]))}
    if control:
        references[CONTROL_NAME] = _mean(precision_by_user(control).values())
    random_order = {"a random order": chance}
    return [
        place.make_row("mean_average_precision", "higher", value, random_order, references),
        place.make_row(
            "times_chance",
            "higher",
            convert_estimate(value, 1 / chance, 0.0),
            {"a random order": 1.0},
        ),
        *pair_rows(
            place, tuple(map(build_matches, runs)), tuple(map(build_matches, control)), seed
        ),
        *_open_set_rows(place, runs, control, seed),
        *([_control_row(place, control, seed)] if control else []),
    ]


def _open_set_rows(
    place: ControlledFindings, runs: Sequence[Ranking], control: Sequence[Ranking], seed: Seed
) -> list[ScoreRow]:
    splits = [
        (run, split) for run in runs if (split := split_known_and_unknown(run)) is not None
    ]
    if not splits:
        return []
    controls = [split for run in control if (split := split_known_and_unknown(run)) is not None]
    references = {
        "unknown targets": float(sum(len(split.unknown_evidence) for _, split in splits))
    }
    if controls:
        references[CONTROL_NAME] = _mean(
            detection_identification_rate(split, float(FALSE_POSITIVE_PERCENT))
            for split in controls
        )
    uninformed = _mean(
        len(split.unknown_evidence)
        * FALSE_POSITIVE_PERCENT
        // 100
        / len(split.unknown_evidence)
        / len(run.users)
        for run, split in splits
    )
    value = estimate_identification_rate(
        [split for _, split in splits], float(FALSE_POSITIVE_PERCENT), seed.child("open")
    )
    guess = {"a random order, an alarm at random": uninformed}
    return [
        place.make_row(
            f"dir_at_{FALSE_POSITIVE_PERCENT}_percent", "higher", value, guess, references
        )
    ]


def _control_row(place: ControlledFindings, control: Sequence[Ranking], seed: Seed) -> ScoreRow:
    precisions = precision_by_user(control)
    value = _mean_over_users(precisions)
    null = permuted_precisions(control, seed.child("permutations"))
    low, high = map(
        float, np.quantile(null, [(1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2])
    )
    row = ControlledFindings(place.control, ()).make_row(
        "control_excess",
        "higher",
        value,
        {"identities swapped by chance": float(null.mean())},
        {"null 2.5 %": low, "null 97.5 %": high},
    )
    # The gain says whether the control is within the null; its own interval is not needed.
    # The mean of a skewed null may be outside of the range of most of it.
    mean = float(null.mean())
    low, high = min(low, mean), max(high, mean)
    excess = Estimate(value.mean - mean, value.mean - high, value.mean - low)
    return replace(row, gain=excess)


def _gain_rows(place: ControlledFindings, published: Sequence[Finding]) -> list[ScoreRow]:
    if not published or not build_rankings(place.planned):
        return []
    attack, base = place.planned[0].cell.attack, published[0].cell.attack
    value = estimate_paired_gain((*place.planned, *published), attack, base)
    references = {base: mean_average_precision(published)}
    return [place.make_row("gain_over_published", "higher", value, references=references)]


def _mean_over_users(precisions: Mapping[tuple[int, str], float]) -> Estimate:
    users = number_values(user for _, user in precisions)
    return estimate_mean(
        np.array(list(precisions.values())),
        np.array([number for number, _ in precisions]),
        np.array([users[user] for _, user in precisions]),
    )


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def permuted_precisions(runs: Sequence[Ranking], seed: Seed) -> Float[np.ndarray, " draws"]:
    """Return the mean average precision of all known users in `BOOTSTRAP_DRAWS` permutations.

    Each permutation swaps all users of a run, known and unknown, and keeps the targets of each
    user together. Updates of one device are correlated, so permuting single targets would
    underestimate the variance (permutation of exchangeable units: Good 2005, section 3).
    """
    total, users = np.zeros(BOOTSTRAP_DRAWS), 0
    for run in runs:
        matrix, generator = run.precision_matrix(), seed.child("run", run.seed).numpy()
        places = np.tile(np.arange(len(run.true_users)), (BOOTSTRAP_DRAWS, 1))
        permuted = generator.permuted(places, axis=1)[:, : run.known_count]  # (draws, known)
        total += matrix[permuted, np.arange(run.known_count)].sum(1)
        users += run.known_count
    return total / users
