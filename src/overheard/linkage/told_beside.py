"""What travels in clear beside the weights, as numbers that can be held against each other."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import log1p, nan
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.messages import Message, Update
from overheard.core.parties import Party
from overheard.core.view import View

PLACE = "place"
"""The name of the place of a reply among those of its round, 0 to 1."""


@final
@dataclass(frozen=True, slots=True)
class ToldBeside:
    """Numbers told in clear, one row an update.

    Args:
        sizes: log(1 + examples); NaN where the protocol hides them.
        names: what each further number is: a metric's name, or `PLACE`.
        numbers: less the mean of their round, since a loss falls from round to round, whoever
            reports it; NaN where an update does not tell it.
        senders: who sent each update.
        rounds: in which.

    """

    sizes: Float[Tensor, " updates"]
    names: tuple[str, ...]
    numbers: Float[Tensor, "updates numbers"]
    senders: tuple[Party, ...]
    rounds: Int[Tensor, " updates"]

    def is_silent(self) -> bool:
        """Whether no update tells anything."""
        return not bool(self.sizes.isfinite().any() | self.numbers.isfinite().any())

    def rows(self, senders: Sequence[Party]) -> dict[Party, Int[Tensor, " _updates"]]:
        """The rows of each of them.

        Raises:
            NeedsError: if one of them is not of the crowd that was read.

        """
        rows: dict[Party, list[int]] = {who: [] for who in senders}
        for row, who in enumerate(self.senders):
            if who in rows:
                rows[who].append(row)
        silent = [who for who, own in rows.items() if not own]
        if silent:
            raise NeedsError(f"no update can be read of {', '.join(silent)}: ask about others")
        return {who: torch.tensor(own) for who, own in rows.items()}

    def named(self, names: Sequence[str]) -> Float[Tensor, "updates numbers"]:
        """These of the numbers, in this order; NaN throughout for one that nobody tells."""
        unknown = torch.full((len(self.senders),), nan, dtype=torch.float64)
        told = dict(zip(self.names, self.numbers.T, strict=True))
        columns = [told.get(name, unknown) for name in names]
        return torch.stack(columns, 1) if columns else self.numbers[:, :0]


def crowd_of(view: View, besides: Collection[Party] = ()) -> tuple[Party, ...]:
    """All whose updates can be read but the observers, and but these."""
    return tuple(
        sender
        for sender in view.senders()
        if sender not in view.observers and sender not in besides
    )


def told_beside(view: View, crowd: Collection[Party], *, order: bool) -> ToldBeside:
    """Read what a crowd told beside its weights; reads no weight.

    Args:
        view: what is read.
        crowd: whose updates; the mean of a round is that of theirs.
        order: whether the place of a reply among those of the crowd is one of the numbers.

    """
    sent = list(_answers(view, frozenset(crowd)))
    metrics = sorted({name for _, update in sent for name in update.metrics})
    rounds = torch.tensor([message.round for message, _ in sent], dtype=torch.long)
    columns = [[update.metrics.get(name, nan) for _, update in sent] for name in metrics]
    if order:
        columns.append(_places(rounds.tolist()))
    numbers = torch.tensor(columns, dtype=torch.float64).reshape(len(columns), len(sent)).T
    return ToldBeside(
        torch.tensor([_size(update) for _, update in sent], dtype=torch.float64),
        (*metrics, *((PLACE,) if order else ())),
        less_mean(torch.where(numbers.isfinite(), numbers, nan), rounds),
        tuple(message.sender for message, _ in sent),
        rounds,
    )


def less_mean(
    numbers: Float[Tensor, "updates numbers"], rounds: Int[Tensor, " updates"]
) -> Float[Tensor, "updates numbers"]:
    """Less the mean of those that tell it in the round; NaN for one who alone does."""
    left = numbers.clone()
    for number in sorted(set(rounds.tolist())):
        mine = rounds == number
        told = numbers[mine]
        left[mine] = torch.where(told.isfinite().sum(0) > 1, told - told.nanmean(0), nan)
    return left


def _answers(view: View, crowd: frozenset[Party]) -> Iterator[tuple[Message, Update]]:
    for message in view.messages:
        if isinstance(message.body, Update) and message.sender in crowd:
            yield message, message.body


def _size(update: Update) -> float:
    return nan if update.examples is None else log1p(update.examples)


def _places(rounds: Sequence[int]) -> list[float]:
    """Of each reply among those of its round, in which they stand as they came."""
    met = dict[int, int]()
    places = []
    for number in rounds:
        places.append(met.get(number, 0))
        met[number] = places[-1] + 1
    return [
        place / max(1, met[number] - 1) for place, number in zip(places, rounds, strict=True)
    ]
