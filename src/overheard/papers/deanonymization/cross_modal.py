"""Cross-modal matching: updates of one modality, and what is known of users in another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from sklearn.metrics import average_precision_score

from overheard.data.datasets.wisdm import Wisdm
from overheard.findings.finding import Audit
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import said
from overheard.papers.deanonymization.rows import rows_of
from overheard.papers.deanonymization.world import BLOGS, HURRIED, WISDM, IdentityScenario
from overheard.papers.deanonymization.worth import mean_of_seeds
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan
from overheard.questions.identity.attacks.match_cross_modal import MatchCrossModal
from overheard.questions.identity.statistics.ranking import matches, rankings
from overheard.statistics.estimate import Estimate
from overheard.statistics.matching import Matches

Learned = Literal["holdout", "everyone"]

LEARNED: tuple[Learned, ...] = ("everyone", "holdout")

HOLDOUT = 3
"""One in so many users takes no part."""


@final
@dataclass(frozen=True, slots=True)
class CrossModalExperiment(Experiment):
    """The published network, learned from the users themselves or from others.

    Args:
        worlds: data sets with embeddings.
        reduced: those of a run in a hurry.
        name: of the experiment.

    """

    worlds: tuple[IdentityScenario, ...] = (BLOGS, replace(WISDM, source=Wisdm(axes="x")))
    reduced: tuple[IdentityScenario, ...] = (replace(HURRIED, source=Wisdm(axes="x")),)
    name: str = "cross_modal"

    @property
    def title(self) -> str:
        """What it shows."""
        return "Which user sent an update, by what is known in another modality"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.worlds)} The paper's users have photos, and captions of the prior "
            "ones by a network stand for texts, embedded by InferSent. Ours: of blogs, how and "
            "on which day a prior post is written (no word is told), beside the words that the "
            "federation learns from; of WISDM, the Y and Z axes of prior windows beside the X "
            "axis. The paper does not say on whom it learns which update goes with which "
            "embedding: told are both the known users and the held out third. The average "
            "precision is over all pairs of an update and a user, those of two people weighing "
            "as much together as those of one, which is what balanced pairs are expected to "
            "give; blind 0.5. The prior is random."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set."""
        plans = {}
        for world in self.reduced if quick else self.worlds:
            holdout = world.clients // HOLDOUT
            plans[world.key] = plan(
                world,
                people("random", holdout=holdout),
                (every_update(tuple(_attack(world, learned) for learned in LEARNED)),),
                clients=world.clients - holdout,
            )
        return plans

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Average precision of balanced pairs and of users, and the control's."""
        full, figures = self.plans(quick=False), list[Figure]()
        for world in self.worlds:
            if (key := world.key) not in runs.audits:
                continue
            audit, run = runs.audits[key], runs.plans[key]
            rows, (threat,) = rows_of(audit), run.threats
            where = setting(world, run, full.get(key))
            for attack, learned in zip(threat.attacks, LEARNED, strict=True):
                name, place = f"{key}_{learned}", threat.named(attack)
                told = f"{where}; learned from {learned}"
                for is_control, words in ((False, ""), (True, "_iid_control")):
                    value = _balanced(audit, place, is_control)
                    if value is not None:
                        figures.append(
                            figure(
                                f"{name}_balanced{words}",
                                f"{told}: average precision of balanced pairs{words} "
                                "(published: of PIPA)".replace("_", " "),
                                value,
                                None if is_control else said("cross_modal_precision"),
                                None if is_control else "higher",
                            )
                        )
                figures += [
                    rows.figure(
                        f"{name}_{score}", f"{told}: {score.replace('_', ' ')}", (place, score)
                    )
                    for score in ("matching_auc", "mean_average_precision", "times_chance")
                ]
        return tuple(figures)


def balanced_precision(pairs: Matches) -> float:
    """Average precision where pairs of two people weigh together as those of one do."""
    true = pairs.same.sum()
    weights = np.where(pairs.same, 1.0, true / (~pairs.same).sum())
    return float(average_precision_score(pairs.same, pairs.scores, sample_weight=weights))


def _balanced(audit: Audit, attack: str, is_control: bool) -> Estimate | None:
    findings = [
        one
        for one in audit.findings
        if (one.cell.attack, one.cell.is_control) == (attack, is_control)
    ]
    values = [
        balanced_precision(pairs)
        for pairs in map(matches, rankings(findings))
        if pairs.has_both
    ]
    return mean_of_seeds(values) if values else None


def _attack(world: IdentityScenario, learned: Learned) -> MatchCrossModal:
    return MatchCrossModal(
        updates="shadow", layer=world.layer, learn_from=learned, most_rounds=world.most_rounds
    )
