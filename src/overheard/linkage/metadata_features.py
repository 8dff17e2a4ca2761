"""Metadata of updates, in clear text or of encrypted messages, as comparable numbers."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log, log1p, nan
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.messages import NO_METRICS, EncryptedMessage, Update
from overheard.core.parties import SERVER, Party
from overheard.core.view import View

ORDER_FEATURE = "place"
"""Name of the feature for a reply's order in its round: 0 for the first, 1 for the last."""

RESPONSE_FEATURE = "response"
"""Name of the feature for a reply that is encrypted: log of its seconds since the broadcast."""

SHORTEST_RESPONSE = 1e-3
"""Seconds: clocks of two machines may tell that a reply came before its broadcast."""


@final
@dataclass(frozen=True, slots=True)
class MetadataFeatures:
    """Metadata of updates, one row an update.

    Args:
        log_sizes: log(1 + examples), or log(1 + bytes) of encrypted messages; NaN if hidden.
        names: name of each column of values: a metric's name, or `ORDER_FEATURE`.
        values: values less the mean of their round, as losses of all clients fall from round
            to round; NaN = missing.
        senders: sender of each update.
        rounds: round of each update.

    """

    log_sizes: Float[Tensor, " updates"]
    names: tuple[str, ...]
    values: Float[Tensor, "updates numbers"]
    senders: tuple[Party, ...]
    rounds: Int[Tensor, " updates"]

    def is_empty(self) -> bool:
        """Return whether no update has any metadata."""
        return not bool(self.log_sizes.isfinite().any() | self.values.isfinite().any())

    def rows_by_sender(self, senders: Sequence[Party]) -> dict[Party, Int[Tensor, " _updates"]]:
        """Return the rows of each of these senders.

        Raises:
            NeedsError: if one of them has no row.

        """
        rows: dict[Party, list[int]] = {sender: [] for sender in senders}
        for row, sender in enumerate(self.senders):
            if sender in rows:
                rows[sender].append(row)
        missing = [sender for sender, sender_rows in rows.items() if not sender_rows]
        if missing:
            raise NeedsError(
                f"no update of {', '.join(missing)} can be read: choose other targets"
            )
        return {sender: torch.tensor(sender_rows) for sender, sender_rows in rows.items()}

    def select_columns(self, names: Sequence[str]) -> Float[Tensor, "updates numbers"]:
        """Return the columns with these names, in this order; a missing column is all NaN."""
        unknown = torch.full((len(self.senders),), nan, dtype=torch.float64)
        by_name = dict(zip(self.names, self.values.T, strict=True))
        columns = [by_name.get(name, unknown) for name in names]
        return torch.stack(columns, 1) if columns else self.values[:, :0]


def list_senders(view: View, excluded: Collection[Party] = ()) -> tuple[Party, ...]:
    """List the senders of readable updates or, without any, of encrypted messages.

    Observers, the server and the excluded parties are left out.
    """
    left_out = {*view.observers, *excluded, SERVER}
    readable = tuple(sender for sender in view.senders() if sender not in left_out)
    encrypted = dict.fromkeys(message.sender for message in view.encrypted)
    return readable or tuple(sender for sender in encrypted if sender not in left_out)


def read_metadata(
    view: View, senders: Collection[Party], *, with_order: bool
) -> MetadataFeatures:
    """Read the metadata of some senders' updates; weights are not read.

    If no update can be read, encrypted messages tell a size and a response time.

    Args:
        view: the view to read.
        senders: the senders; the mean of a round is the mean over their updates.
        with_order: whether to add the order of each reply among those of the senders.

    """
    crowd = frozenset(senders)
    sent = list(_updates_of(view, crowd)) or list(_envelopes_of(view, crowd))
    metrics = sorted({name for one in sent for name in one.numbers})
    rounds = torch.tensor([one.round for one in sent], dtype=torch.long)
    columns = [[one.numbers.get(name, nan) for one in sent] for name in metrics]
    if with_order:
        columns.append(_reply_order(rounds.tolist()))
    numbers = torch.tensor(columns, dtype=torch.float64).reshape(len(columns), len(sent)).T
    return MetadataFeatures(
        torch.tensor([one.log_size for one in sent], dtype=torch.float64),
        (*metrics, *((ORDER_FEATURE,) if with_order else ())),
        subtract_round_means(torch.where(numbers.isfinite(), numbers, nan), rounds),
        tuple(one.sender for one in sent),
        rounds,
    )


def subtract_round_means(
    numbers: Float[Tensor, "updates numbers"], rounds: Int[Tensor, " updates"]
) -> Float[Tensor, "updates numbers"]:
    """Subtract the mean of each round; NaN if only one update of the round has the value."""
    centred = numbers.clone()
    for number in sorted(set(rounds.tolist())):
        in_round = rounds == number
        values = numbers[in_round]
        centred[in_round] = torch.where(
            values.isfinite().sum(0) > 1, values - values.nanmean(0), nan
        )
    return centred


@final
@dataclass(frozen=True, slots=True)
class _Sent:
    """The metadata of one message."""

    round: int
    sender: Party
    log_size: float
    numbers: Mapping[str, float]


def _updates_of(view: View, crowd: frozenset[Party]) -> Iterator[_Sent]:
    for message in view.messages:
        body = message.body
        if isinstance(body, Update) and message.sender in crowd:
            size = nan if body.examples is None else log1p(body.examples)
            yield _Sent(message.round, message.sender, size, body.metrics)


def _envelopes_of(view: View, crowd: frozenset[Party]) -> Iterator[_Sent]:
    """Yield the first encrypted message of each sender in a round: the reply to a broadcast."""
    began, replied = dict[int, float](), set[tuple[int, Party]]()
    for message in view.encrypted:
        place, seconds = (message.round, message.sender), _seconds_of(message)
        if message.sender == SERVER and seconds is not None:
            began.setdefault(message.round, seconds)
        if message.sender not in crowd or place in replied:
            continue
        replied.add(place)
        numbers = NO_METRICS
        if seconds is not None and message.round in began:
            response = max(seconds - began[message.round], SHORTEST_RESPONSE)
            numbers = {RESPONSE_FEATURE: log(response)}
        yield _Sent(*place, log1p(message.size), numbers)


def _seconds_of(message: EncryptedMessage) -> float | None:
    """Return when the network saw a message; None if no clock is recorded."""
    if message.times is None:
        return None
    sent, received = message.times.sent, message.times.received
    first, second = (sent, received) if message.sender == SERVER else (received, sent)
    return second if first is None else first


def _reply_order(rounds: Sequence[int]) -> list[float]:
    """Return the order of each reply within its round, 0 to 1; replies are in arrival order."""
    counts = dict[int, int]()
    places = []
    for number in rounds:
        places.append(counts.get(number, 0))
        counts[number] = places[-1] + 1
    return [
        place / max(1, counts[number] - 1) for place, number in zip(places, rounds, strict=True)
    ]
