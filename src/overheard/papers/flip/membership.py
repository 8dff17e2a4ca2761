"""Section VI-D2: which records were trained on, under FedAvg and under FLiP."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from overheard.attacks.lira import Lira
from overheard.attacks.loss_membership import LossMembership
from overheard.attacks.shadow_membership import ShadowMembership
from overheard.audit.plan import Plan, ThreatPlan
from overheard.core.attack import Attack
from overheard.data.candidates import Candidates
from overheard.data.datasets.mnist import Mnist
from overheard.learning.models.alexnet import AlexNet
from overheard.learning.models.mlp import Mlp
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.flip.accuracy import COMMON
from overheard.papers.flip.printed import membership
from overheard.papers.flip.world import CIFAR10, SMALL, World
from overheard.papers.reading import Place, figure, mean
from overheard.papers.runs import Runs
from overheard.papers.setting import setting
from overheard.scoring.membership import FALSE_POSITIVES

# Any: an attack answers a question of its own.
ATTACKS: Mapping[str, Attack[Any]] = {
    "shadow": ShadowMembership(),
    "lira": Lira(),
    "lira_offline": Lira(online=False),
    "loss": LossMembership(),
}

CANDIDATES = Candidates(members=200, outsiders=1000)

FULL = replace(
    CIFAR10,
    model=AlexNet(),
    examples=1_200,
    samples=(20,),
    rounds=20,
    flip_rounds=100,
    epochs=5,
)

REDUCED = replace(
    SMALL,
    source=Mnist(shrink=2),
    model=Mlp(hidden=(64,)),
    examples=600,
    rounds=20,
    flip_rounds=60,
    samples=(20,),
    epochs=5,
)


@final
@dataclass(frozen=True, slots=True)
class MembershipExperiment(Experiment):
    """The paper's attack and stronger ones, on clients under FedAvg and under FLiP.

    Args:
        full: what is run.
        reduced: what is run in a hurry.
        candidates: records in question.
        auxiliary: examples that shadow models learn from besides.
        name: of the experiment.

    """

    full: World = FULL
    reduced: World = REDUCED
    candidates: Candidates = CANDIDATES
    auxiliary: int = 1500
    name: str = "membership"

    @property
    def title(self) -> str:
        """What is shown."""
        return "Membership under FedAvg and under FLiP"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{COMMON} The paper boosts stumps by CatBoost on 128 shadow models, at rounds 1, "
            "25, 50, 75 and 100, and tells one accuracy; ours are scikit-learn's on 32 shadow "
            "models a round, with six rounds read together. Beside them stand LiRA, which the "
            "paper leaves out, and the rates of true positives where few false ones are "
            "allowed. Against FLiP shadow models train as under FedAvg, from the model that "
            "follows from the server's set. In a hurry MNIST of 14 x 14 pixels stands in for "
            "CIFAR-10, and a layer of 64 for AlexNet."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit with both arms."""
        threat = ThreatPlan(attacks=tuple(ATTACKS.values()), by_round=False)
        world = self.reduced if quick else self.full
        plan = world.plan((threat,), auxiliary=self.auxiliary, candidates=self.candidates)
        return {"audit": plan}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Every attack's scores in each arm."""
        audit, run = runs.audits["audit"], runs.plans["audit"]
        where = setting(run.data.source.name, run, self.plans(quick=False)["audit"])
        figures = []
        for arm in run.arms:
            key = "fedavg" if arm.flip is None else "flip"
            rounds = tuple(range(run.rounds_of(arm)))
            for told, attack in ATTACKS.items():
                place = Place(run.threats[0].named(attack), rounds, arm.name)
                for score in self._scores():
                    is_theirs = (told, score) == ("shadow", "membership_accuracy")
                    figures.append(
                        figure(
                            f"{key}_{told}_{score}".replace(".", "_"),
                            f"{where}; {arm.name}, {told}",
                            mean(audit, place, score),
                            membership(key) if is_theirs else None,
                            "higher",
                        )
                    )
        return tuple(figures)

    def _scores(self) -> tuple[str, ...]:
        """Those that so many records of nobody can tell."""
        told = [name for rate, name in FALSE_POSITIVES if self.candidates.outsiders * rate >= 1]
        return ("membership_accuracy", "membership_auc", *told)
