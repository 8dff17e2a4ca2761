"""Runs in which updates were changed after they were sent."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from overheard.core.messages import Message, Update
from overheard.core.parties import Party


def change_updates(
    messages: Sequence[Message],
    change: Callable[[Update], Mapping[str, object]],
    senders: Collection[Party] | None = None,
) -> tuple[Message, ...]:
    """Return the messages with other fields in the updates of these senders, or of all."""
    return tuple(
        replace(one, body=replace(one.body, **change(one.body)))
        if isinstance(one.body, Update) and (senders is None or one.sender in senders)
        else one
        for one in messages
    )
