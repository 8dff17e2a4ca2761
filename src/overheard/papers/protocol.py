"""A rival's own protocol: scores of some attacks, over all rounds and round by round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.scorer import Better
from overheard.findings.finding import Audit
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import ReadingPlace, figure, mean, mean_guess
from overheard.papers.runs import Runs
from overheard.papers.setting import setting
from overheard.plans.plan import UNDEFENDED, Plan

UNIFORM = "uniform"


@final
@dataclass(frozen=True, slots=True)
class ProtocolPanel:
    """One data set on which the protocol is carried out.

    Args:
        name: of the data set, as the paper writes it.
        full: the audit; its threat tries every attack on all rounds, and on each alone.
        reduced: the audit for those in a hurry.
        published: what the paper says of its attack, the first of the threat's; None where its
            numbers are not known to us.

    """

    name: str
    full: Plan
    reduced: Plan
    published: float | None = None

    @property
    def key(self) -> str:
        """Its name in figures and folders."""
        return self.full.data.source.name


@final
@dataclass(frozen=True, slots=True)
class ProtocolExperiment(Experiment):
    """Attacks on the federation that a paper describes, beside the uniform guess.

    Args:
        name: of the experiment.
        shows: what it is about, in a line.
        departs: how our setting departs from the paper's, in a paragraph.
        panels: its data sets.
        scores: by which attacks are told; the first is the paper's headline.
        better: the direction of these.

    """

    name: str
    shows: str
    departs: str
    panels: tuple[ProtocolPanel, ...]
    scores: tuple[str, ...]
    better: Better

    @property
    def title(self) -> str:
        """What it shows."""
        return self.shows

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return self.departs

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set."""
        return {one.key: one.reduced if quick else one.full for one in self.panels}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Each score of each attack and of the guess, over all rounds and round by round."""
        return tuple(
            told
            for panel in self.panels
            if panel.key in runs.audits
            for told in self._of(panel, runs.audits[panel.key], runs.plans[panel.key])
        )

    def _of(self, panel: ProtocolPanel, audit: Audit, run: Plan) -> list[Figure]:
        where, threat = setting(panel.name, run, panel.full), run.threats[0]
        rounds = tuple(range(run.training.rounds))
        heard = {"all_rounds": rounds} | {f"round_{n + 1}": (n,) for n in rounds}
        figures = []
        for number, attack in enumerate(threat.attacks):
            for when, some in heard.items():
                place = ReadingPlace(threat.named(attack), some, UNDEFENDED)
                figures += [
                    figure(
                        f"{panel.key}_attack_{number + 1}_{attack.name}_{score}_{when}",
                        f"{where}; {attack!r}, {when.replace('_', ' ')}",
                        mean(audit, place, score),
                        panel.published
                        if (number, when, score) == (0, "all_rounds", self.scores[0])
                        else None,
                        self.better,
                    )
                    for score in self.scores
                ]
        first = ReadingPlace(threat.named(threat.attacks[0]), rounds, UNDEFENDED)
        return figures + [
            figure(
                f"{panel.key}_{UNIFORM}_{score}",
                f"{where}; all classes alike, a guess that heard nothing",
                mean_guess(audit, first, score, UNIFORM),
                None,
                self.better,
            )
            for score in self.scores
        ]
