"""Requests and replies of a Flower run, read from the messages of its Message API."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import isfinite
from time import time

from overheard.core.parties import client
from overheard.recorders.flower_api import ErrorCode, Message, Metadata
from overheard.recorders.flower_arrays import PackedArrays
from overheard.recorders.flower_contents import (
    extract_arrays,
    find_value,
    read_answer_metadata,
    read_config,
)
from overheard.recorders.flower_rounds import (
    FlowerReply,
    FlowerRequest,
    ReplyContent,
    ReplyError,
    RequestKind,
)
from overheard.recorders.reply_values import SIZE_KEYS, sanitize_text

_CODES = {code: name for name, code in vars(ErrorCode).items() if isinstance(code, int)}

_KINDS: Mapping[str, RequestKind] = {"train": "train", "evaluate": "evaluate"}
"""The kinds of messages that a transcript can store."""


def is_recorded(message: Message) -> bool:
    """Return whether a transcript can store messages of this kind."""
    return _kind(message) in _KINDS


def unrecorded_kinds(messages: Iterable[Message]) -> list[str]:
    """Return the kinds of these messages that a transcript cannot store, as plain texts."""
    return sorted({sanitize_text(_kind(one)) for one in messages if not is_recorded(one)})


def read_requests(messages: Iterable[Message]) -> list[FlowerRequest]:
    """Read the request to each node; content shared by several nodes is read once."""
    read = dict[int, tuple[PackedArrays, Mapping[str, str]]]()
    requests = []
    for one in filter(is_recorded, messages):
        content, metadata = one.content, one.metadata
        if id(content) not in read:
            read[id(content)] = extract_arrays(content), read_config(content)
        parts, config = read[id(content)]
        requests.append(
            FlowerRequest(
                client(metadata.dst_node_id),
                _KINDS[_kind(one)],
                parts,
                config,
                _seconds(metadata),
                partial(_message_id, metadata),
            )
        )
    return requests


def read_replies(
    messages: Sequence[Message], sizes: tuple[str, ...] = SIZE_KEYS
) -> list[FlowerReply]:
    """Read replies that just arrived.

    Args:
        messages: the replies.
        sizes: names under which nodes report the number of examples.

    """
    received = time()
    return [
        FlowerReply(
            client(one.metadata.src_node_id),
            partial(_read_content, one, sizes),
            _seconds(one.metadata),
            received,
            one.metadata.reply_to_message_id,
        )
        for one in filter(is_recorded, messages)
    ]


def find_in_reply(reply: Message, key: str) -> object:
    """Return the value under a key of a reply; None if it has none or cannot be read."""
    # Any error here comes from the sender's content.
    try:
        return find_value(reply.content, key) if reply.has_content() else None
    except Exception:
        return None


def _read_content(reply: Message, sizes: tuple[str, ...]) -> ReplyContent | ReplyError:
    if reply.has_error():
        code = reply.error.code
        return ReplyError(_CODES.get(code, f"error {code}"), reply.error.reason or "")
    records = list(reply.content.array_records)
    return ReplyContent(
        extract_arrays(reply.content),
        read_answer_metadata(reply.content, sizes),
        records[0] if len(records) == 1 else "",
    )


def _message_id(metadata: Metadata) -> str:
    """Return the number of a message, which it gets when it is sent."""
    number: str = metadata.message_id
    return number


def _kind(message: Message) -> str:
    """Return the kind of a message, such as "train" for "train" and "train.my_action"."""
    kind: str = message.metadata.message_type.partition(".")[0]
    return kind


def _seconds(metadata: Metadata) -> float | None:
    """Return when a message was created; None if its value is invalid."""
    created = metadata.created_at
    return float(created) if isinstance(created, int | float) and isfinite(created) else None
