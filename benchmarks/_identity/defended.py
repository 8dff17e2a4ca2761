"""Cases with defenses, against adaptive and non-adaptive attackers."""

from _identity.bars import Lowered
from _identity.case import Case
from _identity.lineup import Lineup, adapted, every_update
from _identity.measured import AttackedArm
from overheard.defenses.bkg_repl import BkgRepl
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.mm_aug import MmAug
from overheard.defenses.noise import Noise
from overheard.defenses.rand_aug import RandAug
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, TrainingPlan
from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp


def arm(defense: BkgRepl | RandAug | MmAug | Noise | DpFedavg, setting: str) -> ArmPlan:
    """Return an arm with one defense."""
    return ArmPlan(name=f"{defense.name} {setting}", defenses=(defense,))


def frontier(modes: tuple[int, ...]) -> tuple[ArmPlan, ...]:
    """Return each defense at some levels, and `mm_aug` at 0.5 with each number of modes."""
    return (
        *(arm(BkgRepl(alpha), f"{alpha:g}") for alpha in (0.25, 0.5, 0.75)),
        *(arm(RandAug(alpha), f"{alpha:g}") for alpha in (0.5, 1.0, 2.0)),
        *(arm(MmAug(0.5, number), f"0.5 M{number}") for number in modes),
        *(arm(MmAug(alpha, modes[0]), f"{alpha:g} M{modes[0]}") for alpha in (1.0, 2.0, 4.0)),
        *(arm(Noise(level), f"{level:g}") for level in (0.01, 0.03, 0.1)),
        *(arm(DpFedavg(1.0, level), f"{level:g} clip 1") for level in (0.1, 1.0)),
    )


def few_arms() -> tuple[ArmPlan, ...]:
    """Return some levels of augmentation, and noise, as an arm takes ten minutes."""
    return (
        arm(MmAug(0.5, 300), "0.5 M300"),
        arm(MmAug(0.5, 30), "0.5 M30"),
        arm(MmAug(2.0, 300), "2 M300"),
        arm(Noise(0.03), "0.03"),
        arm(BkgRepl(0.5), "0.5"),
        arm(RandAug(1.0), "1"),
    )


def defended(
    about: str,
    data: DataPlan,
    training: TrainingPlan,
    arms: tuple[ArmPlan, ...],
    lineup: Lineup,
    seeds: int,
) -> Case:
    """Return a case with these arms, against adaptive and non-adaptive attackers."""
    simulated = ReidentifyMlp("simulated", lineup.layer, most_rounds=lineup.most_rounds)
    fixed = every_update((lineup.published.attack, simulated, lineup.ours_linked.attack))
    adaptive = adapted(every_update((simulated, lineup.ours_linked.attack)))
    mm_aug_arms = tuple(arm.name for arm in arms if arm.name.startswith("mm_aug 0.5"))
    bars = tuple(
        Lowered(
            f"reduction of average precision, {place.description}",
            place,
            mm_aug_arms,
            0.75,
            0.95,
        )
        for place in (
            AttackedArm(fixed, lineup.published.attack),
            AttackedArm(fixed, simulated),
        )
    )
    return Case(about, data, training, (fixed, adaptive), seeds, bars, arms)
