"""Figure 12: what is left to attackers behind each defense, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.auditing.supplies import load_data
from overheard.data.datasets.blogs import Blogs
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.frontier import ADAPTIVE, Point, frontier_plate
from overheard.papers.deanonymization.identifiers import SOURCES, ours, published
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import said
from overheard.papers.deanonymization.rows import PRECISION, Rows, rows_of
from overheard.papers.deanonymization.shielded import Shielded
from overheard.papers.deanonymization.world import BLOGS, HURRIED, WISDM, IdentityScenario
from overheard.papers.deanonymization.worth import mean_of_seeds, worth_of_arm
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import figure
from overheard.papers.runs import Runs
from overheard.plans.plan import UNDEFENDED, Plan, ThreatPlan
from overheard.statistics.estimate import Estimate

ADAPTED = "adapted"
"""How the audit is called whose shadow devices follow the defenses too."""

PIECES = 4
"""Into which the published attack, where it adapts, cuts a prior: each draws a mode anew. It
is tried with as many where it does not adapt: pieces tell more than a whole by themselves."""

AMONG_OTHERS = (
    "shadow",
    "simulated",
    "pieces",
    "ours",
    f"pieces{ADAPTIVE}",
    f"ours{ADAPTIVE}",
)
"""As `_threats` has them."""

TOLD_AT = 0.5
"""The alpha of which the text tells by how much it lowers the average precision."""

SHORT = replace(
    BLOGS,
    source=Blogs(task="next_word", tokens=60, stride=12),
    rounds=12,
    participation=0.2,
    most_rounds=3,
    seeds=(0,),
)
"""So many arms take their time: every twelfth word, one run."""

PANELS = (
    Shielded(SHORT, 89, (0.5, 1.0), (0.5, 2.0), (1e-3, 1e-1), (1e-2, 1.0)),
    Shielded(WISDM, 24),
)


@final
@dataclass(frozen=True, slots=True)
class DefendedIdentityExperiment(Experiment, Drawn):
    """The published attack, not adaptive and adaptive, behind each defense.

    Args:
        panels: data sets and defenses.
        reduced: those of a run in a hurry.
        name: of the figure.

    """

    panels: tuple[Shielded, ...] = PANELS
    reduced: tuple[Shielded, ...] = (
        Shielded(
            replace(HURRIED, rounds=6, most_rounds=6),
            24,
            (0.5,),
            (0.5, 2.0),
            (1e-1,),
            (1e-2,),
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
            f"that cuts each prior into {PIECES} pieces first, and trains these as they are or "
            "behind the defense, where they draw modes and examples of their own: one draw a "
            "user would be learned for the user. Pieces help where nothing adapts too, so that "
            "only these two tell what it is worth to adapt. Ours does both as well. The "
            "background of blogs is of other bloggers (the "
            "paper: Wikipedia), that of WISDM of 12 people who take no part; modes are 300 of "
            "4,000 windows of words as published, and 20 of 1,000 examples for WISDM, which "
            "leaves 50 in each on average, as a choice of ours. All are in features "
            "of the inputs. dp_fedavg adds its noise at the server, who is the attacker: it "
            "sees clipped updates without noise; at clip 50 and these multipliers it is no "
            "differential privacy worth the name. Utility is the last model's accuracy over "
            "that without defenses, top-5 for blogs. Blogs are one run of every twelfth word, "
            "and have two of the published settings of each defense. On WISDM training did not "
            "run away at the largest noise; on blogs the two largest variances are not tried."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Two audits a data set with an arm a defense: in one shadow devices follow it."""
        plans = {}
        for one in self.reduced if quick else self.panels:
            world = one.world
            for key, threats, arms in (
                (world.key, _threats(world), one.arms()),
                (_adapted(world), (_with_shadows(world),), one.adapted()),
            ):
                plans[key] = plan(
                    world,
                    people("random"),
                    threats,
                    arms=arms,
                    clients=one.clients,
                    background=world.background,
                )
        return plans

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Utility, and average precision of each attacker, by arm."""
        full = self.plans(quick=False)
        return tuple(
            one
            for panel in self.panels
            for key in (panel.world.key, _adapted(panel.world))
            if key in runs.audits
            for one in _of_audit(
                runs, key, panel.world, setting(panel.world, runs.plans[key], full.get(key))
            )
        )

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """The frontier of each data set."""
        told = {one.name: one.ours for one in figures}
        plates = []
        for panel in self.panels:
            points: dict[str, list[Point]] = {}
            for key in (panel.world.key, _adapted(panel.world)):
                if key not in runs.audits:
                    continue
                run = runs.plans[key]
                for arm in run.arms:
                    kept = told[f"{key}_{_plain(arm.name)}_utility"]
                    for name in attackers(run):
                        read = told[f"{key}_{_plain(arm.name)}_{name}_{PRECISION}"]
                        if read is not None and kept is not None:
                            points.setdefault(name, []).append(Point(arm.name, read, kept))
            if points:
                plates.append(frontier_plate(f"Figure 12: {panel.world.name}", points))
        return Drawing(tuple(plates))


def attackers(run: Plan) -> Mapping[str, str]:
    """What each attacker of an audit is called here, and its attack as the plan names it."""
    named = [threat.named(attack) for threat in run.threats for attack in threat.attacks]
    names = AMONG_OTHERS if len(named) > 1 else (f"shadow{ADAPTIVE}",)
    return dict(zip(names, named, strict=True))


def published_decrease(arm: str) -> float | None:
    """The share of the average precision that the text says a defense takes away."""
    kind, _, alpha = arm.partition(" ")
    told = {"bkg_repl", "rand_aug", "mm_aug"}
    return said(f"{kind}_decrease") if kind in told and float(alpha) == TOLD_AT else None


def _threats(world: IdentityScenario) -> tuple[ThreatPlan, ...]:
    """One who does not adapt, with both sources, and one who does."""
    return (
        every_update(
            (
                *(published(world, source) for source in SOURCES),
                published(world, "simulated", pieces=PIECES),
                ours(world, "simulated"),
            )
        ),
        every_update(
            (published(world, "simulated", pieces=PIECES), ours(world, "simulated")),
            adapts=True,
        ),
    )


def _with_shadows(world: IdentityScenario) -> ThreatPlan:
    """One who adapts by what its shadow devices do."""
    return every_update((published(world, "shadow"),))


def _adapted(world: IdentityScenario) -> str:
    return f"{world.key}_{ADAPTED}"


def _of_audit(runs: Runs, key: str, world: IdentityScenario, where: str) -> list[Figure]:
    run, rows = runs.plans[key], rows_of(runs.audits[key])
    utilities, figures = _utilities(runs, key, world), list[Figure]()
    for arm in run.arms:
        figures += _of_arm(rows, run, key, arm.name, where)
        figures.append(
            figure(
                f"{key}_{_plain(arm.name)}_utility",
                f"{where}; {arm.name}: utility, 1 = without defenses",
                utilities[arm.name],
                None,
                "higher",
            )
        )
    return figures


def _of_arm(rows: Rows, run: Plan, key: str, arm: str, where: str) -> list[Figure]:
    figures = []
    for name, place in attackers(run).items():
        prefix = f"{key}_{_plain(arm)}_{name}"
        told = f"{where}; {arm}, {name.replace('_', ' ')}"
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
            by_paper = published_decrease(arm) if name == "shadow" else None
            figures.append(
                Figure(
                    f"{prefix}_decrease",
                    f"{told}: share of the average precision that is gone"
                    + ("" if by_paper is None else " (published: of OpenImages)"),
                    1 - row.value.mean / bare.value.mean,
                    None,
                    None,
                    by_paper,
                    None,
                )
            )
    return figures


def _utilities(runs: Runs, key: str, world: IdentityScenario) -> Mapping[str, Estimate]:
    run = runs.plans[key]
    dataset = load_data(run, runs.resources)
    bare = worth_of_arm(runs, key, UNDEFENDED, world, dataset)
    return {
        arm.name: mean_of_seeds(
            [
                value / whole if whole else 0.0
                for value, whole in zip(
                    worth_of_arm(runs, key, arm.name, world, dataset), bare, strict=True
                )
            ]
        )
        for arm in run.arms
    }


def _plain(arm: str) -> str:
    return arm.replace(" ", "_")
