"""Eight users with two main labels each, and simple identity attacks on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.needs import UPDATES
from overheard.core.needs import USERS as NAMED_USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.datasets.custom import Own
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.splits.by_user import ByUser
from overheard.learning.models.logistic import Logistic
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.identity.claim import Identity
from overheard.questions.same_sender.claim import SameSender

USERS = tuple(f"user-{number}" for number in range(8))
LABELS = ("a", "b", "c", "d")


def write_table(folder: Path) -> Own:
    """A table of 50 rows a user, two thirds of one label and a third of another."""
    rows = np.random.default_rng(0)
    table = pd.DataFrame({"user": np.repeat(USERS, 50), "when": np.arange(400)})
    number = np.repeat(np.arange(8), 50)
    main, turn = number % 4, np.arange(400) % 3
    # The second label is the next one for users 0 to 3, and the one after for users 4 to 7.
    label = np.where(turn < 2, main, (main + 1 + number // 4) % 4)
    table["label"] = np.array(LABELS)[label]
    table["hand"] = np.where(number % 2 == 0, "left", "right")
    table["x"], table["y"] = rows.normal(size=400), rows.normal(size=400)
    path = folder / "people.csv"
    table.to_csv(path, index=False)
    return Own(str(path), user="user", time="when", attributes=("hand",))


def bias_of(view: View, who: Party) -> Tensor:
    """The mean change of the biases in a target's updates; larger for frequent labels."""
    moved = [update.delta["1.bias"] for update in view.updates(who).values()]
    return torch.stack(moved).mean(0)


@final
@dataclass(frozen=True, slots=True)
class Resemblance(Attack[Identity]):
    """Names users whose prior label shares match the labels that an update favours."""

    name: ClassVar[str] = "resemblance"
    claim_type: ClassVar = Identity
    needs: ClassVar = frozenset({UPDATES, NAMED_USERS})
    source: ClassVar[str] = "ours"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Identity]:
        """By the cosine of the two."""
        priors = KnownUsers.of(knowledge).prior_examples
        shares = torch.stack(
            [one.label_counts(knowledge.classes) / len(one) for one in priors.values()]
        )
        return {
            who: Identity(
                tuple(priors),
                cosine_similarity(bias_of(view, who)[None], shares - 1 / knowledge.classes),
            )
            for who in targets
        }


@final
@dataclass(frozen=True, slots=True)
class Likeness(Attack[SameSender]):
    """Links targets whose updates change the biases similarly."""

    name: ClassVar[str] = "likeness"
    claim_type: ClassVar = SameSender
    needs: ClassVar = frozenset({UPDATES})
    source: ClassVar[str] = "ours"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, SameSender]:
        """By the distance of the two."""
        devices = KnownUsers.of(knowledge).shadow_devices
        heard = [who for who in view.senders() if who not in devices]
        return {
            who: SameSender(
                tuple(other for other in heard if other != who),
                torch.stack(
                    [
                        -(bias_of(view, who) - bias_of(view, other)).norm()
                        for other in heard
                        if other != who
                    ]
                ),
            )
            for who in targets
        }


IDENTITY_THREAT = ThreatPlan(attacks=(Resemblance(),), knows=("model",))
PSEUDONYM_THREAT = ThreatPlan(
    attacks=(Resemblance(), Likeness()), knows=("model",), pseudonyms="round"
)


def user_plan(
    folder: Path, *threats: ThreatPlan, people: KnownUserSettings | None, clients: int = 6
) -> Plan:
    """A plan with three rounds of some of the users and these threats."""
    data = DataPlan(
        source=write_table(folder), split=ByUser(), clients=clients, examples=30, people=people
    )
    training = TrainingPlan(model=Logistic(), rounds=3, rate=0.1, batch=10)
    return Plan(data=data, training=training, arms=(ArmPlan(name="open"),), threats=threats)
