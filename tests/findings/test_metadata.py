"""What messages contain besides weights, as far as somebody reads it."""

from overheard.core.messages import Aggregate, Message, Update
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.findings.metadata import describe_metadata

ALL = frozenset({SERVER})

NOBODY = frozenset[Party]()


def update(k: int, round_number: int, examples: int, readers: frozenset[Party]) -> Message:
    body = Update({}, examples=examples, metrics={"loss": 0.5})
    return Message(round_number, client(k), readers, body)


def texts(messages: list[Message]) -> dict[str, str]:
    return {item.kind: item.text for item in describe_metadata(messages)}


def test_what_the_server_reads_is_told_with_sizes_metrics_and_names() -> None:
    found = texts([update(k, t, 5 + k, ALL) for k in (0, 1) for t in (0, 1)])
    assert found["examples"] == (
        "2 senders with 5 to 6 examples, read by server; 2 send the same number in all rounds, "
        "which links their messages"
    )
    assert found["metrics"] == "loss 0.5, read by server"
    assert found["names"].startswith("2 of 2 appear in more than one round")


def test_what_nobody_reads_is_not_sent_in_clear() -> None:
    hidden = [update(k, t, 5 + k, NOBODY) for k in (0, 1) for t in (0, 1)]
    assert texts(hidden) == {}
    total = Aggregate({}, frozenset({client(0), client(1)}), 11)
    mean = [Message(t, COHORT, ALL, total) for t in (0, 1)]
    assert texts([*hidden, *mean]) == {"examples": "sums of 11 examples, read by server"}
