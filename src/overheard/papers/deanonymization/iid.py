"""The control of section 6.1.1: users' examples dealt anew among all, and nobody is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.findings.row import CONTROL
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.identifiers import SOURCES, published
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import said
from overheard.papers.deanonymization.rows import PRECISION, plain, rows_of
from overheard.papers.deanonymization.world import BLOGS, HURRIED, WISDM, IdentityScenario
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan

ENDS = ("null 2.5 %", "null 97.5 %")


@final
@dataclass(frozen=True, slots=True)
class IidExperiment(Experiment):
    """The published attack on the control of each data set.

    Args:
        worlds: the data sets.
        reduced: those of a run in a hurry.
        name: of the experiment.

    """

    worlds: tuple[IdentityScenario, ...] = (BLOGS, WISDM)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    name: str = "iid"

    @property
    def title(self) -> str:
        """What it shows."""
        return "Who sent an update, where examples are dealt anew among all users"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(self.worlds)} The paper gives one number, 1.5 times chance on PIPA, by "
            "1 / users; ours is held against a random order, and against what identities "
            "swapped by chance, whole devices at a time, come to. The prior is random, and "
            "stays as it is: only private examples are dealt anew."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set; the control runs beside each run of it."""
        return {
            world.key: plan(
                world,
                people("random"),
                (every_update(tuple(published(world, source) for source in SOURCES)),),
            )
            for world in (self.reduced if quick else self.worlds)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """The control's precision, times chance, and the ends of what chance gives."""
        full, figures = self.plans(quick=False), list[Figure]()
        for world in self.worlds:
            if (key := world.key) not in runs.audits:
                continue
            rows, run = rows_of(runs.audits[key]), runs.plans[key]
            where = setting(world, run, full.get(key))
            (threat,) = run.threats
            for attack, source in zip(threat.attacks, SOURCES, strict=True):
                name, told = f"{key}_{source}", f"{where}; {source} updates"
                place = threat.named(attack)
                figures.append(
                    rows.figure(
                        f"{name}_control",
                        f"{told}: the control's average precision",
                        (place, "control_excess"),
                    )
                )
                excess, row = rows.of(place, "control_excess"), rows.of(place, PRECISION)
                if excess is None or row is None or not row.blind:
                    continue
                figures += [
                    Figure(
                        f"{name}_times_chance",
                        f"{told}: the control over a random order (published: of PIPA)",
                        row.references[CONTROL] / row.blind,
                        None,
                        None,
                        said("iid_times_chance") if source == "shadow" else None,
                        "higher",
                    ),
                    *(
                        plain(
                            f"{name}_{end.split()[0]}_{side}",
                            f"{told}: 95 % of permutations of devices end here",
                            excess.references[end],
                        )
                        for end, side in zip(ENDS, ("low", "high"), strict=True)
                    ),
                    rows.figure(
                        f"{name}_as_they_are",
                        f"{told}: average precision of users as they are",
                        (place, PRECISION),
                    ),
                ]
        return tuple(figures)
