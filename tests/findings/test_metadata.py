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


def test_a_number_that_tells_each_sender_apart_is_called_a_name() -> None:
    def named(k: int, t: int, number: float) -> Message:
        metrics = {"partition-id": float(number), "loss": 0.5 + k}
        return Message(t, client(k), ALL, Update({}, examples=5, metrics=metrics))

    rounds = (0, 1)
    told = texts([named(k, t, k) for k in (0, 1) for t in rounds])["metrics"]
    assert told.endswith("; partition-id is a name: each of 2 senders repeats its own number")
    # The same for both, different in each round, or heard only once: no name.
    for other in (
        [named(k, t, 3) for k in (0, 1) for t in rounds],
        [named(k, t, 2 * t + k) for k in (0, 1) for t in rounds],
        [named(k, 0, k) for k in (0, 1)],
    ):
        assert "is a name" not in texts(other)["metrics"]


def test_what_nobody_reads_is_not_sent_in_clear() -> None:
    hidden = [update(k, t, 5 + k, NOBODY) for k in (0, 1) for t in (0, 1)]
    assert texts(hidden) == {}
    total = Aggregate({}, frozenset({client(0), client(1)}), 11)
    mean = [Message(t, COHORT, ALL, total) for t in (0, 1)]
    assert texts([*hidden, *mean]) == {"examples": "sums of 11 examples, read by server"}
