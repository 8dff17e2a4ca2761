"""What messages contain besides weights, as far as somebody reads it."""

import pytest

from overheard.core.messages import Aggregate, Message, UnstoredMessage, Update
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


def reply(k: int, examples: int | None, **metrics: float) -> Message:
    named = {name.replace("__", "["): value for name, value in metrics.items()}
    named = {f"{name}]" if "[" in name else name: value for name, value in named.items()}
    return Message(0, client(k), ALL, Update({}, examples, named))


@pytest.mark.parametrize(
    ("messages", "name"),
    [
        ([reply(k, 9, a__0=4.0, a__1=5.0 - k, a__2=float(k), loss=0.5) for k in (0, 1)], "a"),
        ([reply(k, 9, n_cats=4.0 + k, n_dogs=5.0 - k) for k in (0, 1)], "n..."),
        ([reply(k, 9, class_0=4.0 + k, class_1=5.0 - k) for k in (0, 1)], "class_#"),
        ([reply(0, None, label_counts__0=4.0, label_counts__1=9.0)], "label_counts"),
        ([reply(0, 9, label_shares__0=0.25, label_shares__1=0.75)], "label_shares"),
    ],
)
def test_a_histogram_of_labels_in_clear_is_named_as_one(
    messages: list[Message], name: str
) -> None:
    told = texts(messages)["labels"]
    assert told.startswith(f"{name} is a histogram of labels in clear text: ")
    assert told.endswith("read by server without an attack")


@pytest.mark.parametrize(
    "message",
    [
        reply(0, 9, a__0=4.0, a__1=6.0),  # sums to another number
        reply(0, 9, loss=4.0, accuracy=5.0),  # no common name
        reply(0, 9, a__0=9.0),  # one number alone
        reply(0, None, a__0=4.0, a__1=5.0),  # nothing says so
        reply(0, 9, momentum__0=0.25, momentum__1=0.75),  # shares of something else
        Message(0, client(0), NOBODY, Update({}, 9, {"a[0]": 4.0, "a[1]": 5.0})),
    ],
)
def test_other_numbers_are_no_histogram_of_labels(message: Message) -> None:
    assert "labels" not in texts([message])


def test_texts_absent_tensors_and_unstored_replies_are_listed_with_their_readers() -> None:
    found = texts(
        [
            Message(0, client(0), ALL, Update({}, texts=("hospital",), absent=("bn.weight",))),
            Message(0, client(1), ALL, UnstoredMessage("text", "trees", 7, {}, ("patient",))),
            Message(0, client(2), ALL, UnstoredMessage("masked", "secure aggregation")),
        ]
    )
    assert found["texts"] == (
        "hospital, patient: texts or bytes of 2 senders, whose content is not stored, read by "
        "server"
    )
    assert found["absent"] == "bn.weight: not in 1 update, where it counts as unchanged"
    assert found["unstored"] == (
        "1 of 1 sender: weights that are masked, read by nobody: secure aggregation; "
        "1 of 1 sender: text, read by server: trees"
    )
    assert found["examples"].startswith("1 sender with 7 examples, read by server")
