"""The IID control of section 6.1.1: users' examples are redistributed at random."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.findings.score_row import CONTROL_NAME
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
    """The published attack on the IID control of each data set.

    Args:
        worlds: data sets with their federations.
        reduced: the same for a quick run.
        name: name of the experiment.

    """

    worlds: tuple[IdentityScenario, ...] = (BLOGS, WISDM)
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    name: str = "iid"

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return "Re-identification when examples are redistributed at random among all users"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common(self.worlds)} The paper gives one value, 1.5 times chance on PIPA, with "
            "chance 1 / users. Here the control is compared with a random order and with a "
            "permutation control that permutes identities, whole devices at a time. The prior "
            "is random and unchanged: only private examples are redistributed."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set; each of its runs has a control run."""
        return {
            scenario.key: plan(
                scenario,
                people("random"),
                (every_update(tuple(published(scenario, source) for source in SOURCES)),),
            )
            for scenario in (self.reduced if quick else self.worlds)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return the control's precision, its times chance and the permutation interval."""
        full, values = self.plans(quick=False), list[Figure]()
        for scenario in self.worlds:
            if (key := scenario.key) not in runs.audits:
                continue
            rows, run = rows_of(runs.audits[key]), runs.plans[key]
            context = setting(scenario, run, full.get(key))
            (threat,) = run.threats
            for attack, source in zip(threat.attacks, SOURCES, strict=True):
                name, description = f"{key}_{source}", f"{context}; {source} updates"
                attack_name = threat.attack_name(attack)
                values.append(
                    rows.figure(
                        f"{name}_control",
                        f"{description}: average precision of the IID control",
                        (attack_name, "control_excess"),
                    )
                )
                excess, row = (
                    rows.of(attack_name, "control_excess"),
                    rows.of(attack_name, PRECISION),
                )
                if excess is None or row is None or not row.blind:
                    continue
                values += [
                    Figure(
                        f"{name}_times_chance",
                        f"{description}: IID control divided by a random order (published: "
                        "PIPA)",
                        row.references[CONTROL_NAME] / row.blind,
                        None,
                        None,
                        said("iid_times_chance") if source == "shadow" else None,
                        "higher",
                    ),
                    *(
                        plain(
                            f"{name}_{end.split()[0]}_{side}",
                            f"{description}: {side} end of the 95 % permutation interval",
                            excess.references[end],
                        )
                        for end, side in zip(ENDS, ("low", "high"), strict=True)
                    ),
                    rows.figure(
                        f"{name}_as_they_are",
                        f"{description}: average precision of the original users",
                        (attack_name, PRECISION),
                    ),
                ]
        return tuple(values)
