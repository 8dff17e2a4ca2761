"""Figure 6: who sent an update where some senders are strangers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.linkage.prior_updates import Source
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.drawings import Series, series_plate
from overheard.papers.deanonymization.identifiers import identifiers
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.rows import PRECISION, Rows, rows_of
from overheard.papers.deanonymization.world import BLOGS, HURRIED, WISDM, IdentityScenario
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.identity.attacks.match_siamese import MatchSiamese
from overheard.questions.same_sender.attacks.link_siamese import LinkSiamese

HOLDOUT = 3
"""One in so many users takes no part, as published."""

OF_IDENTITY = (PRECISION, "times_chance", "top1", "dir_at_1_percent", "matching_auc")

OF_SENDER = ("matching_auc", "equal_error_rate")


@final
@dataclass(frozen=True, slots=True)
class OpenWorldExperiment(Experiment, Drawn):
    """Re-identification with a class of the unseen, and Siamese matching, by seen users.

    Args:
        worlds: the data sets.
        reduced: those of a run in a hurry.
        shares: of the senders who are seen, in percent.
        source: of labelled updates.
        pairs: that the matching network learns from.
        name: of the figure.

    """

    worlds: tuple[IdentityScenario, ...] = (BLOGS, WISDM)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    shares: tuple[int, ...] = (25, 50, 75, 100)
    source: Source = "shadow"
    pairs: int = 32_000
    name: str = "figure6"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "Who sent an update, by the share of senders whom the server knows"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.worlds)} The figure's heights are lost; its text says of PIPA that "
            "the average precision of re-identification falls from 0.67 to 0.43 and times "
            "chance rise from 3 to 14 as more users are seen, and that matching has 1.5 times "
            "chance with none seen. Chronological prior, a third of the users held out. Our "
            "average precision is over seen users; the paper's may count the class of the "
            "unseen too. Matching is told as the area under the curve over pairs of an update "
            "and a user (match_siamese) and of two updates (link_siamese), whose blind figure "
            f"is 0.5. Labelled updates are {self.source} ones."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set and share."""
        plans = {}
        for world in self.reduced if quick else self.worlds:
            holdout = world.clients // HOLDOUT
            senders = world.clients - holdout
            for share in self.shares:
                unseen = senders - senders * share // 100
                plans[_key(world, share)] = plan(
                    world,
                    people(world.in_time, unseen=unseen, holdout=holdout),
                    (self._threat(world),),
                    clients=senders,
                )
        return plans

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Scores of each attack by share, beside chance and the control."""
        full = self.plans(quick=False)
        return tuple(
            figure
            for world in self.worlds
            for share in self.shares
            if (key := _key(world, share)) in runs.audits
            for figure in _read(
                rows_of(runs.audits[key]),
                key,
                runs.plans[key],
                setting(world, runs.plans[key], full.get(key)),
            )
        )

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """Average precision and matching by share."""
        told = {one.name: one for one in figures}
        plates = []
        for world in self.worlds:
            if _key(world, self.shares[0]) not in runs.audits:
                continue
            names = [attack.name for attack in identifiers(world, self.source)]
            for score, attacks in (
                (PRECISION, [*names, "match_siamese"]),
                ("matching_auc", ["match_siamese", "link_siamese"]),
            ):
                lines = [
                    Series(
                        name,
                        self.shares,
                        [told[f"{_key(world, n)}_{name}_{score}"] for n in self.shares],
                    )
                    for name in attacks
                ]
                title = f"Figure 6: {world.name}, {score.replace('_', ' ')}"
                plates.append(series_plate(title, lines, "seen users, per cent", score))
        return Drawing(tuple(plates))

    def _threat(self, world: IdentityScenario) -> ThreatPlan:
        return every_update(
            (
                *identifiers(world, self.source),
                MatchSiamese(
                    updates=self.source,
                    layer=world.layer,
                    pairs=self.pairs,
                    most_rounds=world.most_rounds,
                ),
                LinkSiamese(
                    updates=self.source,
                    layer=world.layer,
                    pairs=self.pairs,
                    most_rounds=world.most_rounds,
                ),
            )
        )


def _key(world: IdentityScenario, share: int) -> str:
    return f"{world.key}_seen_{share}"


def _read(rows: Rows, key: str, run: Plan, where: str) -> list[Figure]:
    threat, figures = run.threats[0], list[Figure]()
    assert run.data.people is not None
    for attack in threat.attacks:
        scores = OF_SENDER if isinstance(attack, LinkSiamese) else OF_IDENTITY
        figures += [
            rows.figure(
                f"{key}_{attack.name}_{score}",
                f"{where}; {attack.name}: {score.replace('_', ' ')}",
                (threat.named(attack), score),
            )
            for score in scores
            # Without strangers there is no false alarm to raise.
            if score != "dir_at_1_percent" or run.data.people.unseen
        ]
        figures += rows.beside(
            f"{key}_{attack.name}", f"{where}; {attack.name}", threat.named(attack)
        )
    return figures
