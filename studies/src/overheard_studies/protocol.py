"""Protocols of other papers: scores of attacks over all rounds and per round."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from overheard.core.scorer import Better
from overheard.statistics.estimate import Estimate, convert_estimate
from overheard.statistics.run_means import estimate_gain
from overheard_studies.estimates import (
    FindingFilter,
    mean_guess_score,
    mean_score,
    select_findings,
)
from overheard_studies.plan_files import read_panels
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Conclusion, PanelRun, Paper, Study, Values
from overheard_studies.values import Published, ReproducedValue

PUBLISHED = Published("protocols")

UNIFORM_GUESS = "uniform"


def protocol(
    paper: str, name: str, title: str, scores: tuple[str, ...], better: Better
) -> Study:
    """Return attacks on the federation that a paper describes, beside the uniform guess.

    Args:
        paper: name of the paper, and of the files of its published values and of its plans. A
            threat runs every attack on all rounds together and on each alone; the paper's
            attack is the first.
        name: name of the experiment.
        title: title, in one line.
        scores: names of the scores; the paper's main score comes first.
        better: whether higher or lower scores mean a better attack.

    """
    panels = read_panels(paper, partial(_read, paper, scores, better))
    keys = tuple(one.key for one in panels)
    return Study(
        name,
        title,
        PUBLISHED.differences(paper),
        panels,
        conclusions=tuple(_conclusions(paper, scores[-1], better, keys)),
    )


MARGIN = 0.05
"""Largest distance below a published share that counts as reaching it."""


def _conclusions(
    paper: str, score: str, better: Better, keys: tuple[str, ...]
) -> Iterator[Conclusion]:
    """Yield that the paper's attack beats the guess, and reaches what the paper publishes."""

    def gains(runs: StudyRuns, values: Values) -> dict[str, Estimate]:
        sign = 1 if better == "higher" else -1
        return {key: _gain(runs, key, score, sign) for key in runs.audits}

    def distances(runs: StudyRuns, values: Values) -> dict[str, Estimate]:
        return {
            key: convert_estimate(
                mean_score(runs.audits[key], _first_attack(runs, key), score),
                1.0,
                -float(published),
            )
            for key in runs.audits
            if (published := PUBLISHED.number(paper, key)) is not None
        }

    yield Conclusion(
        "beats_guess",
        f"The paper's attack is better than the uniform guess, by {score}.",
        gains,
        words="gain over the guess",
    )
    if any(PUBLISHED.number(paper, key) is not None for key in keys):
        yield Conclusion(
            "as_published",
            f"The paper's attack reaches the published {score}, within {MARGIN:g}.",
            distances,
            margin=-MARGIN,
            words="less the published",
        )


def _first_attack(runs: StudyRuns, key: str) -> FindingFilter:
    """Select the findings of the paper's attack, on all rounds together."""
    plan = runs.plans[key]
    threat = plan.threats[0]
    rounds = tuple(range(plan.training.rounds))
    return FindingFilter(threat.attack_name(threat.attacks[0]), rounds)


def _gain(runs: StudyRuns, key: str, name: str, sign: int) -> Estimate:
    """Return the paper's attack's gain over the uniform guess."""
    findings = select_findings(runs.audits[key], _first_attack(runs, key))
    scores = [next(one for one in each.scores if one.name == name) for each in findings]
    return estimate_gain(
        np.array([one.value for one in scores]),
        np.array([one.uninformed[UNIFORM_GUESS] for one in scores]),
        np.array([each.cell.seed for each in findings]),
        sign=sign,
    )


def _read(
    paper: str, scores: tuple[str, ...], better: Better, one: PanelRun
) -> Iterator[ReproducedValue]:
    """Read each score of each attack and of the guess, over all rounds and per round."""
    threat, rounds = one.plan.threats[0], tuple(range(one.plan.training.rounds))
    selections = {"all_rounds": rounds} | {f"round_{n + 1}": (n,) for n in rounds}
    for number, attack in enumerate(threat.attacks):
        for when, selected in selections.items():
            for score in scores:
                is_main = (number, when, score) == (0, "all_rounds", scores[0])
                found = FindingFilter(threat.attack_name(attack), selected)
                yield one.value(
                    f"{one.key}_attack_{number + 1}_{attack.name}_{score}_{when}",
                    f"{attack!r}, {when.replace('_', ' ')}",
                    mean_score(one.audit, found, score),
                    PUBLISHED.number(paper, one.key) if is_main else None,
                    better,
                )
    first = FindingFilter(threat.attack_name(threat.attacks[0]), rounds)
    for score in scores:
        measured = mean_guess_score(one.audit, first, score, UNIFORM_GUESS)
        words = "uninformed guess: uniform over classes"
        yield one.value(f"{one.key}_{UNIFORM_GUESS}_{score}", words, measured, None, better)


PAPERS = (
    Paper(
        "ldia",
        "LDIA: Label Distribution Inference Attack Against Federated Learning in Edge "
        "Computing",
        "Gu and Bai 2023 (JISA 74)",
        lambda: (
            protocol(
                "ldia",
                "mnist",
                "Error of the network that reads the last layer's changes",
                ("kl", "linf", "l1"),
                "lower",
            ),
        ),
    ),
    Paper(
        "ppa",
        "PPA: Preference Profiling Attack Against Federated Learning",
        "Zhou et al. 2023 (NDSS; arXiv 2202.04856)",
        lambda: (
            protocol(
                "ppa",
                "top1",
                "How often the attack names the majority class of a client",
                ("top1",),
                "higher",
            ),
        ),
    ),
    Paper(
        "ramakrishna",
        "Inferring Class-Label Distribution in Federated Learning",
        "Ramakrishna and Dan 2022 (AISec)",
        lambda: (
            protocol(
                "ramakrishna",
                "forms",
                "Error of four estimators from the last layer, by round",
                ("kl", "l2", "l1"),
                "lower",
            ),
        ),
    ),
)
