"""The defenses that are run on a data set, and their strengths."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import final

from overheard.core.defense import Defense
from overheard.defenses.bkg_repl import BkgRepl
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.mm_aug import MmAug
from overheard.defenses.noise import Noise
from overheard.defenses.rand_aug import RandAug
from overheard.plans.plan import UNDEFENDED, ArmPlan
from overheard_studies.deanonymization.scenarios import IdentityScenario

REPLACEMENT_ALPHAS = (0.25, 0.5, 0.75, 1.0)
AUGMENTATION_ALPHAS = (0.5, 1.0, 2.0)
"""For both, the published alpha 0 is the undefended arm."""

CLIP = 50.0
MULTIPLIERS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
VARIANCES = (1e-2, 1e-1, 1.0, 10.0, 100.0)


@final
@dataclass(frozen=True, slots=True)
class DefensePanel:
    """A scenario, its participating users, and the defenses that are run on it.

    Args:
        scenario: data set and federation.
        clients: number of participating users; the background is data of others, or a file.
        replacement_alphas: alphas of `bkg_repl`.
        augmentation_alphas: alphas of `rand_aug` and `mm_aug`.
        multipliers: multipliers of `dp_fedavg`.
        variances: variances of `noise`.

    """

    scenario: IdentityScenario
    clients: int
    replacement_alphas: tuple[float, ...] = REPLACEMENT_ALPHAS
    augmentation_alphas: tuple[float, ...] = AUGMENTATION_ALPHAS
    multipliers: tuple[float, ...] = MULTIPLIERS
    variances: tuple[float, ...] = VARIANCES

    def data_defenses(self) -> Mapping[str, Defense]:
        """Return the defenses that mix in examples, which shadow devices may apply too."""
        return {
            **{f"bkg_repl {alpha:g}": BkgRepl(alpha) for alpha in self.replacement_alphas},
            **{f"rand_aug {alpha:g}": RandAug(alpha) for alpha in self.augmentation_alphas},
            **{
                f"mm_aug {alpha:g}": MmAug(alpha, self.scenario.modes)
                for alpha in self.augmentation_alphas
            },
        }

    def update_defenses(self) -> Mapping[str, Defense]:
        """Return the defenses that perturb updates."""
        return {
            **{
                f"dp_fedavg {one:g}": DpFedavg(clip=CLIP, noise_multiplier=one)
                for one in self.multipliers
            },
            **{f"noise {one:g}": Noise(sqrt(one)) for one in self.variances},
        }

    def arms(self) -> tuple[ArmPlan, ...]:
        """Return one arm per defense, and the undefended arm."""
        return (
            ArmPlan(name=UNDEFENDED),
            *(
                ArmPlan(name=name, defenses=(one,))
                for name, one in {**self.data_defenses(), **self.update_defenses()}.items()
            ),
        )

    def adapted_arms(self) -> tuple[ArmPlan, ...]:
        """Return the arms in which shadow devices apply the defense, and the undefended arm."""
        return (
            ArmPlan(name=UNDEFENDED),
            *(
                ArmPlan(name=name, defenses=(one,), shadows_defended=True)
                for name, one in self.data_defenses().items()
            ),
        )
