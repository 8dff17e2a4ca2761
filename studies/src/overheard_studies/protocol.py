"""Another paper's protocol: scores of its attacks over all rounds and per round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.scorer import Better
from overheard.findings.audit import Audit
from overheard.plans.plan import UNDEFENDED, Plan
from overheard_studies.estimates import (
    FindingFilter,
    mean_guess_score,
    mean_score,
    reproduced_value,
)
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns
from overheard_studies.setting_description import describe_setting

UNIFORM_GUESS = "uniform"


@final
@dataclass(frozen=True, slots=True)
class ProtocolPanel:
    """One data set of the protocol.

    Args:
        name: name of the data set, as the paper writes it.
        full: plan; its threat runs every attack on all rounds together and on each round alone.
        reduced: plan of a quick run.
        published: published score of the paper's attack, which is the first of the threat; None
            if it is unknown.

    """

    name: str
    full: Plan
    reduced: Plan
    published: float | None = None

    @property
    def key(self) -> str:
        """Name in the keys of values and in folders."""
        return self.full.data.source.name


@final
@dataclass(frozen=True, slots=True)
class ProtocolExperiment(Experiment):
    """Attacks on the federation that a paper describes, compared with the uniform guess.

    Args:
        name: name of the experiment.
        title_text: title, in one line.
        differences_text: how the setting differs from the paper's, in a paragraph.
        panels: data sets.
        scores: names of the scores; the paper's main score comes first.
        better: whether higher or lower scores mean a better attack.

    """

    name: str
    title_text: str
    differences_text: str
    panels: tuple[ProtocolPanel, ...]
    scores: tuple[str, ...]
    better: Better

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return self.title_text

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return self.differences_text

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set."""
        return {one.key: one.reduced if quick else one.full for one in self.panels}

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return each score of each attack and of the guess, over all rounds and per round."""
        return tuple(
            value
            for panel in self.panels
            if panel.key in runs.audits
            for value in self._panel_values(
                panel, runs.audits[panel.key], runs.plans[panel.key]
            )
        )

    def _panel_values(
        self, panel: ProtocolPanel, audit: Audit, run: Plan
    ) -> list[ReproducedValue]:
        context, threat = describe_setting(panel.name, run, panel.full), run.threats[0]
        rounds = tuple(range(run.training.rounds))
        selections = {"all_rounds": rounds} | {f"round_{n + 1}": (n,) for n in rounds}
        values = []
        for number, attack in enumerate(threat.attacks):
            for when, selected in selections.items():
                finding_filter = FindingFilter(threat.attack_name(attack), selected, UNDEFENDED)
                values += [
                    reproduced_value(
                        f"{panel.key}_attack_{number + 1}_{attack.name}_{score}_{when}",
                        f"{context}; {attack!r}, {when.replace('_', ' ')}",
                        mean_score(audit, finding_filter, score),
                        panel.published
                        if (number, when, score) == (0, "all_rounds", self.scores[0])
                        else None,
                        self.better,
                    )
                    for score in self.scores
                ]
        first = FindingFilter(threat.attack_name(threat.attacks[0]), rounds, UNDEFENDED)
        return values + [
            reproduced_value(
                f"{panel.key}_{UNIFORM_GUESS}_{score}",
                f"{context}; uninformed guess: uniform over classes",
                mean_guess_score(audit, first, score, UNIFORM_GUESS),
                None,
                self.better,
            )
            for score in self.scores
        ]
