"""The messages of the round that is being recorded, kept in memory while they are few."""

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import torch

from overheard.archive.recorder import OpenRound
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    MessageBody,
    Update,
    Weights,
)

MOST_BYTES = 2**28
"""Most memory of the kept weights; without them the server reads the round from the disk."""


@final
class RoundMessages:
    """Records the messages of a round, and keeps them for the step of the server.

    The server then need not read back what was just written. The messages in memory have the
    values that it would read from the disk.

    Args:
        open_round: where to record the messages.
        most_bytes: most memory of the kept weights.

    """

    def __init__(self, open_round: OpenRound, most_bytes: int = MOST_BYTES) -> None:
        self._open_round = open_round
        self._bytes_left = most_bytes
        self._messages: list[Message] | None = []

    def record(self, message: Message) -> Message:
        """Record a message; return it as it is read, from memory while the messages are few."""
        stored = self._open_round.record(message)
        if self._messages is None:
            return stored
        same = replace(stored, body=self._body_in_memory(stored.body, message.body))
        if self._bytes_left < 0:
            self._messages = None
            return stored
        self._messages.append(same)
        return same

    def in_memory(self) -> Sequence[Message] | None:
        """Return all messages with their weights in memory; None = they were too large."""
        return self._messages

    def _body_in_memory(self, stored: MessageBody, sent: MessageBody) -> MessageBody:
        match stored, sent:
            case Broadcast(), Broadcast():
                weights = self._read_as(stored.weights, sent.weights)
                control = self._read_control(stored.control, sent.control)
                return replace(stored, weights=weights, control=control)
            case Update(), Update():
                delta = self._read_as(stored.delta, sent.delta)
                control = self._read_control(stored.control, sent.control)
                return replace(stored, delta=delta, control=control)
            case Aggregate(), Aggregate():
                return replace(stored, delta=self._read_as(stored.delta, sent.delta))
        return stored

    def _read_control(self, found: Weights | None, sent: Weights | None) -> Weights | None:
        return None if found is None or sent is None else self._read_as(found, sent)

    def _read_as(self, found: Weights, sent: Weights) -> dict[str, torch.Tensor]:
        """Return the sent tensors in the order and type in which they are read."""
        tensors = {name: sent[name].detach().cpu().float() for name in found}
        self._bytes_left -= sum(4 * tensor.numel() for tensor in tensors.values())
        return tensors
