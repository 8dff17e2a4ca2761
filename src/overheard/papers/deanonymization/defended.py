"""Figure 12: what is left to attackers behind each defense, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import final

from overheard.audit.estimate import Estimate
from overheard.audit.plan import UNDEFENDED, ArmPlan, Plan, ThreatPlan
from overheard.audit.simulate import load_data
from overheard.core.defense import Defense
from overheard.data.datasets.blogs import Blogs
from overheard.defenses.bkg_repl import BkgRepl
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.mm_aug import MmAug
from overheard.defenses.noise import Noise
from overheard.defenses.rand_aug import RandAug
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.frontier import Point, frontier_plate
from overheard.papers.deanonymization.identifiers import SOURCES, published
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import said
from overheard.papers.deanonymization.rows import PRECISION, Rows, rows_of
from overheard.papers.deanonymization.world import BLOGS, HURRIED, WISDM, World
from overheard.papers.deanonymization.worth import mean_of_seeds, worth_of_arm
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment, Figure
from overheard.papers.reading import figure
from overheard.papers.runs import Runs

REPLACED = (0.25, 0.5, 0.75, 1.0)
ADDED = (0.5, 1.0, 2.0)
"""Of both the published alpha 0 is the arm without defenses."""

CLIP = 50.0
MULTIPLIERS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
VARIANCES = (1e-2, 1e-1, 1.0, 10.0, 100.0)

ADAPTED = " adapted"
"""How the name of an arm ends in which shadow devices follow the defense too."""

TOLD_AT = 0.5
"""The alpha of which the text tells by how much it lowers the average precision."""


@final
@dataclass(frozen=True, slots=True)
class Shielded:
    """A data set, users who take part, and the defenses that are tried on it.

    Args:
        world: whose data.
        clients: users who take part; the background is of others, or of a file.
        replaced: alphas of `bkg_repl`.
        added: alphas of `rand_aug` and `mm_aug`.
        multipliers: of `dp_fedavg`.
        variances: of `noise`.

    """

    world: World
    clients: int
    replaced: tuple[float, ...] = REPLACED
    added: tuple[float, ...] = ADDED
    multipliers: tuple[float, ...] = MULTIPLIERS
    variances: tuple[float, ...] = VARIANCES

    def of_data(self) -> Mapping[str, Defense]:
        """Those that mix examples in, which shadow devices may follow."""
        return {
            **{f"bkg_repl {alpha:g}": BkgRepl(alpha) for alpha in self.replaced},
            **{f"rand_aug {alpha:g}": RandAug(alpha) for alpha in self.added},
            **{f"mm_aug {alpha:g}": MmAug(alpha, self.world.modes) for alpha in self.added},
        }

    def of_updates(self) -> Mapping[str, Defense]:
        """Those that perturb."""
        return {
            **{
                f"dp_fedavg {one:g}": DpFedavg(clip=CLIP, noise_multiplier=one)
                for one in self.multipliers
            },
            **{f"noise {one:g}": Noise(sqrt(one)) for one in self.variances},
        }

    def arms(self) -> tuple[ArmPlan, ...]:
        """One a defense, and one more where shadow devices follow it."""
        data = self.of_data()
        return (
            ArmPlan(name=UNDEFENDED),
            *(
                ArmPlan(name=name, defenses=(one,))
                for name, one in {**data, **self.of_updates()}.items()
            ),
            *(
                ArmPlan(name=f"{name}{ADAPTED}", defenses=(one,), shadows_defended=True)
                for name, one in data.items()
            ),
        )


SHORT = replace(
    BLOGS,
    source=Blogs(task="next_word", tokens=60, stride=12),
    rounds=12,
    participation=0.2,
    most_rounds=4,
    seeds=(0,),
)
"""Thirty-one arms take their time: every twelfth word, one run."""


@final
@dataclass(frozen=True, slots=True)
class DefendedExperiment(Experiment, Drawn):
    """The published attack, not adaptive and adaptive, behind each defense.

    Args:
        panels: data sets and defenses.
        reduced: those of a run in a hurry.
        name: of the figure.

    """

    panels: tuple[Shielded, ...] = (Shielded(SHORT, 89), Shielded(WISDM, 24))
    reduced: tuple[Shielded, ...] = (
        Shielded(
            replace(HURRIED, rounds=6, most_rounds=6),
            24,
            (0.5, 1.0),
            (0.5, 2.0),
            (1e-1,),
            (1e-2, 1.0),
        ),
    )
    name: str = "figure12"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return "Who sent an update behind each defense, and what the model is then worth"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(one.world for one in self.panels)} The figure's points are lost; the "
            "text says of OpenImages by how much the average precision falls at alpha 0.5. The "
            "paper's attacker does not adapt: its shadow devices follow no defense. Beside it "
            "stand one whose shadow devices do, one that trains known users by itself, and one "
            "that does so behind the defense. The background of blogs is of other bloggers "
            "(the paper: Wikipedia), that of WISDM of people who take no part; modes are 300 "
            "and 30 in features of the inputs. dp_fedavg adds its noise at the server, who is "
            "the attacker: it sees clipped updates without noise; at clip 50 and these "
            "multipliers it is no differential privacy worth the name. Utility is the last "
            "model's measure over that without defenses, top-5 accuracy for blogs. Blogs are "
            "one run of every twelfth word, and take about an hour on two cores."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set, with an arm a defense."""
        return {
            one.world.key: plan(
                one.world,
                people("random"),
                _threats(one.world),
                arms=one.arms(),
                clients=one.clients,
                background=one.world.background,
            )
            for one in (self.reduced if quick else self.panels)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Utility, and average precision of each attacker, by arm."""
        full, figures = self.plans(quick=False), list[Figure]()
        for panel in self.panels:
            key = panel.world.key
            if key in runs.audits:
                where = setting(panel.world, runs.plans[key], full.get(key))
                utilities = _utilities(runs, panel.world)
                rows = rows_of(runs.audits[key])
                for arm in runs.plans[key].arms:
                    figures += _of_arm(rows, runs.plans[key], key, arm.name, where)
                    figures.append(
                        figure(
                            f"{key}_{_plain(arm.name)}_utility",
                            f"{where}; {arm.name}: utility, 1 = without defenses",
                            utilities[arm.name],
                            None,
                            "higher",
                        )
                    )
        return tuple(figures)

    def drawing(self, runs: Runs) -> Drawing:
        """The frontier of each data set."""
        plates = []
        told = {one.name: one.ours for one in self.figures(runs)}
        for panel in self.panels:
            key = panel.world.key
            if key not in runs.audits:
                continue
            points: dict[str, list[Point]] = {}
            for arm in runs.plans[key].arms:
                prefix = f"{key}_{_plain(arm.name)}"
                kept = told[f"{prefix}_utility"]
                for name in _attackers(runs.plans[key], arm.name):
                    read = told[f"{prefix}_{name}_{PRECISION}"]
                    if read is not None and kept is not None:
                        points.setdefault(name, []).append(
                            Point(arm.name.removesuffix(ADAPTED), read, kept)
                        )
            plates.append(frontier_plate(f"Figure 12: {panel.world.name}", points))
        return Drawing(tuple(plates))


def _threats(world: World) -> tuple[ThreatPlan, ...]:
    """One who does not adapt, with both sources, and one who does."""
    return (
        every_update(tuple(published(world, source) for source in SOURCES)),
        every_update((published(world, "simulated"),), adapts=True),
    )


def _attackers(run: Plan, arm: str) -> Mapping[str, str]:
    """The attack of each attacker upon this arm, as the plan names it.

    One who adapts by its shadow devices is told on the arms in which these follow the defense;
    all others on those in which they do not.
    """
    plain, adaptive = run.threats
    shadow, simulated = (plain.named(attack) for attack in plain.attacks)
    (knowing,) = (adaptive.named(attack) for attack in adaptive.attacks)
    if arm.endswith(ADAPTED):
        return {"shadow_adaptive": shadow}
    return {"shadow": shadow, "simulated": simulated, "simulated_adaptive": knowing}


def _of_arm(rows: Rows, run: Plan, key: str, arm: str, where: str) -> list[Figure]:
    figures = []
    for name, place in _attackers(run, arm).items():
        prefix = f"{key}_{_plain(arm)}_{name}"
        told = f"{where}; {arm.removesuffix(ADAPTED)}, {name.replace('_', ' ')}"
        figures += [
            rows.figure(
                f"{prefix}_{score}",
                f"{told}: {score.replace('_', ' ')}",
                (place, score),
                None,
                arm,
            )
            for score in (PRECISION, "times_chance")
        ]
        row, bare = rows.of(place, PRECISION, arm), rows.of(place, PRECISION)
        if row is not None and bare is not None and arm != UNDEFENDED and bare.value.mean > 0:
            figures.append(
                Figure(
                    f"{prefix}_decrease",
                    f"{told}: share of the average precision that is gone (published: of "
                    "OpenImages)",
                    1 - row.value.mean / bare.value.mean,
                    None,
                    None,
                    _published(arm) if name == "shadow" else None,
                    None,
                )
            )
    return figures


def _published(arm: str) -> float | None:
    kind, _, alpha = arm.partition(" ")
    told = {"bkg_repl", "rand_aug", "mm_aug"}
    return said(f"{kind}_decrease") if kind in told and float(alpha) == TOLD_AT else None


def _utilities(runs: Runs, world: World) -> Mapping[str, Estimate]:
    run = runs.plans[world.key]
    dataset = load_data(run, runs.resources)
    bare = worth_of_arm(runs, world.key, UNDEFENDED, world, dataset)
    return {
        arm.name: mean_of_seeds(
            [
                value / whole if whole else 0.0
                for value, whole in zip(
                    worth_of_arm(runs, world.key, arm.name, world, dataset), bare, strict=True
                )
            ]
        )
        for arm in run.arms
    }


def _plain(arm: str) -> str:
    return arm.replace(" ", "_")
