"""Figures 3 to 6: every method's claim about one client, by label."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.core.parties import client
from overheard.findings.audit import Audit
from overheard.plans.plan import UNDEFENDED, Plan
from overheard_studies.estimates import mean_score, reproduced_value, select_findings
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting
from overheard_studies.whispers.differences import common_differences
from overheard_studies.whispers.local_noise import MECHANISM, build_noise_arm
from overheard_studies.whispers.methods import METHODS, Method
from overheard_studies.whispers.plans import build_finding_filter, build_plan
from overheard_studies.whispers.scenario import WhispersScenario

FOLLOWED_CLIENT = client(0)
"""The client whose shares are reported; each audit's report has charts of all clients."""


@final
@dataclass(frozen=True, slots=True)
class LinesExperiment(Experiment):
    """The true and claimed shares of one client, and the mean error over all clients.

    Args:
        name: name of the figure.
        topic: topic, in words.
        scenarios: scenarios, one per panel.
        epsilon: epsilon of the clients' noise, as in the paper; None = no noise.
        methods: methods, one per line.

    """

    name: str
    topic: str
    scenarios: tuple[WhispersScenario, ...]
    epsilon: float | None = None
    methods: tuple[Method, ...] = METHODS

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Claimed and true shares by label, {self.topic}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        noise = "" if self.epsilon is None else f"{MECHANISM} "
        return (
            f"{common_differences(one.benchmark for one in self.scenarios)} {noise}The values "
            "of this "
            "figure are lost, and so is the client that it shows. Here it is the first client "
            "with the first seed, with the mean L1 over all clients. The audits' reports have "
            "charts of the others."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per panel."""
        arms = () if self.epsilon is None else (build_noise_arm(self.epsilon),)
        return {
            one.key: build_plan(
                one,
                one.benchmark.reduced if quick else one.benchmark.full,
                quick=quick,
                methods=self.methods,
                arms=arms,
            )
            for one in self.scenarios
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the client's shares and the mean L1 of each method, by panel."""
        full = self.plans(quick=False)
        values = []
        for one in self.scenarios:
            if one.key in runs.audits:
                run = runs.plans[one.key]
                context = describe_setting(one.name, run, full[one.key])
                values += self._panel(one.key, context, runs.audits[one.key], run)
        return tuple(values)

    def _panel(self, key: str, context: str, audit: Audit, run: Plan) -> list[ReproducedValue]:
        arm_name = UNDEFENDED if self.epsilon is None else build_noise_arm(self.epsilon).name
        seed = run.seeds[0]
        values, true_shares = [], tuple[float, ...]()
        for number, method in enumerate(self.methods):
            finding_filter = build_finding_filter(run, number, arm_name)
            (one,) = [
                finding
                for finding in select_findings(
                    audit, replace(finding_filter, target=FOLLOWED_CLIENT)
                )
                if finding.cell.seed == seed
            ]
            true_shares = one.true
            description = f"{context}; {method.key} ({method.published_name})"
            values.append(
                reproduced_value(
                    f"{key}_{method.key}_l1",
                    description,
                    mean_score(audit, finding_filter, "l1"),
                    None,
                    "lower",
                )
            )
            values += _shares(
                f"{key}_{method.key}", f"{description} of client 1, seed {seed}", one.claimed
            )
        return [
            *_shares(
                f"{key}_true", f"{context}; true shares of client 1, seed {seed}", true_shares
            ),
            *values,
        ]


def _shares(prefix: str, context: str, shares: tuple[float, ...]) -> list[ReproducedValue]:
    return [
        ReproducedValue(f"{prefix}_share_{label}", context, share, None, None, None, None)
        for label, share in enumerate(shares)
    ]
