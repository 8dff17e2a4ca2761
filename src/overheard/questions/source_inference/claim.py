"""The claim about which client holds each candidate record."""

from dataclasses import dataclass
from typing import final

from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError
from overheard.core.parties import Party

TOLERANCE = 1e-3
"""How far the probabilities of a record may be from a sum of 1."""

DECIMALS = 6
"""Decimals of a probability in findings, which hold thousands."""


@final
@dataclass(frozen=True, slots=True)
class RecordSources(Claim):
    """Which of several clients holds each candidate record, or that none of them does.

    What it is about is stated with it, since guesses at it need the same: the clients, the
    labels of the records, and the numbers of examples that clients state.

    Args:
        clients: the clients, all different.
        probabilities: for each candidate record in order, the probability of each client and
            then of no client. They sum to 1; in a true claim, they are all 0 for a record that
            does not count.
        labels: the class of each record; None = the task has no classes.
        examples: the number of examples that each client states; () = not known of all.
        label_frequency: in a true claim, for each record, the probability of each client by the
            true numbers of examples of the record's label; None = not known.

    """

    clients: tuple[Party, ...]
    probabilities: Float[Tensor, "records sources"]
    labels: Int[Tensor, " records"] | None = None
    examples: tuple[int, ...] = ()
    label_frequency: Float[Tensor, "records clients"] | None = None

    def __post_init__(self) -> None:
        """Refuse what are no probabilities of each client and of none."""
        table, clients = self.probabilities, self.clients
        if not clients or len(set(clients)) < len(clients):
            raise ClaimError(f"clients must be distinct, one or more, got {clients}")
        if table.ndim != 2 or not len(table) or table.shape[1] != len(clients) + 1:
            raise ClaimError(
                f"{len(clients)} clients need {len(clients) + 1} probabilities of each record, "
                f"got a table of {tuple(table.shape)}"
            )
        sums = table.double().sum(1)
        is_sum = ((sums - 1).abs() <= TOLERANCE) | (sums == 0)
        if not bool(((table >= 0) & (table <= 1)).all()) or not bool(is_sum.all()):
            raise ClaimError("the probabilities of a record must be from 0 to 1 and sum to 1")
        if self.labels is not None and len(self.labels) != len(table):
            raise ClaimError(f"got {len(self.labels)} labels of {len(table)} records")
        if len(self.examples) not in (0, len(clients)):
            raise ClaimError(f"got {len(self.examples)} numbers of examples of {len(clients)}")

    def numbers(self) -> tuple[float, ...]:
        """Return the probabilities, record by record, with `DECIMALS` decimals."""
        rounded = self.probabilities.double().flatten().tolist()
        return tuple(round(probability, DECIMALS) for probability in rounded)
