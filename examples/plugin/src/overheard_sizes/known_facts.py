"""What attackers know of the clients' numbers of examples. Imports no ground truth."""

from dataclasses import dataclass
from typing import final

from overheard.core.knowledge import KnownFact


@final
@dataclass(frozen=True, slots=True)
class MedianSize(KnownFact):
    """The number of examples of the median client, such as a federation publishes."""

    examples: float

    how_to_get = "the number of examples of the median client (a simulated run)"
