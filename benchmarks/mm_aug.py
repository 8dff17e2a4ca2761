"""Measure how far `mm_aug` hides users, with a background as large as its paper's.

    python benchmarks/mm_aug.py --out DIR --data DATA        an hour of one core

Orekondy et al. 2018 (Gradient-Leaks, arXiv 1805.05838), section 7.2: at alpha 0.5 the average
precision on OpenImages falls by 75 % with `mm_aug`, 45 % with `rand_aug` and 67 % with
`bkg_repl`. The paper has 490,000 public images, 500 modes and some 485 private images a user:
a thousand public images for each private one, and a mode of about two users' size. Here 49,999
public images, 500 modes and 100 private images a user give 500 for one, and a mode of one
user's size. The attack is the published one: shadow devices that apply no defense. Beside it
is Overheard's attack on one update, without linking and assignment; it does not adapt either.

Every arm is stored in DIR when it is done, so an interrupted run resumes. The output is
DIR/table.md.
"""

import argparse
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from _identity.label_skewed_users import LabelSkewedUsers
from _identity.lineup import ONE_UPDATE, every_update
from _identity.observed_run import observe_run
from _identity.page import make_table
from overheard.archive.atomic import write_text
from overheard.auditing.inputs import Resources
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.splits.by_user import ByUser
from overheard.defenses.bkg_repl import BkgRepl
from overheard.defenses.mm_aug import MmAug
from overheard.defenses.rand_aug import RandAug
from overheard.learning.models.mlp import Mlp
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, TrainingPlan
from overheard.plans.plugin_field import plugin_label
from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp

PUBLISHED = ReidentifyMlp("shadow")
"""The published attack: shadow devices, the last layer; it does not adapt."""

Mixing = MmAug | RandAug | BkgRepl


@dataclass(frozen=True)
class Setting:
    """A federation of users who differ by their label shares.

    Args:
        concentration: of the Dirichlet distribution of label shares.
        users: number of users.
        examples: prior and private examples of a user together.
        background: number of public examples.
        rate: learning rate.
        epochs: local epochs.
        seed: seed of users and run.

    """

    concentration: float = 1.0
    users: int = 50
    examples: int = 200
    background: int = 49_999
    rate: float = 0.1
    epochs: int = 1
    seed: int = 0

    def plan(self, defense: Mixing | None) -> Plan:
        """Return the plan of a run with this defense, or with none."""
        arm = ArmPlan(name="defended", defenses=(defense,)) if defense else None
        return Plan(
            seeds=(self.seed,),
            data=DataPlan(
                source=LabelSkewedUsers(
                    self.concentration, self.users, self.examples, self.seed
                ),
                split=ByUser(),
                clients=self.users,
                examples=self.examples,
                test=2000,
                people=KnownUserSettings(prior="random", shadow_devices=True),
                background=self.background,
            ),
            training=TrainingPlan(
                model=Mlp(hidden=(64,)),
                rounds=24,
                participation=0.5,
                rate=self.rate,
                batch=16,
                epochs=self.epochs,
            ),
            arms=(arm,) if arm else (),
            threats=(every_update((PUBLISHED,)),),
        )


@dataclass(frozen=True)
class Measured:
    """What one arm gave.

    Args:
        average_precision: of the published attack.
        ours: of Overheard's attack on one update, which does not adapt either.
        chance: expected average precision of a random order.
        accuracy: of the last global model.

    """

    average_precision: float
    ours: float
    chance: float
    accuracy: float


PAPER, FEW = (MmAug(0.5, 500), RandAug(0.5), BkgRepl(0.5)), (MmAug(0.5, 500), RandAug(0.5))

GRID: tuple[tuple[Setting, tuple[Mixing, ...]], ...] = (
    (Setting(), PAPER),
    (Setting(), (MmAug(0.5, 10), MmAug(0.5, 50), MmAug(2.0, 10), MmAug(2.0, 500))),
    (Setting(background=5000), (MmAug(0.5, 50),)),
    (Setting(rate=0.02), FEW),
    (
        Setting(concentration=5.0, users=20, examples=1200, background=35_999, rate=0.02),
        (MmAug(0.5, 60), RandAug(0.5)),
    ),
    (Setting(rate=0.005), FEW),
    (Setting(concentration=3.0, rate=0.005), (MmAug(0.5, 500),)),
    (Setting(seed=1), PAPER),
    (Setting(epochs=5), FEW),
)
"""Settings with their defenses: the paper's ratio first, then one change at a time."""

STORED = TypeAdapter(dict[str, Measured])


def main() -> None:
    """Measure all missing arms and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--data", type=Path, help="folder with data sets")
    request = parser.parse_args()
    path = request.out / "measured.json"
    stored = STORED.validate_json(path.read_bytes()) if path.exists() else {}
    for setting, defenses in GRID:
        for defense in (None, *defenses):
            if key(setting, defense) not in stored:
                stored[key(setting, defense)] = measure(setting, defense, request)
                write_text(path, STORED.dump_json(stored, indent=1).decode())
    table = make_table(
        ("setting", "seed", "defense", "chance", "published attack", "one update", "accuracy"),
        (row for setting, defenses in GRID for row in rows(setting, defenses, stored)),
    )
    write_text(request.out / "table.md", f"{table}\n")
    print(table)


def key(setting: Setting, defense: Mixing | None) -> str:
    """Return the key of an arm's results."""
    return f"{setting}, {defense}"


def measure(setting: Setting, defense: Mixing | None, request: argparse.Namespace) -> Measured:
    """Run a federation and the published attack on it."""
    folder = request.out / "run"
    shutil.rmtree(folder, ignore_errors=True)
    resources = Resources(data=request.data, workers=1)
    arm = "defended" if defense else None
    run = observe_run(setting.plan(defense), setting.seed, folder, resources, arm=arm)
    accuracy = run.run.truth.accuracy
    measured = Measured(
        run.precision(PUBLISHED).average_precision,
        run.precision(ONE_UPDATE).average_precision,
        run.chance(),
        accuracy[max(accuracy)],
    )
    shutil.rmtree(folder)
    return measured


def rows(
    setting: Setting, defenses: Iterable[Mixing], stored: dict[str, Measured]
) -> Iterable[tuple[str, ...]]:
    """Yield the table's rows of a setting: without a defense, then each defense."""
    base = stored[key(setting, None)]
    for defense in (None, *defenses):
        one = stored[key(setting, defense)]
        yield (
            describe(setting),
            str(setting.seed),
            plugin_label(defense) if defense else "none",
            f"{one.chance:.3f}",
            *(
                f"{value:.3f}"
                + (f" ({100 * (value / undefended - 1):+.0f} %)" if defense else "")
                for value, undefended in (
                    (one.average_precision, base.average_precision),
                    (one.ours, base.ours),
                )
            ),
            f"{one.accuracy:.3f}",
        )


def describe(setting: Setting) -> str:
    """Describe a setting in words."""
    ratio = np.round(2 * setting.background / setting.examples)
    return (
        f"{setting.users} users of {setting.examples // 2} examples, Dirichlet "
        f"{setting.concentration:g}, {ratio:.0f} public ones for each, rate {setting.rate:g}, "
        f"epochs {setting.epochs}"
    )


if __name__ == "__main__":
    main()
