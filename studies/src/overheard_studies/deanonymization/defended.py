"""Figure 12: precision of the attackers and utility of the model for each defense."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import final

from overheard.auditing.inputs import load_data
from overheard.core.defense import Defense
from overheard.data.datasets.blogs import Blogs
from overheard.defenses.bkg_repl import BkgRepl
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.mm_aug import MmAug
from overheard.defenses.noise import Noise
from overheard.defenses.rand_aug import RandAug
from overheard.drawing.figures import ReportFigure
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import UNDEFENDED, ArmPlan, Plan, ThreatPlan
from overheard.statistics.estimate import Estimate
from overheard_studies.deanonymization.charts import (
    ADAPTIVE_SUFFIX,
    TradeOffPoint,
    frontier_figure,
)
from overheard_studies.deanonymization.measures import mean_over_seeds, measure_arm_utilities
from overheard_studies.deanonymization.setting import (
    BLOGS,
    PRECISION,
    PUBLISHED,
    QUICK_WISDM,
    UPDATE_SOURCES,
    WISDM,
    IdentityScenario,
    ResultRows,
    build_known_user_settings,
    build_plan,
    build_published_attack,
    build_threat,
    build_wccn_attack,
    describe_differences,
    describe_setting,
)
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Panel, PanelRun, Study
from overheard_studies.values import ReproducedValue, Values

PRIOR_CHUNKS = 4
"""Chunks into which the adaptive published attack splits a prior; each draws its own mode. The
non-adaptive attack is run with as many too, as chunks alone already improve it."""

ATTACKER_NAMES = (
    "shadow",
    "simulated",
    "pieces",
    "ours",
    f"pieces{ADAPTIVE_SUFFIX}",
    f"ours{ADAPTIVE_SUFFIX}",
)
"""Names of the attackers, in the order of the threats."""

ADAPTED = "_adapted"
"""End of the names of audits in which shadow devices adapt."""

CLIP = 50.0


@final
@dataclass(frozen=True, slots=True)
class DefensePanel:
    """A scenario, its participating users, and the defenses that are run on it.

    Args:
        scenario: data set and federation.
        clients: number of participating users; the background is data of others, or a file.
        replacement_alphas: alphas of `bkg_repl`; the published 0 is the undefended arm.
        augmentation_alphas: alphas of `rand_aug` and `mm_aug`; the same.
        multipliers: multipliers of `dp_fedavg`.
        variances: variances of `noise`.
        has_adaptive: whether attackers also simulate updates and adapt; otherwise the published
            attack alone is run.

    """

    scenario: IdentityScenario
    clients: int
    replacement_alphas: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    augmentation_alphas: tuple[float, ...] = (0.5, 1.0, 2.0)
    multipliers: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    variances: tuple[float, ...] = (1e-2, 1e-1, 1.0, 10.0, 100.0)
    has_adaptive: bool = True

    def arms(self, *, adapted: bool) -> tuple[ArmPlan, ...]:
        """Return the undefended arm, and one arm per defense.

        Args:
            adapted: whether to return only the defenses that mix in examples, which shadow
                devices then apply too.

        """
        alphas, modes = self.augmentation_alphas, self.scenario.modes
        defenses: dict[str, Defense] = {
            **{f"bkg_repl {one:g}": BkgRepl(one) for one in self.replacement_alphas},
            **{f"rand_aug {one:g}": RandAug(one) for one in alphas},
            **{f"mm_aug {one:g}": MmAug(one, modes) for one in alphas},
        }
        if not adapted:
            for one in self.multipliers:
                defenses[f"dp_fedavg {one:g}"] = DpFedavg(clip=CLIP, noise_multiplier=one)
            defenses |= {f"noise {one:g}": Noise(sqrt(one)) for one in self.variances}
        return (
            ArmPlan(name=UNDEFENDED),
            *(
                ArmPlan(name=name, defenses=(one,), shadows_defended=adapted)
                for name, one in defenses.items()
            ),
        )

    def plan(self, *, adapted: bool) -> Plan:
        """Return the plan of an audit; in an adapted one shadow devices apply the defenses."""
        scenario = self.scenario
        return build_plan(
            scenario,
            build_known_user_settings("random"),
            _threats(scenario, is_alone=adapted or not self.has_adaptive),
            arms=self.arms(adapted=adapted),
            clients=self.clients,
            background=scenario.background,
        )


SHORT_BLOGS = replace(
    BLOGS,
    source=Blogs(task="next_word", tokens=60, stride=12),
    rounds=12,
    participation=0.2,
    most_rounds=3,
    seeds=(0,),
)
"""Because there are many arms, only every twelfth word and one run are used, to save time."""

SHORT_WISDM = replace(QUICK_WISDM, rounds=6, most_rounds=6)

LARGE_WISDM = replace(WISDM, key="large", name="WISDM, a larger network", model=Mlp((256, 256)))
"""To see whether noise of one variance costs more where there are more weights: the paper's
networks have millions."""

PANELS = (
    DefensePanel(SHORT_BLOGS, 89, (0.5, 1.0), (0.5, 2.0), (1e-3, 1e-1), (1e-2, 1.0)),
    DefensePanel(WISDM, 24),
)

LARGE = (DefensePanel(LARGE_WISDM, 24, (0.5,), (0.5,), (), (1e-2,), has_adaptive=False),)

REDUCED = (DefensePanel(SHORT_WISDM, 24, (0.5,), (0.5, 2.0), (1e-1,), (1e-2,)),)

REDUCED_LARGE = (
    replace(LARGE[0], scenario=replace(LARGE_WISDM, rounds=6, most_rounds=6, seeds=(0,))),
)


def _threats(scenario: IdentityScenario, *, is_alone: bool) -> tuple[ThreatPlan, ...]:
    """Return a non-adaptive threat with both sources of updates, and an adaptive one.

    Alone, the published attack is run with shadow devices. In an adapted audit these adapt.
    """
    if is_alone:
        return (build_threat((build_published_attack(scenario, "shadow"),)),)
    simulating = (
        build_published_attack(scenario, "simulated", pieces=PRIOR_CHUNKS),
        build_wccn_attack(scenario, "simulated"),
    )
    published = tuple(build_published_attack(scenario, source) for source in UPDATE_SOURCES)
    return build_threat((*published, *simulating)), build_threat(simulating, adapts=True)


def defended(
    panels: tuple[DefensePanel, ...] = PANELS,
    reduced: tuple[DefensePanel, ...] = REDUCED,
    name: str = "figure12",
) -> Study:
    """Return Figure 12: the published attack, non-adaptive and adaptive, on each defense.

    Args:
        panels: scenarios and defenses.
        reduced: the same for a quick run.
        name: name of the study.

    """
    quick = {one.scenario.key: one for one in reduced}

    def panel(one: DefensePanel, adapted: bool) -> Panel:
        key = one.scenario.key
        both = one, quick.get(key)
        return Panel(
            _key(one.scenario, adapted),
            one.scenario.name,
            lambda q: None if (each := both[q]) is None else each.plan(adapted=adapted),
            partial(_read, one.scenario),
        )

    def draw(runs: StudyRuns, values: Values) -> Iterator[ReportFigure]:
        by_name = {one.name: one.value for one in values}
        for one in panels:
            points = dict[str, list[TradeOffPoint]]()
            for key in (_key(one.scenario, adapted) for adapted in (False, True)):
                for arm in runs.plans[key].arms if key in runs.audits else ():
                    prefix = f"{key}_{_plain(arm.name)}"
                    utility = by_name[f"{prefix}_utility"]
                    for attacker in attacks_by_name(runs.plans[key], key):
                        precision = by_name[f"{prefix}_{attacker}_{PRECISION}"]
                        if precision is not None and utility is not None:
                            point = TradeOffPoint(arm.name, precision, utility)
                            points.setdefault(attacker, []).append(point)
            if points:
                yield frontier_figure(f"Figure 12: {one.scenario.name}", points)

    return Study(
        name,
        "Re-identification and utility for each defense",
        describe_differences((one.scenario for one in panels), "figure12"),
        tuple(
            panel(one, adapted)
            for one in panels
            for adapted in ((False, True) if one.has_adaptive else (False,))
        ),
        describe_setting,
        figures=draw,
        has_separate_arms=True,
    )


def attacks_by_name(run: Plan, key: str) -> Mapping[str, str]:
    """Return the attacks of an audit as the plan names them, by the attackers' names here.

    Args:
        run: plan of the audit.
        key: its sub-folder.

    """
    named = [threat.attack_name(attack) for threat in run.threats for attack in threat.attacks]
    adapts = key.endswith(ADAPTED)
    names = (f"shadow{ADAPTIVE_SUFFIX}",) if adapts else ATTACKER_NAMES[: len(named)]
    return dict(zip(names, named, strict=True))


def published_decrease(arm: str) -> float | None:
    """Return the published relative decrease of the average precision under a defense.

    The text gives it for alpha 0.5.
    """
    kind, _, alpha = arm.partition(" ")
    return PUBLISHED.number("text", f"{kind}_decrease") if alpha == "0.5" else None


def _key(scenario: IdentityScenario, adapted: bool) -> str:
    return f"{scenario.key}{ADAPTED}" if adapted else scenario.key


def _plain(arm: str) -> str:
    return arm.replace(" ", "_")


def _read(scenario: IdentityScenario, one: PanelRun) -> Iterator[ReproducedValue]:
    rows, utilities = ResultRows.of(one), _utilities(one, scenario)
    for arm in (arm.name for arm in one.plan.arms):
        for name, attack in attacks_by_name(one.plan, one.key).items():
            prefix = f"{one.key}_{_plain(arm)}_{name}"
            words = f"{arm}, {name.replace('_', ' ')}: "
            for score in (PRECISION, "times_chance"):
                described = words + score.replace("_", " ")
                yield rows.value(f"{prefix}_{score}", described, (attack, score), None, arm)
            row, undefended = rows.find(attack, PRECISION, arm), rows.find(attack, PRECISION)
            if arm == UNDEFENDED or row is None or undefended is None:
                continue
            if undefended.value.mean > 0:
                published = published_decrease(arm) if name == "shadow" else None
                yield one.value(
                    f"{prefix}_decrease",
                    f"{words}relative decrease of the average precision"
                    + ("" if published is None else " (published: OpenImages)"),
                    1 - row.value.mean / undefended.value.mean,
                    published,
                )
        words, name = (
            f"{arm}: utility, 1 = without defenses",
            f"{one.key}_{_plain(arm)}_utility",
        )
        yield one.value(name, words, utilities[arm], None, "higher")


def _utilities(one: PanelRun, scenario: IdentityScenario) -> Mapping[str, Estimate]:
    dataset = load_data(one.plan, one.runs.resources)
    measured = {
        arm.name: measure_arm_utilities(one.runs, one.key, arm.name, scenario, dataset)
        for arm in one.plan.arms
    }
    whole = measured[UNDEFENDED]
    return {
        arm: mean_over_seeds(
            [value / most if most else 0.0 for value, most in zip(values, whole, strict=True)]
        )
        for arm, values in measured.items()
    }
