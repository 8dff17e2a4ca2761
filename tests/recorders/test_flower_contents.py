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
    assert found.unrecorded == ("worst", "note")


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
