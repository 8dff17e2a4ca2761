"""Figures 3 to 6: what every method claims of one client, label by label."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.core.parties import client
from overheard.findings.finding import Audit
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import figure, found, mean
from overheard.papers.runs import Runs
from overheard.papers.setting import setting
from overheard.papers.whispers.differences import common
from overheard.papers.whispers.local_noise import MECHANISM, arm
from overheard.papers.whispers.methods import METHODS, Method
from overheard.papers.whispers.plans import place_of, plan
from overheard.papers.whispers.scenario import Scenario
from overheard.plans.plan import UNDEFENDED, Plan

FOLLOWED = client(0)
"""The client whose shares are told; those of all stand as charts in each audit's report."""


@final
@dataclass(frozen=True, slots=True)
class LinesExperiment(Experiment):
    """The lines of a chart: true and claimed shares of one client, and the mean error of all.

    Args:
        name: of the figure.
        shows: what sets it apart, in words.
        scenarios: its panels.
        epsilon: of the noise that clients add, as the paper has it; None = no noise.
        methods: its lines.

    """

    name: str
    shows: str
    scenarios: tuple[Scenario, ...]
    epsilon: float | None = None
    methods: tuple[Method, ...] = METHODS

    @property
    def title(self) -> str:
        """What the figure shows."""
        return f"Claimed and true shares label by label, {self.shows}"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        noise = "" if self.epsilon is None else f"{MECHANISM} "
        return (
            f"{common(one.benchmark for one in self.scenarios)} {noise}The numbers of this "
            "figure are lost, and so is whose shares it shows: ours are the first client's "
            "under the first seed, with mean L1 over all clients; the charts of the others "
            "stand in the audits' reports."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a panel."""
        arms = () if self.epsilon is None else (arm(self.epsilon),)
        return {
            one.key: plan(
                one,
                one.benchmark.reduced if quick else one.benchmark.full,
                quick=quick,
                methods=self.methods,
                arms=arms,
            )
            for one in self.scenarios
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Shares of the followed client and mean L1 of each method, panel by panel."""
        full = self.plans(quick=False)
        figures = []
        for one in self.scenarios:
            if one.key in runs.audits:
                run = runs.plans[one.key]
                where = setting(one.name, run, full[one.key])
                figures += self._panel(one.key, where, runs.audits[one.key], run)
        return tuple(figures)

    def _panel(self, key: str, where: str, audit: Audit, run: Plan) -> list[Figure]:
        arm_name = UNDEFENDED if self.epsilon is None else arm(self.epsilon).name
        seed = run.seeds[0]
        figures, true = [], tuple[float, ...]()
        for number, method in enumerate(self.methods):
            place = place_of(run, number, arm_name)
            (one,) = [
                finding
                for finding in found(audit, replace(place, target=FOLLOWED))
                if finding.cell.seed == seed
            ]
            true = one.true
            told = f"{where}; {method.key} ({method.told})"
            figures.append(
                figure(f"{key}_{method.key}_l1", told, mean(audit, place, "l1"), None, "lower")
            )
            figures += _shares(
                f"{key}_{method.key}", f"{told} of client 1, seed {seed}", one.claimed
            )
        return [
            *_shares(f"{key}_true", f"{where}; the truth of client 1, seed {seed}", true),
            *figures,
        ]


def _shares(prefix: str, where: str, shares: tuple[float, ...]) -> list[Figure]:
    return [
        Figure(f"{prefix}_share_{label}", where, share, None, None, None, None)
        for label, share in enumerate(shares)
    ]
