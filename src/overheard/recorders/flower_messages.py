"""Requests and replies of a Flower run, read from the messages of its Message API."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import isfinite
from time import time

from overheard.core.parties import Party, client
from overheard.recorders.flower_api import (
    SUPERLINK_NODE_ID,
    ConfigRecord,
    ErrorCode,
    Message,
    Metadata,
)
from overheard.recorders.flower_arrays import PackedArrays, count_bytes
from overheard.recorders.flower_contents import (
    array_records,
    copy_reply_values,
    extract_arrays,
    extract_reply_arrays,
    find_value,
    read_answer_metadata,
    read_config,
    read_copied_values,
    read_numbers,
)
from overheard.recorders.flower_replies import (
    FlowerReply,
    FlowerRequest,
    ReplyContent,
    ReplyError,
    RequestKind,
)
from overheard.recorders.replies.limits import MAX_RECORDS, ReplyLimits, is_round_number
from overheard.recorders.replies.reply_reading import AS_WEIGHTS, ReplyReading
from overheard.recorders.replies.secure_aggregation import MASKED_WEIGHTS, SECURE_RECORD
from overheard.recorders.reply_values import SIZE_KEYS, sanitize_text

UNKNOWN_NODE = Party("client/unknown")
"""The sender of replies whose id is no valid one."""

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
    """Read the request to each node; content shared by several nodes is read once.

    Requests of secure aggregation without a model, for keys and shares, are left out.
    """
    read = dict[int, tuple[PackedArrays, Mapping[str, str]]]()
    requests = []
    for one in filter(is_recorded, messages):
        content, metadata = one.content, one.metadata
        is_secure = SECURE_RECORD in content.config_records
        if is_secure and not content.array_records:
            continue
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
                is_secure,
            )
        )
    return requests


def read_replies(
    messages: Sequence[Message],
    sizes: tuple[str, ...] = SIZE_KEYS,
    reading: ReplyReading = AS_WEIGHTS,
) -> list[FlowerReply]:
    """Read replies that just arrived.

    Args:
        messages: the replies.
        sizes: names under which nodes report the number of examples.
        reading: how they are read.

    """
    received = time()
    return [_reply(one, sizes, reading, received) for one in filter(is_recorded, messages)]


def read_other_replies(
    messages: Sequence[Message], sizes: tuple[str, ...], reading: ReplyReading
) -> dict[str, list[FlowerReply]]:
    """Read replies to messages of kinds that a transcript cannot store, by their kind."""
    found = dict[str, list[FlowerReply]]()
    for one in messages:
        if not is_recorded(one):
            reply = _reply(one, sizes, reading, time())
            found.setdefault(sanitize_text(_kind(one)), []).append(reply)
    return found


def _reply(
    message: Message, sizes: tuple[str, ...], reading: ReplyReading, received: float
) -> FlowerReply:
    metadata = message.metadata
    reply_to = metadata.reply_to_message_id
    return FlowerReply(
        sender_of(message),
        partial(_read_content, message, sizes, reading),
        _seconds(metadata),
        received,
        reply_to if type(reply_to) is str else "",
        _has_only_keys(message),
        metadata.src_node_id == SUPERLINK_NODE_ID
        and message.has_error()
        and not message.has_content(),
    )


def find_in_reply(reply: Message, key: str) -> object:
    """Return the value under a key of a reply; None if it has none or cannot be read."""
    # Any error here comes from the sender's content.
    try:
        return find_value(reply.content, key) if reply.has_content() else None
    except Exception:
        return None


def _has_only_keys(reply: Message) -> bool:
    """Return whether a reply has keys or shares of secure aggregation, and nothing else."""
    # Any error here comes from the sender's content.
    try:
        if not reply.has_content() or len(reply.content) > MAX_RECORDS:
            return False
        content = reply.content
        is_alone = all(isinstance(one, ConfigRecord) for one in content.values())
        secure = content.get(SECURE_RECORD)
        return is_alone and secure is not None and MASKED_WEIGHTS not in secure
    except Exception:
        return False


def _read_content(
    reply: Message, sizes: tuple[str, ...], reading: ReplyReading, limits: ReplyLimits
) -> ReplyContent | ReplyError:
    if reply.has_error():
        code = reply.error.code
        name, text = _CODES.get(code, f"error {code}"), reply.error.reason
        return ReplyError(name, text if type(text) is str else "", reply.has_content())
    content = reply.content
    arrays, copied = extract_reply_arrays(content, limits), copy_reply_values(content)
    values = read_copied_values(copied)
    records = list(array_records(content))
    began_in = find_value(content, reading.began_in) if reading.began_in else None
    return ReplyContent(
        arrays,
        partial(read_answer_metadata, values, sizes),
        records[0] if len(records) == 1 else "",
        partial(read_numbers, values, reading.scales)
        if isinstance(reading.scales, str)
        else dict,
        began_in if is_round_number(began_in) else None,
        size=count_bytes(arrays) + copied.size,
    )


def _message_id(metadata: Metadata) -> str:
    """Return the number of a message, which it gets when it is sent."""
    number: str = metadata.message_id
    return number


def _kind(message: Message) -> str:
    """Return the kind of a message, such as "train" for "train" and "train.my_action"."""
    kind = message.metadata.message_type
    return kind.partition(".")[0] if type(kind) is str else ""


def sender_of(reply: Message) -> Party:
    """Return the node that a reply says it comes from, or one that stands for no valid id."""
    number = reply.metadata.src_node_id
    is_valid = type(number) is int and 0 <= number < 2**64
    return client(number) if is_valid else UNKNOWN_NODE


def _seconds(metadata: Metadata) -> float | None:
    """Return when a message was created; None if its value is invalid."""
    created = metadata.created_at
    if type(created) not in (int, float):
        return None
    try:
        return float(created) if isfinite(created) else None
    # A whole number that no float can hold.
    except OverflowError:
        return None
