"""Figure 7: how many prior examples of a user the attacker needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.linkage.prior_updates import Source
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.drawings import Series, series_plate
from overheard.papers.deanonymization.identifiers import SOURCES, identifiers
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import said
from overheard.papers.deanonymization.rows import PRECISION, Rows, rows_of
from overheard.papers.deanonymization.world import BLOGS, HURRIED, WISDM, IdentityScenario
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan

FIRST = "the text says of PIPA that one prior example gives 0.134, 7 times chance"


@final
@dataclass(frozen=True, slots=True)
class Counted:
    """A data set, and the numbers of prior records that are tried.

    Args:
        world: whose users.
        counts: of prior records a user at most; all are tried besides.
        sources: of labelled updates.

    """

    world: IdentityScenario
    counts: tuple[int, ...]
    sources: tuple[Source, ...] = SOURCES


@final
@dataclass(frozen=True, slots=True)
class PriorExamplesExperiment(Experiment, Drawn):
    """Every attack, given some prior records of each user.

    Args:
        panels: data sets and numbers.
        reduced: those of a run in a hurry.
        name: of the figure.

    """

    panels: tuple[Counted, ...] = (
        Counted(BLOGS, (1, 4, 16, 64), ("shadow",)),
        Counted(WISDM, (1, 2, 4, 8, 16, 32)),
    )
    reduced: tuple[Counted, ...] = (Counted(HURRIED, (1, 4, 16)),)
    name: str = "figure7"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "Who sent an update, by the number of prior examples a user"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(one.world for one in self.panels)} The figure's heights are lost; "
            f"{FIRST}. The prior is random, and half of each user's records, of which the "
            "server has at most so many; a record of blogs is a post, of which several windows "
            "of words are cut, where the paper counts sentences. Where it has fewer, the "
            "shadow device of the user holds fewer, and the federation learns from these."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a number, and one with all."""
        plans = {}
        for one in self.reduced if quick else self.panels:
            for count in (*one.counts, None):
                who = replace(people("random"), records=count)
                attacks = tuple(
                    attack
                    for source in one.sources
                    for attack in identifiers(one.world, source)
                )
                plans[_key(one.world, count)] = plan(one.world, who, (every_update(attacks),))
        return plans

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Average precision and times chance of each attack by number."""
        full, figures = self.plans(quick=False), list[Figure]()
        for panel in self.panels:
            for count in (*panel.counts, None):
                key = _key(panel.world, count)
                if key in runs.audits:
                    run = runs.plans[key]
                    where = setting(panel.world, run, full.get(key))
                    figures += _read(rows_of(runs.audits[key]), key, run, panel, where)
        return tuple(figures)

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """Average precision by number, a line an attack."""
        told = {one.name: one for one in figures}
        plates = []
        for panel in self.panels:
            counts = [n for n in panel.counts if _key(panel.world, n) in runs.audits]
            if not counts:
                continue
            names = [
                f"{source}_{attack.name}"
                for source in panel.sources
                for attack in identifiers(panel.world, source)
            ]
            lines = [
                Series(
                    name.replace("_", " "),
                    counts,
                    [told[f"{_key(panel.world, n)}_{name}_{PRECISION}"] for n in counts],
                )
                for name in names
            ]
            title = f"Figure 7: {panel.world.name}"
            plates.append(series_plate(title, lines, "prior records a user", PRECISION))
        return Drawing(tuple(plates))


def _key(world: IdentityScenario, count: int | None) -> str:
    return f"{world.key}_records_{count or 'all'}"


def _read(rows: Rows, key: str, run: Plan, panel: Counted, where: str) -> list[Figure]:
    (threat,), figures = run.threats, list[Figure]()
    places = [source for source in panel.sources for _ in identifiers(panel.world, source)]
    assert run.data.people is not None
    one_alone = run.data.people.records == 1
    for attack, source in zip(threat.attacks, places, strict=True):
        for score in (PRECISION, "times_chance"):
            as_published = (one_alone, source, attack.name, score) == (
                True, "shadow", "reidentify_mlp", PRECISION,
            )  # fmt: skip
            figures.append(
                rows.figure(
                    f"{key}_{source}_{attack.name}_{score}",
                    f"{where}; {attack.name}, {source} updates: {score.replace('_', ' ')}"
                    + (" (published: of PIPA)" if as_published else ""),
                    (threat.named(attack), score),
                    said("one_example_precision") if as_published else None,
                )
            )
        figures += rows.beside(
            f"{key}_{source}_{attack.name}", f"{where}; {attack.name}", threat.named(attack)
        )
    return figures
