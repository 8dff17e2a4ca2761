import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from overheard.recorders.flower_arrays import count_bytes
from overheard.recorders.flower_contents import (
    extract_arrays,
    read_answer_metadata,
)
from overheard.recorders.reply_values import sanitize_text


@pytest.mark.parametrize("size", [-1, 1.5, float("nan"), float("inf")])
def test_an_invalid_number_of_examples_is_none(size: float) -> None:
    assert (
        read_answer_metadata(RecordDict({"m": MetricRecord({"num-examples": size})})).examples
        is None
    )


def test_names_list_items_duplicate_metrics_and_unrecorded_values() -> None:
    content = RecordDict(
        {
            "a": MetricRecord({"loss": 1.0, "by-class": [0.5, 0.25]}),
            "b": MetricRecord({"loss": 2, "worst": float("nan")}),
            "c": ConfigRecord({"note": "text", "flag": True}),
        }
    )
    found = read_answer_metadata(content)
    assert found.metrics == {
        "a/loss": 1.0,
        "by-class[0]": 0.5,
        "by-class[1]": 0.25,
        "b/loss": 2.0,
        "flag": 1.0,
    }
    assert found.unrecorded == ("worst",)
    assert found.texts == ("note",)


def test_texts_list_no_more_numbers_than_a_reply_may_have_values() -> None:
    # Two texts of 4,990 numbers fit, and none from the third one on.
    texts = {f"t{place}": f"[{'1,' * 4989}1]" for place in range(3)} | {"last": "[1, 2]"}
    found = read_answer_metadata({"c": {**texts, "loss": 0.5}})
    assert len(found.metrics) == 2 * 4990 + 1
    assert found.metrics["loss"] == 0.5
    assert found.texts == ("t2", "last")


def test_sanitises_untrusted_names() -> None:
    assert sanitize_text("loss\x1b[2J\udc80") == "loss?[2J?"
    assert sanitize_text("x" * 300) == "x" * 200 + "..."
    hostile = RecordDict({"m": MetricRecord({"\x1b[2J": 1.0})})
    assert list(read_answer_metadata(hostile).metrics) == ["?[2J"]


def test_names_arrays_of_several_records_and_ignores_later_changes() -> None:
    array = Array(np.ones(2, np.float32))
    alone = RecordDict({"arrays": ArrayRecord({"w": array})})
    before = extract_arrays(alone)
    assert list(before) == ["w"]
    alone["arrays"] = ArrayRecord({"w": Array(np.zeros(2, np.float32))})
    assert before["w"].data == array.data
    assert count_bytes(before) == len(array.data)
    two = RecordDict({"a": ArrayRecord({"w": array}), "b": ArrayRecord({"w": array})})
    assert list(extract_arrays(two)) == ["a/w", "b/w"]


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("[12, 0, 31]", {"counts[0]": 12.0, "counts[1]": 0.0, "counts[2]": 31.0}),
        ("(12, 31)", {"counts[0]": 12.0, "counts[1]": 31.0}),
        ('{"cat": 12, "dog": 31}', {"counts.cat": 12.0, "counts.dog": 31.0}),
        ("{0: 12, 1: 31}", {"counts.0": 12.0, "counts.1": 31.0}),
        ("{'cat': 1.5, 'dog': 2}", {"counts.cat": 1.5, "counts.dog": 2.0}),
    ],
)
def test_numbers_that_travel_as_a_text_are_numbers(
    text: str, metrics: dict[str, float]
) -> None:
    for value in (text, text.encode()):
        found = read_answer_metadata(RecordDict({"c": ConfigRecord({"counts": value})}))
        assert found.metrics == metrics
        assert found.texts == ()


@pytest.mark.parametrize(
    "text", ["12", "[12]", "[12, 'x']", "[[1, 2], 3]", "[" * 9000 + "]" * 9000, "", "a, b"]
)
def test_other_texts_are_named_and_not_stored(text: str) -> None:
    found = read_answer_metadata(RecordDict({"c": ConfigRecord({"t": text, "u": [text] * 2})}))
    assert found.metrics == {}
    assert found.texts == ("t", "u")
