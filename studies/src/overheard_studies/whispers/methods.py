"""The attacks of the paper's tables, and Overheard's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from overheard.core.attack import Attack
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.ppa import Ppa
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.whispers import Whispers

DISTANCES = ("wasserstein", "kl", "js", "l1")
"""The paper's distances, in the order of its columns."""


@final
@dataclass(frozen=True, slots=True)
class Method:
    """One row of a table.

    Args:
        published_name: name of the method in the paper, or its origin.
        attack: attack.
        quick_attack: the same attack with less work, for a quick run.

    """

    published_name: str
    # Any: each attack has its own claim type.
    attack: Attack[Any]
    quick_attack: Attack[Any]

    @property
    def key(self) -> str:
        """Name in the keys of values and in the published tables."""
        return self.attack.name


# Any: as above.
def single_size_method(name: str, attack: Attack[Any]) -> Method:
    """Make a method with the same attack in quick and full runs."""
    return Method(name, attack, attack)


DECAF = single_size_method("Dai et al.", Decaf())
RAMAKRISHNA = single_size_method("Raksha et al.", Ramakrishna(form="auxiliary_gradient"))
PPA = Method(
    "Zhou et al.",
    Ppa(form="preference"),
    Ppa(form="preference", samples=20, retraining=2),
)
WHISPERS = Method(
    "the paper's own",
    Whispers(size="doubling", hidden=128, epochs=250, batch=128, rate=1e-2, slow_after=180),
    Whispers(size="doubling"),
)
"""A quick run has too few virtual clients for the wider network (`benchmarks/whispers.py`)."""

AMORTISED = Method("Overheard's", Amortised(), Amortised(steps=300))

METHODS = (DECAF, RAMAKRISHNA, PPA, WHISPERS, AMORTISED)
"""All methods, in the order of the tables; the last is not in them."""

UNIFORM_GUESS = "uniform"
"""Name of the uniform guess, which is reported with the methods."""


def select_attacks(methods: Sequence[Method], *, quick: bool) -> tuple[Attack[Any], ...]:
    """Return the attacks of the methods."""
    return tuple(one.quick_attack if quick else one.attack for one in methods)
