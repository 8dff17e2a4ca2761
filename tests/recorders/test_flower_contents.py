import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ConfigRecord, MetricRecord, RecordDict

from overheard.recorders.flower_contents import read_answer_metadata, read_config, sanitize_text


def test_separates_the_number_of_examples_from_metrics() -> None:
    content = RecordDict({"metrics": MetricRecord({"num-examples": 7, "loss": 0.5})})
    found = read_answer_metadata(content)
    assert found.examples == 7
    assert found.metrics == {"loss": 0.5}
    assert not found.unrecorded


@pytest.mark.parametrize("size", [-1, 1.5, float("nan"), float("inf")])
def test_an_invalid_number_of_examples_is_none(size: float) -> None:
    assert (
        read_answer_metadata(RecordDict({"m": MetricRecord({"num-examples": size})})).examples
        is None
    )


def test_prefers_a_custom_name_of_the_number_of_examples() -> None:
    content = RecordDict({"m": MetricRecord({"rows": 3, "num-examples": 7})})
    found = read_answer_metadata(content, ("rows", "num-examples"))
    assert found.examples == 3
    assert found.metrics == {"num-examples": 7.0}


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


def test_formats_a_configuration_as_text() -> None:
    content = RecordDict({"c": ConfigRecord({"lr": 0.1, "who": "a\nb", "key": b"1234"})})
    assert read_config(content) == {"lr": "0.1", "who": "a?b", "key": "<4 bytes>"}


def test_sanitises_untrusted_names() -> None:
    assert sanitize_text("loss\x1b[2J\udc80") == "loss?[2J?"
    assert sanitize_text("x" * 300) == "x" * 200 + "..."
    hostile = RecordDict({"m": MetricRecord({"\x1b[2J": 1.0})})
    assert list(read_answer_metadata(hostile).metrics) == ["?[2J"]
