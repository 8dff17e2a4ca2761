"""Figure 7: re-identification by the number of prior examples per user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.linkage.known_updates import UpdateSource
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

FIRST = "the text says for PIPA that one prior example gives 0.134, 7 times chance"


@final
@dataclass(frozen=True, slots=True)
class Counted:
    """A scenario and the numbers of prior records that are compared.

    Args:
        world: scenario with the users.
        counts: largest numbers of prior records per user; all records are used too.
        sources: sources of labelled updates.

    """

    world: IdentityScenario
    counts: tuple[int, ...]
    sources: tuple[UpdateSource, ...] = SOURCES


@final
@dataclass(frozen=True, slots=True)
class PriorExamplesExperiment(Experiment, Drawn):
    """Every attack with a limited number of prior records per user.

    Args:
        panels: scenarios and numbers of records.
        reduced: the same for a quick run.
        name: name of the figure.

    """

    panels: tuple[Counted, ...] = (
        Counted(BLOGS, (1, 4, 16, 64), ("shadow",)),
        Counted(WISDM, (1, 2, 4, 8, 16, 32)),
    )
    reduced: tuple[Counted, ...] = (Counted(HURRIED, (1, 4, 16)),)
    name: str = "figure7"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Re-identification by the number of prior examples per user"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common(one.world for one in self.panels)} The figure's heights are lost; "
            f"{FIRST}. The prior is random and is half of each user's records, of which the "
            "server has at most the given number. A record of blogs is a post, which gives "
            "several windows of words; the paper counts sentences. If the server has fewer "
            "records, the user's shadow device holds fewer too, and the federation learns "
            "from these."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per number of records, and one with all records."""
        plans = {}
        for one in self.reduced if quick else self.panels:
            for count in (*one.counts, None):
                limited_people = replace(people("random"), records=count)
                attacks = tuple(
                    attack
                    for source in one.sources
                    for attack in identifiers(one.world, source)
                )
                plans[_key(one.world, count)] = plan(
                    one.world, limited_people, (every_update(attacks),)
                )
        return plans

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return the average precision and times chance of each attack by number of records."""
        full, values = self.plans(quick=False), list[Figure]()
        for panel in self.panels:
            for count in (*panel.counts, None):
                key = _key(panel.world, count)
                if key in runs.audits:
                    run = runs.plans[key]
                    context = setting(panel.world, run, full.get(key))
                    values += _read_threat(rows_of(runs.audits[key]), key, run, panel, context)
        return tuple(values)

    def drawing(self, runs: Runs, values: Sequence[Figure]) -> Drawing:
        """Draw the average precision by number of records, with a line for each attack."""
        by_name = {one.name: one for one in values}
        page_figures = []
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
                    [by_name[f"{_key(panel.world, n)}_{name}_{PRECISION}"] for n in counts],
                )
                for name in names
            ]
            title = f"Figure 7: {panel.world.name}"
            page_figures.append(series_plate(title, lines, "prior records per user", PRECISION))
        return Drawing(tuple(page_figures))


def _key(scenario: IdentityScenario, count: int | None) -> str:
    return f"{scenario.key}_records_{count or 'all'}"


def _read_threat(rows: Rows, key: str, run: Plan, panel: Counted, context: str) -> list[Figure]:
    (threat,), values = run.threats, list[Figure]()
    sources = [source for source in panel.sources for _ in identifiers(panel.world, source)]
    assert run.data.people is not None
    is_one_record = run.data.people.records == 1
    for attack, source in zip(threat.attacks, sources, strict=True):
        for score in (PRECISION, "times_chance"):
            as_published = (is_one_record, source, attack.name, score) == (
                True, "shadow", "reidentify_mlp", PRECISION,
            )  # fmt: skip
            values.append(
                rows.figure(
                    f"{key}_{source}_{attack.name}_{score}",
                    f"{context}; {attack.name}, {source} updates: {score.replace('_', ' ')}"
                    + (" (published: PIPA)" if as_published else ""),
                    (threat.attack_name(attack), score),
                    said("one_example_precision") if as_published else None,
                )
            )
        values += rows.beside(
            f"{key}_{source}_{attack.name}",
            f"{context}; {attack.name}",
            threat.attack_name(attack),
        )
    return values
