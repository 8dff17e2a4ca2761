"""The attacks of the paper's tables, and ours beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from overheard.core.attack import Attack
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.whispers import Whispers

SCORES = ("wasserstein", "kl", "js", "l1")
"""As the paper measures distances, in the order of its columns."""


@final
@dataclass(frozen=True, slots=True)
class Method:
    """One row of a table.

    Args:
        told: what the paper calls it, or whose it is.
        attack: what it is here.
        hurried: the same with less work, for a run in a hurry.

    """

    told: str
    # Any: an attack answers a question of its own.
    attack: Attack[Any]
    hurried: Attack[Any]

    @property
    def key(self) -> str:
        """Its name in figures and in what was published."""
        return self.attack.name


# Any: as above.
def unhurried(told: str, attack: Attack[Any]) -> Method:
    """A row for which there is always time."""
    return Method(told, attack, attack)


DECAF = unhurried("Dai et al.", Decaf())
RAMAKRISHNA = unhurried("Raksha et al.", Ramakrishna(form="auxiliary_gradient"))
PPA = Method(
    "Zhou et al.",
    Ppa(form="preference"),
    Ppa(form="preference", samples=20, retraining=2),
)
WHISPERS = unhurried("Ours of the paper", Whispers(size="doubling"))
AMORTISED = Method("no paper's", Amortised(), Amortised(steps=300))

METHODS = (DECAF, RAMAKRISHNA, PPA, WHISPERS, AMORTISED)
"""In the order of the tables; the last is not in them."""

UNIFORM = "uniform"
"""The guess that all classes are alike, to be told beside the methods."""


def attacks_of(methods: Sequence[Method], *, quick: bool) -> tuple[Attack[Any], ...]:
    """What the methods are here."""
    return tuple(one.hurried if quick else one.attack for one in methods)
